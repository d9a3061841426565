#include "compiler/native/conv_call.h"

#include <ATen/Parallel.h>

#include "compiler/native/kernel_call.h"

namespace cutaway::native {

kernels::Convolution conv_shape(const codegen::Window& w, int64_t batch, int64_t outputs) {
  kernels::Convolution c;
  c.batch = batch;
  c.channels = w.channels;
  c.height = w.height;
  c.width = w.width;
  c.outputs = outputs;
  c.out_height = w.out_height;
  c.out_width = w.out_width;
  c.window_height = w.size[0];
  c.window_width = w.size[1];
  c.step_y = w.step[0];
  c.step_x = w.step[1];
  c.pad_y = w.pad[0];
  c.pad_x = w.pad[1];
  c.dilation_y = w.dilation[0];
  c.dilation_x = w.dilation[1];
  std::ranges::copy(w.x_strides, c.x_strides);
  return c;
}

namespace {

/// Sums in double: a channel may have many positions.
template <class T> void sum_channels(const kernels::Convolution& c, const T* grad, T* out) {
  for (int64_t o = 0; o < c.outputs; ++o) {
    double sums[8] = {};
    for (int64_t b = 0; b < c.batch; ++b) {
      const T* from = grad + (b * c.outputs + o) * c.positions();
      int64_t i = 0;
      for (; i + 8 <= c.positions(); i += 8)
        for (int64_t j = 0; j < 8; ++j) sums[j] += from[i + j];
      for (; i < c.positions(); ++i) sums[0] += from[i];
    }
    out[o] = static_cast<T>(((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])));
  }
}

template <class T> void back(const codegen::ConvGradient& g, const kernels::Convolution& c, void* const* buffers) {
  const kernels::Parallel parallel{spread_over_threads, nullptr, at::in_parallel_region() ? 1 : at::get_num_threads()};
  const auto at = [&](const codegen::ConvGradient::Operand& o) { return static_cast<const T*>(buffers[o.buffer]) + o.offset; };
  if (g.grad_x) kernels::convolve_back(c, at(g.grad), at(g.weight), static_cast<T*>(buffers[*g.grad_x]), parallel);
  if (g.grad_weight) kernels::convolve_weight(c, at(g.grad), at(g.x), static_cast<T*>(buffers[*g.grad_weight]), parallel);
  if (g.grad_bias) sum_channels(c, at(g.grad), static_cast<T*>(buffers[*g.grad_bias]));
}

}  // namespace

KernelCall::Body conv_gradient_body(const codegen::ConvGradient& g) {
  return [g, c = conv_shape(g.window, g.batch, g.outputs)](void* const* buffers) {
    if (g.dtype == ir::DType::f32) back<float>(g, c, buffers);
    else back<double>(g, c, buffers);
  };
}

}  // namespace cutaway::native
