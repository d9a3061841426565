#include "compiler/guards/global_state.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include "compiler/guards/tensor_object.h"

namespace cutaway::guards {
namespace {

std::string says(const char* what, const std::string& was, const std::string& is) { return std::string(what) + " was " + was + ", is " + is; }
std::string says(const char* what, bool was, bool is) { return says(what, std::string(was ? "on" : "off"), std::string(is ? "on" : "off")); }
// Flags of torch.backends that choose between operators (attention, recurrent layers, normalization) before a graph sees them, or that change
// what a kernel computes. In the order of kFlagNames.
uint32_t backend_flags(const at::Context& c) {
  const bool flags[] = {c.userEnabledFlashSDP(), c.userEnabledMemEfficientSDP(), c.userEnabledMathSDP(), c.userEnabledCuDNNSDP(), c.allowFP16BF16ReductionMathSDP(),
                        c.userEnabledCuDNN(), c.deterministicCuDNN(), c.benchmarkCuDNN(), c.userEnabledMkldnn(), c.userEnabledNNPACK()};
  uint32_t bits = 0;
  for (size_t i = 0; i < std::size(flags); ++i) bits |= static_cast<uint32_t>(flags[i]) << i;
  return bits;
}
constexpr const char* kFlagNames[] = {"torch.backends.cuda.flash_sdp", "torch.backends.cuda.mem_efficient_sdp", "torch.backends.cuda.math_sdp", "torch.backends.cuda.cudnn_sdp",
                                      "torch.backends.cuda.fp16_bf16_reduction_math_sdp", "torch.backends.cudnn.enabled", "torch.backends.cudnn.deterministic",
                                      "torch.backends.cudnn.benchmark", "torch.backends.mkldnn.enabled", "torch.backends.nnpack"};

std::string dtype_text(int8_t dtype) { return at::toString(static_cast<at::ScalarType>(dtype)); }

std::string device_text(const std::vector<GlobalState::Mode>& modes) {
  for (size_t i = modes.size(); i-- > 0;)
    if (modes[i].device >= 0) return c10::Device(static_cast<c10::DeviceType>(modes[i].device >> 8), static_cast<c10::DeviceIndex>(modes[i].device & 0xff)).str();
  return "cpu";
}

}  // namespace

GlobalState GlobalState::now() noexcept {
  GlobalState s;
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  s.grad_mode = autograd.get_grad_mode();
  s.inference_mode = autograd.get_inference_mode();
  const bool cpu = at::autocast::is_autocast_enabled(at::kCPU), cuda = at::autocast::is_autocast_enabled(at::kCUDA);
  s.autocast_enabled = static_cast<uint8_t>(cpu | (cuda << 1));
  // Those that are off, too: a program may ask for them, and a block that turns autocast on puts them back at its end.
  s.autocast_cpu_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCPU));
  s.autocast_cuda_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCUDA));
  if (!keys.excluded_.has_all(c10::autocast_dispatch_keyset - c10::DispatchKeySet({c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}))) {
    for (const auto device : {at::kXPU, at::kMPS, at::kPrivateUse1})
      if (at::autocast::is_autocast_enabled(device)) s.autocast_other_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(device));
  }
  s.autocast_cache = at::autocast::is_autocast_cache_enabled();
  const at::Context& context = at::globalContext();
  s.deterministic = context.deterministicAlgorithms();
  s.deterministic_warn_only = context.deterministicAlgorithmsWarnOnly();
  s.fill_uninitialized = context.deterministicFillUninitializedMemory();
  s.default_dtype = static_cast<int8_t>(c10::get_default_dtype_as_scalartype());
  try {
    s.matmul_precision = static_cast<int8_t>(context.float32MatmulPrecision());
  } catch (...) {   // torch refuses to tell when both of its ways to set it were used
    s.matmul_precision = -1;
  }
  const auto& functions = at::impl::PythonTorchFunctionTLS::get_state();
  s.torch_function_disabled = static_cast<int8_t>(functions.get_disabled_state());
  for (int64_t i = 0, n = at::impl::PythonTorchFunctionTLS::stack_len(); i < n; ++i) s.torch_function_modes.push_back(describe_function_mode(i));
  s.backend_flags = guards::backend_flags(context);
  s.tensor_class = number_tensor_class();
  s.recursion_limit = Py_GetRecursionLimit();
  s.functorch = keys.included_.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
  s.dispatch_modes = c10::impl::TorchDispatchModeTLS::any_modes_set();
  s.included_keys = keys.included_.raw_repr();
  s.excluded_keys = keys.excluded_.raw_repr();
  return s;
}

