// Meta tensors, which shape rules take and return: sizes, strides and dtype without memory.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace cutaway::trace {

/// Bytes that a storage must have for these sizes and strides; 0 for an empty tensor.
int64_t bytes_needed(at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset, size_t itemsize);

/// A meta tensor without autograd, with these sizes and strides.
at::Tensor make_meta(at::ScalarType, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset = 0);

}  // namespace cutaway::trace
