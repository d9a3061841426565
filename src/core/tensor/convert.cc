#include <cstdint>

#include "core/tensor/convert.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

namespace cutaway::tensor {

// ir's enums take torch's values (ir/type.h), so that these are casts.
static_assert(static_cast<int>(at::ScalarType::Float) == static_cast<int>(ir::DType::f32));
static_assert(static_cast<int>(at::ScalarType::Bool) == static_cast<int>(ir::DType::boolean));
static_assert(static_cast<int>(at::ScalarType::BFloat16) == static_cast<int>(ir::DType::bf16));
static_assert(static_cast<int>(at::ScalarType::Bits1x8) == static_cast<int>(ir::DType::bits1x8));
static_assert(static_cast<int>(at::ScalarType::Float8_e5m2) == static_cast<int>(ir::DType::f8e5m2));
static_assert(static_cast<int>(at::ScalarType::UInt64) == static_cast<int>(ir::DType::u64));
static_assert(static_cast<int>(at::ScalarType::Int7) == static_cast<int>(ir::DType::i7));
static_assert(static_cast<int>(at::ScalarType::Float4_e2m1fn_x2) == static_cast<int>(ir::DType::f4e2m1fnx2));
static_assert(static_cast<int>(at::Layout::SparseCsr) == static_cast<int>(ir::Layout::sparse_csr));
static_assert(static_cast<int>(at::Layout::Jagged) == static_cast<int>(ir::Layout::jagged));
static_assert(static_cast<int>(at::MemoryFormat::ChannelsLast3d) == static_cast<int>(ir::MemoryFormat::channels_last_3d));

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
  if (t.is_nested()) {
    type.layout = ir::Layout::jagged;
    return type;
  }
  const at::IntArrayRef sizes = t.sizes();
  type.sizes.assign(sizes.begin(), sizes.end());
  if (t.layout() == at::kStrided) {
    const at::IntArrayRef strides = t.strides();
    type.strides.assign(strides.begin(), strides.end());
  }
  return type;
}

base::Result<ir::Argument> to_literal(const c10::IValue& v, ir::Type::Kind wanted) {
  if (v.isNone()) return ir::Argument(ir::None{});
  if (v.isBool()) return ir::Argument(v.toBool());
  if (v.isInt()) {
    const int64_t n = v.toInt();
    if (wanted == ir::Type::Kind::dtype && n >= 0 && n < ir::kDTypeCount) return ir::Argument(static_cast<ir::DType>(n));
    return ir::Argument(n);
  }
  if (v.isDouble()) return ir::Argument(v.toDouble());
  if (v.isComplexDouble()) return ir::Argument(std::complex<double>(v.toComplexDouble().real(), v.toComplexDouble().imag()));
  if (v.isString()) return ir::Argument(v.toStringRef());
  if (v.isDevice()) return ir::Argument(from_aten(v.toDevice()));
  if (v.isTensor()) return base::Error{.what = "a tensor has no literal"};
  if (v.isTuple()) {
    ir::Tuple tuple;
    for (const c10::IValue& e : v.toTupleRef().elements()) {
      CUTAWAY_TRY_ASSIGN(ir::Argument item, to_literal(e));
      tuple.items.push_back(std::move(item));
    }
    return ir::Argument(std::move(tuple));
  }
  if (v.isList()) {
    ir::List list;
    for (const c10::IValue& e : v.toListRef()) {
      CUTAWAY_TRY_ASSIGN(ir::Argument item, to_literal(e));
      list.items.push_back(std::move(item));
    }
    return ir::Argument(std::move(list));
  }
  if (v.isGenericDict()) {
    ir::Dict dict;
    for (const auto& e : v.toGenericDict()) {
      if (!e.key().isString()) return base::Error{.what = "a dict with keys of kind " + e.key().tagKind() + " has no literal"};
      CUTAWAY_TRY_ASSIGN(ir::Argument item, to_literal(e.value()));
      dict.items.emplace_back(e.key().toStringRef(), std::move(item));
    }
    return ir::Argument(std::move(dict));
  }
  return base::Error{.what = "a value of kind " + v.tagKind() + " has no literal"};
}

