#include <cstdint>

#include "core/trace/recorder/literal.h"

#include <ATen/core/jit_type.h>

#include "core/tensor/convert.h"

namespace cutaway::trace {

ir::Argument LiteralWriter::write(const c10::IValue& v, const c10::Type* type) const {
  if (v.isNone()) return ir::None{};
  if (type && type->kind() == c10::TypeKind::OptionalType) return write(v, type->expectRef<c10::OptionalType>().getElementType().get());
  if (v.isTensor()) return v.toTensor().defined() ? tensor(v.toTensor()) : ir::Argument(ir::None{});
  if (v.isInt()) {
    const int64_t n = v.toInt();
    if (type) switch (type->kind()) {
      case c10::TypeKind::ScalarTypeType: return tensor::from_aten(static_cast<at::ScalarType>(n));
      case c10::TypeKind::LayoutType: return tensor::from_aten(static_cast<at::Layout>(n));
      case c10::TypeKind::MemoryFormatType: return tensor::from_aten(static_cast<at::MemoryFormat>(n));
      case c10::TypeKind::FloatType: return static_cast<double>(n);
      default: break;
    }
    return n;
  }
  if (v.isBool()) return v.toBool();
  if (v.isDouble()) return v.toDouble();
  if (v.isComplexDouble()) return std::complex<double>(v.toComplexDouble().real(), v.toComplexDouble().imag());
  if (v.isString()) return v.toStringRef();
  if (v.isDevice()) return tensor::from_aten(v.toDevice());
  if (v.isGenerator()) return generator(v.toGenerator());
  if (v.isList()) {
    const c10::Type* element = type && type->kind() == c10::TypeKind::ListType ? type->expectRef<c10::ListType>().getElementType().get() : nullptr;
    ir::List list;
    for (const c10::IValue& e : v.toListRef()) list.items.push_back(write(e, element));
    return list;
  }
  if (symbolic && (v.isSymInt() || v.isSymFloat() || v.isSymBool())) return symbolic(v);
  if (v.isTuple()) {
    ir::Tuple tuple;
    for (const c10::IValue& e : v.toTupleRef().elements()) tuple.items.push_back(write(e));
    return tuple;
  }
  if (v.isGenericDict()) {
    ir::Dict dict;
    for (const auto& entry : v.toGenericDict()) {
      TORCH_CHECK_NOT_IMPLEMENTED(entry.key().isString(), "a dictionary whose keys are not strings cannot be written into a graph");
      dict.items.emplace_back(entry.key().toStringRef(), write(entry.value()));
    }
    return dict;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "a value of kind ", v.tagKind(), " cannot be written into a graph");
}

}  // namespace cutaway::trace
