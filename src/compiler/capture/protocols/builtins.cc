// Functions and types of C that the interpreter knows: builtins, slots and methods of Python's own types, and pure functions on constants.
#include "compiler/capture/protocols/builtins.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/interpreter/tracebacks.h"
#include "compiler/capture/protocols/argument_counts.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/torch_calls.h"
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

using Handler = Value* (*)(const Owners&, const Args&);

Value* keyword(const Args& a, const char* name) {
  for (size_t i = 0; i < a.keyword_count; ++i)
    if (PyUnicode_CompareWithASCIIString(a.keywords[i].first, name) == 0) return a.keywords[i].second;
  return nullptr;
}

Value* do_isinstance(const Owners& t, const Args& a) {
  bool r = false;
  if (!t.attributes.isinstance(a[0], a[1], &r)) return nullptr;
  return t.values.boolean(r);
}
Value* do_issubclass(const Owners& t, const Args& a) {
  bool r = false;
  if (!t.attributes.issubclass(a[0], a[1], &r)) return nullptr;
  return t.values.boolean(r);
}
Value* do_len(const Owners& t, const Args& a) { return t.subscripts.length(a[0]); }
Value* do_iter(const Owners& t, const Args& a) {
  if (a.count == 1) return t.iteration.iter(a[0]);
  t.endings.take_tail();
  if (const Kind k = t.values.kind(a[0]); k == Kind::constant || k == Kind::list || k == Kind::tuple || k == Kind::dict || k == Kind::set || k == Kind::tensor)
    if (!t.attributes.lookup_type(a[0]->type, names().__call__)) {
      static PyObject* const real = PyObject_GetAttrString(PyImport_ImportModule("builtins"), "iter");   // it has the words of this Python
      PyObject* made = PyObject_CallFunctionObjArgs(real, Py_None, Py_None, nullptr);
      Py_XDECREF(made);
      return t.exceptions.raise_python();
    }
  Value* v = t.values.make_iterator(Iterator::What::sentinel, a[0]);
  body<Iterator>(v).parts = {a[1]};
  return v;
}
Value* do_next(const Owners& t, const Args& a) {
  const Tail tail = t.endings.take_tail();
  if (a.count == 1 && t.values.kind(a[0]) == Kind::generator) t.endings.end_with(tail, "after_next_of_generator", {});
  else if (a.count == 1) t.endings.hand_on(tail);
  bool done = false;
  Value* v = t.iteration.next(a[0], &done);
  if (!done) return v;
  if (a.count > 1) return a[1];
  const Kind k = t.values.kind(a[0]);   // what a generator returned comes with the exception
  Value* returned = k == Kind::generator || k == Kind::object ? t.interpreter.last_return() : nullptr;
  return t.exceptions.raise(t.exceptions.make_exception(PyExc_StopIteration, returned && !t.values.is_constant(returned, Py_None) ? std::vector<Value*>{returned} : std::vector<Value*>{}));
}
PyObject* name_of(const Owners& t, Value* v) {
  PyObject* n = t.values.as_constant(v);
  if (!n || !PyUnicode_Check(n)) { t.exceptions.raise(PyExc_TypeError, std::string("attribute name must be string, not '") + t.values.type_of(v)->tp_name + "'"); return nullptr; }
  PyObject* interned = Py_NewRef(n);
  PyUnicode_InternInPlace(&interned);
  return t.values.keep(interned);
}
Value* do_getattr(const Owners& t, const Args& a) {
  PyObject* n = name_of(t, a[1]);
  if (!n) return nullptr;
  if (a.count == 3) t.endings.take_tail();
  Value* v = t.attributes.getattr(a[0], n);
  if (!v && a.count == 3 && t.exceptions.raised_is(PyExc_AttributeError)) { t.exceptions.take_raised(); return a[2]; }
  return v;
}
Value* do_hasattr(const Owners& t, const Args& a) {
  PyObject* n = name_of(t, a[1]);
  if (!n) return nullptr;
  Value* v = t.attributes.getattr(a[0], n);
  if (v) return t.values.boolean(true);
  if (!t.exceptions.raised_is(PyExc_AttributeError)) return nullptr;
  t.exceptions.take_raised();
  return t.values.boolean(false);
}
Value* do_setattr(const Owners& t, const Args& a) {
  t.endings.end_with(t.endings.take_tail(), "after_store", {});
  PyObject* n = name_of(t, a[1]);
  return n && t.attributes.setattr(a[0], n, a[2]) ? t.values.none() : nullptr;
}
Value* do_delattr(const Owners& t, const Args& a) {
  t.endings.end_with(t.endings.take_tail(), "after_store", {});
  PyObject* n = name_of(t, a[1]);
  return n && t.attributes.delattr(a[0], n) ? t.values.none() : nullptr;
}
Value* do_callable(const Owners& t, const Args& a) {
  switch (t.values.kind(a[0])) {
    case Kind::function: case Kind::method: case Kind::builtin: case Kind::klass: case Kind::partial: return t.values.boolean(true);
    case Kind::opaque: return t.values.boolean(a[0]->type->tp_call != nullptr);
    default: return t.values.boolean(t.attributes.lookup_type(a[0]->type, names().__call__) != nullptr);
  }
}
Value* do_id(const Owners& t, const Args& a) {
  Value* v = t.values.force(a[0]);
  if (!v->real) {
    if (!has_identity(v->kind) && v->kind != Kind::generator && v->kind != Kind::iterator) stop("id-of-a-new-object", "id() is called on an object that the compiled function created");
    return t.library.identity_number(v);
  }
  t.guards.add(v->source, GuardKind::id, v->real);
  return t.values.constant_steal(PyLong_FromVoidPtr(v->real));
}
Value* do_repr(const Owners& t, const Args& a) { return t.texts.repr(a[0]); }
Value* do_abs(const Owners& t, const Args& a) {
  Value* v = t.values.force(a[0]);
  if (v->kind == Kind::constant) {
    PyObject* r = PyNumber_Absolute(v->real);
    if (frames::SizeLog* log = frames::size_log(); log && !log->applied(symbolic::NumberStep::Kind::abs, v->real, r)) log->used(v->real);
    return t.values.constant_steal(r);
  }
  if (v->kind == Kind::tensor) return t.leaves.call_tensor_method(v, t.values.keep(PyUnicode_InternFromString("abs")), {v});
  if (number_of(v)) return t.leaves.compute_number("sym.abs", {v});
  if (Value* r = t.operators.dunder(v, "__abs__", nullptr); r || t.exceptions.raised()) return r;
  if (Value* plain = plain_of(v)) return do_abs(t, {plain});
  if (v->kind == Kind::opaque || t.attributes.has_c_base(v)) stop("opaque-object", "abs() is called on " + t.values.describe(v));
  return t.exceptions.raise(PyExc_TypeError, std::string("bad operand type for abs(): '") + v->type->tp_name + "'");
}
Value* extreme(const Owners& t, const Args& a, int op, const char* name) {
  if (a.count > 1 && keyword(a, "default")) return t.exceptions.raise(PyExc_TypeError, std::string("Cannot specify a default for ") + name + "() with multiple positional arguments");
  const Tail tail = t.endings.take_tail();
  Value* it = a.count == 1 ? t.iteration.iter(a[0]) : t.iteration.iterator_of_items({a.positional, a.positional + a.count});
  if (!it) return nullptr;
  Value* key = keyword(a, "key");
  if (key && t.values.is_constant(key, Py_None)) key = nullptr;
  static PyObject* const missing = ending_named("MISSING");
  Value *best = nullptr, *best_key = nullptr;
  for (;;) {
    bool done = false;
    Value* item = t.iteration.next(it, &done);
    if (done) break;
    if (!item) return nullptr;
    if (key && tail.is) t.endings.end_with(tail, "after_key_of_extreme", {it, item, best ? best : t.values.none(), best_key ? best_key : t.values.wrap_constant_object(missing), key, t.values.boolean(op == Py_GT)});
    Value* k = key ? t.calls.call(key, {item}) : item;
    if (!k) return nullptr;
    if (best) {
      if (frames::SizeLog* log = frames::size_log(); log && !key && t.values.kind(k) == Kind::constant && t.values.kind(best) == Kind::constant && (PyLong_CheckExact(k->real) || PyFloat_CheckExact(k->real))) {
        const int takes = PyObject_RichCompareBool(k->real, best->real, op);
        if (takes < 0) PyErr_Clear();
        else if (log->chosen(op == Py_GT, best->real, k->real, takes ? k->real : best->real)) { if (takes) best = best_key = k; continue; }
      }
      if (!key && (number_of(t.values.force(k)) || number_of(t.values.force(best))) && k->type == best->type) {
        if (!(best = best_key = t.leaves.compute_number(op == Py_GT ? "sym.max" : "sym.min", {best, k}))) return nullptr;
        continue;
      }
      Value* better = t.operators.compare(op, k, best_key);
      if (!better) return nullptr;
      const int truth = t.subscripts.truth(better);
      if (truth < 0) return nullptr;
      if (!truth) continue;
    }
    best = item;
    best_key = k;
  }
  if (best) return best;
  if (Value* d = keyword(a, "default")) return d;
  return t.exceptions.raise(PyExc_ValueError, std::string(name) + (PY_VERSION_HEX < 0x030C0000 ? "() arg is an empty sequence" : "() iterable argument is empty"));
}
Value* do_min(const Owners& t, const Args& a) { return extreme(t, a, Py_LT, "min"); }
Value* do_max(const Owners& t, const Args& a) { return extreme(t, a, Py_GT, "max"); }
/// Since 3.12 sum() of numbers carries the rounding errors of floats along, up to the first item that is no number.
struct FloatSum {
  bool is_done = false;
  bool run(const Owners& t, Value* it, Value** total) {
    const auto is_float = [&](Value* v) { return t.values.kind(v) == Kind::constant && PyFloat_CheckExact(v->real); };
    const auto is_int = [&](Value* v) { return t.values.kind(v) == Kind::constant && (PyLong_CheckExact(v->real) || PyBool_Check(v->real)); };
    const auto is_short = [&](Value* v) {
      int overflows = 0;
      if (t.values.kind(v) == Kind::constant && PyLong_CheckExact(v->real)) PyLong_AsLongAndOverflow(v->real, &overflows);
      return t.values.kind(v) == Kind::constant && PyLong_CheckExact(v->real) && !overflows;
    };
    const auto note = [&](Value* v) { if (frames::SizeLog* log = frames::size_log()) log->used(v->real); };
    while (is_short(*total) || is_float(*total)) {
      const bool summing = is_float(*total);
      double sum = summing ? PyFloat_AS_DOUBLE((*total)->real) : 0, error = 0;
      if (summing) note(*total);
      const auto settle = [&] { if (summing) *total = t.values.constant_steal(PyFloat_FromDouble(error != 0 && std::isfinite(error) ? sum + error : sum)); };
      for (;;) {
        Value* v = t.iteration.next(it, &is_done);
        if (is_done) return settle(), true;
        if (!v) return false;
        int overflows = 0;
        if (summing && is_float(v)) {
          note(v);
          const double x = PyFloat_AS_DOUBLE(v->real), next = sum + x;
          error += std::fabs(sum) >= std::fabs(x) ? (sum - next) + x : (x - next) + sum;
          sum = next;
        } else if (const long x = summing && is_int(v) ? PyLong_AsLongAndOverflow(v->real, &overflows) : 0; summing && is_int(v) && !overflows) {
          note(v);
          sum += static_cast<double>(x);
        } else {
          const bool stays_whole = !summing && is_int(v);
          settle();
          if (!(*total = t.operators.binary(0, *total, v))) return false;
          if (stays_whole && is_short(*total)) continue;
          if (summing || stays_whole) return true;
          break;   // a float after whole numbers: from here on with its errors
        }
      }
    }
    return true;
  }
};

