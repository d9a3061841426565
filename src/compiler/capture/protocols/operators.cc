// Operators: constants are computed by Python itself, tensors go into the graph, containers are modelled, classes are asked for their dunders.
#include "compiler/capture/protocols/operators.h"

#include <cstdint>
#include <optional>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {
namespace {

struct BinaryRow { const char *name, *dunder, *reflected, *in_place; PyObject* (*compute)(PyObject*, PyObject*); const char* symbol; PyObject* (*compute_in_place)(PyObject*, PyObject*); };
PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* power_in_place(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }
// In the order of CPython's BINARY_OP.
constexpr BinaryRow kBinary[] = {
    {"add", "__add__", "__radd__", "__iadd__", PyNumber_Add, "+", PyNumber_InPlaceAdd},
    {"and_", "__and__", "__rand__", "__iand__", PyNumber_And, "&", PyNumber_InPlaceAnd},
    {"floordiv", "__floordiv__", "__rfloordiv__", "__ifloordiv__", PyNumber_FloorDivide, "//", PyNumber_InPlaceFloorDivide},
    {"lshift", "__lshift__", "__rlshift__", "__ilshift__", PyNumber_Lshift, "<<", PyNumber_InPlaceLshift},
    {"matmul", "__matmul__", "__rmatmul__", "__imatmul__", PyNumber_MatrixMultiply, "@", PyNumber_InPlaceMatrixMultiply},
    {"mul", "__mul__", "__rmul__", "__imul__", PyNumber_Multiply, "*", PyNumber_InPlaceMultiply},
    {"mod", "__mod__", "__rmod__", "__imod__", PyNumber_Remainder, "%", PyNumber_InPlaceRemainder},
    {"or_", "__or__", "__ror__", "__ior__", PyNumber_Or, "|", PyNumber_InPlaceOr},
    {"pow", "__pow__", "__rpow__", "__ipow__", power, "** or pow()", power_in_place},
    {"rshift", "__rshift__", "__rrshift__", "__irshift__", PyNumber_Rshift, ">>", PyNumber_InPlaceRshift},
    {"sub", "__sub__", "__rsub__", "__isub__", PyNumber_Subtract, "-", PyNumber_InPlaceSubtract},
    {"truediv", "__truediv__", "__rtruediv__", "__itruediv__", PyNumber_TrueDivide, "/", PyNumber_InPlaceTrueDivide},
    {"xor", "__xor__", "__rxor__", "__ixor__", PyNumber_Xor, "^", PyNumber_InPlaceXor},
};
constexpr const char* kCompareFunctions[] = {"lt", "le", "eq", "ne", "gt", "ge"};
constexpr const char* kCompareSymbol[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
constexpr const char* kCompareDunders[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};

}  // namespace

namespace {
// What C's own slot says of two constants, one of which is a member of an enumeration with operators of its own. Null without raising where it does not know.
Value* by_slot(const Owners& t, Value* self, Value* other, const char* name) {
  if (self->kind != Kind::constant || other->kind != Kind::constant) return nullptr;
  PyObject* slot = _PyType_Lookup(Py_TYPE(self->real), t.values.keep(PyUnicode_InternFromString(name)));
  if (!slot || Py_TYPE(slot) != known().wrapper_descriptor || PyDescr_TYPE(slot) == &PyBaseObject_Type) return nullptr;
  PyObject* r = PyObject_CallFunctionObjArgs(slot, self->real, other->real, nullptr);
  return r ? t.values.constant_steal(r) : t.exceptions.raise_python();
}
}  // namespace

// The right side is asked first where its class is below the left one's. Where both are classes of Python's, one slot asks both, and it looks whether
// the class below has another method.
bool Operators::asks_right_first(Value* a, Value* b, const char* name, const char* reflected) {
  if (a->type == b->type || !a->type || !b->type || !PyType_IsSubtype(b->type, a->type)) return false;
  if (!is_user_class(a->type)) return true;
  PyObject *right = values.keep(PyUnicode_InternFromString(reflected)), *left = values.keep(PyUnicode_InternFromString(name));
  return !(attributes.own_method(a->type, left) || attributes.own_method(a->type, right)) || attributes.lookup_type(a->type, right) != attributes.lookup_type(b->type, right);
}

PyObject* operator_function(const char* name) {
  static PyObject* const module = PyImport_ImportModule("operator");
  static std::unordered_map<const char*, PyObject*> cache;
  PyObject*& f = cache[name];
  if (!f) f = PyObject_GetAttrString(module, name);
  return f;
}

// What other classes would be asked, and with which words it fails, is the same for all of these.
bool Operators::is_plain_operand(Value* v) {
  if (v->kind == Kind::object) return !plain_of(v) && is_user_class(v->type);
  return v->kind == Kind::constant && (v->real == Py_None || PyBool_Check(v->real) || PyLong_CheckExact(v->real) || PyFloat_CheckExact(v->real));
}

Value* Operators::dunder(Value* v, const char* name, Value* other) {
  const Tail tail = endings.take_tail();
  values.force(v);
  PyObject* interned = values.keep(PyUnicode_InternFromString(name));
  PyTypeObject* t = v->kind == Kind::klass ? Py_TYPE(v->real) : v->type;
  if (!t) return nullptr;
  PyObject* found = attributes.own_method(t, interned);
  if (!found) return nullptr;   // a slot of C is answered by whoever models the kind
  Value* f = values.wrap_constant_object(found);
  endings.hand_on(tail);
  return other ? calls.call(f, {v, other}) : calls.call(f, {v});
}

namespace {
constexpr const char* kSetMethods[] = {nullptr, "intersection", nullptr, nullptr, nullptr, nullptr, nullptr, "union", nullptr, nullptr, "difference", nullptr, "symmetric_difference"};
}  // namespace

Value* Operators::set_in_place(size_t index, Value* a, Value* b) {
  bool is_known = false;
  const std::string method = index == 7 ? "update" : std::string(kSetMethods[index]) + "_update";
  return containers.call_container_method(&PySet_Type, method.c_str(), a, {b}, &is_known) ? a : nullptr;
}

Value* Operators::binary(int op, Value* a, Value* b) {
  const Tail tail = endings.take_tail();
  values.force(a);
  values.force(b);
  const bool in_place = op >= 13;
  const size_t index = static_cast<size_t>(in_place ? op - 13 : op);
  const BinaryRow& row = kBinary[index];
  auto says = [&](Value* v) {
    if (!is_user_class(v->type)) return false;
    for (const char* name : {row.dunder, row.reflected, row.in_place})
      if (attributes.own_operator(v->type, values.keep(PyUnicode_InternFromString(name)))) return true;
    return false;
  };
  if (plain_of(a) || plain_of(b)) return numbers.binary_with_number(op, a, b);
  if (number_of(a) || number_of(b)) return leaves.binary_with_number(index, row.reflected, a, b);
  if (Value* r = nullptr; (a->kind == Kind::constant || b->kind == Kind::constant) && library.compute_with_numpy(operator_function(row.name), {a, b}, &r)) return r;
  if (a->kind == Kind::constant && b->kind == Kind::constant && !says(a) && !says(b)) {
    if (library.has_identities() && (Library::is_identity_number(a->real) || Library::is_identity_number(b->real))) stop("id-of-a-new-object", "the id of an object that the compiled function created is used in a computation");
    if (index == 8 && PyLong_Check(a->real) && PyLong_Check(b->real)) {
      int overflow = 0;
      if (PyLong_AsLongLongAndOverflow(b->real, &overflow) >= (1LL << 30) || overflow > 0) stop("huge-power", "a power with a huge exponent is computed");
    }
    PyObject* r = (in_place ? row.compute_in_place : row.compute)(a->real, b->real);   // the same, with other words for what it refuses
    if (frames::SizeLog* log = frames::size_log(); log && r) log->computed(index, a->real, b->real, r);
    return values.constant_steal(r);
  }
  if ((a->kind == Kind::tensor || b->kind == Kind::tensor) && !(in_place && a->kind == Kind::list)) {   // a list takes a tensor's rows
    Value* other = a->kind == Kind::tensor ? b : a;
    const auto refuse_torch_function = [&] {   // the tensor's method asks it
      if (attributes.lookup_type(other->type, names().__torch_function__)) stop("tensor-class", "an operator of a tensor and of " + values.describe(other) + ", whose class has a __torch_function__");
    };
    if (other->kind == Kind::object) {   // a class may take tensors on either side
      if (tail.is && index != 8 && !plain_of(other) && is_user_class(other->type)) {
        std::vector<Value*> ways;
        if (a->kind == Kind::object) ways.push_back(values.make_tuple({values.boolean(true), values.text(row.reflected)}));
        endings.end_with(tail, "after_operator", {a, b, values.make_tuple(std::move(ways)), values.text(std::string(row.symbol) + (in_place ? "=" : ""))});
      }
      if (a->kind == Kind::object && in_place) {   // its own __iadd__ comes first: below
        endings.take_tail();
      } else if (a->kind == Kind::object) {
        Value* r = dunder(a, row.dunder, b);
        if (!r && exceptions.raised()) return nullptr;
        if (r && !values.is_constant(r, Py_NotImplemented)) return r;
      } else {
        refuse_torch_function();
        Value* r = dunder(b, row.reflected, a);
        if (!r && exceptions.raised()) return nullptr;
        if (r && !values.is_constant(r, Py_NotImplemented)) return r;
      }
      if (a->kind == Kind::object && !in_place) refuse_torch_function();
    } else {
      const bool is_number = a->kind == Kind::constant && PyNumber_Check(a->real);   // it has no operator in place; what is no number is refused in other words
      return leaves.call_leaf(operator_function(in_place && !is_number ? row.in_place : row.name), nullptr, {a, b});
    }
  }
  if ((index == 0 || index == 5) && (a->type == known().size || b->type == known().size)) {   // torch.Size has its own idea of what it gives
    PyObject *x = values.as_constant(a), *y = values.as_constant(b);
    if (x && y) {
      PyObject* r = row.compute(x, y);
      return r ? leaves.from_result(values.keep(r)) : exceptions.raise_python();
    }
  }
  // Containers. What one of C's does in place comes first, whatever a class below it or the other side says about the plain operator.
  if (in_place && (a->kind == Kind::list || a->kind == Kind::dict || a->kind == Kind::set) && is_user_class(a->type) && !attributes.own_operator(a->type, values.keep(PyUnicode_InternFromString(row.in_place)))) {
    const bool is_set_operator = index == 1 || index == 7 || index == 10 || index == 12;
    if (a->kind == Kind::list && index == 0 && !containers.is_deque(a)) return iteration.extend(a, b) ? a : nullptr;
    if (a->kind == Kind::dict && index == 7 && b->type != known().mappingproxy) return iteration.dict_update(a, b) ? a : nullptr;
    if (a->kind == Kind::set && is_set_operator && (b->kind == Kind::set || (b->kind == Kind::constant && PyFrozenSet_Check(b->real)))) return set_in_place(index, a, b);
    if (a->kind == Kind::list && index == 5 && !attributes.own_operator(a->type, values.keep(PyUnicode_InternFromString(row.dunder))) && attributes.own_operator(a->type, values.keep(PyUnicode_InternFromString(row.reflected))))
      stop("container-subclass", std::string("the operator *= is applied to an instance of ") + a->type->tp_name + ", which has " + row.reflected + " alone");
  }
  if (in_place && index == 7 && a->type == &PyDict_Type && says(b) && b->type != known().mappingproxy) return iteration.dict_update(a, b) ? a : nullptr;
  if (in_place && a->type == &PySet_Type && b->kind == Kind::set && says(b) && (index == 1 || index == 7 || index == 10 || index == 12)) return set_in_place(index, a, b);
  if (containers.is_deque(a) || containers.is_deque(b)) {
    bool is_known = false;
    if (Value* r = containers.deque_binary(op, a, b, &is_known); is_known) return r;
  }
  if ((a->kind == Kind::view && body<View>(a).what != View::What::values) || (b->kind == Kind::view && body<View>(b).what != View::What::values)) {
    bool is_known = false;
    if (Value* r = containers.view_binary(op, a, b, &is_known); is_known) return r;
  }
  if (index == 0) {
    if (a->kind == Kind::list && b->kind == Kind::list && !in_place && !says(a) && !says(b) && !containers.is_deque(b)) {
      std::vector<Value*> all = values.items(a);
      auto& more = values.items(b);
      all.insert(all.end(), more.begin(), more.end());
      return values.make_list(std::move(all));
    }
    if (a->kind == Kind::list && in_place && !says(a) && !says(b)) {
      return iteration.extend(a, b) ? a : nullptr;
    }
    const bool left = a->kind == Kind::tuple || (a->kind == Kind::constant && PyTuple_Check(a->real)), right = b->kind == Kind::tuple || (b->kind == Kind::constant && PyTuple_Check(b->real));
    if (left && right && !says(a) && !says(b)) {
      std::vector<Value*> all;
      for (Value* v : {a, b}) {   // not by their iterators: a class below tuple may have one of its own
        if (v->kind == Kind::tuple) all.insert(all.end(), values.items(v).begin(), values.items(v).end());
        else if (!iteration.unpack(v, &all)) return nullptr;
      }
      // Which sums with a torch.Size are one depends on torch's version: two empty ones tell.
      const auto empty = [&](Value* v) { return values.keep(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(v->type == known().size ? known().size : &PyTuple_Type))); };
      const bool is_size = Py_TYPE(values.keep(PyNumber_Add(empty(a), empty(b)))) == known().size;
      return is_size ? builtins.make_size(std::move(all)) : values.make_tuple(std::move(all));
    }
  }
  if (index == 5) {
    Value* sequence = a->kind == Kind::list || a->kind == Kind::tuple ? a : b->kind == Kind::list || b->kind == Kind::tuple ? b : nullptr;
    Value* number = sequence == a ? b : a;
    if (sequence && !says(sequence)) {
      if (number->kind == Kind::object && !plain_of(number))
        if (attributes.own_method(number->type, names().__index__) && !says(number)) {
          PyObject* said = subscripts.index_object(number);
          if (!said) return nullptr;
          number = values.constant(said);
        }
      PyObject* n = values.as_constant(number);
      if (n && PyLong_Check(n) && !says(number)) {
        if (frames::SizeLog* log = frames::size_log()) log->used(n);
        Py_ssize_t times = 0;
        if (!subscripts.index_number(number, &times, PyExc_OverflowError)) return nullptr;
        if (times > 1'000'000) stop("long-list", "a list is repeated more than a million times");
        std::vector<Value*> once = values.items(sequence), all;
        for (Py_ssize_t i = 0; i < times; ++i) all.insert(all.end(), once.begin(), once.end());
        if (sequence->kind == Kind::tuple) return values.make_tuple(std::move(all));
        if (in_place && sequence == a) { values.items(a) = std::move(all); effects.mark_changed(a); return a; }
        return values.make_list(std::move(all));
      }
    }
  }
  if (index == 5) {   // text and an object that is a number
    const auto is_text = [](Value* v) { return v->kind == Kind::constant && (PyUnicode_CheckExact(v->real) || PyBytes_CheckExact(v->real)); };
    Value* number = is_text(a) ? b : is_text(b) ? a : nullptr;
    if (number && number->kind == Kind::object && !plain_of(number) && !attributes.has_c_base(number) && attributes.own_method(number->type, names().__index__) && !says(number)) {
      Py_ssize_t times = 0;
      if (!subscripts.index_number(number, &times, PyExc_OverflowError)) return nullptr;
      return number == b ? binary(op, a, values.integer(times)) : binary(op, values.integer(times), b);
    }
  }
  if (a->kind == Kind::set && !says(a) && !says(b) && (index == 1 || index == 7 || index == 10 || index == 12)) {
    if (b->kind == Kind::set || (b->kind == Kind::constant && PyFrozenSet_Check(b->real))) {
      if (in_place && !PyType_IsSubtype(a->type, &PyFrozenSet_Type)) return set_in_place(index, a, b);
      bool is_known = false;
      return containers.call_container_method(&PySet_Type, kSetMethods[index], a, {b}, &is_known);
    }
  }
  if (a->kind == Kind::dict && b->kind == Kind::dict && index == 7 && !says(a) && !says(b)) {
    const auto is = [](Value* v, PyTypeObject* t) { return PyType_IsSubtype(v->type, t) != 0; };
    // These decide themselves what comes of it, also from the right side; of a proxy the mapping inside does.
    if (a->type == known().mappingproxy || b->type == known().mappingproxy) stop("container-subclass", "the operator | is applied to a mapping proxy");
    // The one on the right is asked first where its class is derived from that of the left one, or where a plain dict is on the left: it makes another of its own kind.
    if (!in_place && a->type != b->type && PyType_IsSubtype(b->type, a->type) && (b->type == known().defaultdict || b->type == known().ordered_dict)) {
      Value* into = values.make_object(b->type);
      if (b->type == known().defaultdict) body<Mapping>(into).default_factory = body<Mapping>(b).default_factory;
      return iteration.dict_update(into, a) && iteration.dict_update(into, b) ? into : nullptr;
    }
    if (!in_place && a->type == known().defaultdict && (b->type == &PyDict_Type || b->type == known().defaultdict || b->type == known().ordered_dict)) {
      Value* into = values.make_object(a->type);
      body<Mapping>(into).default_factory = body<Mapping>(a).default_factory;
      return iteration.dict_update(into, a) && iteration.dict_update(into, b) ? into : nullptr;
    }
    if (!in_place && a->type == known().ordered_dict && b->type == known().defaultdict) {
      Value* into = values.make_object(a->type);
      return iteration.dict_update(into, a) && iteration.dict_update(into, b) ? into : nullptr;
    }
    if (!in_place && (is(a, known().defaultdict) || is(b, known().defaultdict) || (is(b, known().ordered_dict) && !is(a, known().ordered_dict))))
      stop("container-subclass", "a " + std::string(a->type->tp_name) + " and a " + b->type->tp_name + " are merged");
    Value* into = a;
    if (!in_place && is_user_class(a->type) && is(a, known().ordered_dict)) {   // another one of the class; dict makes a dict
      if (!(into = calls.call(values.wrap_constant_object(reinterpret_cast<PyObject*>(a->type)), {a}))) return nullptr;
      if (values.kind(into) != Kind::dict) stop("container-subclass", "a class derived from OrderedDict makes something else");
    } else if (!in_place) {
      into = is_user_class(a->type) ? values.make_dict() : values.make_object(a->type);
      if (!iteration.dict_update(into, a)) return nullptr;
    }
    if (!iteration.dict_update(into, b)) return nullptr;
    return into;
  }
  if (in_place && index == 7 && a->kind == Kind::dict && a->type != known().mappingproxy && !says(a) && !says(b)) return iteration.dict_update(a, b) ? a : nullptr;   // as update does
  if (a->kind == Kind::constant && index == 6 && (PyUnicode_Check(a->real) || PyBytes_Check(a->real))) {
    PyObject* plain = texts.to_plain(b->kind == Kind::tuple && is_user_class(b->type) ? values.make_tuple(values.items(b)) : b);
    if (!plain && PyUnicode_CheckExact(a->real)) return calls.call(builtins.own_function("percent_text"), {a, b});
    if (!plain) stop("format-of-a-value", "bytes are formatted with " + values.describe(b));
    if (frames::SizeLog* log = frames::size_log()) log->used(plain);
    return values.constant_steal(PyNumber_Remainder(a->real, plain));
  }
  if (index == 7 && (a->kind == Kind::klass || b->kind == Kind::klass)) {   // int | None
    PyObject *x = values.as_constant(a), *y = values.as_constant(b);
    if (x && y) return values.constant_steal(PyNumber_Or(x, y));
  }
  // Classes with dunders of their own, in Python's order.
  const bool right_first = asks_right_first(a, b, row.dunder, row.reflected);
  const bool can_end = tail.is && index != 8 && (is_plain_operand(a) || a->kind == Kind::tensor) && (is_plain_operand(b) || b->kind == Kind::tensor);
  auto end_after = [&](int round) {   // what is asked when this one does not know; -1: in place
    if (!can_end) return;
    std::vector<Value*> ways;
    for (int later = round + 1; later < 2; ++later)
      if (const bool right = (later == 0) == right_first; !right || a->type != b->type) ways.push_back(values.make_tuple({values.boolean(right), values.text(right ? row.reflected : row.dunder)}));
    endings.end_with(tail, "after_operator", {a, b, values.make_tuple(std::move(ways)), values.text(std::string(row.symbol) + (in_place ? "=" : ""))});
  };
  if (in_place) {
    end_after(-1);
    Value* r = dunder(a, row.in_place, b);
    if (!r && exceptions.raised()) return nullptr;
    if (r && !values.is_constant(r, Py_NotImplemented)) return r;
  }
  for (int round = 0; round < 2; ++round) {
    const bool right = (round == 0) == right_first;
    if (right && a->type == b->type) continue;
    end_after(round);
    Value* r = right ? dunder(b, row.reflected, a) : dunder(a, row.dunder, b);
    if (!r && !exceptions.raised()) r = right ? by_slot(*this, b, a, row.reflected) : by_slot(*this, a, b, row.dunder);
    if (!r && exceptions.raised()) return nullptr;
    if (r && !values.is_constant(r, Py_NotImplemented)) return r;
  }
  for (Value* v : {a, b})
    if (v->kind == Kind::constant && is_user_class(v->type) && says(v)) stop("special-method", std::string("the operator ") + row.symbol + " is applied to " + values.describe(v) + ", which has its own");
  for (Value* v : {a, b})
    if (v->kind == Kind::opaque || attributes.has_c_base(v)) stop("opaque-object", std::string("the operator ") + row.symbol + " is applied to " + values.describe(v));
  for (Value* v : {a, b})
    if (is_user_class(v->type) && v->kind != Kind::object && v->kind != Kind::constant)
      stop(v->kind == Kind::tensor ? "torch-argument" : "container-subclass", std::string("the operator ") + row.symbol + " is applied to " + values.describe(a) + " and " + values.describe(b));
  // A sequence on the left of + is asked last, and has its own words.
  const bool sequence = a->kind == Kind::list || a->kind == Kind::tuple || (a->kind == Kind::constant && (PyUnicode_Check(a->real) || PyTuple_Check(a->real)));
  if (index == 0 && sequence) {
    const char* own = a->kind == Kind::list ? "list" : a->kind == Kind::tuple || PyTuple_Check(a->real) ? "tuple" : "str";
    return exceptions.raise(PyExc_TypeError, std::string("can only concatenate ") + own + " (not \"" + b->type->tp_name + "\") to " + own);
  }
  const auto is_sequence = [](Value* v) { return v->kind == Kind::list || v->kind == Kind::tuple || (v->kind == Kind::constant && (PyUnicode_Check(v->real) || PyBytes_Check(v->real))); };
  if (index == 5 && (is_sequence(a) || is_sequence(b)))
    return exceptions.raise(PyExc_TypeError, std::string("can't multiply sequence by non-int of type '") + (is_sequence(a) ? b : a)->type->tp_name + "'");
  return exceptions.raise(PyExc_TypeError, std::string("unsupported operand type(s) for ") + (in_place && index == 8 ? "**" : row.symbol) + (in_place ? "=" : "") + ": '" + a->type->tp_name + "' and '" + b->type->tp_name + "'");
}

