// Instances of classes that derive from int, float or str and have operators of their own: objects with a plain number or text inside. What the
// class says is interpreted, in Python's order; what C says is computed with the plain one.
#include <cstdint>

#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {
constexpr const char* kOperatorDunders[][3] = {{"__add__", "__radd__", "__iadd__"}, {"__and__", "__rand__", "__iand__"}, {"__floordiv__", "__rfloordiv__", "__ifloordiv__"},
    {"__lshift__", "__rlshift__", "__ilshift__"}, {"__matmul__", "__rmatmul__", "__imatmul__"}, {"__mul__", "__rmul__", "__imul__"}, {"__mod__", "__rmod__", "__imod__"},
    {"__or__", "__ror__", "__ior__"}, {"__pow__", "__rpow__", "__ipow__"}, {"__rshift__", "__rrshift__", "__irshift__"}, {"__sub__", "__rsub__", "__isub__"},
    {"__truediv__", "__rtruediv__", "__itruediv__"}, {"__xor__", "__rxor__", "__ixor__"}};
constexpr const char* kSymbols[] = {"+", "&", "//", "<<", "@", "*", "%", "|", "** or pow()", ">>", "-", "/", "^"};
constexpr const char* kOrderDunders[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
constexpr int kMirrored[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
}  // namespace

Value* Numbers::plain_number(PyObject* o) {
  if (PyUnicode_Check(o)) return values.constant_steal(PyUnicode_FromObject(o));
  if (PyFloat_Check(o)) return values.constant_steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(o)));
  PyObject* zero = values.keep(PyLong_FromLong(0));
  return values.constant_steal(PyLong_Type.tp_as_number->nb_add(o, zero));
}

Value* Numbers::make_number(PyTypeObject* t, const Args& args) {
  PyTypeObject* base = t;
  while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) base = base->tp_base;
  std::vector<Value*> given;
  for (size_t i = 0; i < args.count; ++i) given.push_back(plain_or_self(args[i]));
  if (args.keyword_count) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created with keyword arguments");
  for (Value* g : given) if (values.kind(g) != Kind::constant) stop("c-constructor", std::string("an instance of ") + t->tp_name + " is created from values that are not constant");
  Value* plain = builtins.call_pure(reinterpret_cast<PyObject*>(base), Args(given));
  if (!plain) return nullptr;
  Value* v = values.new_value(Kind::object, t);
  values.give<Object>(v).plain = plain;
  guards.add_type_version(t);
  return v;
}

bool Numbers::holds_made_number(PyObject* o) const {
  if (made_numbers_.empty()) return false;
  if (!PyTuple_CheckExact(o)) return is_made_number(o);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (holds_made_number(PyTuple_GET_ITEM(o, i))) return true;
  return false;
}

bool Numbers::has_own(PyTypeObject* t, std::initializer_list<const char*> dunders) {
  for (const char* name : dunders)
    if (attributes.own_method(t, values.keep(PyUnicode_InternFromString(name)))) return true;
  return false;
}