Value* do_sum(const Owners& t, const Args& a) {
  const Tail tail = t.endings.take_tail();
  Value* it = t.iteration.iter(a[0]);
  if (!it) return nullptr;
  Value* total = a.count > 1 ? a[1] : keyword(a, "start") ? keyword(a, "start") : t.values.integer(0);
  if (t.values.kind(total) == Kind::constant && PyUnicode_Check(total->real)) return t.exceptions.raise(PyExc_TypeError, "sum() can't sum strings [use ''.join(seq) instead]");
  if (total->kind == Kind::constant && PyBytes_Check(total->real)) return t.exceptions.raise(PyExc_TypeError, "sum() can't sum bytes [use b''.join(seq) instead]");
  if (PY_VERSION_HEX >= 0x030C0000) {   // no #if: what one version does is compiled on all
    FloatSum floats;
    if (!floats.run(t, it, &total)) return nullptr;
    if (floats.is_done) return total;
  }
  for (;;) {
    bool done = false;
    if (tail.is && t.iteration.ending_of_items(it)) t.endings.end_with(tail, it->kind == Kind::generator ? "after_item_of_sum_of_generator" : "after_item_of_sum", {total, it->kind == Kind::generator ? t.values.none() : it});
    Value* v = t.iteration.next(it, &done);
    if (done) return total;
    if (v && PY_VERSION_HEX >= 0x030C0000 && number_of(t.values.force(v)) && v->type == &PyFloat_Type) stop("data-dependent-operator", "sum() of floats that were read from tensors");   // it carries rounding errors along
    if (!v || !(total = t.operators.binary(0, total, v))) return nullptr;
  }
}
Value* any_all(const Owners& t, const Args& a, bool any) {
  Value* it = t.iteration.iter(a[0]);
  if (!it) return nullptr;
  for (;;) {
    bool done = false;
    Value* v = t.iteration.next(it, &done);
    if (done) return t.values.boolean(!any);
    if (!v) return nullptr;
    const int truth = t.subscripts.truth(v);
    if (truth < 0) return nullptr;
    if ((truth == 1) == any) return t.values.boolean(any);
  }
}
Value* do_any(const Owners& t, const Args& a) { return any_all(t, a, true); }
Value* do_all(const Owners& t, const Args& a) { return any_all(t, a, false); }
Value* do_sorted(const Owners& t, const Args& a) {
  const Tail tail = t.endings.take_tail();
  std::vector<Value*> all;
  if (!t.iteration.unpack(a[0], &all)) return nullptr;
  bool reverse = false;
  if (Value* r = keyword(a, "reverse"); r && !t.containers.is_reversed(r, &reverse)) return nullptr;
  if (!t.containers.sort_values(all, keyword(a, "key"), reverse, tail)) return nullptr;
  return t.values.make_list(std::move(all));
}
Value* do_print(const Owners&, const Args&) { stop("print", "print() is called", "print outside of the compiled function, or let print run after the graph: cutaway.options(reorderable=[print])"); }
Value* do_vars(const Owners& t, const Args& a) {
  if (a.count == 0) return t.namespaces.locals_of_frame();
  Value* found = t.attributes.getattr(a[0], names().__dict__);
  if (!found && t.exceptions.raised_is(PyExc_AttributeError)) { t.exceptions.take_raised(); return t.exceptions.raise(PyExc_TypeError, "vars() argument must have __dict__ attribute"); }
  return found;
}
Value* do_format(const Owners& t, const Args& a) {
  if (a.count > 1 && t.values.type_of(a[1]) != &PyUnicode_Type && !PyType_IsSubtype(t.values.type_of(a[1]), &PyUnicode_Type)) return t.exceptions.raise(PyExc_TypeError, std::string("format() argument 2 must be str, not ") + t.values.type_of(a[1])->tp_name);
  return t.texts.format(a[0], a.count > 1 ? a[1] : nullptr);
}
Value* do_hash(const Owners& t, const Args& a) {
  if (t.values.force(a[0])->type && a[0]->kind != Kind::klass && t.attributes.lookup_type(a[0]->type, names().__hash__) == Py_None) return t.exceptions.raise(PyExc_TypeError, std::string("unhashable type: '") + a[0]->type->tp_name + "'");
  if (PyObject* c = t.values.as_constant(a[0])) { if (Library::is_identity_number(c)) stop("id-of-a-new-object", "hash() of the id of an object that the captured code made"); if (frames::SizeLog* log = frames::size_log()) log->used(c); const Py_hash_t h = PyObject_Hash(c); return h == -1 ? t.exceptions.raise_python() : t.values.integer(h); }
  if (Value* own = t.operators.dunder(a[0], "__hash__", nullptr); own || t.exceptions.raised()) {
    if (!own) return nullptr;
    if (t.values.kind(own) != Kind::constant) stop("special-method", "__hash__ gives " + t.values.describe(own));
    if (!PyLong_Check(own->real)) return t.exceptions.raise(PyExc_TypeError, "__hash__ method should return an integer");
    if (frames::SizeLog* log = frames::size_log()) log->used(own->real);
    return t.values.integer(hash_of_number(own->real));
  }
  if (a[0]->kind == Kind::tuple) {
    if (!t.mappings.key_of(a[0])) return nullptr;   // with the words for what has none inside
    if (PyObject* c = t.values.as_constant(t.values.make_tuple(t.values.items(a[0])))) {
      if (frames::SizeLog* log = frames::size_log()) log->used(c);
      return t.values.integer(PyObject_Hash(c));
    }
  }
  if (Value* plain = plain_of(a[0])) return t.values.integer(PyObject_Hash(plain->real));
  if (a[0]->kind == Kind::set && PyType_IsSubtype(a[0]->type, &PyFrozenSet_Type)) {
    bool plain = true;
    for (PyObject* k : t.mappings.keys_of(a[0])) plain = plain && t.values.as_constant(t.mappings.value_of_key(k));
    if (PyObject* key = plain ? t.mappings.key_of(a[0]) : nullptr) return t.values.integer(PyObject_Hash(key));
  }
  // By identity: a number that is equal to itself, which is all that the program can see of it.
  const Kind k = a[0]->kind;
  if ((k == Kind::object && !t.attributes.has_c_base(a[0]) && !t.attributes.own_method(a[0]->type, names().__hash__) && !t.attributes.own_method(a[0]->type, names().__eq__) && !PyType_IsSubtype(a[0]->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) || k == Kind::function || (k == Kind::builtin && a[0]->real)) {
    if (a[0]->real && a[0]->source && a[0]->source->kind != SourceKind::constant) t.guards.add(a[0]->source, GuardKind::id, a[0]->real);
    return t.library.identity_number(reinterpret_cast<char*>(a[0]->real ? static_cast<void*>(a[0]->real) : static_cast<void*>(a[0])) + 1);
  }
  stop("hash", "hash() is called on " + t.values.describe(a[0]));
}
Value* do_round(const Owners& t, const Args& a) {
  Value* v = t.values.force(a[0]);
  if (v->kind == Kind::tensor) {
    if (!_PyType_Lookup(v->type, names().__round__)) return t.exceptions.raise(PyExc_TypeError, "type Tensor doesn't define __round__ method");
    return t.leaves.call_tensor_method(v, names().__round__, a);
  }
  Value* digits = a.count > 1 ? a[1] : keyword(a, "ndigits");
  if (digits && t.values.is_constant(digits, Py_None)) digits = nullptr;
  if (number_of(v) && !digits) return t.leaves.compute_number("sym.round", {v});
  if (Value* own = t.operators.dunder(v, "__round__", digits); own || t.exceptions.raised()) return own;
  PyObject* c = t.values.as_constant(t.numbers.plain_or_self(v));
  if (!c) stop("round", "round() is called on " + t.values.describe(v));
  PyObject* d = digits ? t.values.as_constant(digits) : nullptr;
  if (digits && !d) {
    if (digits->kind != Kind::object || plain_of(digits) || !t.attributes.own_method(digits->type, names().__index__)) stop("round", "round() is called with " + t.values.describe(digits));
    if (!(d = t.subscripts.index_object(digits))) return nullptr;
  }
  if (!_PyType_Lookup(Py_TYPE(c), names().__round__)) return t.exceptions.raise(PyExc_TypeError, std::string("type ") + Py_TYPE(c)->tp_name + " doesn't define __round__ method");
  if (frames::SizeLog* log = frames::size_log()) { log->used(c); log->used(d); }
  return t.values.constant_steal(d ? PyObject_CallMethodObjArgs(c, names().__round__, d, nullptr) : PyObject_CallMethodNoArgs(c, names().__round__));
}
Value* do_pow(const Owners& t, const Args& a) {
  if (a.count == 2) return t.operators.binary(8, a[0], a[1]);
  PyObject *x = t.values.as_constant(a[0]), *y = t.values.as_constant(a[1]), *z = t.values.as_constant(a[2]);
  if (!x || !y || !z) stop("pow", "pow() is called with three arguments that are not all constants");
  if (frames::SizeLog* log = frames::size_log()) { log->used(x); log->used(y); log->used(z); }
  return t.values.constant_steal(PyNumber_Power(x, y, z));
}
Value* do_divmod(const Owners& t, const Args& a) {
  PyObject *x = t.values.as_constant(a[0]), *y = t.values.as_constant(a[1]);
  if (x && y && frames::size_log() && (PyLong_CheckExact(x) || PyFloat_CheckExact(x)) && (PyLong_CheckExact(y) || PyFloat_CheckExact(y)) && PyObject_IsTrue(y) == 1) {
    Value* q = t.operators.binary(2, a[0], a[1]);
    Value* r = q ? t.operators.binary(6, a[0], a[1]) : nullptr;
    return r ? t.values.make_tuple({q, r}) : nullptr;
  }
  if (x && y) { PyObject* r = PyNumber_Divmod(x, y); return r ? t.values.wrap_constant_object(t.values.keep(r)) : t.exceptions.raise_python(); }
  const bool right_first = t.operators.asks_right_first(t.values.force(a[0]), t.values.force(a[1]), "__divmod__", "__rdivmod__");
  for (const bool right : {right_first, !right_first}) {
    if (right && a[0]->type == a[1]->type) continue;
    Value* r = right ? t.operators.dunder(a[1], "__rdivmod__", a[0]) : t.operators.dunder(a[0], "__divmod__", a[1]);
    if (!r && t.exceptions.raised()) return nullptr;
    if (r && !t.values.is_constant(r, Py_NotImplemented)) return r;
  }
  for (size_t i = 0; i < 2; ++i)
    if (a[i]->kind == Kind::opaque || plain_of(a[i]) || t.attributes.has_c_base(a[i])) stop("opaque-object", "divmod() is called with " + t.values.describe(a[i]));
  return t.exceptions.raise(PyExc_TypeError, std::string("unsupported operand type(s) for divmod(): '") + t.values.type_of(a[0])->tp_name + "' and '" + t.values.type_of(a[1])->tp_name + "'");
}
Value* do_locals(const Owners& t, const Args&) { return t.namespaces.locals_of_frame(); }
Value* do_globals(const Owners& t, const Args&) { return t.namespaces.globals_of(t.values.function(t.frame_stack.innermost()->function)); }
Value* do_eval(const Owners& t, const Args& a) { return t.namespaces.run_text(false, a); }
Value* do_exec(const Owners& t, const Args& a) { return t.namespaces.run_text(true, a); }
Value* do_build_class(const Owners& t, const Args& a) { return t.classes.build_class(a); }
Value* do_dir(const Owners& t, const Args& a) {
  std::vector<Value*> all;
  PyObject* found = t.values.keep(PySet_New(nullptr));
  if (!a.count) {
    for (PyObject* k : t.mappings.keys_of(t.namespaces.locals_of_frame())) PySet_Add(found, k);
  } else {
    Value* v = t.values.force(a[0]);
    if (Value* own = t.operators.dunder(v, "__dir__", nullptr); own || t.exceptions.raised()) {
      if (!own || !t.iteration.unpack(own, &all) || !t.containers.sort_values(all, nullptr, false)) return nullptr;
      return t.values.make_list(std::move(all));
    }
    if (v->kind == Kind::module || v->kind == Kind::tensor || v->kind == Kind::opaque) stop("dir", "dir() is called on " + t.values.describe(v));
    auto* type = v->kind == Kind::klass ? reinterpret_cast<PyTypeObject*>(v->real) : v->type;
    PyObject* of_type = PyObject_Dir(reinterpret_cast<PyObject*>(type));
    if (!of_type) return t.exceptions.raise_python();
    t.guards.add_type_version(type);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(of_type); ++i) PySet_Add(found, PyList_GET_ITEM(of_type, i));
    Py_DECREF(of_type);
    if (Value* d = v->kind == Kind::klass ? nullptr : t.attributes.instance_dict(v))
      for (PyObject* k : t.mappings.keys_of(d)) PySet_Add(found, k);
  }
  PyObject* sorted = t.values.keep(PySequence_List(found));
  if (PyList_Sort(sorted) < 0) return t.exceptions.raise_python();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sorted); ++i) all.push_back(t.values.constant(PyList_GET_ITEM(sorted, i)));
  return t.values.make_list(std::move(all));
}

