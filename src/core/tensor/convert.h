// ATen's words <-> ours: dtype, device, layout, tensor type, literals. The only place that knows both spellings.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "core/ir/argument.h"
#include "core/ir/type.h"

namespace cutaway::tensor {

at::ScalarType to_aten(ir::DType);
ir::DType from_aten(at::ScalarType);
at::Device to_aten(const ir::Device&);   ///< throws c10::Error for a device type that torch does not know
ir::Device from_aten(const at::Device&);
at::Layout to_aten(ir::Layout);
ir::Layout from_aten(at::Layout);
at::MemoryFormat to_aten(ir::MemoryFormat);
ir::MemoryFormat from_aten(at::MemoryFormat);
/// Sizes, strides, dtype, device, requires_grad, layout of a tensor. Sparse layouts keep sizes and have no strides; nested
/// tensors, whose sizes are not numbers, have neither and the layout jagged.
ir::TensorType type_of(const at::Tensor&);

/// The literal that stands for a value without tensors: none, numbers, strings, devices, lists, tuples and dicts of them.
/// A dtype, layout or memory format is a plain integer in an IValue; `wanted` says which kind an integer stands for.
base::Result<ir::Argument> to_literal(const c10::IValue&, ir::Type::Kind wanted = ir::Type::Kind::opaque);
/// The value of a literal. A reference to another value, a slice, an ellipsis or a named object has none.
base::Result<c10::IValue> from_literal(const ir::Argument&);

}  // namespace cutaway::tensor
