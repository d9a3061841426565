// A tensor with sizes, strides, dtype, device and autograd, and no data: an own TensorImpl, and a boxed fallback on one dispatch
// key that finds the metadata of every operator's results. Memory is never taken, so a model of any size can be traced.
// Not here: symbolic sizes; layouts other than strided (refused by name).
#pragma once
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cutaway::trace {

/// A fake tensor with the metadata of `like` (real, meta or fake): strides, offset, device, requires_grad, leaf or not.
/// Throws c10::NotImplementedError, by name, for layouts other than strided, quantized and nested tensors.
at::Tensor make_fake(const at::Tensor& like);
/// The same, said to be on `device`, which this build of torch need not have: then forward works and backward is refused.
at::Tensor make_fake(const at::Tensor& like, c10::Device device);
/// The same with other sizes: dimensions lie in memory in the order in which they do in `like`, without gaps; an expanded dimension
/// stays expanded. Throws c10::NotImplementedError when `like` has gaps or overlaps otherwise.
at::Tensor make_fake(const at::Tensor& like, at::IntArrayRef sizes);
/// Fakes of several tensors that share storages as they do; a tensor given twice gives one fake. Undefined ones stay so.
std::vector<at::Tensor> make_fakes(const std::vector<at::Tensor>& like);
bool is_fake(const at::Tensor&);
/// make_fakes() for tensors that become known one at a time: those of one maker share storages as the tensors do.
class FakeMaker {
 public:
  FakeMaker();
  ~FakeMaker();
  FakeMaker(const FakeMaker&) = delete;
  FakeMaker& operator=(const FakeMaker&) = delete;
  at::Tensor make(const at::Tensor& like);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While one lives on this thread, operators on fake tensors and factory functions give fake tensors. Nests. Needed around every
/// use, since kernels above the key (batch_norm, backward formulas) call factories. A real tensor met is a constant: only its
/// metadata counts, and an operator that would write to it leaves it as it is. Backward stays on this thread meanwhile. Who observes the
/// program's operators sees none of these: hooks on saved tensors are set aside (a checkpoint counts them), and so is the profiler (it
/// reads addresses, which fakes do not have).
class FakeMode {
 public:
  FakeMode();
  ~FakeMode();
  FakeMode(const FakeMode&) = delete;
  FakeMode& operator=(const FakeMode&) = delete;
  static bool is_active();

 private:
  bool was_included_, threads_, profiles_;
  at::impl::SavedTensorDefaultHooksTLS hooks_;
};

/// Thrown when the value of a fake tensor is asked for (item, nonzero, a boolean index), or when a recording would have to
/// depend on one; names the operator and, where a recorder knows it, the user's line (its context()).
class DataDependentError : public c10::NotImplementedError {
 public:
  using c10::NotImplementedError::NotImplementedError;
};

[[noreturn]] void throw_data_dependent(std::string message);
/// Whether `message` is that of the DataDependentError that this thread raised last: torch's bindings hand exceptions to Python by
/// their base class.
bool is_data_dependent_message(const std::string& message);

/// A digest of the numbers and sizes behind every value that was asked for on this thread since the last call of this: of tensors made from
/// constants (`torch.full((), lr) > 0` in an `if`). Recordings that asked for others went their way by numbers that no guard would look at.
uint64_t take_asked_values();

/// Throws c10::NotImplementedError naming the device if one of these is a fake tensor on a device that this build of torch
/// lacks: call it before autograd's engine, which cannot run there and may end the process.
void require_backward_device(const std::vector<at::Tensor>&);

/// Shape inference since the process began: by rules of ours, torch's C++ meta kernels called directly, the dispatcher (in a
/// Python process mostly Python meta kernels), from the memo.
struct ShapeCounters {
  uint64_t own_rule = 0, cpp_meta = 0, dispatcher = 0, memo_hits = 0;
};
ShapeCounters shape_counters();
/// Operators that were met on this thread so far, those inside of others included.
uint64_t operators_met();
/// Names of all operators with a rule of ours, views included, sorted.
std::vector<std::string> shape_rule_names();
/// Operators that went through the dispatcher and how often, most frequent first: candidates for a rule.
std::vector<std::pair<std::string, uint64_t>> dispatcher_operators();

}  // namespace cutaway::trace
