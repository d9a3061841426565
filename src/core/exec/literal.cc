#include <cstdint>

#include "core/exec/literal.h"

#include <ATen/ScalarOps.h>

#include "core/exec/interpreter.h"
#include "core/tensor/convert.h"

namespace cutaway::exec {
namespace {

using c10::IValue;
using c10::TypeKind;

base::Error unfit(const ir::Argument& a, const SchemaType& t);

/// int, bool (which counts as an int in Python) or a size that is a number.
std::optional<int64_t> integer_in(const ir::Argument& a) {
  if (auto* i = a.as<int64_t>()) return *i;
  if (auto* b = a.as<bool>()) return *b ? 1 : 0;
  if (auto* d = a.as<ir::Dim>()) return d->number();
  return std::nullopt;
}
/// The codes by which torch passes enumerations through an int.
std::optional<int64_t> code_in(const ir::Argument& a) {
  if (auto* d = a.as<ir::DType>()) return static_cast<int64_t>(*d);
  if (auto* l = a.as<ir::Layout>()) return static_cast<int64_t>(*l);
  if (auto* m = a.as<ir::MemoryFormat>()) return static_cast<int64_t>(*m);
  return std::nullopt;
}
std::optional<c10::Scalar> scalar_in(const ir::Argument& a) {
  if (auto* b = a.as<bool>()) return c10::Scalar(*b);
  if (auto i = integer_in(a)) return c10::Scalar(*i);
  if (auto* d = a.as<double>()) return c10::Scalar(*d);
  if (auto* c = a.as<std::complex<double>>()) return c10::Scalar(c10::complex<double>(c->real(), c->imag()));
  return std::nullopt;
}
base::Result<IValue> device_in(const ir::Argument& a, const SchemaType& t) {
  try {
    if (auto* d = a.as<ir::Device>()) return IValue(tensor::to_aten(*d));
    if (auto* s = a.as<std::string>()) return IValue(at::Device(*s));
  } catch (const c10::Error& e) {
    return base::Error{.what = "a device that torch does not know", .because = e.what_without_backtrace()};
  }
  return unfit(a, t);
}

std::string_view kind_of(const ir::Argument& a) {
  struct Name {
    std::string_view operator()(const ir::None&) { return "none"; }
    std::string_view operator()(const ir::ValueRef&) { return "a value"; }
    std::string_view operator()(bool) { return "a bool"; }
    std::string_view operator()(int64_t) { return "an int"; }
    std::string_view operator()(double) { return "a float"; }
    std::string_view operator()(const std::complex<double>&) { return "a complex number"; }
    std::string_view operator()(const std::string&) { return "a string"; }
    std::string_view operator()(ir::DType) { return "a dtype"; }
    std::string_view operator()(ir::Layout) { return "a layout"; }
    std::string_view operator()(ir::MemoryFormat) { return "a memory format"; }
    std::string_view operator()(const ir::Device&) { return "a device"; }
    std::string_view operator()(const ir::Dim&) { return "a symbolic size"; }
    std::string_view operator()(const ir::GeneratorName&) { return "a generator"; }
    std::string_view operator()(const ir::List&) { return "a list"; }
    std::string_view operator()(const ir::Tuple&) { return "a tuple"; }
    std::string_view operator()(const ir::Slice&) { return "a slice"; }
    std::string_view operator()(const ir::Dict&) { return "a dict"; }
    std::string_view operator()(const ir::Ellipsis&) { return "an ellipsis"; }
    std::string_view operator()(const ir::NamedObject&) { return "a named object"; }
  };
  return std::visit(Name{}, a.v);
}

base::Error unfit(const ir::Argument& a, const SchemaType& t) {
  return base::Error{.what = std::string(kind_of(a)) + " cannot be taken as " + t.real->str()};
}

}  // namespace

SchemaType SchemaType::without_optional() const {
  if (!is_optional()) return *this;
  const auto* inner = type->castRaw<c10::OptionalType>();
  return {inner ? inner->getElementType() : type, real->castRaw<c10::OptionalType>()->getElementType(), length};
}

SchemaType SchemaType::element() const {
  const auto* inner = type->castRaw<c10::ListType>();
  c10::TypePtr real_element = real->castRaw<c10::ListType>()->getElementType();
  return {inner ? inner->getElementType() : real_element, real_element, std::nullopt};
}

base::Result<IValue> literal_for(const ir::Argument& a, const SchemaType& t) {
  switch (t.real->kind()) {
    case TypeKind::OptionalType:
      return a.is_none() ? base::Result<IValue>(IValue()) : literal_for(a, t.without_optional());
    case TypeKind::TensorType:
      if (a.is_none()) return IValue(at::Tensor());
      if (auto s = scalar_in(a)) return IValue(wrapped_number(*s));
      break;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      if (auto i = integer_in(a)) return IValue(*i);
      if (auto code = code_in(a)) return IValue(*code);
      break;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      if (auto* d = a.as<double>()) return IValue(*d);
      if (auto i = integer_in(a)) return IValue(static_cast<double>(*i));
      break;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      if (auto* b = a.as<bool>()) return IValue(*b);
      if (auto i = integer_in(a); i && (*i == 0 || *i == 1)) return IValue(*i == 1);
      break;
    case TypeKind::ComplexType:
      if (auto s = scalar_in(a)) return IValue(s->toComplexDouble());
      break;
    case TypeKind::NumberType:
      if (auto s = scalar_in(a)) return IValue(*s);
      break;
    case TypeKind::StringType:
      if (auto* s = a.as<std::string>()) return IValue(*s);
      break;
    case TypeKind::DeviceObjType:
      return device_in(a, t);
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
    case TypeKind::QSchemeType: {
      const bool right_enum = t.real->kind() == TypeKind::ScalarTypeType ? a.as<ir::DType>() != nullptr
                              : t.real->kind() == TypeKind::LayoutType   ? a.as<ir::Layout>() != nullptr
                              : t.real->kind() == TypeKind::MemoryFormatType && a.as<ir::MemoryFormat>();
      if (right_enum) return IValue(*code_in(a));
      if (auto* i = a.as<int64_t>()) return IValue(*i);
      break;
    }
    case TypeKind::NoneType:
      if (a.is_none()) return IValue();
      break;
    case TypeKind::AnyType:
      return to_ivalue(a, [](ir::ValueId) { return IValue(); });
    default:
      break;
  }
  return unfit(a, t);
}

Expect expect_for(const SchemaType& t) {
  const bool optional = t.is_optional();
  switch (t.without_optional().real->kind()) {
    case TypeKind::TensorType: return optional ? Expect::optional_tensor : Expect::tensor;
    case TypeKind::NumberType: return Expect::number;
    case TypeKind::IntType:
    case TypeKind::SymIntType: return Expect::integer;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType: return Expect::floating;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType: return Expect::boolean;
    case TypeKind::ComplexType: return Expect::complex;
    default: return Expect::as_is;
  }
}

IValue bring(IValue v, Expect expect) {
  if (expect == Expect::as_is) return v;
  if (expect == Expect::tensor) {
    if (v.isTensor()) return v;
    if (v.isNone()) return at::Tensor();
    if (v.isScalar()) return wrapped_number(v.toScalar());
    TORCH_CHECK_TYPE(false, "a tensor is needed here, not a value of kind ", v.tagKind());
  }
  if (v.isNone()) return v;
  if (expect == Expect::optional_tensor) {
    if (v.isTensor()) return v.toTensor().defined() ? std::move(v) : IValue();
    return bring(std::move(v), Expect::tensor);
  }
  // A tensor of one element where a number is wanted gives its element, as for torch.ops.
  if (v.isTensor()) v = IValue(v.toTensor().item());
  switch (expect) {
    case Expect::number:
      if (v.isScalar() || v.isSymInt() || v.isSymFloat() || v.isSymBool()) return v;
      break;
    case Expect::integer:
      if (v.isInt() || v.isSymInt()) return v;
      if (v.isBool()) return static_cast<int64_t>(v.toBool());
      break;
    case Expect::floating:
      if (v.isDouble() || v.isSymFloat()) return v;
      if (v.isInt()) return static_cast<double>(v.toInt());
      if (v.isBool()) return v.toBool() ? 1.0 : 0.0;
      break;
    case Expect::boolean:
      if (v.isBool() || v.isSymBool()) return v;
      if (v.isInt() && (v.toInt() == 0 || v.toInt() == 1)) return v.toInt() == 1;
      break;
    case Expect::complex:
      if (v.isScalar()) return v.toScalar().toComplexDouble();
      break;
    default:
      break;
  }
  constexpr const char* kNames[] = {"", "a tensor", "a tensor", "a number", "an int", "a float", "a bool", "a complex number"};
  TORCH_CHECK_TYPE(false, kNames[static_cast<int>(expect)], " is needed here, not a value of kind ", v.tagKind());
}

at::Tensor wrapped_number(const c10::Scalar& s) {
  at::Tensor t = at::scalar_to_tensor(s);
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

IValue list_of(std::vector<IValue> items) {
  auto all = [&](auto is) { return !items.empty() && std::all_of(items.begin(), items.end(), is); };
  c10::TypePtr type = c10::AnyType::get();
  if (all([](const IValue& v) { return v.isTensor(); })) type = c10::TensorType::get();
  else if (all([](const IValue& v) { return v.isInt(); })) type = c10::IntType::get();
  else if (all([](const IValue& v) { return v.isDouble(); })) type = c10::FloatType::get();
  else if (all([](const IValue& v) { return v.isBool(); })) type = c10::BoolType::get();
  else if (all([](const IValue& v) { return v.isTensor() || v.isNone(); })) type = c10::OptionalType::ofTensor();
  c10::impl::GenericList list(type);
  list.reserve(items.size());
  for (IValue& v : items) list.push_back(std::move(v));
  return IValue(std::move(list));
}

base::Result<IValue> to_ivalue(const ir::Argument& a, const std::function<IValue(ir::ValueId)>& value) {
  auto items = [&](const std::vector<ir::Argument>& from) -> base::Result<std::vector<IValue>> {
    std::vector<IValue> out;
    out.reserve(from.size());
    for (const ir::Argument& x : from) {
      CUTAWAY_TRY_ASSIGN(IValue v, to_ivalue(x, value));
      out.push_back(std::move(v));
    }
    return out;
  };
  if (a.is_none()) return IValue();
  if (auto* r = a.as<ir::ValueRef>()) return value(r->id);
  if (auto s = scalar_in(a)) return IValue(*s);
  if (auto* s = a.as<std::string>()) return IValue(*s);
  if (auto code = code_in(a)) return IValue(*code);
  if (a.as<ir::Device>()) return device_in(a, {c10::DeviceObjType::get(), c10::DeviceObjType::get(), {}});
  if (auto* l = a.as<ir::List>()) {
    CUTAWAY_TRY_ASSIGN(auto parts, items(l->items));
    return list_of(std::move(parts));
  }
  if (auto* t = a.as<ir::Tuple>()) {
    CUTAWAY_TRY_ASSIGN(auto parts, items(t->items));
    return IValue(c10::ivalue::Tuple::create(std::move(parts)));
  }
  if (auto* d = a.as<ir::Dict>()) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (const auto& [key, item] : d->items) {
      CUTAWAY_TRY_ASSIGN(IValue v, to_ivalue(item, value));
      dict.insert(key, std::move(v));
    }
    return IValue(std::move(dict));
  }
  return base::Error{.what = std::string(kind_of(a)) + " has no value that an operator could take"};
}

}  // namespace cutaway::exec