const std::unordered_map<std::string_view, Handler>& builtin_handlers() {
  static const std::unordered_map<std::string_view, Handler> table = {
      {"isinstance", do_isinstance}, {"issubclass", do_issubclass}, {"len", do_len}, {"iter", do_iter}, {"next", do_next}, {"getattr", do_getattr}, {"hasattr", do_hasattr},
      {"setattr", do_setattr}, {"delattr", do_delattr}, {"callable", do_callable}, {"id", do_id}, {"repr", do_repr}, {"abs", do_abs}, {"min", do_min}, {"max", do_max}, {"sum", do_sum},
      {"any", do_any}, {"all", do_all}, {"sorted", do_sorted}, {"print", do_print}, {"vars", do_vars}, {"format", do_format}, {"hash", do_hash}, {"round", do_round}, {"pow", do_pow},
      {"divmod", do_divmod}, {"locals", do_locals}, {"globals", do_globals}, {"eval", do_eval}, {"exec", do_exec}, {"__build_class__", do_build_class}, {"dir", do_dir}};
  return table;
}

// C functions that depend on their arguments alone and change nothing.
bool is_pure(std::string_view module, std::string_view name) {
  if (module == "math" || module == "cmath" || module == "_struct" || module == "binascii" || module == "unicodedata" || module == "_json" || module == "_sre") return true;
  if (module == "builtins") return name == "ord" || name == "chr" || name == "bin" || name == "hex" || name == "oct" || name == "ascii" || name == "divmod" || name == "compile";
  if (module == "sys") return name == "getrecursionlimit" || name == "intern";   // the limit is part of the guarded state
  if (module == "posix" || module == "nt") return name == "fspath";
  if (module == "_operator") return true;
  return false;
}

