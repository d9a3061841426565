// The places that a pool's largest elements have in their planes, as an operator of its own: kernels make them beside the values, and this is what runs without kernels.
#include <ATen/ops/max_pool2d_with_indices.h>
#include <torch/library.h>

namespace cutaway::native {
namespace {

at::Tensor max_pool2d_places(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  return std::get<1>(at::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

}  // namespace
}  // namespace cutaway::native

TORCH_LIBRARY_FRAGMENT(cutaway, m) {
  m.def("max_pool2d_places(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor", &cutaway::native::max_pool2d_places);
}
