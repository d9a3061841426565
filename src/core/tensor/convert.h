// ATen's words <-> ours: dtype, device, layout, tensor type. The only place that knows both spellings.
#pragma once
#include <ATen/core/Tensor.h>

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
/// Sizes, strides, dtype, device, requires_grad, layout of a tensor. Sparse layouts keep sizes and have no strides.
ir::TensorType type_of(const at::Tensor&);

}  // namespace cutaway::tensor