struct OperatorRow { std::string_view name; int op; };
constexpr OperatorRow kOperators[] = {{"add", 0}, {"and_", 1}, {"floordiv", 2}, {"lshift", 3}, {"matmul", 4}, {"mul", 5}, {"mod", 6}, {"or_", 7}, {"pow", 8}, {"rshift", 9}, {"sub", 10},
                                      {"truediv", 11}, {"xor", 12}, {"iadd", 13}, {"iand", 14}, {"ifloordiv", 15}, {"ilshift", 16}, {"imatmul", 17}, {"imul", 18}, {"imod", 19}, {"ior", 20},
                                      {"ipow", 21}, {"irshift", 22}, {"isub", 23}, {"itruediv", 24}, {"ixor", 25}};
constexpr OperatorRow kComparisons[] = {{"lt", Py_LT}, {"le", Py_LE}, {"eq", Py_EQ}, {"ne", Py_NE}, {"gt", Py_GT}, {"ge", Py_GE}};

std::string text_of(PyObject* o, PyObject* name) {
  PyObject* a = PyObject_GetAttr(o, name);
  std::string s = a && PyUnicode_Check(a) ? PyUnicode_AsUTF8(a) : "";
  Py_XDECREF(a);
  PyErr_Clear();
  return s;
}

}  // namespace