namespace {
// Operators want lists of one kind as such ("int[]"); only a mixture stays a list of anything.
c10::IValue typed_list(std::vector<c10::IValue> items) {
  auto all = [&](auto is) { return !items.empty() && std::all_of(items.begin(), items.end(), is); };
  if (all([](const c10::IValue& i) { return i.isInt(); })) {
    c10::List<int64_t> list;
    for (auto& i : items) list.push_back(i.toInt());
    return list;
  }
  if (all([](const c10::IValue& i) { return i.isDouble(); })) {
    c10::List<double> list;
    for (auto& i : items) list.push_back(i.toDouble());
    return list;
  }
  if (all([](const c10::IValue& i) { return i.isBool(); })) {
    c10::List<bool> list;
    for (auto& i : items) list.push_back(i.toBool());
    return list;
  }
  c10::List<c10::IValue> list(c10::AnyType::get());
  for (auto& i : items) list.push_back(std::move(i));
  return c10::IValue(std::move(list));
}

base::Result<std::vector<c10::IValue>> from_literals(const std::vector<ir::Argument>& arguments) {
  std::vector<c10::IValue> items;
  items.reserve(arguments.size());
  for (const ir::Argument& a : arguments) {
    CUTAWAY_TRY_ASSIGN(c10::IValue item, from_literal(a));
    items.push_back(std::move(item));
  }
  return items;
}
}  // namespace

base::Result<c10::IValue> from_literal(const ir::Argument& a) {
  if (a.is_none()) return c10::IValue();
  if (auto* v = a.as<bool>()) return c10::IValue(*v);
  if (auto* v = a.as<int64_t>()) return c10::IValue(*v);
  if (auto* v = a.as<double>()) return c10::IValue(*v);
  if (auto* v = a.as<std::complex<double>>()) return c10::IValue(c10::complex<double>(v->real(), v->imag()));
  if (auto* v = a.as<std::string>()) return c10::IValue(*v);
  if (auto* v = a.as<ir::DType>()) return c10::IValue(to_aten(*v));
  if (auto* v = a.as<ir::Layout>()) return c10::IValue(to_aten(*v));
  if (auto* v = a.as<ir::MemoryFormat>()) return c10::IValue(to_aten(*v));
  if (auto* v = a.as<ir::Device>()) {
    try {
      return c10::IValue(to_aten(*v));
    } catch (const c10::Error& e) {
      return base::Error{.what = "torch does not know the device \"" + v->text() + "\"", .because = e.what_without_backtrace()};
    }
  }
  if (auto* v = a.as<ir::Dim>()) {
    if (!v->is_symbolic()) return c10::IValue(v->value());
    return base::Error{.what = "the symbolic size " + v->text() + " has no value here"};
  }
  if (auto* v = a.as<ir::List>()) {
    CUTAWAY_TRY_ASSIGN(std::vector<c10::IValue> items, from_literals(v->items));
    return typed_list(std::move(items));
  }
  if (auto* v = a.as<ir::Tuple>()) {
    CUTAWAY_TRY_ASSIGN(std::vector<c10::IValue> items, from_literals(v->items));
    return c10::IValue(c10::ivalue::Tuple::create(std::move(items)));
  }
  if (auto* v = a.as<ir::Dict>()) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (const auto& [key, value] : v->items) {
      CUTAWAY_TRY_ASSIGN(c10::IValue item, from_literal(value));
      dict.insert(key, std::move(item));
    }
    return c10::IValue(std::move(dict));
  }
  if (a.as<ir::ValueRef>()) return base::Error{.what = "a reference to a value of a graph is not a literal"};
  if (a.as<ir::GeneratorName>()) return base::Error{.what = "a named random state is not a value"};
  if (auto* v = a.as<ir::NamedObject>()) return base::Error{.what = "\"" + v->name + "\" is known by name only, and has no value here"};
  return base::Error{.what = "a slice or an ellipsis has no value outside of a call"};
}

}  // namespace cutaway::tensor