Value* Operators::unary(int op, Value* v) {
  const Tail tail = endings.take_tail();
  values.force(v);
  if (number_of(v) && op != '~') return leaves.compute_number(op == '-' ? "sym.neg" : "sym.pos", {v});
  if (frames::SizeLog* log = frames::size_log(); log && v->kind == Kind::constant && op == '-' && PyLong_CheckExact(v->real)) return binary(10, values.integer(0), v);   // an expression
  if (Value* r = nullptr; v->kind == Kind::constant && library.compute_with_numpy(operator_function(op == '-' ? "neg" : op == '+' ? "pos" : "invert"), {v}, &r)) return r;
  if (v->kind == Kind::constant && library.has_identities() && Library::is_identity_number(v->real)) stop("id-of-a-new-object", "the id of an object that the compiled function created is used in a computation");
  if (frames::SizeLog* log = frames::size_log(); log && v->kind == Kind::constant && op == '-' && PyFloat_CheckExact(v->real)) {
    PyObject* r = PyNumber_Negative(v->real);
    if (!log->applied(symbolic::NumberStep::Kind::neg, v->real, r)) log->used(v->real);
    return values.constant_steal(r);
  }
  if (frames::SizeLog* log = frames::size_log(); log && v->kind == Kind::constant && op == '~') log->used(v->real);
  if (v->kind == Kind::constant) return values.constant_steal(op == '-' ? PyNumber_Negative(v->real) : op == '+' ? PyNumber_Positive(v->real) : PyNumber_Invert(v->real));
  if (v->kind == Kind::tensor) return leaves.call_leaf(operator_function(op == '-' ? "neg" : op == '+' ? "pos" : "invert"), nullptr, {v});
  if (v->kind == Kind::object) endings.hand_on(tail);
  Value* r = dunder(v, op == '-' ? "__neg__" : op == '+' ? "__pos__" : "__invert__", nullptr);
  if (r || exceptions.raised()) return r;
  if (plain_of(v)) return unary(op, plain_of(v));
  if (v->kind == Kind::opaque || attributes.has_c_base(v)) stop("opaque-object", "a unary operator is applied to " + values.describe(v));
  return exceptions.raise(PyExc_TypeError, std::string("bad operand type for unary ") + static_cast<char>(op) + ": '" + v->type->tp_name + "'");
}

