#include "core/tensor/convert.h"

namespace cutaway::tensor {

// ir's enums take torch's values (ir/type.h), so that these are casts.
static_assert(static_cast<int>(at::ScalarType::Float) == static_cast<int>(ir::DType::f32));
static_assert(static_cast<int>(at::ScalarType::BFloat16) == static_cast<int>(ir::DType::bf16));
static_assert(static_cast<int>(at::ScalarType::Float8_e5m2) == static_cast<int>(ir::DType::f8e5m2));
static_assert(static_cast<int>(at::ScalarType::UInt64) == static_cast<int>(ir::DType::u64));
static_assert(static_cast<int>(at::ScalarType::Float4_e2m1fn_x2) == static_cast<int>(ir::DType::f4e2m1fnx2));

at::ScalarType to_aten(ir::DType d) { return static_cast<at::ScalarType>(d); }
ir::DType from_aten(at::ScalarType t) { return static_cast<ir::DType>(t); }
at::Device to_aten(const ir::Device& d) { return at::Device(d.text()); }
ir::Device from_aten(const at::Device& d) { return {at::DeviceTypeName(d.type(), /*lower_case=*/true), d.has_index() ? d.index() : -1}; }
at::Layout to_aten(ir::Layout l) { return static_cast<at::Layout>(l); }
ir::Layout from_aten(at::Layout l) { return static_cast<ir::Layout>(l); }
at::MemoryFormat to_aten(ir::MemoryFormat f) { return static_cast<at::MemoryFormat>(f); }
ir::MemoryFormat from_aten(at::MemoryFormat f) { return static_cast<ir::MemoryFormat>(f); }

ir::TensorType type_of(const at::Tensor& t) {
  ir::TensorType type;
  type.dtype = from_aten(t.scalar_type());
  type.device = from_aten(t.device());
  type.requires_grad = t.requires_grad();
  type.layout = from_aten(t.layout());
  for (auto s : t.sizes()) type.sizes.emplace_back(s);
  if (t.layout() == at::kStrided)
    for (auto s : t.strides()) type.strides.emplace_back(s);
  return type;
}

}  // namespace cutaway::tensor
