// How torch lays out the results of operators that choose strides: contiguous, dense as the input, channels last.
// Internal to the shape rules.
#pragma once
#include <cstdint>

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include "core/trace/shape_rules/meta_tensor.h"

namespace cutaway::trace {

using Sizes = c10::SmallVector<int64_t, 5>;
using OptionalTensor = std::optional<at::Tensor>;

inline Sizes strides_for(at::IntArrayRef sizes, at::MemoryFormat format) {
  if (format == at::MemoryFormat::ChannelsLast) return Sizes(at::IntArrayRef(c10::get_channels_last_strides_2d(sizes)));
  if (format == at::MemoryFormat::ChannelsLast3d) return Sizes(at::IntArrayRef(c10::get_channels_last_strides_3d(sizes)));
  Sizes strides(sizes.size(), 0);
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}
inline at::Tensor contiguous_meta(at::ScalarType dtype, at::IntArrayRef sizes) {
  for (const auto s : sizes) TORCH_CHECK(s >= 0, "trying to create a tensor with negative dimension ", s, ": ", sizes);
  return make_meta(dtype, sizes, strides_for(sizes, at::MemoryFormat::Contiguous));
}
inline at::Tensor formatted_meta(at::ScalarType dtype, at::IntArrayRef sizes, at::MemoryFormat format) {
  return make_meta(dtype, sizes, strides_for(sizes, format));
}
/// As empty_like: dense strides in the input's order, or those of the format.
inline at::Tensor like_meta(const at::Tensor& t, at::ScalarType dtype, std::optional<at::MemoryFormat> format = std::nullopt) {
  if (format && *format != at::MemoryFormat::Preserve) return formatted_meta(dtype, t.sizes(), *format);
  if (t.is_non_overlapping_and_dense()) return make_meta(dtype, t.sizes(), t.strides());
  return make_meta(dtype, t.sizes(), at::infer_dense_strides(t.sizes(), t.strides()));
}
inline bool is_given(const OptionalTensor& t) { return t && t->defined(); }

}  // namespace cutaway::trace