Value* Builtins::call_operator(std::string_view name, const Args& args) {
  if (args.count == 2) {
    for (const auto& row : kOperators) if (row.name == name) return operators.binary(row.op, args[0], args[1]);
    for (const auto& row : kComparisons) if (row.name == name) return operators.compare(row.op, args[0], args[1]);
    if (name == "concat" || name == "iconcat") {   // of sequences alone, in words of its own
      values.force(args[0]);
      values.force(args[1]);
      if (PyObject *x = values.as_constant(args[0]), *y = x ? values.as_constant(args[1]) : nullptr; y && !is_user_class(args[0]->type) && !is_user_class(args[1]->type)) {
        if (args[0]->kind == Kind::tuple && args[1]->kind == Kind::tuple) return operators.binary(0, args[0], args[1]);
        PyObject* r = (name == "concat" ? PySequence_Concat : PySequence_InPlaceConcat)(x, y);
        return r ? leaves.from_result(values.keep(r)) : exceptions.raise_python();
      }
      if ((args[0]->type == &PyList_Type || args[0]->type == &PyTuple_Type) && args[0]->type == args[1]->type) return operators.binary(name == "concat" ? 0 : 13, args[0], args[1]);
      if (args[0]->type == &PyList_Type && name == "iconcat") return iteration.extend(args[0], args[1]) ? args[0] : nullptr;
      stop("unknown-c-function", "operator." + std::string(name) + " is called with " + values.describe(args[0]) + " and " + values.describe(args[1]));
    }
    if (name == "getitem") return subscripts.subscript(args[0], args[1]);
    if (name == "contains") { const int r = subscripts.contains(args[0], args[1]); return r < 0 ? nullptr : values.boolean(r); }
    if (name == "is_") return values.boolean(values.same_identity(args[0], args[1]));
    if (name == "is_not") return values.boolean(!values.same_identity(args[0], args[1]));
    if (name == "countOf" || name == "indexOf") {
      if (const Kind k = values.kind(args[0]); k != Kind::list && k != Kind::tuple && !(k == Kind::constant && PySequence_Check(args[0]->real))) stop("unknown-c-function", "operator." + std::string(name) + "() is called with " + values.describe(args[0]));
      std::vector<Value*> all;
      if (!iteration.unpack(args[0], &all)) return nullptr;
      long long count = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const int same = operators.equal(all[i], args[1]);
        if (same < 0) return nullptr;
        if (same && name == "indexOf") return values.integer(static_cast<long long>(i));
        count += same;
      }
      return name == "countOf" ? values.integer(count) : exceptions.raise(PyExc_ValueError, "sequence.index(x): x not in sequence");
    }
    if (name == "delitem") return subscripts.delete_subscript(args[0], args[1]) ? values.none() : nullptr;
  }
  if (args.count == 3 && name == "setitem") return subscripts.store_subscript(args[0], args[1], args[2]) ? values.none() : nullptr;
  if (args.count == 1) {
    if (name == "neg") return operators.unary('-', args[0]);
    if (name == "pos") return operators.unary('+', args[0]);
    if (name == "invert" || name == "inv") return operators.unary('~', args[0]);
    if (name == "abs") return do_abs(*this, args);
    if (name == "not_") { const int t = subscripts.truth(args[0]); return t < 0 ? nullptr : values.boolean(!t); }
    if (name == "truth") { const int t = subscripts.truth(args[0]); return t < 0 ? nullptr : values.boolean(t); }
    if (name == "index") {
      PyObject* n = subscripts.index_object(args[0]);
      return !n ? nullptr : values.kind(args[0]) == Kind::constant && args[0]->real == n ? args[0] : values.constant(n);
    }
  }
  if (name == "length_hint" && args.count && args.count <= 2) {
    Value* v = values.force(args[0]);
    refuse_stand_in(v);
    if (args.count > 1 && values.force(args[1])->type != &PyLong_Type) stop("unknown-c-function", "operator.length_hint() is called with " + values.describe(args[1]));
    Value* otherwise = args.count > 1 ? args[1] : values.integer(0);
    if (v->kind == Kind::constant && !(v->type->tp_as_sequence && v->type->tp_as_sequence->sq_length) && !(v->type->tp_as_mapping && v->type->tp_as_mapping->mp_length)) return otherwise;
    if (v->kind == Kind::iterator) { bool is_known = false; if (Value* n = containers.call_container_method(v->type, "__length_hint__", v, {}, &is_known); is_known) return n; }
    else if (v->kind == Kind::object || is_user_class(v->type)) {
      if (attributes.lookup_type(v->type, names().__len__)) {
        Value* n = subscripts.length(v);
        if (n || !exceptions.raised_is(PyExc_TypeError)) return n;
        exceptions.take_raised();
      }
      return subscripts.length_hint(v, &otherwise) ? otherwise : nullptr;
    } else if (v->kind != Kind::generator && v->kind != Kind::opaque) return subscripts.length(v);
    else if (v->kind == Kind::generator) return otherwise;
  }
  stop("unknown-c-function", "operator." + std::string(name) + " is called in a way that is not captured");
}

