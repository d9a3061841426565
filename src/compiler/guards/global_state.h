// The state of torch that decides what operators do and that no argument shows: grad mode, autocast, default dtype, …
// Taken when a frame is captured, compared before every run of its plan.
#pragma once
#include <cstdint>
#include <string>

namespace cutaway::guards {

struct GlobalState {
  bool grad_mode = true, inference_mode = false;
  uint8_t autocast_enabled = 0;      ///< bit 0 the CPU, bit 1 CUDA
  int8_t autocast_cpu_dtype = 0, autocast_cuda_dtype = 0;
  bool autocast_cache = true;
  bool deterministic = false, deterministic_warn_only = false, fill_uninitialized = true;
  int8_t default_dtype = 0;
  int8_t matmul_precision = 0;
  bool torch_function_disabled = false;
  int32_t torch_function_modes = 0;  ///< active modes; torch.set_default_device is one
  const void* innermost_mode = nullptr;
  bool functorch = false;            ///< vmap, grad or jvp around
  bool dispatch_modes = false;       ///< a TorchDispatchMode is active
  uint64_t included_keys = 0, excluded_keys = 0;   ///< of this thread's dispatcher: whatever else is switched on or off
  static GlobalState now() noexcept;
  bool operator==(const GlobalState&) const = default;
  /// "grad mode was True, is False"; empty when nothing differs.
  std::string difference(const GlobalState& is) const;
};

}  // namespace cutaway::guards
