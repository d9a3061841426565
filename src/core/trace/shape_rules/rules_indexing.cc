// index_select, embedding, index_put, repeat, stack, and the backwards of views that write into zeros.
#include <cstdint>

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/TypeProperties.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::Tensor;
using Indices = c10::List<std::optional<Tensor>>;

void check_index(const Tensor& index, const char* op) {
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, op, "(): Expected dtype int32 or int64 for index, got ", index.scalar_type());
}
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  check_index(index, "index_select");
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector, got dim: ", index.dim());
  dim = at::maybe_wrap_dim(dim, self.dim());
  Sizes sizes(self.sizes());
  if (self.dim() > 0) sizes[dim] = index.numel();
  return contiguous_meta(self.scalar_type(), sizes);
}
Tensor embedding(const Tensor& weight, const Tensor& indices, c10::SymInt, bool, bool) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_index(indices, "embedding");
  Sizes sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  return contiguous_meta(weight.scalar_type(), sizes);
}
Tensor embedding_dense_backward(const Tensor& grad, const Tensor&, c10::SymInt rows, c10::SymInt, bool) {
  return contiguous_meta(grad.scalar_type(), {rows.expect_int(), grad.size(-1)});
}
// What can be known of the indices without their values. How many places a mask names cannot.
void check_put(const Tensor& self, const Indices& indices, const Tensor& values) {
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
                    " for the destination and ", values.scalar_type(), " for the source.");
  Sizes places, rest;         // sizes of what the indices name together; of the dimensions without an index
  bool has_mask = false, is_apart = false, is_closed = false, is_first = true;
  size_t before = 0;          // dimensions without an index before the first
  int64_t dim = 0;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) {
      TORCH_CHECK_INDEX(dim < self.dim(), "too many indices for tensor of dimension ", self.dim());
      rest.push_back(self.size(dim++));
      is_closed = !is_first;
      continue;
    }
    const auto dtype = index->scalar_type();
    TORCH_CHECK_INDEX(dtype == at::kLong || dtype == at::kInt || dtype == at::kByte || dtype == at::kBool, "tensors used as indices must be long, int, byte or bool tensors");
    is_apart = is_apart || is_closed;
    if (is_first) before = rest.size();
    is_first = false;
    if (dtype == at::kByte || dtype == at::kBool) {
      has_mask = true;
      TORCH_CHECK_INDEX(dim + index->dim() <= self.dim(), "too many indices for tensor of dimension ", self.dim());
      for (int64_t d = 0; d < index->dim(); ++d, ++dim)
        TORCH_CHECK_INDEX(index->size(d) == self.size(dim), "The shape of the mask ", index->sizes(), " at index ", d, " does not match the shape of the indexed tensor ", self.sizes(), " at index ", dim);
      continue;
    }
    TORCH_CHECK_INDEX(dim < self.dim(), "too many indices for tensor of dimension ", self.dim());
    TORCH_CHECK_INDEX(self.size(dim) > 0 || index->numel() == 0, "index is out of bounds for dimension with size 0");
    ++dim;
    try {
      places = Sizes(at::infer_size(places, index->sizes()));
    } catch (const c10::Error&) {
      TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together");
    }
  }
  if (has_mask) return;
  for (; dim < self.dim(); ++dim) rest.push_back(self.size(dim));
  rest.insert(is_apart ? rest.begin() : rest.begin() + static_cast<std::ptrdiff_t>(before), places.begin(), places.end());
  TORCH_CHECK(at::is_expandable_to(values.sizes(), rest), "shape mismatch: value tensor of shape ", values.sizes(), " cannot be broadcast to indexing result of shape ", at::IntArrayRef(rest));
}
Tensor index_put(const Tensor& self, const Indices& indices, const Tensor& values, bool) {
  check_put(self, indices, values);
  return like_meta(self, self.scalar_type());
}
Tensor& put_in_place(Tensor& self, const Indices& indices, const Tensor& values, bool) {
  check_put(self, indices, values);
  return self;
}
Tensor& index_put_impl_(Tensor& self, const Indices& indices, const Tensor& values, bool accumulate, bool) { return put_in_place(self, indices, values, accumulate); }

Tensor slice_backward(const Tensor& grad, c10::SymIntArrayRef sizes, int64_t, c10::SymInt, c10::SymInt, c10::SymInt) {
  return contiguous_meta(grad.scalar_type(), C10_AS_INTARRAYREF_SLOW(sizes));
}
Tensor select_backward(const Tensor& grad, c10::SymIntArrayRef sizes, int64_t, c10::SymInt) {
  return contiguous_meta(grad.scalar_type(), C10_AS_INTARRAYREF_SLOW(sizes));
}
// Shares the storage in eager, which its schema denies: callers promise not to use the argument again.
Tensor unsafe_view(const Tensor& self, c10::SymIntArrayRef size) {
  const auto sizes = at::infer_size_dv(C10_AS_INTARRAYREF_SLOW(size), self.numel());
  const auto strides = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  TORCH_CHECK(strides, "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
  return make_meta(self.scalar_type(), sizes, *strides);
}

Tensor repeat(const Tensor& self, c10::SymIntArrayRef by) {
  const auto repeats = C10_AS_INTARRAYREF_SLOW(by);
  const auto extra = static_cast<int64_t>(repeats.size()) - self.dim();
  TORCH_CHECK(extra >= 0, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Sizes sizes(repeats);
  for (int64_t d = 0; d < self.dim(); ++d) sizes[d + extra] *= self.size(d);
  return contiguous_meta(self.scalar_type(), sizes);
}
Tensor stack(at::TensorList tensors, int64_t dim) {
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  Sizes sizes(tensors[0].sizes());
  for (size_t i = 1; i < tensors.size(); ++i)
    TORCH_CHECK(tensors[i].sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ", tensors[0].sizes(), " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
  dim = at::maybe_wrap_dim(dim, tensors[0].dim() + 1);
  sizes.insert(sizes.begin() + dim, static_cast<int64_t>(tensors.size()));
  return contiguous_meta(at::native::result_type(tensors), sizes);
}

// A copy that keeps the strides, with a part of it replaced.
Tensor as_strided_scatter(const Tensor& self, const Tensor&, c10::SymIntArrayRef, c10::SymIntArrayRef, std::optional<c10::SymInt>) {
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) > 1 && self.stride(d) == 0) return like_meta(self, self.scalar_type());   // elements share memory: the copy gives each its own
  return make_meta(self.scalar_type(), self.sizes(), self.strides(), self.storage_offset());
}

}  // namespace

void add_indexing_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, as_strided_scatter, as_strided_scatter);
  CUTAWAY_SHAPE_RULE(t, index_select, index_select);
  CUTAWAY_SHAPE_RULE(t, embedding, embedding);
  CUTAWAY_SHAPE_RULE(t, embedding_dense_backward, embedding_dense_backward);
  CUTAWAY_SHAPE_RULE(t, index_put, index_put);
  CUTAWAY_SHAPE_RULE(t, index_put_, put_in_place);
  CUTAWAY_SHAPE_RULE(t, _index_put_impl_, index_put_impl_);
  CUTAWAY_SHAPE_RULE(t, slice_backward, slice_backward);
  CUTAWAY_SHAPE_RULE(t, select_backward, select_backward);
  CUTAWAY_SHAPE_RULE(t, _unsafe_view, unsafe_view);
  CUTAWAY_SHAPE_RULE(t, repeat, repeat);
  CUTAWAY_SHAPE_RULE(t, stack, stack);
}

}  // namespace cutaway::trace::detail