namespace {
// What a function of C made of numbers: a computation that is written down, the number itself, or a use that nobody can follow.
void note_numbers(frames::SizeLog& log, PyObject* f, PyObject* tuple, PyObject* keywords, PyObject* result) {
  using Kind = symbolic::NumberStep::Kind;
  PyObject* one = PyTuple_GET_SIZE(tuple) == 1 && !keywords ? PyTuple_GET_ITEM(tuple, 0) : nullptr;
  if (one && f == reinterpret_cast<PyObject*>(&PyLong_Type) && PyLong_Check(one)) return;
  if (one && f == reinterpret_cast<PyObject*>(&PyFloat_Type) && (PyFloat_CheckExact(one) || log.applied(Kind::to_float, one, result))) return;
  static const auto* const table = [] {
    auto* made = new std::vector<std::pair<PyObject*, Kind>>;
    PyObject* math = PyImport_ImportModule("math");
    for (const auto& [name, kind] : {std::pair{"sqrt", Kind::sqrt}, {"exp", Kind::exp}, {"log", Kind::log}, {"sin", Kind::sin}, {"cos", Kind::cos}, {"tanh", Kind::tanh}, {"fabs", Kind::abs}})
      if (PyObject* function = math ? PyObject_GetAttrString(math, name) : nullptr) made->emplace_back(function, kind);
    PyErr_Clear();
    return made;
  }();
  if (one)
    for (const auto& [function, kind] : *table)
      if (function == f && log.applied(kind, one, result)) return;
  log.used(tuple);
  log.used(keywords);
}
}  // namespace

namespace {
// A function of C that takes an object for a number asks it for one; which way, and whether at all, depends on the function.
enum class Asks : uint8_t { nothing, index, real, rounded };
Asks asked_for(PyObject* f, size_t argument) {
  const auto is_one_of = [](const std::string& name, std::initializer_list<std::string_view> all) { return std::find(all.begin(), all.end(), name) != all.end(); };
  const std::string name = text_of(f, names().__name__);
  if (Py_TYPE(f) == known().method_descriptor) return PyDescr_TYPE(f) == &PyUnicode_Type && argument == 1 && is_one_of(name, {"center", "ljust", "rjust", "zfill"}) ? Asks::index : Asks::nothing;
  if (!PyCFunction_Check(f)) return Asks::nothing;
  const std::string module = text_of(f, names().__module__);
  if (module == "builtins") return is_one_of(name, {"chr", "hex", "oct", "bin"}) ? Asks::index : Asks::nothing;
  if (module != "math" || is_one_of(name, {"trunc", "prod", "fsum", "dist", "sumprod", "ldexp"})) return Asks::nothing;
  if (is_one_of(name, {"floor", "ceil"})) return Asks::rounded;
  return is_one_of(name, {"gcd", "lcm", "factorial", "comb", "perm", "isqrt"}) ? Asks::index : Asks::real;
}
}  // namespace

Value* Builtins::call_pure(PyObject* f, const Args& args) {
  PyObject* tuple = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  if (args.count == 1 && !args.keyword_count && number_of(values.force(args[0])))
    if (Value* r = leaves.call_with_number(f, args)) return r;
  for (size_t i = 0; i < args.count; ++i) {
    PyObject* p = texts.to_plain(args[i]);
    if (plain_of(args[i]) && numbers.has_own(args[i]->type, {"__iter__", "__len__", "__getitem__", "__contains__", "__bool__"})) p = nullptr;   // a function of C may ask for these
    if (!p) {
      const Kind k = values.kind(args[i]);
      if (k == Kind::tensor) stop("tensor-in-python-function", values.describe(values.constant_kind(f)) + " is called with a tensor", "use the torch function of that name");
      if (k == Kind::iterator || k == Kind::generator || k == Kind::view) {
        std::vector<Value*> all;
        if (!iteration.unpack(args[i], &all)) return nullptr;
        p = texts.to_plain(values.make_list(std::move(all)));
      }
      if (k == Kind::object && !attributes.has_c_base(args[i])) {
        Value* plain = plain_of(args[i]);
        const Asks asks = asked_for(f, i);
        const bool has_floor = asks == Asks::rounded && numbers.has_own(args[i]->type, {"__floor__", "__ceil__"});
        if ((asks == Asks::real || asks == Asks::rounded) && !has_floor && plain && PyFloat_Check(plain->real)) p = plain->real;   // its own value, whatever it says
        else if ((asks == Asks::real || asks == Asks::rounded) && !has_floor) {
          Value* n = plain && asks == Asks::rounded ? nullptr : operators.dunder(args[i], "__float__", nullptr);
          if (!n && exceptions.raised()) return nullptr;
          if (n && values.kind(n) == Kind::constant && PyFloat_CheckExact(n->real)) p = n->real;
          else if (!n && plain && PyLong_Check(plain->real)) p = plain->real;
          else if (!n && !plain && attributes.own_method(args[i]->type, names().__index__) && !(p = subscripts.index_object(args[i]))) return nullptr;
        } else if (asks == Asks::index && (plain ? PyLong_Check(plain->real) : attributes.own_method(args[i]->type, names().__index__) != nullptr)) {
          if (!(p = subscripts.index_object(args[i]))) return nullptr;
        }
      }
      if (Value* plain = plain_of(args[i]); !p && i && plain && PyUnicode_Check(plain->real) && Py_TYPE(f) == known().method_descriptor && PyDescr_TYPE(f) == known().pattern) p = plain->real;   // it reads the letters
      if (!p) stop("unknown-c-function", values.describe(values.constant_kind(f)) + " is called with " + values.describe(args[i]));
    }
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(p));
  }
  PyObject* keywords = nullptr;
  if (args.keyword_count) {
    keywords = values.keep(PyDict_New());
    for (size_t i = 0; i < args.keyword_count; ++i) {
      PyObject* p = texts.to_plain(args.keywords[i].second);
      if (!p) stop("unknown-c-function", values.describe(values.constant_kind(f)) + " is called with " + values.describe(args.keywords[i].second));
      PyDict_SetItem(keywords, args.keywords[i].first, p);
    }
  }
  PyObject* r = PyObject_Call(f, tuple, keywords);
  if (frames::SizeLog* log = frames::size_log()) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;   // what it raised stays
    PyErr_Fetch(&type, &value, &trace);
    note_numbers(*log, f, tuple, keywords, r);
    PyErr_Restore(type, value, trace);
  }
  if (!r) return exceptions.raise_python();
  return leaves.from_result(values.keep(r));
}

