// The state that holds while a region runs (grad mode, inference mode, autocast), set as recorded and put back exactly.
#pragma once
#include <c10/core/DeviceType.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::exec {

/// ir::RegionState in torch's words.
struct StateSetting {
  struct Autocast { c10::DeviceType device; bool enabled; c10::ScalarType dtype; bool cache; };
  std::optional<bool> grad_enabled, inference_mode;
  std::vector<Autocast> autocast;
};
/// Refuses a device that torch does not know or that has no autocast.
base::Result<StateSetting> prepare_state(const ir::RegionState&);

/// Autocast off for every device that has it on, on this thread: in double precision nothing is to be rounded.
StateSetting autocast_off();

/// Sets the state on this thread for its lifetime. Scopes end in the reverse order of their beginning.
class StateScope {
 public:
  explicit StateScope(const StateSetting&);
  ~StateScope();
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  std::optional<c10::InferenceMode> inference_mode_;
  std::optional<bool> grad_before_;
  std::vector<StateSetting::Autocast> autocast_before_;
};

}  // namespace cutaway::exec