std::string GlobalState::difference(const GlobalState& is) const {
  if (grad_mode != is.grad_mode) return says("grad mode", grad_mode, is.grad_mode);
  if (inference_mode != is.inference_mode) return says("inference mode", inference_mode, is.inference_mode);
  if ((autocast_enabled & 1) != (is.autocast_enabled & 1)) return says("autocast on the CPU", autocast_enabled & 1, is.autocast_enabled & 1);
  if ((autocast_enabled & 2) != (is.autocast_enabled & 2)) return says("autocast on CUDA", autocast_enabled & 2, is.autocast_enabled & 2);
  if (autocast_cpu_dtype != is.autocast_cpu_dtype) return says("autocast's dtype on the CPU", dtype_text(autocast_cpu_dtype), dtype_text(is.autocast_cpu_dtype));
  if (autocast_cuda_dtype != is.autocast_cuda_dtype) return says("autocast's dtype on CUDA", dtype_text(autocast_cuda_dtype), dtype_text(is.autocast_cuda_dtype));
  if (autocast_cache != is.autocast_cache) return says("autocast's cache", autocast_cache, is.autocast_cache);
  if (deterministic != is.deterministic) return says("deterministic mode", deterministic, is.deterministic);
  if (deterministic_warn_only != is.deterministic_warn_only) return says("deterministic mode's warnings only", deterministic_warn_only, is.deterministic_warn_only);
  if (fill_uninitialized != is.fill_uninitialized) return says("filling of uninitialized memory", fill_uninitialized, is.fill_uninitialized);
  if (default_dtype != is.default_dtype) return says("the default dtype", dtype_text(default_dtype), dtype_text(is.default_dtype));
  if (matmul_precision != is.matmul_precision) return says("the precision of float32 matmul", std::to_string(matmul_precision), std::to_string(is.matmul_precision));
  if (torch_function_disabled != is.torch_function_disabled) {
    static constexpr const char* kStates[] = {"on", "off for classes", "off"};
    return says("torch functions' overriding", std::string(kStates[torch_function_disabled]), std::string(kStates[is.torch_function_disabled]));
  }
  if (autocast_other_dtype != is.autocast_other_dtype) return says("autocast's dtype", dtype_text(autocast_other_dtype), dtype_text(is.autocast_other_dtype));
  for (size_t i = 0; i < std::size(kFlagNames); ++i)
    if (((backend_flags ^ is.backend_flags) >> i) & 1) return says(kFlagNames[i], (backend_flags >> i) & 1, (is.backend_flags >> i) & 1);
  if (recursion_limit != is.recursion_limit) return says("Python's recursion limit", std::to_string(recursion_limit), std::to_string(is.recursion_limit));
  if (const std::string was = device_text(torch_function_modes), now = device_text(is.torch_function_modes); was != now) return says("the default device", was, now);
  if (torch_function_modes.size() != is.torch_function_modes.size())
    return says("the number of torch function modes", std::to_string(torch_function_modes.size()), std::to_string(is.torch_function_modes.size()));
  if (torch_function_modes != is.torch_function_modes) return "the torch function mode is another one";
  if (tensor_class != is.tensor_class) return "an attribute of the class torch.Tensor is another one";
  if (functorch != is.functorch) return says("a functorch transform around", functorch, is.functorch);
  if (dispatch_modes != is.dispatch_modes) return says("a torch dispatch mode", dispatch_modes, is.dispatch_modes);
  if (included_keys != is.included_keys || excluded_keys != is.excluded_keys) return "the dispatcher's keys of this thread are other ones";
  return {};
}

}  // namespace cutaway::guards