Value* Numbers::binary_with_number(int op, Value* a, Value* b) {
  const bool in_place = op >= 13;
  const size_t index = static_cast<size_t>(in_place ? op - 13 : op);
  const char* const* row = kOperatorDunders[index];
  Value *x = plain_or_self(a), *y = plain_or_self(b);
  const auto said = [&](Value* r) { return r && !values.is_constant(r, Py_NotImplemented); };
  if (in_place) {
    Value* r = operators.dunder(a, row[2], b);
    if ((!r && exceptions.raised()) || said(r)) return r;
  }
  if (x->kind != Kind::constant || y->kind != Kind::constant) {   // a tensor, a list, an object: C of the number's knows none of them
    const bool number_left = plain_of(a) != nullptr;
    Value* r = number_left ? operators.dunder(a, row[0], b) : nullptr;
    if ((!r && exceptions.raised()) || said(r)) return r;
    if (number_left && b->kind == Kind::object) {
      r = operators.dunder(b, row[1], a);
      if ((!r && exceptions.raised()) || said(r)) return r;
    }
    if (!number_left) {
      if (a->kind == Kind::object) {
        r = operators.dunder(a, row[0], b);
        if ((!r && exceptions.raised()) || said(r)) return r;
      } else if (a->kind == Kind::tensor) return operators.binary(op, x, y);
      r = operators.dunder(b, row[1], a);
      if ((!r && exceptions.raised()) || said(r)) return r;
    }
    if (x->kind == Kind::object || y->kind == Kind::object)
      return exceptions.raise(PyExc_TypeError, std::string("unsupported operand type(s) for ") + kSymbols[index] + (in_place ? "=" : "") + ": '" + a->type->tp_name + "' and '" + b->type->tp_name + "'");
    return operators.binary(op, x, y);
  }
  if (index == 6 && (PyUnicode_Check(x->real) || PyBytes_Check(x->real))) {   // formatting asks the other side how it looks
    if (plain_of(a) && has_own(a->type, {row[0]})) return operators.dunder(a, row[0], b);
    if (plain_of(b) && has_own(b->type, {row[1], "__getitem__"})) stop("opaque-object", "text is formatted with " + values.describe(b) + ", which has its own %");
    return operators.binary(op, x, values.make_tuple({b}));
  }
  // Two numbers or texts: Python's order, where the side that is C is asked by its slot.
  const auto by_slot = [&](Value* self, Value* other, const char* name, bool has_slot) -> Value* {
    const bool is_sequence = PyUnicode_Check(self->real) || PyBytes_Check(self->real);
    if (is_sequence && !has_slot) return values.constant(Py_NotImplemented);   // sequences are asked last
    if (is_sequence && !PyUnicode_Check(other->real)) stop("opaque-object", std::string("an operator is applied to a ") + a->type->tp_name + " and a " + b->type->tp_name + " that do not fit");   // its words name the classes
    PyObject* slot = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self->real)), name);
    if (!slot) { PyErr_Clear(); return values.constant(Py_NotImplemented); }
    PyObject* r = PyObject_CallFunctionObjArgs(slot, self->real, other->real, nullptr);
    Py_DECREF(slot);
    return values.constant_steal(r);
  };
  const bool right_first = operators.asks_right_first(a, b, row[0], row[1]);
  for (int round = 0; round < 2; ++round) {
    const bool right = (round == 0) == right_first;
    if (right && a->type == b->type) continue;
    const char* name = right ? row[1] : row[0];
    Value *self = right ? b : a, *other = right ? a : b;
    Value* r = plain_of(self) && has_own(self->type, {name}) ? operators.dunder(self, name, other) : by_slot(plain_or_self(self), plain_or_self(other), name, plain_of(self) && has_own(self->type, {row[0], row[1]}));
    if ((!r && exceptions.raised()) || said(r)) return r;
  }
  Value* r = operators.binary(op, x, y);   // what C says last: sequences
  if (exceptions.raised_is(PyExc_TypeError)) stop("opaque-object", std::string("an operator is applied to a ") + a->type->tp_name + " and a " + b->type->tp_name + " that do not fit");   // its words name the classes
  return r;
}

Value* Numbers::compare_with_number(int op, Value* a, Value* b) {
  Value *x = plain_or_self(a), *y = plain_or_self(b);
  const bool right_first = a->type != b->type && PyType_IsSubtype(b->type, a->type);
  for (int round = 0; round < 2; ++round) {
    const bool right = (round == 0) == right_first;
    Value *self = right ? b : a, *other = right ? a : b;
    const int asked = right ? kMirrored[op] : op;
    if (self->kind == Kind::object && has_own(self->type, {kOrderDunders[asked]})) {
      Value* r = operators.dunder(self, kOrderDunders[asked], other);
      if ((!r && exceptions.raised()) || (r && !values.is_constant(r, Py_NotImplemented))) return r;
      continue;
    }
    if (self->kind == Kind::object && asked == Py_NE && !plain_of(self) && has_own(self->type, {"__eq__"})) {
      Value* r = operators.dunder(self, "__eq__", other);
      if (!r && exceptions.raised()) return nullptr;
      if (r && !values.is_constant(r, Py_NotImplemented)) { const int t = subscripts.truth(r); return t < 0 ? nullptr : values.boolean(!t); }
      continue;
    }
    Value *p = plain_or_self(self), *q = plain_or_self(other);
    if (p->kind == Kind::constant && q->kind == Kind::constant && ((PyUnicode_Check(p->real) && PyUnicode_Check(q->real)) || (PyFloat_Check(p->real) && PyNumber_Check(q->real)) || (PyLong_Check(p->real) && PyLong_Check(q->real))))
      return operators.compare(asked, p, q);
  }
  if (x->kind == Kind::object || y->kind == Kind::object) {
    if (op == Py_EQ || op == Py_NE) return values.boolean(values.same_identity(a, b) == (op == Py_EQ));
    stop("opaque-object", "a number of a class that the program defines is compared with " + values.describe(x->kind == Kind::object ? a : b));
  }
  return operators.compare(op, x, y);
}

}  // namespace cutaway::capture
