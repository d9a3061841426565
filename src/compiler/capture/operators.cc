// Operators: constants are computed by Python itself, tensors go into the graph, containers are modelled, classes are asked for their dunders.
#include <cstdint>
#include <optional>

#include "compiler/capture/names.h"
#include "compiler/capture/trace.h"
#include "compiler/capture/types.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {
namespace {

struct BinaryRow { const char *name, *dunder, *reflected, *in_place; PyObject* (*compute)(PyObject*, PyObject*); const char* symbol; };
PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
// In the order of CPython's BINARY_OP.
constexpr BinaryRow kBinary[] = {
    {"add", "__add__", "__radd__", "__iadd__", PyNumber_Add, "+"},
    {"and_", "__and__", "__rand__", "__iand__", PyNumber_And, "&"},
    {"floordiv", "__floordiv__", "__rfloordiv__", "__ifloordiv__", PyNumber_FloorDivide, "//"},
    {"lshift", "__lshift__", "__rlshift__", "__ilshift__", PyNumber_Lshift, "<<"},
    {"matmul", "__matmul__", "__rmatmul__", "__imatmul__", PyNumber_MatrixMultiply, "@"},
    {"mul", "__mul__", "__rmul__", "__imul__", PyNumber_Multiply, "*"},
    {"mod", "__mod__", "__rmod__", "__imod__", PyNumber_Remainder, "%"},
    {"or_", "__or__", "__ror__", "__ior__", PyNumber_Or, "|"},
    {"pow", "__pow__", "__rpow__", "__ipow__", power, "** or pow()"},
    {"rshift", "__rshift__", "__rrshift__", "__irshift__", PyNumber_Rshift, ">>"},
    {"sub", "__sub__", "__rsub__", "__isub__", PyNumber_Subtract, "-"},
    {"truediv", "__truediv__", "__rtruediv__", "__itruediv__", PyNumber_TrueDivide, "/"},
    {"xor", "__xor__", "__rxor__", "__ixor__", PyNumber_Xor, "^"},
};
constexpr const char* kCompare[] = {"lt", "le", "eq", "ne", "gt", "ge"};
constexpr const char* kCompareSymbol[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

PyObject* operator_function(const char* name) {
  static PyObject* const module = PyImport_ImportModule("operator");
  static std::unordered_map<const char*, PyObject*> cache;
  PyObject*& f = cache[name];
  if (!f) f = PyObject_GetAttrString(module, name);
  return f;
}

bool is_user_class(PyTypeObject* t) { return t && (t->tp_flags & Py_TPFLAGS_HEAPTYPE); }

}  // namespace

Value* Trace::dunder(Value* v, const char* name, Value* other) {
  force(v);
  PyObject* interned = keep(PyUnicode_InternFromString(name));
  PyTypeObject* t = v->kind == Kind::klass ? Py_TYPE(v->real) : v->type;
  if (!t) return nullptr;
  PyObject* found = lookup_type(t, interned);
  if (!found || Py_TYPE(found) != &PyFunction_Type) return nullptr;   // a slot of C is answered by whoever models the kind
  Value* f = wrap_constant_object(found);
  return other ? call(f, {v, other}) : call(f, {v});
}

Value* Trace::binary(int op, Value* a, Value* b) {
  force(a);
  force(b);
  const bool in_place = op >= 13;
  const size_t index = static_cast<size_t>(in_place ? op - 13 : op);
  const BinaryRow& row = kBinary[index];
  if (a->kind == Kind::constant && b->kind == Kind::constant && !(is_user_class(a->type) && !is_enum(a->type))) {
    if (index == 8 && PyLong_Check(a->real) && PyLong_Check(b->real)) {
      int overflow = 0;
      if (PyLong_AsLongLongAndOverflow(b->real, &overflow) >= (1LL << 30) || overflow > 0) stop("huge-power", "a power with a huge exponent");
    }
    return constant_steal(row.compute(a->real, b->real));
  }
  if ((a->kind == Kind::tensor || b->kind == Kind::tensor) && !(in_place && a->kind == Kind::list)) {   // a list takes a tensor's rows
    Value* other = a->kind == Kind::tensor ? b : a;
    if (other->kind == Kind::object) {   // a class may take tensors on either side
      if (a->kind == Kind::object) {
        Value* r = dunder(a, row.dunder, b);
        if (!r && raised_) return nullptr;
        if (r && !is_constant(r, Py_NotImplemented)) return r;
      } else {
        Value* r = dunder(b, row.reflected, a);
        if (!r && raised_) return nullptr;
        if (r && !is_constant(r, Py_NotImplemented)) return r;
      }
    } else {
      return call_leaf(operator_function(in_place && a->kind == Kind::tensor ? row.in_place : row.name), nullptr, {a, b});
    }
  }
  // Containers.
  if (index == 0) {
    if (a->kind == Kind::list && b->kind == Kind::list && !in_place && !is_user_class(a->type)) {
      std::vector<Value*> all = items(a);
      auto& more = items(b);
      all.insert(all.end(), more.begin(), more.end());
      return make_list(std::move(all));
    }
    if (a->kind == Kind::list && in_place && !is_user_class(a->type)) {
      std::vector<Value*> more;
      if (!unpack(b, &more)) return nullptr;
      auto& all = items(a);
      all.insert(all.end(), more.begin(), more.end());
      mark_changed(a);
      return a;
    }
    const bool left = a->kind == Kind::tuple || (a->kind == Kind::constant && PyTuple_Check(a->real)), right = b->kind == Kind::tuple || (b->kind == Kind::constant && PyTuple_Check(b->real));
    if (left && right) {
      std::vector<Value*> all;
      if (!unpack(a, &all) || !unpack(b, &all)) return nullptr;
      return make_tuple(std::move(all), a->type == known().size && b->type == known().size ? known().size : &PyTuple_Type);
    }
  }
  if (index == 5) {
    Value* sequence = a->kind == Kind::list || a->kind == Kind::tuple ? a : b->kind == Kind::list || b->kind == Kind::tuple ? b : nullptr;
    Value* number = sequence == a ? b : a;
    if (sequence && !is_user_class(sequence->type)) {
      PyObject* n = as_constant(number);
      if (n && PyLong_Check(n)) {
        const Py_ssize_t times = PyLong_AsSsize_t(n);
        if (times > 1'000'000) stop("long-list", "a list is repeated more than a million times");
        std::vector<Value*> once = items(sequence), all;
        for (Py_ssize_t i = 0; i < times; ++i) all.insert(all.end(), once.begin(), once.end());
        if (sequence->kind == Kind::tuple) return make_tuple(std::move(all));
        if (in_place && sequence == a) { items(a) = std::move(all); mark_changed(a); return a; }
        return make_list(std::move(all));
      }
    }
  }
  if ((a->kind == Kind::set || (a->kind == Kind::view && body<View>(a).what == View::What::keys)) && (index == 1 || index == 7 || index == 10 || index == 12)) {
    static constexpr const char* kNames[] = {nullptr, "intersection", nullptr, nullptr, nullptr, nullptr, nullptr, "union", nullptr, nullptr, "difference", nullptr, "symmetric_difference"};
    if (b->kind == Kind::set || b->kind == Kind::view || (b->kind == Kind::constant && PyFrozenSet_Check(b->real))) {
      Value* left = a;
      if (a->kind == Kind::view) { left = make_set(); for (PyObject* k : keys_of(body<View>(a).dict)) set_add(left, k); }
      bool is_known = false;
      std::string method = kNames[index];
      if (in_place && a->kind == Kind::set && a->type == &PySet_Type) method = index == 7 ? "update" : method + "_update";
      Value* r = call_container_method(&PySet_Type, method.c_str(), left, {b}, &is_known);
      if (in_place && a->kind == Kind::set && a->type == &PySet_Type) return r ? a : nullptr;
      return r;
    }
  }
  if (a->kind == Kind::dict && b->kind == Kind::dict && index == 7 && !is_user_class(a->type)) {
    Value* into = a;
    if (!in_place) { into = make_object(a->type); if (!dict_update(into, a, false)) return nullptr; }
    if (!dict_update(into, b, false)) return nullptr;
    return into;
  }
  if (a->kind == Kind::constant && index == 6 && (PyUnicode_Check(a->real) || PyBytes_Check(a->real))) {
    PyObject* plain = to_plain(b);
    if (!plain) stop("format-of-a-value", "text is formatted from " + describe(b));
    return constant_steal(PyNumber_Remainder(a->real, plain));
  }
  if (index == 7 && (a->kind == Kind::klass || b->kind == Kind::klass)) {   // int | None
    PyObject *x = as_constant(a), *y = as_constant(b);
    if (x && y) return constant_steal(PyNumber_Or(x, y));
  }
  // Classes with dunders of their own, in Python's order.
  if (in_place) {
    Value* r = dunder(a, row.in_place, b);
    if (!r && raised_) return nullptr;
    if (r && !is_constant(r, Py_NotImplemented)) return r;
  }
  const bool right_first = b->type != a->type && a->type && b->type && PyType_IsSubtype(b->type, a->type);
  for (int round = 0; round < 2; ++round) {
    const bool right = (round == 0) == right_first;
    if (right && a->type == b->type) continue;
    Value* r = right ? dunder(b, row.reflected, a) : dunder(a, row.dunder, b);
    if (!r && raised_) return nullptr;
    if (r && !is_constant(r, Py_NotImplemented)) return r;
  }
  if (a->kind == Kind::opaque || b->kind == Kind::opaque) stop("opaque-object", std::string("the operator ") + row.symbol + " is applied to " + describe(a->kind == Kind::opaque ? a : b));
  if ((is_user_class(a->type) && a->kind != Kind::object && a->kind != Kind::constant) || (is_user_class(b->type) && b->kind != Kind::object && b->kind != Kind::constant))
    stop("container-subclass", std::string("the operator ") + row.symbol + " is applied to an instance of a class derived from a container");
  return raise(PyExc_TypeError, std::string("unsupported operand type(s) for ") + row.symbol + (in_place ? "=" : "") + ": '" + a->type->tp_name + "' and '" + b->type->tp_name + "'");
}

Value* Trace::unary(int op, Value* v) {
  force(v);
  if (v->kind == Kind::constant) return constant_steal(op == '-' ? PyNumber_Negative(v->real) : op == '+' ? PyNumber_Positive(v->real) : PyNumber_Invert(v->real));
  if (v->kind == Kind::tensor) return call_leaf(operator_function(op == '-' ? "neg" : op == '+' ? "pos" : "invert"), nullptr, {v});
  Value* r = dunder(v, op == '-' ? "__neg__" : op == '+' ? "__pos__" : "__invert__", nullptr);
  if (r || raised_) return r;
  if (v->kind == Kind::opaque) stop("opaque-object", "a unary operator is applied to " + describe(v));
  return raise(PyExc_TypeError, std::string("bad operand type for unary ") + static_cast<char>(op) + ": '" + v->type->tp_name + "'");
}

Value* Trace::compare(int op, Value* a, Value* b) {
  force(a);
  force(b);
  if (a->kind == Kind::tensor || b->kind == Kind::tensor) {
    Value* other = a->kind == Kind::tensor ? b : a;
    if (other->kind != Kind::object || (op != Py_EQ && op != Py_NE)) {
      if (other->kind == Kind::constant || other->kind == Kind::tensor) return call_leaf(operator_function(kCompare[op]), nullptr, {a, b});
    }
    if (op == Py_EQ || op == Py_NE) return boolean((a == b) == (op == Py_EQ));
    stop("tensor-comparison", "a tensor is compared with " + describe(other));
  }
  PyObject *x = as_constant(a), *y = as_constant(b);
  if (x && y) {
    PyObject* r = PyObject_RichCompare(x, y, op);
    if (frames::SizeLog* log = frames::size_log(); log && r) log->compared(x, y, op, r == Py_True, "");
    return constant_steal(r);
  }
  const bool a_list = a->kind == Kind::list || a->kind == Kind::tuple, b_list = b->kind == Kind::list || b->kind == Kind::tuple;
  const bool user = (is_user_class(a->type) && a->kind != Kind::tuple) || (is_user_class(b->type) && b->kind != Kind::tuple);
  if (a_list && b_list && a->kind == b->kind && !user) {
    auto &l = items(a), &r = items(b);
    if ((op == Py_EQ || op == Py_NE) && l.size() != r.size()) return boolean(op == Py_NE);
    const size_t n = std::min(l.size(), r.size());
    for (size_t i = 0; i < n; ++i) {
      const int same = equal(l[i], r[i]);
      if (same < 0) return nullptr;
      if (same) continue;
      if (op == Py_EQ) return boolean(false);
      if (op == Py_NE) return boolean(true);
      return compare(op, l[i], r[i]);
    }
    const long long left = static_cast<long long>(l.size()), right = static_cast<long long>(r.size());
    switch (op) {
      case Py_LT: return boolean(left < right);
      case Py_LE: return boolean(left <= right);
      case Py_GT: return boolean(left > right);
      case Py_GE: return boolean(left >= right);
      default: return boolean((left == right) == (op == Py_EQ));
    }
  }
  if (a->kind == Kind::dict && b->kind == Kind::dict && !user && (op == Py_EQ || op == Py_NE)) {
    if (dict_size(a) != dict_size(b)) return boolean(op == Py_NE);
    for (PyObject* k : keys_of(a)) {
      Value* other = dict_get(b, k);
      if (!other) return boolean(op == Py_NE);
      const int same = equal(dict_get(a, k), other);
      if (same < 0) return nullptr;
      if (!same) return boolean(op == Py_NE);
    }
    return boolean(op == Py_EQ);
  }
  auto is_set = [&](Value* v) { return v->kind == Kind::set || (v->kind == Kind::constant && PyFrozenSet_Check(v->real)) || (v->kind == Kind::view && body<View>(v).what == View::What::keys); };
  if (is_set(a) && is_set(b)) {
    auto real_set = [&](Value* v) -> PyObject* {
      if (v->kind == Kind::constant) return v->real;
      if (v->kind == Kind::set) { set_load(v); return body<Mapping>(v).order; }
      PyObject* s = keep(PySet_New(nullptr));
      for (PyObject* k : keys_of(body<View>(v).dict)) PySet_Add(s, k);
      return s;
    };
    return constant_steal(PyObject_RichCompare(real_set(a), real_set(b), op));
  }
  if (a->kind == Kind::slice && b->kind == Kind::slice) {
    const int s = equal(body<Slice>(a).start, body<Slice>(b).start), t = equal(body<Slice>(a).stop, body<Slice>(b).stop), u = equal(body<Slice>(a).step, body<Slice>(b).step);
    if (s < 0 || t < 0 || u < 0) return nullptr;
    return boolean((s && t && u) == (op == Py_EQ));
  }
  static constexpr const char* kDunders[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
  const bool right_first = b->type != a->type && a->type && b->type && PyType_IsSubtype(b->type, a->type);
  for (int round = 0; round < 2; ++round) {
    const bool right = (round == 0) == right_first;
    Value* r = right ? dunder(b, kDunders[kSwapped[op]], a) : dunder(a, kDunders[op], b);
    if (!r && raised_) return nullptr;
    if (!r && op == Py_NE) {   // object's __ne__ asks __eq__
      r = right ? dunder(b, "__eq__", a) : dunder(a, "__eq__", b);
      if (!r && raised_) return nullptr;
      if (r && !is_constant(r, Py_NotImplemented)) { const int t = truth(r); return t < 0 ? nullptr : boolean(!t); }
    }
    if (r && !is_constant(r, Py_NotImplemented)) return r;
  }
  if (a->kind == Kind::method && b->kind == Kind::method && (op == Py_EQ || op == Py_NE))
    return boolean((same_identity(body<Method>(a).self, body<Method>(b).self) && same_identity(body<Method>(a).function, body<Method>(b).function)) == (op == Py_EQ));
  if (op == Py_EQ || op == Py_NE) {
    if ((a->kind == Kind::opaque && b->kind != Kind::constant) || (b->kind == Kind::opaque && a->kind != Kind::constant) || (a->kind == Kind::opaque && b->real != Py_None) || (b->kind == Kind::opaque && a->real != Py_None)) {
      if (!(a->kind == Kind::opaque && b->kind == Kind::opaque && a->real && a->real == b->real)) stop("opaque-object", "objects are compared, one of which capture does not know: " + describe(a->kind == Kind::opaque ? a : b));
    }
    if (a->kind == b->kind && user && (a->kind == Kind::dict || a->kind == Kind::list)) stop("container-subclass", "instances of classes derived from containers are compared");
    return boolean(same_identity(a, b) == (op == Py_EQ));
  }
  if (a->kind == Kind::opaque || b->kind == Kind::opaque) stop("opaque-object", "objects are compared, one of which capture does not know");
  return raise(PyExc_TypeError, std::string("'") + kCompareSymbol[op] + "' not supported between instances of '" + a->type->tp_name + "' and '" + b->type->tp_name + "'");
}

int Trace::equal(Value* a, Value* b) {
  if (same_identity(a, b)) return 1;
  Value* r = compare(Py_EQ, a, b);
  if (!r) return -1;
  return truth(r);
}

int Trace::truth(Value* v) {
  force(v);
  switch (v->kind) {
    case Kind::constant: {
      const int r = PyObject_IsTrue(v->real);
      if (r < 0) raise_python();
      if (frames::SizeLog* log = frames::size_log(); log && PyLong_CheckExact(v->real)) log->compared(v->real, as_constant(integer(0)), Py_NE, r > 0, "");
      return r;
    }
    case Kind::tensor: return tensor_truth(v);
    case Kind::list: case Kind::tuple: case Kind::dict: case Kind::set:
      if (is_user_class(v->type) || v->type == known().deque) {
        PyObject* own = lookup_type(v->type, names().__bool__);
        PyObject* own_length = lookup_type(v->type, names().__len__);
        if ((own && Py_TYPE(own) == &PyFunction_Type) || (own_length && Py_TYPE(own_length) == &PyFunction_Type)) break;
      }
      if (v->kind == Kind::list || v->kind == Kind::tuple) return !items(v).empty();
      if (!body<Mapping>(v).is_loaded) {
        const Py_ssize_t n = PyObject_Size(v->real);
        guard(v->source, GuardKind::length, nullptr, n);
        return n != 0;
      }
      return PyDict_GET_SIZE(body<Mapping>(v).items) != 0;
    case Kind::view: return dict_size(body<View>(v).dict) != 0;
    case Kind::object: break;
    case Kind::opaque:
      if (v->real && (!Py_TYPE(v->real)->tp_as_number || !Py_TYPE(v->real)->tp_as_number->nb_bool) && (!Py_TYPE(v->real)->tp_as_mapping || !Py_TYPE(v->real)->tp_as_mapping->mp_length) &&
          (!Py_TYPE(v->real)->tp_as_sequence || !Py_TYPE(v->real)->tp_as_sequence->sq_length))
        return 1;
      stop("opaque-object", "the truth of " + describe(v) + " is asked");
    default: return 1;
  }
  if (Value* own = special(v, names().__bool__)) {
    Value* r = call(own, {});
    if (!r) return -1;
    if (!is_constant(r, Py_True) && !is_constant(r, Py_False)) {
      if (kind(r) == Kind::tensor) stop("data-dependent-branch", "__bool__ gave a tensor");
      raise(PyExc_TypeError, std::string("__bool__ should return bool, returned ") + r->type->tp_name);
      return -1;
    }
    return r->real == Py_True;
  }
  if (raised_) return -1;
  if (special(v, names().__len__)) {
    Value* n = length(v);
    return n ? truth(n) : -1;
  }
  return raised_ ? -1 : 1;
}

Value* Trace::length(Value* v) {
  force(v);
  const bool user = is_user_class(v->type);
  if (user) {
    PyObject* own = lookup_type(v->type, names().__len__);
    if (own && Py_TYPE(own) == &PyFunction_Type) {
      Value* n = call(wrap_constant_object(own), {v});
      if (!n) return nullptr;
      if (PyObject* c = as_constant(n); c && PyLong_Check(c)) return n;
      return raise(PyExc_TypeError, std::string("'") + n->type->tp_name + "' object cannot be interpreted as an integer");
    }
  }
  switch (v->kind) {
    case Kind::list: case Kind::tuple: return integer(static_cast<long long>(items(v).size()));
    case Kind::dict: case Kind::set:
      if (!body<Mapping>(v).is_loaded) {
        const Py_ssize_t n = PyObject_Size(v->real);
        guard(v->source, GuardKind::length, nullptr, n);
        return integer(n);
      }
      return integer(PyDict_GET_SIZE(body<Mapping>(v).items));
    case Kind::view: return integer(static_cast<long long>(dict_size(body<View>(v).dict)));
    case Kind::constant: {
      const Py_ssize_t n = PyObject_Size(v->real);
      return n < 0 ? raise_python() : integer(n);
    }
    case Kind::tensor: return call_leaf_constant(v, "__len__");
    case Kind::klass: if (is_enum(reinterpret_cast<PyTypeObject*>(v->real))) return integer(PyObject_Size(v->real)); break;
    case Kind::opaque: stop("opaque-object", "the length of " + describe(v) + " is asked");
    default: break;
  }
  return raise(PyExc_TypeError, std::string("object of type '") + v->type->tp_name + "' has no len()");
}

// An integer from a constant, a constant one-element tensor or a class with __index__; false when raised.
bool Trace::index_number(Value* v, Py_ssize_t* n) {
  force(v);
  if (v->kind == Kind::tensor) {
    Value* c = call_leaf_constant(v, "__index__");
    if (!c) return false;
    v = c;
  }
  if (v->kind == Kind::object) {
    Value* c = dunder(v, "__index__", nullptr);
    if (!c && raised_) return false;
    if (c) v = c;
  }
  PyObject* c = as_constant(v);
  if (!c || !PyIndex_Check(c)) { raise(PyExc_TypeError, std::string("indices must be integers or slices, not ") + v->type->tp_name); return false; }
  *n = PyNumber_AsSsize_t(c, PyExc_IndexError);
  if (*n == -1 && PyErr_Occurred()) { raise_python(); return false; }
  return true;
}

bool Trace::slice_range(Value* key, Py_ssize_t size, Py_ssize_t* start, Py_ssize_t* step, Py_ssize_t* count) {
  Slice& s = body<Slice>(key);
  auto part = [&](Value* v) -> PyObject* {
    force(v);
    if (v->kind == Kind::tensor || v->kind == Kind::object) {
      Py_ssize_t n = 0;
      if (!index_number(v, &n)) return nullptr;
      return keep(PyLong_FromSsize_t(n));
    }
    PyObject* c = as_constant(v);
    if (!c) raise(PyExc_TypeError, "slice indices must be integers or None or have an __index__ method");
    return c;
  };
  PyObject *a = part(s.start), *b = a ? part(s.stop) : nullptr, *c = b ? part(s.step) : nullptr;
  if (!c) return false;
  PyObject* real = keep(PySlice_New(a, b, c));
  Py_ssize_t stop_at = 0;
  if (PySlice_Unpack(real, start, &stop_at, step) < 0) { raise_python(); return false; }
  *count = PySlice_AdjustIndices(size, start, &stop_at, *step);
  return true;
}

Value* Trace::subscript(Value* v, Value* key) {
  force(v);
  force(key);
  if (is_user_class(v->type) && v->kind != Kind::constant) {
    PyObject* own = lookup_type(v->type, names().__getitem__);
    if (own && Py_TYPE(own) == &PyFunction_Type) return call(wrap_constant_object(own), {v, key});
  }
  return plain_subscript(v, key);
}

Value* Trace::plain_subscript(Value* v, Value* key) {
  force(v);
  force(key);
  if (frames::SizeLog* log = frames::size_log(); log && v->kind != Kind::tensor) {
    if (key->kind == Kind::slice)
      for (Value* part : {body<Slice>(key).start, body<Slice>(key).stop, body<Slice>(key).step}) log->used(part ? as_constant(part) : nullptr);
    else log->used(as_constant(key));
  }
  switch (v->kind) {
    case Kind::tensor: return call_leaf(operator_function("getitem"), nullptr, {v, key});
    case Kind::list: case Kind::tuple: {
      auto& all = items(v);
      const auto size = static_cast<Py_ssize_t>(all.size());
      if (key->kind == Kind::slice || (key->kind == Kind::constant && PySlice_Check(key->real))) {
        if (key->kind == Kind::constant) {
          auto* s = reinterpret_cast<PySliceObject*>(key->real);
          key = make_slice(constant(s->start), constant(s->stop), constant(s->step));
        }
        Py_ssize_t start = 0, step = 1, count = 0;
        if (!slice_range(key, size, &start, &step, &count)) return nullptr;
        std::vector<Value*> part;
        for (Py_ssize_t i = 0; i < count; ++i) part.push_back(all[static_cast<size_t>(start + i * step)]);
        if (v->kind == Kind::list) return make_list(std::move(part));
        return make_tuple(std::move(part), v->type == known().size ? known().size : &PyTuple_Type);
      }
      Py_ssize_t i = 0;
      if (!index_number(key, &i)) {
        if (raised_is(PyExc_TypeError)) { take_raised(); raise(PyExc_TypeError, std::string(v->kind == Kind::list ? "list" : "tuple") + " indices must be integers or slices, not " + key->type->tp_name); }
        return nullptr;
      }
      if (i < 0) i += size;
      if (i < 0 || i >= size) return raise(PyExc_IndexError, v->kind == Kind::list ? "list index out of range" : "tuple index out of range");
      return all[static_cast<size_t>(i)];
    }
    case Kind::dict: {
      PyObject* k = key_of(key);
      if (!k) return nullptr;
      if (Value* x = dict_get(v, k)) return x;
      if (is_user_class(v->type)) {
        PyObject* missing = lookup_type(v->type, names().__missing__);
        if (missing && Py_TYPE(missing) == &PyFunction_Type) return call(wrap_constant_object(missing), {v, key});
      }
      if (Value* factory = body<Mapping>(v).default_factory; factory && !is_constant(factory, Py_None)) {
        Value* made = call(factory, {});
        if (!made) return nullptr;
        dict_set(v, k, made);
        return made;
      }
      return raise(make_exception(PyExc_KeyError, {key}));
    }
    case Kind::constant: {
      PyObject* k = as_constant(key);
      if (!k) {
        Py_ssize_t n = 0;
        if (!index_number(key, &n)) return nullptr;
        k = keep(PyLong_FromSsize_t(n));
      }
      PyObject* r = PyObject_GetItem(v->real, k);
      if (!r) return raise_python();
      return wrap_constant_object(keep(r));
    }
    case Kind::klass: {
      if (is_enum(reinterpret_cast<PyTypeObject*>(v->real)))
        if (PyObject* k = as_constant(key)) return constant_steal(PyObject_GetItem(v->real, k));
      PyObject* k = to_plain(key);
      if (!k) stop("generic-alias", "a class is subscripted");
      PyObject* r = PyObject_GetItem(v->real, k);   // list[int]: makes an alias, runs nothing of the program's own
      if (!r) return raise_python();
      return wrap_constant_object(keep(r));
    }
    case Kind::opaque: stop("opaque-object", describe(v) + " is subscripted");
    default: break;
  }
  if (Value* own = special(v, names().__getitem__)) return call(own, {key});
  if (raised_) return nullptr;
  return raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object is not subscriptable");
}

bool Trace::store_subscript(Value* v, Value* key, Value* x) {
  force(v);
  if (is_user_class(v->type) && v->kind != Kind::constant) {
    PyObject* own = lookup_type(v->type, names().__setitem__);
    if (own && Py_TYPE(own) == &PyFunction_Type) return call(wrap_constant_object(own), {v, key, x}) != nullptr;
  }
  return plain_store_subscript(v, key, x);
}

bool Trace::plain_store_subscript(Value* v, Value* key, Value* x) {
  force(v);
  force(key);
  switch (v->kind) {
    case Kind::tensor: return call_leaf(operator_function("setitem"), nullptr, {v, key, x}) != nullptr;
    case Kind::list: {
      auto& all = items(v);
      const auto size = static_cast<Py_ssize_t>(all.size());
      if (key->kind == Kind::slice) {
        Py_ssize_t start = 0, step = 1, count = 0;
        if (!slice_range(key, size, &start, &step, &count)) return false;
        std::vector<Value*> part;
        if (!unpack(x, &part)) return false;
        if (step == 1) {
          all.erase(all.begin() + start, all.begin() + start + count);
          all.insert(all.begin() + start, part.begin(), part.end());
        } else {
          if (static_cast<Py_ssize_t>(part.size()) != count) {
            raise(PyExc_ValueError, "attempt to assign sequence of size " + std::to_string(part.size()) + " to extended slice of size " + std::to_string(count));
            return false;
          }
          for (Py_ssize_t i = 0; i < count; ++i) all[static_cast<size_t>(start + i * step)] = part[static_cast<size_t>(i)];
        }
        mark_changed(v);
        return true;
      }
      Py_ssize_t i = 0;
      if (!index_number(key, &i)) return false;
      if (i < 0) i += size;
      if (i < 0 || i >= size) { raise(PyExc_IndexError, "list assignment index out of range"); return false; }
      all[static_cast<size_t>(i)] = x;
      mark_changed(v);
      return true;
    }
    case Kind::dict: {
      if (v->type == known().mappingproxy) break;
      PyObject* k = key_of(key);
      if (!k) return false;
      dict_set(v, k, x);
      return true;
    }
    case Kind::opaque: stop("opaque-object", "an item of " + describe(v) + " is set");
    default: break;
  }
  if (Value* own = special(v, names().__setitem__)) return call(own, {key, x}) != nullptr;
  if (!raised_) raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object does not support item assignment");
  return false;
}

bool Trace::delete_subscript(Value* v, Value* key) {
  force(v);
  force(key);
  if (is_user_class(v->type) && v->kind != Kind::constant) {
    PyObject* own = lookup_type(v->type, names().__delitem__);
    if (own && Py_TYPE(own) == &PyFunction_Type) return call(wrap_constant_object(own), {v, key}) != nullptr;
  }
  if (v->kind == Kind::list) {
    auto& all = items(v);
    const auto size = static_cast<Py_ssize_t>(all.size());
    if (key->kind == Kind::slice) {
      Py_ssize_t start = 0, step = 1, count = 0;
      if (!slice_range(key, size, &start, &step, &count)) return false;
      if (step < 0) { start += (count - 1) * step; step = -step; }
      for (Py_ssize_t i = count; i-- > 0;) all.erase(all.begin() + start + i * step);
      mark_changed(v);
      return true;
    }
    Py_ssize_t i = 0;
    if (!index_number(key, &i)) return false;
    if (i < 0) i += size;
    if (i < 0 || i >= size) { raise(PyExc_IndexError, "list assignment index out of range"); return false; }
    all.erase(all.begin() + i);
    mark_changed(v);
    return true;
  }
  if (v->kind == Kind::dict) {
    PyObject* k = key_of(key);
    if (!k) return false;
    if (!dict_delete(v, k)) { raise(make_exception(PyExc_KeyError, {key})); return false; }
    return true;
  }
  if (v->kind == Kind::opaque) stop("opaque-object", "an item of " + describe(v) + " is deleted");
  raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object doesn't support item deletion");
  return false;
}

int Trace::contains(Value* c, Value* x) {
  if (frames::SizeLog* log = frames::size_log(); log && force(x)->kind == Kind::constant) log->used(x->real);
  force(c);
  if (is_user_class(c->type) && c->kind != Kind::constant) {
    PyObject* own = lookup_type(c->type, names().__contains__);
    if (own && Py_TYPE(own) == &PyFunction_Type) {
      Value* r = call(wrap_constant_object(own), {c, x});
      return r ? truth(r) : -1;
    }
  }
  switch (c->kind) {
    case Kind::dict: case Kind::set: {
      PyObject* k = key_of(x);
      if (!k) return -1;
      if (c->kind == Kind::dict) return dict_get(c, k) != nullptr;
      if (!body<Mapping>(c).is_loaded) {
        const int r = PySet_Contains(c->real, k);
        guard(c->source, r == 1 ? GuardKind::contains : GuardKind::lacks, k);
        return r;
      }
      return PyDict_Contains(body<Mapping>(c).items, k);
    }
    case Kind::view:
      if (body<View>(c).what == View::What::keys) return contains(body<View>(c).dict, x);
      break;
    case Kind::constant:
      if (PyObject* k = as_constant(x)) {
        const int r = PySequence_Contains(c->real, k);
        if (r < 0) raise_python();
        return r;
      }
      if (!PyTuple_Check(c->real)) return 0;
      break;
    case Kind::klass:
      if (PyObject* k = as_constant(x); k && is_enum(reinterpret_cast<PyTypeObject*>(c->real))) {
        const int r = PySequence_Contains(c->real, k);
        if (r < 0) raise_python();
        return r;
      }
      break;
    case Kind::tensor: {
      Value* r = call_tensor_method(c, keep(PyUnicode_InternFromString("__contains__")), {c, x});
      return r ? truth(r) : -1;
    }
    case Kind::opaque: stop("opaque-object", "membership in " + describe(c) + " is asked");
    default: break;
  }
  Value* it = iter(c);
  if (!it) return -1;
  for (;;) {
    bool done = false;
    Value* item = next(it, &done);
    if (done) return 0;
    if (!item) return -1;
    const int same = equal(item, x);
    if (same) return same;
  }
}

// --- text ---

// A real object with the same content as a value made of constants, for C functions that only read it. Kept by the trace; null when it is none.
PyObject* Trace::to_plain(Value* v) {
  force(v);
  if (PyObject* c = as_constant(v)) return c;
  switch (v->kind) {
    case Kind::list: case Kind::tuple: {
      if (is_user_class(v->type)) return nullptr;
      auto& all = items(v);
      PyObject* l = PyList_New(0);
      keep(l);
      for (Value* i : all) {
        PyObject* p = to_plain(i);
        if (!p) return nullptr;
        PyList_Append(l, p);
      }
      return v->kind == Kind::list ? l : keep(PyList_AsTuple(l));
    }
    case Kind::dict: {
      if (is_user_class(v->type) || v->type != &PyDict_Type) return nullptr;
      PyObject* d = keep(PyDict_New());
      for (PyObject* k : keys_of(v)) {
        PyObject* p = to_plain(dict_get(v, k));
        if (!p || by_stand_in_.contains(k)) return nullptr;
        PyDict_SetItem(d, k, p);
      }
      return d;
    }
    case Kind::set:
      for (PyObject* k : keys_of(v)) if (by_stand_in_.contains(k)) return nullptr;
      return v->type == &PySet_Type ? body<Mapping>(v).order : nullptr;
    case Kind::builtin: case Kind::module: return v->real;
    case Kind::view: {
      View& w = body<View>(v);
      PyObject* d = to_plain(w.dict);
      if (!d) return nullptr;
      return keep(PyObject_CallMethod(d, w.what == View::What::keys ? "keys" : w.what == View::What::values ? "values" : "items", nullptr));
    }
    default: return nullptr;
  }
}

Value* Trace::str(Value* v) {
  force(v);
  if (v->kind == Kind::constant && PyUnicode_CheckExact(v->real)) return v;
  if (v->kind == Kind::tensor) stop("text-of-a-tensor", "a tensor is turned into text");
  if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    Value* own = dunder(v, "__str__", nullptr);
    if (own || raised_) return own;
    if (v->real) stop("exception-attribute", "the text of an exception that existed before the call is read");
    if (PyObject* c = lookup_type(v->type, names().__str__); c != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), names().__str__) && c != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(PyExc_KeyError), names().__str__))
      stop("exception-attribute", std::string("the text of an exception of type ") + v->type->tp_name + " is asked for");
    auto& args = items(body<Object>(v).arguments ? body<Object>(v).arguments : make_tuple({}));
    if (args.empty()) return text("");
    if (args.size() == 1) return PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_KeyError)) ? repr(args[0]) : str(args[0]);
    return repr(body<Object>(v).arguments);
  }
  if (PyObject* p = to_plain(v)) return constant_steal(PyObject_Str(p));
  Value* own = dunder(v, "__str__", nullptr);
  if (own || raised_) return own;
  return repr(v);
}
Value* Trace::repr(Value* v) {
  force(v);
  if (PyObject* p = to_plain(v)) return constant_steal(PyObject_Repr(p));
  Value* own = dunder(v, "__repr__", nullptr);
  if (own || raised_) return own;
  if (v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) && body<Object>(v).arguments && !v->real) {
    auto& args = items(body<Object>(v).arguments);
    Value* inner = args.size() == 1 ? repr(args[0]) : repr(body<Object>(v).arguments);
    if (!inner) return nullptr;
    PyObject* name = keep(PyObject_GetAttr(reinterpret_cast<PyObject*>(v->type), names().__name__));
    return constant_steal(args.size() == 1 ? PyUnicode_FromFormat("%U(%U)", name, inner->real) : PyUnicode_FromFormat("%U%U", name, inner->real));
  }
  stop("text-of-a-value", describe(v) + " is turned into text");
}
Value* Trace::format(Value* v, Value* spec) {
  force(v);
  PyObject* how = spec ? as_constant(spec) : nullptr;
  if (v->kind != Kind::tensor)
    if (PyObject* p = to_plain(v)) return constant_steal(PyObject_Format(p, how));
  Value* own = dunder(v, "__format__", spec ? spec : text(""));
  if (own || raised_) return own;
  if (how && PyUnicode_GET_LENGTH(how) > 0) {
    if (v->kind == Kind::tensor) stop("text-of-a-tensor", "a tensor is turned into text");
    return raise(PyExc_TypeError, std::string("unsupported format string passed to ") + v->type->tp_name + ".__format__");
  }
  return str(v);
}

}  // namespace cutaway::capture