Value* Operators::compare(int op, Value* a, Value* b) {
  const Tail tail = endings.take_tail();
  values.force(a);
  values.force(b);
  if ((plain_of(a) || plain_of(b)) && a->kind != Kind::tensor && b->kind != Kind::tensor) return numbers.compare_with_number(op, a, b);
  if (number_of(a) || number_of(b)) return leaves.compare_with_number(op, a, b);
  if (plain_of(a) || plain_of(b)) return compare(op, numbers.plain_or_self(a), numbers.plain_or_self(b));
  auto compares_itself = [&](Value* l, Value* r) {   // a number of a class of the program's, with comparisons of its own
    for (Value* v : {l, r})
      if (is_user_class(v->type))
        for (const char* name : kCompareDunders)
          if (attributes.own_operator(v->type, values.keep(PyUnicode_InternFromString(name)))) return true;
    return false;
  };
  if (a->kind == Kind::tensor || b->kind == Kind::tensor) {
    Value* other = a->kind == Kind::tensor ? b : a;
    if (other->kind != Kind::object || (op != Py_EQ && op != Py_NE)) {
      if (other->kind == Kind::constant || other->kind == Kind::tensor) return leaves.call_leaf(operator_function(kCompareFunctions[op]), nullptr, {a, b});
    }
    // A tensor has no answer to what is neither a tensor nor a number: the other one is asked, and identity decides.
    const bool is_plain = !is_user_class(other->type) && (other->kind == Kind::list || other->kind == Kind::tuple || other->kind == Kind::dict || other->kind == Kind::set || other->kind == Kind::function || other->kind == Kind::klass || other->kind == Kind::module || other->kind == Kind::builtin || other->kind == Kind::method || other->kind == Kind::slice);
    const bool is_silent = other->kind == Kind::object && !compares_itself(other, other) && !attributes.lookup_type(other->type, names().__torch_function__);
    if ((op == Py_EQ || op == Py_NE) && (is_plain || is_silent)) return values.boolean((a == b) == (op == Py_EQ));
    stop("tensor-comparison", "a tensor is compared with " + values.describe(other));
  }
  if ((a->kind == Kind::constant || b->kind == Kind::constant) && a->kind != Kind::tensor && b->kind != Kind::tensor && a->type != &PyUnicode_Type && b->type != &PyUnicode_Type)
    if (Value* r = nullptr; library.compute_with_numpy(operator_function(kCompareFunctions[op]), {a, b}, &r)) return r;
  PyObject *x = values.as_constant(a), *y = values.as_constant(b);
  if (is_numpy_dtype(a->type) || is_numpy_dtype(b->type)) {   // which are equal to the classes of their numbers, and to names
    if (!x && a->kind == Kind::klass && is_numpy_number(reinterpret_cast<PyTypeObject*>(a->real))) x = a->real;
    if (!y && b->kind == Kind::klass && is_numpy_number(reinterpret_cast<PyTypeObject*>(b->real))) y = b->real;
  }
  if (x && y && op != Py_EQ && op != Py_NE && library.has_identities() && (Library::is_identity_number(x) || Library::is_identity_number(y))) stop("id-of-a-new-object", "the ids of objects that the compiled function created are compared");
  if (x && y && !((is_user_class(a->type) || is_user_class(b->type)) && a->kind == Kind::constant && b->kind == Kind::constant && compares_itself(a, b))) {
    PyObject* r = PyObject_RichCompare(x, y, op);
    if (frames::SizeLog* log = frames::size_log(); log && r) log->compared(x, y, op, r == Py_True, "");
    return values.constant_steal(r);
  }
  auto compares = [&](Value* v) {
    if (!is_user_class(v->type)) return false;
    for (const char* name : kCompareDunders)
      if (attributes.own_operator(v->type, values.keep(PyUnicode_InternFromString(name)))) return true;
    return false;
  };
  const bool user = compares(a) || compares(b);
  if (!user)
    if (Value* r = plain_compare(op, a, b); r || exceptions.raised()) return r;
  return compare_by_classes(op, a, b, user, tail);
}

