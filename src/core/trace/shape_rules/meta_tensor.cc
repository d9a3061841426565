#include "core/trace/shape_rules/meta_tensor.h"

#include <c10/core/InferenceMode.h>

namespace cutaway::trace {

int64_t bytes_needed(at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset, size_t itemsize) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return (last + 1) * static_cast<int64_t>(itemsize);
}

at::Tensor make_meta(at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  const c10::InferenceMode normal(false);
  auto t = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                         static_cast<size_t>(bytes_needed(sizes, strides, offset, c10::elementSize(dtype))),
                                                         c10::DataPtr(nullptr, c10::kMeta), c10::GetAllocator(c10::kMeta), /*resizable=*/true)),
      c10::DispatchKeySet(c10::DispatchKey::Meta), c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return t;
}

}  // namespace cutaway::trace
