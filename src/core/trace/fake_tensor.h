// A tensor with sizes, strides, dtype, device and autograd, and no data: an own TensorImpl that holds a meta tensor.
#pragma once
#include <ATen/core/Tensor.h>

namespace cutaway::trace {

/// A fake tensor with the metadata of `like` (real, meta or fake): strides, offset, device, requires_grad, leafness. Takes no memory.
at::Tensor make_fake(const at::Tensor& like);
/// The same, said to be on `device`.
at::Tensor make_fake(const at::Tensor& like, c10::Device device);
/// Fakes of several tensors that share storages as they do.
std::vector<at::Tensor> make_fakes(const std::vector<at::Tensor>& like);
bool is_fake(const at::Tensor&);

/// While one lives on this thread, operators on fake tensors and factory functions give fake tensors. Nests.
class FakeMode {
 public:
  FakeMode();
  ~FakeMode();
  FakeMode(const FakeMode&) = delete;
  FakeMode& operator=(const FakeMode&) = delete;

 private:
  bool outermost_, threads_;
};

/// Thrown (as c10::Error's NotImplementedError) when a fake tensor's value is asked for; names the operator.
class DataDependentError : public c10::NotImplementedError { public: using c10::NotImplementedError::NotImplementedError; };

/// Shape inference since the process began: rules of ours, torch's C++ meta kernels, Python meta kernels, memo hits.
struct ShapeCounters { uint64_t own_rule = 0, cpp_meta = 0, dispatcher = 0, memo_hits = 0; };
ShapeCounters shape_counters();

}  // namespace cutaway::trace
