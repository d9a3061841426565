#include "core/exec/random_state.h"

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/base/text.h"

namespace cutaway::exec {

namespace {

/// The default generators of the devices that are in use.
std::vector<at::Generator> generators_in_use() {
  std::vector<at::Generator> found = {at::globalContext().defaultGenerator(at::Device(at::kCPU))};
  // Nothing here may wake CUDA's driver, not even by counting devices: a worker forks, and a driver that was awake before the fork
  // is of no use after it. Asking a device without a context for its generator would make one.
  // Fake tensors of a device that this build lacks put a guard in its place, but no allocator.
  auto* allocator = c10::impl::hasDeviceGuardImpl(at::kCUDA) ? dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(at::kCUDA)) : nullptr;
  if (!allocator || !allocator->initialized()) return found;
  const auto& cuda = at::detail::getCUDAHooks();
  try {
    for (int i = 0; i < cuda.getNumGPUs(); ++i)
      if (cuda.hasPrimaryContext(static_cast<c10::DeviceIndex>(i))) found.push_back(at::globalContext().defaultGenerator(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(i))));
  } catch (const c10::Error&) {
    // The driver was awake in the process that forked this one: no program can draw numbers on a GPU here.
  }
  return found;
}

constexpr char kDigits[] = "0123456789abcdef";

std::optional<at::Tensor> bytes_from(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  at::Tensor bytes = at::empty({static_cast<int64_t>(hex.size() / 2)}, at::kByte);
  for (size_t i = 0; i < hex.size() / 2; ++i) {
    const char *high = std::strchr(kDigits, hex[2 * i]), *low = std::strchr(kDigits, hex[2 * i + 1]);
    if (!high || !low || !*high || !*low) return std::nullopt;
    bytes.mutable_data_ptr<uint8_t>()[i] = static_cast<uint8_t>((high - kDigits) * 16 + (low - kDigits));
  }
  return bytes;
}

}  // namespace

std::map<std::string, std::string> generators_now() {
  std::map<std::string, std::string> out;
  for (at::Generator& generator : generators_in_use()) {
    std::lock_guard lock(generator.mutex());
    const at::Tensor state = generator.get_state();
    std::string& text = out[generator.device().str()];
    for (int64_t i = 0; i < state.numel(); ++i) {
      const uint8_t byte = state.const_data_ptr<uint8_t>()[i];
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return out;
}

base::Result<RandomStart> random_start(uint64_t seed, const std::map<std::string, std::string>& generators) {
  RandomStart start(seed);
  for (const auto& [device, text] : generators) {
    std::optional<at::Tensor> bytes = bytes_from(text);
    try {
      if (bytes) start.states.emplace_back(at::Device(device), *std::move(bytes));
    } catch (const c10::Error&) {
      bytes.reset();
    }
    if (!bytes) return base::Error{.what = "the state of the random generator of " + base::quote(device) + " cannot be read"};
  }
  return start;
}

RandomStateScope::RandomStateScope(const RandomStart& start) {
  for (at::Generator& generator : generators_in_use()) {
    std::lock_guard lock(generator.mutex());
    before_.emplace_back(generator, generator.get_state());
    const auto known = std::find_if(start.states.begin(), start.states.end(), [&](const auto& s) { return s.first == generator.device(); });
    if (known == start.states.end()) generator.set_current_seed(start.seed);
    else generator.set_state(known->second);
  }
}

RandomStateScope::~RandomStateScope() {
  for (auto& [generator, state] : before_) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace cutaway::exec
