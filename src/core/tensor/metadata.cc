#include <cstdint>

#include "core/tensor/convert.h"
#include "core/tensor/rebuild.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::tensor {

base::Result<bundle::TensorRecord> compute_tensor_metadata(const at::Tensor& t) {
  if (auto refusal = why_not_strided(t)) return *std::move(refusal);
  try {
    bundle::TensorRecord r;
    r.dtype = from_aten(t.scalar_type());
    r.sizes = t.sizes().vec();
    r.strides = t.strides().vec();
    r.storage_offset = t.storage_offset();
    r.device = from_aten(t.device());
    r.requires_grad = t.requires_grad();
    r.is_leaf = t.is_leaf();
    r.is_conj = t.is_conj();
    r.is_neg = t.is_neg();
    if ((r.is_zero = t._is_zerotensor())) return r;
    const std::optional<uint64_t> needed = bytes_needed(r);
    if (!needed) return base::Error{.what = "the view of a tensor does not fit into 64 bits"};
    // Fake tensors have no storage that may be asked; they are as large as they look.
    r.storage_bytes = why_no_data(t) && !t.is_meta() ? *needed : t.storage().nbytes();
    if (*needed > r.storage_bytes)
      return base::Error{.what = "a tensor of " + std::to_string(*needed) + " bytes looks at a storage of " + std::to_string(r.storage_bytes),
                         .because = "its memory was freed or resized after the tensor was made"};
    return r;
  } catch (const c10::Error& e) {   // symbolic sizes have no numbers
    return base::Error{.what = "the metadata of a tensor cannot be read", .because = e.what_without_backtrace()};
  }
}

}  // namespace cutaway::tensor
