// Convolution of any dimension, transposed too, its backward, and adaptive average pooling.
#include <cstdint>

#include <ATen/ATen.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

int64_t at_or_only(IntArrayRef v, size_t i) { return v.size() == 1 ? v[0] : v[i]; }

// Channels last as soon as the input or the weight is, for images and volumes; never in double precision (eager's CPU kernels).
at::MemoryFormat convolution_format(const Tensor& x, const Tensor& weight) {
  if (x.scalar_type() == at::kDouble || weight.scalar_type() == at::kDouble) return at::MemoryFormat::Contiguous;
  for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast3d}) {
    if (weight.dim() != (format == at::MemoryFormat::ChannelsLast ? 4 : 5)) continue;
    if (x.suggest_memory_format() == format || weight.suggest_memory_format() == format) return format;
  }
  return at::MemoryFormat::Contiguous;
}

Sizes output_sizes(const Tensor& x, const Tensor& w, const Tensor* bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(w.dim() >= 3, "weight should have at least three dimensions");
  TORCH_CHECK(x.dim() == w.dim(), "Expected ", w.dim(), "-dimensional input for ", w.dim(), "-dimensional weight ", w.sizes(), ", but got ", x.dim(), "-dimensional input of size ", x.sizes(), " instead");
  TORCH_CHECK(groups > 0, "expected groups to be greater than 0, but got groups=", groups);
  const int64_t in = transposed ? w.size(0) : w.size(1) * groups;
  TORCH_CHECK(x.size(1) == in, "Given groups=", groups, ", weight of size ", w.sizes(), ", expected input", x.sizes(), " to have ", in, " channels, but got ", x.size(1), " channels instead");
  const int64_t out = transposed ? w.size(1) * groups : w.size(0);
  TORCH_CHECK(transposed || w.size(0) % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups, " at dimension 0, but got weight of size ", w.sizes(), " instead");
  TORCH_CHECK(!bias || (bias->dim() == 1 && bias->size(0) == out), "Given weight of size ", w.sizes(), ", expected bias to be 1-dimensional with ", out, " elements, but got bias of size ",
              bias->sizes(), " instead");
  Sizes sizes{x.size(0), out};
  for (int64_t d = 2; d < x.dim(); ++d) {
    const size_t i = static_cast<size_t>(d - 2);
    const int64_t s = at_or_only(stride, i), p = at_or_only(padding, i), dil = at_or_only(dilation, i);
    TORCH_CHECK(s > 0, "non-positive stride is not supported");
    TORCH_CHECK(dil > 0, "dilation should be greater than zero");
    TORCH_CHECK(p >= 0, "negative padding is not supported");
    const int64_t kernel = dil * (w.size(d) - 1) + 1;
    if (transposed) {
      sizes.push_back((x.size(d) - 1) * s - 2 * p + kernel + at_or_only(output_padding, i));
    } else {
      TORCH_CHECK(x.size(d) + 2 * p >= kernel, "Calculated padded input size per channel: (", x.size(d) + 2 * p, "). Kernel size: (", kernel, "). Kernel size can't be greater than actual input size");
      sizes.push_back((x.size(d) + 2 * p - kernel) / s + 1);
    }
  }
  return sizes;
}

Tensor convolution(const Tensor& x, const Tensor& w, const OptionalTensor& bias, c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  TORCH_CHECK(x.scalar_type() == w.scalar_type(), "Input type (", x.scalar_type(), ") and weight type (", w.scalar_type(), ") should be the same");
  auto sizes = output_sizes(x, w, is_given(bias) ? &*bias : nullptr, C10_AS_INTARRAYREF_SLOW(stride), C10_AS_INTARRAYREF_SLOW(padding), C10_AS_INTARRAYREF_SLOW(dilation), transposed,
                                  C10_AS_INTARRAYREF_SLOW(output_padding), groups.expect_int());
  if (x.size(1) == 0) sizes[1] = 0;   // ATen gives none of the channels that the weights ask for
  return formatted_meta(x.scalar_type(), sizes, convolution_format(x, w));
}
Triple convolution_backward(const Tensor& grad, const Tensor& x, const Tensor& w, at::OptionalSymIntArrayRef, c10::SymIntArrayRef, c10::SymIntArrayRef, c10::SymIntArrayRef, bool, c10::SymIntArrayRef,
                            c10::SymInt, std::array<bool, 3> mask) {
  const auto format = convolution_format(x, w);
  Triple r;
  if (mask[0]) std::get<0>(r) = formatted_meta(grad.scalar_type(), x.sizes(), format);
  if (mask[1]) std::get<1>(r) = formatted_meta(grad.scalar_type(), w.sizes(), format);
  if (mask[2]) std::get<2>(r) = contiguous_meta(grad.scalar_type(), {grad.size(1)});
  return r;
}

Tensor adaptive_avg_pool2d(const Tensor& x, c10::SymIntArrayRef size) {
  const auto out = C10_AS_INTARRAYREF_SLOW(size);
  TORCH_CHECK(out.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(x.dim() == 3 || x.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", x.sizes());
  for (const int64_t d : {-2, -1})
    TORCH_CHECK(x.size(d) != 0, "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", x.sizes(), " with dimension ", d + x.dim(), " being empty");
  Sizes sizes(x.sizes());
  sizes[sizes.size() - 2] = out[0];
  sizes[sizes.size() - 1] = out[1];
  return formatted_meta(x.scalar_type(), sizes, x.dim() == 4 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous);
}
Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& x) {
  return formatted_meta(grad.scalar_type(), x.sizes(), x.dim() == 4 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous);
}

}  // namespace

void add_convolution_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, convolution, convolution);
  CUTAWAY_SHAPE_RULE(t, convolution_backward, convolution_backward);
  CUTAWAY_SHAPE_RULE(t, _adaptive_avg_pool2d, adaptive_avg_pool2d);
  CUTAWAY_SHAPE_RULE(t, _adaptive_avg_pool2d_backward, adaptive_avg_pool2d_backward);
}

}  // namespace cutaway::trace::detail
