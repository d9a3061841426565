#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <unordered_map>

#include "core/tensor/convert.h"
#include "core/tensor/make.h"
#include "core/tensor/nested.h"
#include "core/tensor/rebuild.h"
#include "core/tensor/tensor_store.h"

namespace cutaway::tensor {
namespace {

// The element type of a storage seen as real numbers: complex tensors and their real views share one storage.
at::ScalarType real_type(at::ScalarType t) { return c10::isComplexType(t) ? c10::toRealValueType(t) : t; }

bool needs_cast(at::ScalarType t) {
  // Two numbers a byte: torch converts it to nothing.
  if (t == at::ScalarType::Float4_e2m1fn_x2) return false;
  return (c10::isFloatingType(t) && t != at::kDouble) || (c10::isComplexType(t) && t != at::kComplexDouble);
}
at::ScalarType wide_type(at::ScalarType t) { return c10::isComplexType(t) ? at::kComplexDouble : at::kDouble; }

// Casts storages whole and once each, so that offsets and strides, which count elements, stay true. One storage that is looked at
// in two precisions becomes two: bits have no meaning across a cast.
class Caster {
 public:
  at::Tensor cast(const at::Tensor& t) {
    if (!needs_cast(t.scalar_type())) return t;
    if (auto known = tensors_.find(t.unsafeGetTensorImpl()); known != tensors_.end()) return known->second;
    at::Tensor wide = cast_without_grad(t);
    tensors_.emplace(t.unsafeGetTensorImpl(), wide);
    if ((t.is_leaf() || t.retains_grad()) && t.grad().defined()) wide.mutable_grad() = cast(t.grad());
    return wide;
  }

 private:
  at::Tensor cast_without_grad(const at::Tensor& t) {
    base::Result<bundle::TensorRecord> record = why_no_data(t) ? base::Result<bundle::TensorRecord>(base::Error{}) : compute_tensor_metadata(t);
    at::Tensor wide;
    if (record.ok() && record->is_zero) {
      record->dtype = from_aten(wide_type(t.scalar_type()));
      wide = make_zero(*record, t.device());
    } else if (record.ok()) {
      at::Storage& storage = storages_[{t.storage().unsafeGetStorageImpl(), real_type(t.scalar_type())}];
      if (!storage) storage = widen(t.storage(), real_type(t.scalar_type()));
      record->dtype = from_aten(wide_type(t.scalar_type()));
      wide = view_storage(storage, *record);
    } else {
      wide = t.detach().to(wide_type(t.scalar_type()));
    }
    set_gradness(wide, t.requires_grad(), t.is_leaf());
    return wide;
  }

  static at::Storage widen(const at::Storage& from, at::ScalarType real) {
    bundle::TensorRecord all;
    all.dtype = from_aten(real);
    all.sizes = {static_cast<int64_t>(from.nbytes() / c10::elementSize(real))};
    all.strides = {1};
    return view_storage(from, all).to(at::kDouble).storage();
  }

  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::map<std::pair<const c10::StorageImpl*, at::ScalarType>, at::Storage> storages_;
};

}  // namespace

std::vector<c10::IValue> cast_to_fp64(const std::vector<c10::IValue>& values) {
  Caster caster;
  std::vector<c10::IValue> out;
  out.reserve(values.size());
  for (const c10::IValue& v : values) out.push_back(map_tensors(v, [&](const at::Tensor& t) { return caster.cast(t); }));
  return out;
}

}  // namespace cutaway::tensor