Value* Operators::plain_compare(int op, Value* a, Value* b) {
  const bool a_list = a->kind == Kind::list || a->kind == Kind::tuple, b_list = b->kind == Kind::list || b->kind == Kind::tuple;
  if (a_list && b_list && a->kind == b->kind && containers.is_deque(a) == containers.is_deque(b)) {
    auto &l = values.items(a), &r = values.items(b);
    if ((op == Py_EQ || op == Py_NE) && l.size() != r.size()) return values.boolean(op == Py_NE);
    const size_t n = std::min(l.size(), r.size());
    for (size_t i = 0; i < n; ++i) {
      const int same = equal(l[i], r[i]);
      if (same < 0) return nullptr;
      if (same) continue;
      if (op == Py_EQ) return values.boolean(false);
      if (op == Py_NE) return values.boolean(true);
      return compare(op, l[i], r[i]);
    }
    const long long left = static_cast<long long>(l.size()), right = static_cast<long long>(r.size());
    switch (op) {
      case Py_LT: return values.boolean(left < right);
      case Py_LE: return values.boolean(left <= right);
      case Py_GT: return values.boolean(left > right);
      case Py_GE: return values.boolean(left >= right);
      default: return values.boolean((left == right) == (op == Py_EQ));
    }
  }
  if (a->kind == Kind::dict && b->kind == Kind::dict && (op == Py_EQ || op == Py_NE)) {
    if (mappings.dict_size(a) != mappings.dict_size(b)) return values.boolean(op == Py_NE);
    if (PyType_IsSubtype(a->type, known().ordered_dict) && PyType_IsSubtype(b->type, known().ordered_dict)) {   // the order counts
      const std::vector<PyObject*> left = mappings.keys_of(a), right = mappings.keys_of(b);
      for (size_t i = 0; i < left.size(); ++i) {
        const int same = equal(mappings.value_of_key(left[i]), mappings.value_of_key(right[i]));
        if (same < 0) return nullptr;
        if (!same) return values.boolean(op == Py_NE);
      }
    }
    for (PyObject* k : mappings.keys_of(a)) {
      Value* other = mappings.dict_get(b, k);
      if (!other) return values.boolean(op == Py_NE);
      const int same = equal(mappings.dict_get(a, k), other);
      if (same < 0) return nullptr;
      if (!same) return values.boolean(op == Py_NE);
    }
    return values.boolean(op == Py_EQ);
  }
  auto is_set = [&](Value* v) { return v->kind == Kind::set || (v->kind == Kind::constant && PyFrozenSet_Check(v->real)) || (v->kind == Kind::view && body<View>(v).what == View::What::keys); };
  if (a->kind == Kind::view && b->kind == Kind::view && body<View>(a).what == View::What::items && body<View>(b).what == View::What::items) {
    // As sets of pairs; values need no hash for that.
    auto within = [&](Value* x, Value* y) -> int {
      for (PyObject* k : mappings.keys_of(x)) {
        Value* other = mappings.dict_get(y, k);
        if (!other) return 0;
        const int same = equal(mappings.dict_get(x, k), other);
        if (same != 1) return same;
      }
      return 1;
    };
    Value *x = body<View>(a).dict, *y = body<View>(b).dict;
    const size_t m = mappings.dict_size(x), n = mappings.dict_size(y);
    const bool possible = op == Py_LE ? m <= n : op == Py_LT ? m < n : op == Py_GE ? m >= n : op == Py_GT ? m > n : m == n;
    const int inside = !possible ? 0 : op == Py_GE || op == Py_GT ? within(y, x) : within(x, y);
    return inside < 0 ? nullptr : values.boolean((inside == 1) != (op == Py_NE));
  }
  if (is_set(a) && is_set(b)) {
    auto real_set = [&](Value* v) -> PyObject* {
      if (v->kind == Kind::constant) return v->real;
      if (v->kind == Kind::set) { mappings.set_load(v); return body<Mapping>(v).order; }
      PyObject* s = values.keep(PySet_New(nullptr));
      for (PyObject* k : mappings.keys_of(body<View>(v).dict)) PySet_Add(s, k);
      return s;
    };
    PyObject* r = PyObject_RichCompare(real_set(a), real_set(b), op);
    mappings.check_keys();
    return values.constant_steal(r);
  }
  if ((a->kind == Kind::view && body<View>(a).what == View::What::items) || (b->kind == Kind::view && body<View>(b).what == View::What::items))
    if (a != b) stop("view-comparison", "the items of a dict are compared with " + values.describe(a->kind == Kind::view ? b : a));
  if (a->kind == Kind::slice && b->kind == Kind::slice) {
    const int s = equal(body<Slice>(a).start, body<Slice>(b).start), t = equal(body<Slice>(a).stop, body<Slice>(b).stop), u = equal(body<Slice>(a).step, body<Slice>(b).step);
    if (s < 0 || t < 0 || u < 0) return nullptr;
    return values.boolean((s && t && u) == (op == Py_EQ));
  }
  if (a->type == known().simple_namespace && b->type == known().simple_namespace && a->kind == Kind::object && b->kind == Kind::object && (op == Py_EQ || op == Py_NE)) return compare(op, attributes.instance_dict(a), attributes.instance_dict(b));
  return nullptr;
}

