#include "core/exec/region_state.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "core/tensor/convert.h"

namespace cutaway::exec {

base::Result<StateSetting> prepare_state(const ir::RegionState& state) {
  StateSetting setting{state.grad_enabled, state.inference_mode, {}};
  for (const auto& a : state.autocast) {
    try {
      const c10::DeviceType device = tensor::to_aten(a.device).type();
      at::autocast::get_autocast_dtype(device);   // raises where there is no autocast
      setting.autocast.push_back({device, a.enabled, tensor::to_aten(a.dtype), a.cache});
    } catch (const c10::Error& e) {
      return base::Error{.what = "autocast cannot be set for the device '" + a.device.text() + "'", .because = e.what_without_backtrace()};
    }
  }
  return setting;
}

StateSetting autocast_off() {
  StateSetting setting;
  for (const c10::DeviceType device : at::autocast::_AUTOCAST_SUPPORTED_DEVICES)
    if (at::autocast::is_autocast_enabled(device)) setting.autocast.push_back({device, false, at::autocast::get_autocast_dtype(device), at::autocast::is_autocast_cache_enabled()});
  return setting;
}

StateScope::StateScope(const StateSetting& setting) {
  // Inference mode also switches grad mode, so grad mode comes after it.
  if (setting.inference_mode) inference_mode_.emplace(*setting.inference_mode);
  if (setting.grad_enabled) {
    grad_before_ = at::GradMode::is_enabled();
    at::GradMode::set_enabled(*setting.grad_enabled);
  }
  if (setting.autocast.empty()) return;
  autocast_before_.reserve(setting.autocast.size());
  at::autocast::increment_nesting();
  for (const auto& a : setting.autocast) {
    autocast_before_.push_back({a.device, at::autocast::is_autocast_enabled(a.device), at::autocast::get_autocast_dtype(a.device), at::autocast::is_autocast_cache_enabled()});
    at::autocast::set_autocast_enabled(a.device, a.enabled);
    at::autocast::set_autocast_dtype(a.device, a.dtype);
    at::autocast::set_autocast_cache_enabled(a.cache);
  }
}

StateScope::~StateScope() {
  if (!autocast_before_.empty()) {
    // Casts cached in here hold for the outermost autocast, as with torch.autocast.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    for (auto a = autocast_before_.rbegin(); a != autocast_before_.rend(); ++a) {
      at::autocast::set_autocast_enabled(a->device, a->enabled);
      at::autocast::set_autocast_dtype(a->device, a->dtype);
      at::autocast::set_autocast_cache_enabled(a->cache);
    }
  }
  if (grad_before_) at::GradMode::set_enabled(*grad_before_);
}

}  // namespace cutaway::exec