Value* Builtins::call_builtin(Value* f, const Args& args) {
  PyObject* o = f->real;
  PyTypeObject* t = Py_TYPE(o);
  const KnownTypes& k = known();
  const Tail tail = endings.take_tail();
  if (Value* replaced = polyfill(o)) { endings.hand_on(tail); if (PyCFunction_Check(o)) calls.note_replaced(o); return calls.call(replaced, args); }
  if (t == k.op_overload || t == k.op_overload_packet) return leaves.call_leaf(o, nullptr, args);
  if (Value* r = nullptr; t == &PyCFunction_Type && torch_calls.call_maker(o, args, &r)) return r;
  if (t == k.lru_cache) return library.call_lru_cache(f, args);
  if (t == k.script_function) return leaves.call_scripted(f, args);
  if (t == k.method_descriptor || t == k.wrapper_descriptor || t == k.classmethod_descriptor) {
    static PyObject* const sort = _PyType_Lookup(&PyList_Type, values.keep(PyUnicode_InternFromString("sort")));
    static PyObject* const call_type = _PyType_Lookup(&PyType_Type, names().__call__);
    if (o == sort || o == call_type) endings.hand_on(tail);
    return call_method_descriptor(o, args);
  }
  if (t == k.method_wrapper) {
    PyObject* self = PyObject_GetAttr(o, names().__self__);
    const std::string name = text_of(o, names().__name__);
    if (name == "__get__" && self && Py_TYPE(self) == k.getset_descriptor && args.count >= 1) {   // x.shape as a torch function mode is given it; the __dict__ of a class as inspect reads it
      const std::string member = text_of(self, names().__name__);
      if (values.kind(args[0]) == Kind::tensor || attributes.lookup_type(args[0]->type, values.keep(PyUnicode_InternFromString(member.c_str()))) == self) return attributes.getattr(args[0], member.c_str());
    }
    if (!self) return exceptions.raise_python();
    values.keep(self);
    if (name == "__get__" && (Py_TYPE(self) == k.wrapper_descriptor || Py_TYPE(self) == k.method_descriptor) && args.count >= 1 && !values.is_constant(args[0], Py_None)) {
      if (values.kind(args[0]) == Kind::opaque || !PyType_IsSubtype(values.type_of(args[0]), PyDescr_TYPE(self))) stop("slot-wrapper", "a method written in C is bound to " + values.describe(args[0]));
      return values.bind_c_method(self, args[0]);
    }
    // It is of one class, and a class below that may say something else under its name.
    PyObject *of_class = PyObject_GetAttrString(o, "__objclass__"), *slot = of_class && PyType_Check(of_class) ? bytecode::in_type_dict(reinterpret_cast<PyTypeObject*>(of_class), name.c_str()) : nullptr;
    Py_XDECREF(of_class);
    PyErr_Clear();
    Value* owner = values.wrap_constant_object(self);
    if (slot && Py_TYPE(slot) == k.wrapper_descriptor && attributes.lookup_type(Py_TYPE(self), values.keep(PyUnicode_InternFromString(name.c_str()))) != slot) {
      std::vector<Value*> all{owner};
      all.insert(all.end(), args.positional, args.positional + args.count);
      return call_method_descriptor(slot, {all.data(), all.size(), args.keywords, args.keyword_count});
    }
    Value* m = attributes.getattr(owner, name.c_str());
    if (!m) return nullptr;
    if (values.kind(m) == Kind::builtin && m->real == o) stop("slot-wrapper", "a method of an object written in C is called through its slot");
    return calls.call(m, args);
  }
  PyObject* self = PyCFunction_GET_SELF(o);
  const std::string name = text_of(o, names().__name__);
  if (self && PyType_Check(self)) {
    auto* owner = reinterpret_cast<PyTypeObject*>(self);
    if (name == "__new__") {
      const std::string words = std::string(owner->tp_name) + ".__new__(";
      if (!args.count) return exceptions.raise(PyExc_TypeError, words + "): not enough arguments");
      if (values.kind(args[0]) == Kind::opaque) stop("opaque-object", words + ") is called with " + values.describe(args[0]));
      if (args[0]->kind != Kind::klass) return exceptions.raise(PyExc_TypeError, words + "X): X is not a type object (" + args[0]->type->tp_name + ")");
      auto* made = reinterpret_cast<PyTypeObject*>(args[0]->real);
      if (!PyType_IsSubtype(made, owner)) return exceptions.raise(PyExc_TypeError, words + made->tp_name + "): " + made->tp_name + " is not a subtype of " + owner->tp_name);
      PyTypeObject* base = made;   // the first whose __new__ is C's: it has to be made by that
      for (PyObject* own = nullptr; base && (own = attributes.lookup_type(base, names().__new__)) && !PyCFunction_Check(own);) base = base->tp_base;
      if (base && base->tp_new != owner->tp_new) return exceptions.raise(PyExc_TypeError, words + made->tp_name + ") is not safe, use " + base->tp_name + ".__new__()");
      if (owner == &PyBaseObject_Type && (args.count > 1 || args.keyword_count)) {
        if (made->tp_new != owner->tp_new) return exceptions.raise(PyExc_TypeError, "object.__new__() takes exactly one argument (the type to instantiate)");
        if (attributes.lookup_type(made, names().__init__) == known().object_init) return exceptions.raise(PyExc_TypeError, std::string(made->tp_name) + "() takes no arguments");
      }
      return calls.new_instance(made, args, true);
    }
    if (PyType_IsSubtype(owner, k.tensor) || PyType_IsSubtype(k.tensor, owner)) {
      if (owner != &PyBaseObject_Type) return leaves.leaf_of(o) == Leaves::Leaf::graph ? leaves.call_leaf(o, nullptr, args) : (stop("tensor-class", "Tensor." + name + " is called"), nullptr);
    }
    if (leaves.leaf_of(o) == Leaves::Leaf::graph) return leaves.call_leaf(o, nullptr, args);
    if (Value* replaced = polyfill_class_method(owner, name)) return calls.call(replaced, args);
    if (name == "fromkeys" && PyType_IsSubtype(owner, &PyDict_Type)) {
      if (!calls.takes(o, nullptr, args)) return nullptr;
      Value *from = args.count ? args[0] : keyword(args, "iterable"), *filled = args.count > 1 ? args[1] : keyword(args, "value");
      Value* d = calls.call(values.wrap_constant_object(self), {});   // as the class makes and fills one
      if (!d || !from) return d ? (stop("unknown-c-function", "fromkeys() is called in a way that is not captured"), nullptr) : nullptr;
      return iteration.for_each(from, [&](Value* x) { return subscripts.store_subscript(d, x, filled ? filled : values.none()); }) ? d : nullptr;
    }
    if (owner == &PyUnicode_Type || owner == &PyBytes_Type || owner == &PyLong_Type || owner == &PyFloat_Type) return call_pure(o, args);
    if (name == "__init_subclass__" && (args.count || args.keyword_count)) {   // it takes none, and names the class that asks
      PyObject *given = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count))), *words = values.keep(PyDict_New());
      for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(given, static_cast<Py_ssize_t>(i), Py_NewRef(Py_None));
      for (size_t i = 0; i < args.keyword_count; ++i) PyDict_SetItem(words, args.keywords[i].first, Py_None);
      Py_XDECREF(PyObject_Call(o, given, args.keyword_count ? words : nullptr));
      return exceptions.raise_python();
    }
    if (name == "__init_subclass__") return values.none();
    if (name == "__subclasshook__" && args.count == 1 && !args.keyword_count) return values.constant(Py_NotImplemented);
    stop("unknown-c-function", std::string(owner->tp_name) + "." + name + " is called");
  }
  static PyObject* const maketrans = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyUnicode_Type), "maketrans");
  if (o == maketrans || (!self && name == "maketrans")) return call_pure(o, args);
  const std::string module = text_of(o, names().__module__);
  if (leaves.leaf_of(o) == Leaves::Leaf::graph) return leaves.call_leaf(o, nullptr, args);
  if (Value* r = nullptr; module.starts_with("numpy") && library.call_on_arrays(o, args, &r)) return r;
  if (self && PyModule_Check(self) && !calls.takes(o, nullptr, args)) return nullptr;
  if (module == "builtins") {
    const auto handler = builtin_handlers().find(name);
    if (handler != builtin_handlers().end()) {
      if (args.count < argument_counts(o).least) stop("unknown-c-function", "the builtin " + name + "() is called with a keyword argument; capture knows it with positional ones only");
      for (const char* hands_on : {"len", "iter", "next", "getattr", "setattr", "delattr", "sorted", "min", "max", "sum"})
        if (name == hands_on) endings.hand_on(tail);
      return handler->second(*this, args);
    }
    if (is_pure(module, name)) return call_pure(o, args);
    stop("unknown-c-function", "the builtin " + name + "() is called");
  }
  if (module == "_operator") {
    if (name == "call") return calls.call(args[0], args.rest(1));
    return call_operator(name, args);
  }
  if (self && !PyModule_Check(self)) {   // a method that was taken from an object before
    if (module.empty()) {
      Value* owner = values.wrap_constant_object(self);
      values.force(owner);
      if (owner->kind == Kind::list || owner->kind == Kind::dict || owner->kind == Kind::set || owner->kind == Kind::constant || owner->kind == Kind::tensor) {
        Value* m = attributes.getattr(owner, name.c_str());
        return m ? calls.call(m, args) : nullptr;
      }
    }
    stop("unknown-c-function", "the method " + name + " of " + values.describe(values.wrap_constant_object(self)) + " is called; it is written in C, and capture does not know it");
  }
  if (is_pure(module, name)) {
    if (module == "math" && leaves.has_tensor(args)) stop("tensor-in-python-function", "math." + name + "() is called with a tensor", "use torch." + name);
    return call_pure(o, args);
  }
  if (module == "_typing" && name == "_idfunc" && args.count == 1) return args[0];   // what typing.NewType gives
  if (module == "_warnings" && name == "warn") {
    Value* category = args.count > 1 ? args[1] : nullptr;
    for (size_t i = 0; i < args.keyword_count; ++i) if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, "category") == 0) category = args.keywords[i].second;
    if (category && !values.is_constant(category, Py_None) && !(values.kind(category) == Kind::klass && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(category->real), reinterpret_cast<PyTypeObject*>(PyExc_Warning))))
      stop("queued-call", "warnings.warn() is called with a category that is no warning");
    return effects.queue_call(f, args);
  }
  if (module == "sys" && name == "exception") return interpreter.handled() ? interpreter.handled() : interpreter.none_handled_outside("sys.exception() is called");
  if (module == "sys" && name == "exc_info") {
    if (!interpreter.handled()) interpreter.none_handled_outside("sys.exc_info() is called");
    if (!interpreter.handled()) return values.make_tuple({values.none(), values.none(), values.none()});
    return values.make_tuple({values.wrap_constant_object(reinterpret_cast<PyObject*>(interpreter.handled()->type)), interpreter.handled(), tracebacks.traceback_of(interpreter.handled())});
  }
  if (module == "_thread" && name == "get_ident") return library.identity_number(nullptr);   // which thread it is must not leave
  if (module == "_abc") {
    if (name == "_abc_init" && args.count == 1 && values.kind(args[0]) == Kind::klass && classes.is_made_class(args[0]->real)) {
      PyObject* done = PyObject_CallOneArg(o, args[0]->real);   // of a class that lives as long as the trace
      if (!done) return exceptions.raise_python();
      Py_DECREF(done);
      return values.none();
    }
    if (name == "_abc_instancecheck" || name == "_abc_subclasscheck") {
      bool r = false;
      if (name == "_abc_instancecheck" ? !attributes.isinstance(args[1], args[0], &r) : !attributes.issubclass(args[1], args[0], &r)) return nullptr;
      return values.boolean(r);
    }
  }
  if (name == "_getframe" || name == "_current_frames")   // whoever looks at frames must find the real ones
    throw frames::Skip{{.id = "looks-at-its-frame", .what = "sys." + name + "() is called", .stack = frame_stack.user_stack()}};
  stop("unknown-c-function", (module.empty() ? "" : module + ".") + name + "() is called; it is written in C, and no guard can check what it depends on");
}

}  // namespace cutaway::capture