// Python's order: the right side first where its class is below the left one's, and then the other one; each by what its class says, or by C's own.
Value* Operators::compare_by_classes(int op, Value* a, Value* b, bool user, const Tail& tail) {
  static PyObject* const object_ne = _PyType_Lookup(&PyBaseObject_Type, PyUnicode_InternFromString("__ne__"));
  const bool right_first = b->type != a->type && a->type && b->type && PyType_IsSubtype(b->type, a->type);
  for (int round = 0; round < 2; ++round) {
    const bool right = (round == 0) == right_first;
    if (tail.is && is_plain_operand(a) && is_plain_operand(b)) {
      std::vector<Value*> ways;
      if (round == 0) ways.push_back(values.make_tuple({values.boolean(!right), values.text(right ? kCompareDunders[op] : kCompareDunders[kSwapped[op]])}));
      endings.end_with(tail, "after_operator", {a, b, values.make_tuple(std::move(ways)), values.text(kCompareSymbol[op])});
    }
    Value *self = right ? b : a, *other = right ? a : b;
    const int asked = right ? kSwapped[op] : op;
    Value* r = dunder(self, kCompareDunders[asked], other);
    if (!r && exceptions.raised()) return nullptr;
    if (!r && op == Py_NE && (self->kind == Kind::klass || attributes.lookup_type(self->type, names().__ne__) == object_ne)) {   // object's __ne__ asks __eq__
      r = right ? dunder(b, "__eq__", a) : dunder(a, "__eq__", b);
      if (!r && exceptions.raised()) return nullptr;
      if (r && !values.is_constant(r, Py_NotImplemented)) { const int t = subscripts.truth(r); return t < 0 ? nullptr : values.boolean(!t); }
    }
    if (!r && user) {
      r = by_slot(*this, self, other, kCompareDunders[asked]);
      if (!r && !exceptions.raised()) r = plain_compare(asked, self, other);
      if (!r && exceptions.raised()) return nullptr;
    }
    if (r && !values.is_constant(r, Py_NotImplemented)) return r;
  }
  for (Value* v : {a, b}) {
    PyObject* own = v->kind == Kind::object ? attributes.lookup_type(v->type, names().__eq__) : nullptr;
    if (!own || values.same_identity(a, b)) continue;
    if (PyInstanceMethod_Check(own) && a->type == b->type && a->real && b->real && bytecode::in_type_dict(a->type, "__members__")) {   // an enumeration of pybind's: C compares numbers
      guards.add(a->source, GuardKind::id, a->real);
      guards.add(b->source, GuardKind::id, b->real);
      return values.constant_steal(PyObject_RichCompare(a->real, b->real, op));
    }
    if (PyInstanceMethod_Check(own) || (attributes.has_c_base(v) && own != _PyType_Lookup(&PyBaseObject_Type, names().__eq__))) stop("opaque-object", values.describe(v) + " is compared, whose comparison is one of C's");
  }
  if (a->kind == Kind::method && b->kind == Kind::method && (op == Py_EQ || op == Py_NE))
    return values.boolean((values.same_identity(body<Method>(a).self, body<Method>(b).self) && values.same_identity(body<Method>(a).function, body<Method>(b).function)) == (op == Py_EQ));
  if (op == Py_EQ || op == Py_NE) {
    if ((a->kind == Kind::opaque && b->kind != Kind::constant) || (b->kind == Kind::opaque && a->kind != Kind::constant) || (a->kind == Kind::opaque && b->real != Py_None) || (b->kind == Kind::opaque && a->real != Py_None)) {
      const bool by_identity = a->type && (!a->type->tp_richcompare || a->type->tp_richcompare == PyBaseObject_Type.tp_richcompare);   // else C has its own idea: an array, a tensor of another class
      if (!(a->kind == Kind::opaque && b->kind == Kind::opaque && a->real && a->real == b->real && by_identity)) stop("opaque-object", "objects are compared, one of which capture does not know: " + values.describe(a->kind == Kind::opaque ? a : b));
    }
    if (a->kind == b->kind && user && (a->kind == Kind::dict || a->kind == Kind::list)) stop("container-subclass", "instances of classes derived from containers are compared");
    return values.boolean(values.same_identity(a, b) == (op == Py_EQ));
  }
  if (a->kind == Kind::opaque || b->kind == Kind::opaque) stop("opaque-object", "objects are compared, one of which capture does not know");
  return exceptions.raise(PyExc_TypeError, std::string("'") + kCompareSymbol[op] + "' not supported between instances of '" + a->type->tp_name + "' and '" + b->type->tp_name + "'");
}

int Operators::equal(Value* a, Value* b) {
  if (values.same_identity(a, b)) return 1;
  const Depth depth(compare_depth_);
  if (compare_depth_ > 400) throw frames::Skip{{.id = "deep-recursion", .what = "containers that are compared nest too deeply", .stack = frame_stack.user_stack(), .remedy = frames::BreakReason::Remedy::none}};
  Value* r = compare(Py_EQ, a, b);
  if (!r) return -1;
  return subscripts.truth(r);
}

}  // namespace cutaway::capture
