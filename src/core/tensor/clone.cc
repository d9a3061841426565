#include <ATen/ATen.h>

#include <cstdint>
#include <unordered_map>

#include "core/tensor/make.h"
#include "core/tensor/nested.h"
#include "core/tensor/rebuild.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::tensor {
namespace {

// Clones storages whole and once each: whatever tensors shared or overlapped before, their clones do too.
class Cloner {
 public:
  at::Tensor clone(const at::Tensor& t) {
    if (auto known = tensors_.find(t.unsafeGetTensorImpl()); known != tensors_.end()) return known->second;
    at::Tensor copy = copy_without_grad(t);
    tensors_.emplace(t.unsafeGetTensorImpl(), copy);
    // Asking a non-leaf that does not retain its gradient for it warns.
    if ((t.is_leaf() || t.retains_grad()) && t.grad().defined()) copy.mutable_grad() = clone(t.grad());
    return copy;
  }

 private:
  at::Tensor copy_without_grad(const at::Tensor& t) {
    base::Result<bundle::TensorRecord> record = why_no_data(t) ? base::Result<bundle::TensorRecord>(base::Error{}) : compute_tensor_metadata(t);
    at::Tensor copy;
    if (record.ok() && record->is_zero) {
      copy = make_zero(*record, t.device());
    } else if (record.ok()) {
      at::Storage& storage = storages_[t.storage().unsafeGetStorageImpl()];
      if (!storage) storage = copy_storage(t.storage());
      copy = view_storage(storage, *record);
    } else {
      copy = t.detach().clone(t.layout() == at::kStrided ? std::optional(at::MemoryFormat::Preserve) : std::nullopt);
    }
    set_gradness(copy, t.requires_grad(), t.is_leaf());
    return copy;
  }

  static at::Storage copy_storage(const at::Storage& from) {
    if (from.device().is_cpu()) return make_storage(from.data(), from.nbytes(), from.device());
    bundle::TensorRecord bytes;
    bytes.dtype = ir::DType::u8;
    bytes.sizes = {static_cast<int64_t>(from.nbytes())};
    bytes.strides = {1};
    return view_storage(from, bytes).clone().storage();
  }

  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::unordered_map<const c10::StorageImpl*, at::Storage> storages_;
};

}  // namespace

std::vector<c10::IValue> clone_keeping_aliases(const std::vector<c10::IValue>& values) {
  Cloner cloner;
  std::vector<c10::IValue> out;
  out.reserve(values.size());
  for (const c10::IValue& v : values) out.push_back(map_tensors(v, [&](const at::Tensor& t) { return cloner.clone(t); }));
  return out;
}

}  // namespace cutaway::tensor
