// The state of torch that decides what operators do and that no argument shows: grad mode, autocast, default dtype, …
// Taken when a frame is captured, compared before every run of its plan.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::guards {

struct GlobalState {
  bool grad_mode = true, inference_mode = false;
  uint8_t autocast_enabled = 0;      ///< bit 0 the CPU, bit 1 CUDA
  int8_t autocast_cpu_dtype = 0, autocast_cuda_dtype = 0;
  int8_t autocast_other_dtype = 0;   ///< of the device that the program is built for besides these (PrivateUse1, XPU, MPS)
  bool autocast_cache = true;
  bool deterministic = false, deterministic_warn_only = false, fill_uninitialized = true;
  int8_t default_dtype = 0;
  int8_t matmul_precision = 0;
  int8_t torch_function_disabled = 0;   ///< at::impl::TorchFunctionDisabledState: off for classes, or for modes, too
  int recursion_limit = 0;           ///< Python's: models ask for it before they recurse
  uint32_t tensor_class = 0;         ///< which torch.Tensor: another one when somebody has replaced a method of it
  uint32_t backend_flags = 0;        ///< torch.backends: which kernels may be chosen
  /// An active torch function mode. torch.set_default_device and `with torch.device(...)` are one; these are the same for the same device.
  struct Mode {
    const void* object = nullptr;    ///< the mode, or for a default device the class
    int32_t device = -1;
    bool operator==(const Mode&) const = default;
  };
  std::vector<Mode> torch_function_modes;
  bool functorch = false;            ///< vmap, grad or jvp around
  bool dispatch_modes = false;       ///< a TorchDispatchMode is active
  uint64_t included_keys = 0, excluded_keys = 0;   ///< of this thread's dispatcher: whatever else is switched on or off
  /// With the GIL.
  static GlobalState now() noexcept;
  bool operator==(const GlobalState&) const = default;
  /// "grad mode was True, is False"; empty when nothing differs.
  std::string difference(const GlobalState& is) const;
};

}  // namespace cutaway::guards
