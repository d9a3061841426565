// What containers answer by protocol: truth, length, items, slices, membership.
#include "compiler/capture/protocols/subscripts.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/classes.h"
#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/texts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"

namespace cutaway::capture {

int Subscripts::truth(Value* v) {
  const Tail tail = endings.take_tail();
  values.force(v);
  switch (v->kind) {
    case Kind::constant: {
      const int r = PyObject_IsTrue(v->real);
      if (r < 0) exceptions.raise_python();
      if (frames::SizeLog* log = frames::size_log(); log && (PyLong_CheckExact(v->real) || PyFloat_CheckExact(v->real))) log->compared(v->real, values.as_constant(values.integer(0)), Py_NE, r > 0, "");
      return r;
    }
    case Kind::tensor: return leaves.tensor_truth(v);
    case Kind::list: case Kind::tuple: case Kind::dict: case Kind::set:
      if (is_user_class(v->type) || v->type == known().deque) {
        if (attributes.own_method(v->type, names().__bool__) || attributes.own_method(v->type, names().__len__)) break;
      }
      if (v->kind == Kind::list || v->kind == Kind::tuple) return !values.items(v).empty();
      if (!body<Mapping>(v).is_loaded) {
        const Py_ssize_t n = PyDict_Check(v->real) ? PyDict_GET_SIZE(v->real) : PyAnySet_Check(v->real) ? PySet_GET_SIZE(v->real) : PyObject_Size(v->real);
        guards.add(v->source, GuardKind::length, nullptr, n);
        return n != 0;
      }
      return PyDict_GET_SIZE(body<Mapping>(v).items) != 0;
    case Kind::view: return mappings.dict_size(body<View>(v).dict) != 0;
    case Kind::object: break;
    case Kind::klass: if (v->type == &PyType_Type || is_enum(reinterpret_cast<PyTypeObject*>(v->real))) return 1; break;
    case Kind::opaque:
      if (number_of(v)) stop("data-dependent-branch", "a number that was read from a tensor decides which branch runs");
      if (v->real && (!Py_TYPE(v->real)->tp_as_number || !Py_TYPE(v->real)->tp_as_number->nb_bool) && (!Py_TYPE(v->real)->tp_as_mapping || !Py_TYPE(v->real)->tp_as_mapping->mp_length) &&
          (!Py_TYPE(v->real)->tp_as_sequence || !Py_TYPE(v->real)->tp_as_sequence->sq_length))
        return 1;
      stop("opaque-object", values.describe(v) + " is used as a condition");
    default: return 1;
  }
  if (attributes.has_c_base(v) && !attributes.own_method(v->type, names().__bool__) && !attributes.own_method(v->type, names().__len__) && (attributes.lookup_type(v->type, names().__bool__) || attributes.lookup_type(v->type, names().__len__)))
    stop("opaque-object", "the truth of " + values.describe(v) + " is asked, which C answers");
  if (Value* own = attributes.special(v, names().__bool__)) {
    endings.end_with(tail, "after_bool", {});
    Value* r = calls.call(own, {});
    if (!r) return -1;
    if (!values.is_constant(r, Py_True) && !values.is_constant(r, Py_False)) {
      if (values.kind(r) == Kind::tensor) stop("data-dependent-branch", "__bool__ returns a tensor");
      exceptions.raise(PyExc_TypeError, std::string("__bool__ should return bool, returned ") + r->type->tp_name);
      return -1;
    }
    return r->real == Py_True;
  }
  if (exceptions.raised()) return -1;
  if (attributes.special(v, names().__len__)) {
    endings.end_with(tail, "after_len_as_bool", {});
    Value* n = length(v);
    return n ? truth(n) : -1;
  }
  return exceptions.raised() ? -1 : 1;
}

Value* Subscripts::length(Value* v) {
  const Tail tail = endings.take_tail();
  values.force(v);
  PyTypeObject* type = v->kind == Kind::klass ? Py_TYPE(v->real) : v->type;
  PyObject* own = attributes.own_method(type, names().__len__);
  if (!own) return plain_length(v);
  if (tail.ending) endings.hand_on(tail);
  else endings.end_with(tail, "after_len", {});
  Value* n = calls.call(values.wrap_constant_object(own), {v});
  if (n && number_of(values.force(n)) && v->kind == Kind::tensor) return n;   // a size
  PyObject* c = n ? index_object(n) : nullptr;
  if (!c) return nullptr;
  if (_PyLong_Sign(c) < 0) return exceptions.raise(PyExc_ValueError, "__len__() should return >= 0");
  const Py_ssize_t size = PyLong_AsSsize_t(c);
  if (size < 0) { PyErr_Clear(); return exceptions.raise(PyExc_OverflowError, std::string("cannot fit '") + Py_TYPE(c)->tp_name + "' into an index-sized integer"); }
  return n->kind == Kind::constant && PyLong_CheckExact(n->real) ? n : PyLong_CheckExact(c) ? values.constant(c) : values.integer(size);
}

bool Subscripts::length_hint(Value* v, Value** hint) {
  Value* n = operators.dunder(v, "__length_hint__", nullptr);
  if (!n) return !exceptions.raised() || (exceptions.raised_is(PyExc_TypeError) && (exceptions.take_raised(), true));
  values.force(n);
  if (values.is_constant(n, Py_NotImplemented)) return true;
  if (n->kind != Kind::constant || is_user_class(n->type)) stop("special-method", "__length_hint__ gives " + values.describe(n));
  if (!PyLong_Check(n->real)) { exceptions.raise(PyExc_TypeError, std::string("__length_hint__ must be an integer, not ") + n->type->tp_name); return false; }
  const Py_ssize_t size = PyLong_AsSsize_t(n->real);
  if (size == -1 && PyErr_Occurred()) { exceptions.raise_python(); return false; }
  if (size < 0) { exceptions.raise(PyExc_ValueError, "__length_hint__() should return >= 0"); return false; }
  *hint = n;
  return true;
}

bool Subscripts::ask_length(Value* v) {
  values.force(v);
  if (!is_user_class(v->type) || v->kind == Kind::tensor || v->kind == Kind::constant || v->kind == Kind::opaque || v->kind == Kind::klass || containers.is_deque(v)) return true;
  endings.take_tail();
  if (attributes.own_method(v->type, names().__len__)) {
    if (length(v)) return true;
    if (!exceptions.raised_is(PyExc_TypeError)) return false;
    exceptions.take_raised();   // it has none, after all
  } else if (attributes.lookup_type(v->type, names().__len__)) return true;   // C's, which does nothing but count
  Value* unused = nullptr;
  return length_hint(v, &unused);
}

Value* Subscripts::plain_length(Value* v) {
  v = numbers.plain_or_self(v);
  switch (v->kind) {
    case Kind::list: case Kind::tuple: return values.integer(static_cast<long long>(values.items(v).size()));
    case Kind::dict: case Kind::set:
      if (!body<Mapping>(v).is_loaded) {
        const Py_ssize_t n = PyDict_Check(v->real) ? PyDict_GET_SIZE(v->real) : PyAnySet_Check(v->real) ? PySet_GET_SIZE(v->real) : PyObject_Size(v->real);
        guards.add(v->source, GuardKind::length, nullptr, n);
        return values.integer(n);
      }
      return values.integer(PyDict_GET_SIZE(body<Mapping>(v).items));
    case Kind::view: return values.integer(static_cast<long long>(mappings.dict_size(body<View>(v).dict)));
    case Kind::constant: {
      const Py_ssize_t n = PyObject_Size(v->real);
      return n < 0 ? exceptions.raise_python() : values.integer(n);
    }
    case Kind::tensor: return leaves.call_leaf_constant(v, "__len__");
    case Kind::klass: if (is_enum(reinterpret_cast<PyTypeObject*>(v->real))) return values.integer(PyObject_Size(v->real)); break;
    case Kind::opaque: stop("opaque-object", "len() is called on " + values.describe(v));
    default: break;
  }
  if (attributes.lookup_type(v->type, names().__len__)) stop("unknown-c-function", "the length of " + values.describe(v) + " is asked, which capture does not know");
  return exceptions.raise(PyExc_TypeError, std::string("object of type '") + v->type->tp_name + "' has no len()");
}

// An integer from a constant, a constant one-element tensor or a class with __index__; false when raised.
PyObject* Subscripts::index_object(Value* v) {
  values.force(v);
  Value* given = v;
  if (v->kind == Kind::tensor) {
    if (!(given = leaves.call_leaf_constant(v, "__index__"))) return nullptr;
  } else if (Value* plain = plain_of(v); plain && PyLong_Check(plain->real)) {
    given = plain;   // a class below int is its number, whatever its __index__ says
  } else if (is_user_class(v->type) && !(v->kind == Kind::constant && PyLong_Check(v->real))) {
    Value* said = operators.dunder(v, "__index__", nullptr);
    if (!said && exceptions.raised()) return nullptr;
    if (said) {
      values.force(said);
      if (said->kind == Kind::constant && PyLong_CheckExact(said->real)) return said->real;
      Value* inner = plain_of(said);
      if (said->kind == Kind::opaque || (said->kind == Kind::constant && PyLong_Check(said->real)) || (inner && PyLong_Check(inner->real)))
        stop("special-method", "__index__ gives " + values.describe(said) + ", of which Python warns");
      return exceptions.raise(PyExc_TypeError, std::string("__index__ returned non-int (type ") + said->type->tp_name + ")");
    }
    if (attributes.lookup_type(v->type, names().__index__)) stop("opaque-object", values.describe(v) + " is used as a number, whose __index__ is one of C's");
  }
  PyObject* c = given->kind == Kind::constant ? given->real : nullptr;
  if (given->kind == Kind::opaque) stop("opaque-object", values.describe(v) + " is used as a number");
  if (!c || !PyIndex_Check(c)) return exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object cannot be interpreted as an integer");
  if (PyLong_CheckExact(c)) return c;
  PyObject* number = PyNumber_Index(c);   // of bool, of numpy's numbers
  return number ? values.keep(number) : exceptions.raise_python();
}

bool Subscripts::index_number(Value* v, Py_ssize_t* n, PyObject* overflow) {
  PyObject* c = index_object(v);
  if (!c) return false;
  *n = PyLong_AsSsize_t(c);
  if (*n != -1 || !PyErr_Occurred()) return true;
  PyErr_Clear();
  if (overflow) { exceptions.raise(overflow, std::string("cannot fit '") + v->type->tp_name + "' into an index-sized integer"); return false; }
  *n = _PyLong_Sign(c) < 0 ? PY_SSIZE_T_MIN : PY_SSIZE_T_MAX;
  return true;
}

bool Subscripts::argument_number(Value* v, Py_ssize_t* n) {
  PyObject* c = index_object(v);
  if (!c) return false;
  *n = PyLong_AsSsize_t(c);
  if (*n != -1 || !PyErr_Occurred()) return true;
  exceptions.raise_python();
  return false;
}

bool Subscripts::slice_range(Value* key, Value* sequence, Py_ssize_t* start, Py_ssize_t* step, Py_ssize_t* count) {
  Slice& s = body<Slice>(key);
  auto part = [&](Value* v) -> PyObject* {
    values.force(v);
    if (values.is_constant(v, Py_None)) return Py_None;
    if (v->kind == Kind::opaque) stop("opaque-object", values.describe(v) + " is a bound of a slice");
    const bool is_number = v->kind == Kind::tensor || (v->kind == Kind::constant ? PyIndex_Check(v->real) : is_user_class(v->type) && attributes.lookup_type(v->type, names().__index__));
    if (!is_number) return exceptions.raise(PyExc_TypeError, "slice indices must be integers or None or have an __index__ method");
    return index_object(v);
  };
  PyObject *a = part(s.start), *b = a ? part(s.stop) : nullptr, *c = b ? part(s.step) : nullptr;
  if (!c) return false;
  PyObject* real = values.keep(PySlice_New(a, b, c));
  Py_ssize_t stop_at = 0;
  if (PySlice_Unpack(real, start, &stop_at, step) < 0) { exceptions.raise_python(); return false; }
  *count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(values.items(sequence).size()), start, &stop_at, *step);
  return true;
}

namespace {
// Where an index points in a list or a tuple; false: it raised, in words that call it `index`.
bool find_position(const Owners& t, Value* sequence, Value* key, const char* index, Py_ssize_t* i) {
  const std::string name = sequence->kind == Kind::list ? "list" : "tuple";
  if (!t.subscripts.index_number(key, i)) {
    if (t.exceptions.raised_is(PyExc_TypeError) && !t.attributes.lookup_type(key->type, names().__index__)) {
      t.exceptions.take_raised();
      t.exceptions.raise(PyExc_TypeError, name + " indices must be integers or slices, not " + key->type->tp_name);
    }
    return false;
  }
  const auto size = static_cast<Py_ssize_t>(t.values.items(sequence).size());   // after __index__, which may change it
  if (*i < 0) *i += size;
  if (*i >= 0 && *i < size) return true;
  t.exceptions.raise(PyExc_IndexError, name + " " + index + " out of range");
  return false;
}
}  // namespace

namespace {
// Callable[[T], Any]: variables of typing are known by identity.
PyObject* alias_part(const Owners& t, Value* v, int depth) {
  t.values.force(v);
  if (PyObject* c = t.values.as_constant(v)) return c;
  PyObject* home = v->real && v->type ? bytecode::in_type_dict(v->type, "__module__") : nullptr;
  if (home && PyUnicode_Check(home) && PyUnicode_CompareWithASCIIString(home, "typing") == 0) {
    if (v->source) t.guards.add(v->source, GuardKind::id, v->real);
    return v->real;
  }
  if ((v->kind != Kind::list && v->kind != Kind::tuple) || depth > 8) return nullptr;
  PyObject* all = t.values.keep(PyList_New(0));
  for (Value* i : t.values.items(v)) {
    PyObject* part = alias_part(t, i, depth + 1);
    if (!part) return nullptr;
    PyList_Append(all, part);
  }
  return v->kind == Kind::list ? all : t.values.keep(PyList_AsTuple(all));
}
}  // namespace

Value* Subscripts::subscript(Value* v, Value* key) {
  const Tail tail = endings.take_tail();
  values.force(v);
  values.force(key);
  if (v->real && is_user_class(v->type) && v->kind == Kind::object)   // Optional[int]: runs nothing of the program's own
    if (PyObject* module = bytecode::in_type_dict(v->type, "__module__"); module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "typing") == 0)
      if (PyObject* k = texts.to_plain(key)) {
        if (v->source) guards.add(v->source, GuardKind::id, v->real);
        PyObject* r = PyObject_GetItem(v->real, k);
        return r ? values.wrap_constant_object(values.keep(r)) : exceptions.raise_python();
      }
  if (is_user_class(v->type) && v->kind != Kind::constant) {
    PyObject* own = attributes.own_method(v->type, names().__getitem__);
    if (own) { endings.hand_on(tail); return calls.call(values.wrap_constant_object(own), {v, key}); }
  }
  return plain_subscript(v, key);
}

namespace {
// What a slice takes depends on how its bounds lie to 0, to the size and to each other, and indexing leaves one out that takes all: while sizes
// are symbols each of these is a question that the program asks.
void note_slice(frames::SizeLog& log, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t size) {
  const auto ask = [&](int64_t a, int64_t b) {
    log.conditions.push_back({symbolic::Condition::Kind::less, a, b, a < b, {}});
    log.conditions.push_back({symbolic::Condition::Kind::equal, a, b, a == b, {}});
  };
  const auto place_of = [&](int64_t n) {
    ask(n, 0);
    ask(n < 0 ? -n : n, size);
    return std::clamp<int64_t>(n < 0 ? n + size : n, 0, size);
  };
  const int64_t from = start ? place_of(*start) : 0, to = stop ? place_of(*stop) : size;
  if (start && stop) ask(from, to);
}

void note_slices(const Owners& t, frames::SizeLog& log, Value* tensor, Value* key) {
  const c10::SymIntArrayRef sizes = unwrap_tensor(body<Tensor>(tensor).fake).sym_sizes();   // not by getattr: modes and classes would be told
  const std::vector<Value*> parts = t.values.kind(key) == Kind::tuple ? t.values.items(key) : std::vector<Value*>{key};
  const auto takes_dimension = [&](Value* v) { return t.values.kind(v) == Kind::slice || (t.values.kind(v) == Kind::constant && PyLong_CheckExact(v->real)); };
  const auto number = [&](Value* v) -> std::optional<int64_t> {
    PyObject* n = v ? t.values.as_constant(v) : nullptr;
    int overflow = 0;
    if (!n || !PyLong_CheckExact(n)) return std::nullopt;
    const int64_t i = PyLong_AsLongLongAndOverflow(n, &overflow);
    return overflow ? overflow * INT64_C(0x3fffffffffffffff) : i;
  };
  size_t dim = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Value* v = parts[i];
    if (t.values.is_constant(v, Py_None)) continue;
    if (t.values.is_constant(v, Py_Ellipsis)) {
      const auto behind = static_cast<size_t>(std::count_if(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end(), takes_dimension));
      dim = sizes.size() - std::min(sizes.size(), behind);
      continue;
    }
    if (!takes_dimension(v)) {   // a mask or an index of tensors: what follows is not looked into
      dim = sizes.size();
      continue;
    }
    const auto said = dim < sizes.size() ? sizes[dim++].maybe_as_int() : std::nullopt;
    const bool is_known = said.has_value();   // not where data decides it
    const int64_t size = said.value_or(0);
    if (t.values.kind(v) != Kind::slice) continue;
    const Slice& slice = body<Slice>(v);
    if (is_known) note_slice(log, number(slice.start), number(slice.stop), size);
    for (Value* part : {slice.start, slice.stop, slice.step})
      if (PyObject* n = part ? t.values.as_constant(part) : nullptr; n && (!is_known || part == slice.step)) log.used(n);
  }
}
}  // namespace

namespace {
/// x[n] of a number that only the data knows, which torch's subscript would ask for: by select(). Null without raising: the key has none.
Value* select_by_numbers(const Owners& t, Value* v, Value* key) {
  std::vector<Value*> parts = t.values.kind(key) == Kind::tuple ? t.values.items(key) : std::vector<Value*>{key};
  const std::vector<Value*> given = parts;
  bool has_number = false, has_others = false;
  for (Value*& p : parts) {
    if (!number_of(t.values.force(p))) { has_others = true; continue; }
    if (p->type != &PyLong_Type) stop("data-dependent-operator", "a tensor is subscripted by " + t.values.describe(p));
    p = t.values.make_slice(t.values.none(), t.values.none(), t.values.none());
    has_number = true;
  }
  if (!has_number) return nullptr;
  const auto keeps_dimension = [&](Value* p) {
    if (p->kind == Kind::slice) return true;
    if (p->kind == Kind::constant && PyLong_CheckExact(p->real)) return false;
    stop("data-dependent-operator", "a tensor is subscripted by a number that was read from a tensor, and by " + t.values.describe(p));
  };
  Value* r = has_others ? t.leaves.call_leaf(operator_function("getitem"), nullptr, {v, t.values.make_tuple(parts)}) : v;
  static PyObject* const select = PyUnicode_InternFromString("select");
  for (size_t i = parts.size(); r && i-- > 0;) {
    if (!number_of(given[i])) continue;
    int64_t dim = 0, behind = 0;
    bool from_end = false;
    for (size_t k = 0; k < parts.size(); ++k) {
      if (t.values.is_constant(parts[k], Py_Ellipsis)) { from_end = from_end || k < i; if (k > i) break; continue; }
      if (!keeps_dimension(parts[k])) continue;
      if (k < i) ++dim;
      else if (!number_of(given[k]) || k == i) ++behind;   // those behind that are numbers are gone by now
    }
    r = t.leaves.call_tensor_method(r, select, {r, t.values.integer(from_end ? -behind : dim), given[i]});
  }
  return r;
}
}  // namespace

Value* Subscripts::plain_subscript(Value* v, Value* key) {
  values.force(v);
  values.force(key);
  if (frames::SizeLog* log = frames::size_log(); log && v->kind != Kind::tensor) {
    if (key->kind == Kind::slice)
      for (Value* part : {body<Slice>(key).start, body<Slice>(key).stop, body<Slice>(key).step}) log->used(part ? values.as_constant(part) : nullptr);
    else log->used(values.as_constant(key));
  }
  switch (v->kind) {
    case Kind::tensor: {
      if (key->kind == Kind::object && !Library::is_array_value(key) && attributes.lookup_type(key->type, names().__index__)) {
        Py_ssize_t n = 0;
        if (!index_number(key, &n)) return nullptr;
        key = values.integer(n);
      }
      if (frames::SizeLog* log = frames::size_log()) note_slices(*this, *log, v, key);
      if (Value* r = select_by_numbers(*this, v, key); r || exceptions.raised()) return r;
      return leaves.call_leaf(operator_function("getitem"), nullptr, {v, key});
    }
    case Kind::list: case Kind::tuple: {
      if (containers.is_deque(v)) return containers.deque_subscript(v, key, nullptr, false);
      auto& all = values.items(v);
      if (key->kind == Kind::slice || (key->kind == Kind::constant && PySlice_Check(key->real))) {
        if (key->kind == Kind::constant) {
          auto* s = reinterpret_cast<PySliceObject*>(key->real);
          key = values.make_slice(values.constant(s->start), values.constant(s->stop), values.constant(s->step));
        }
        Py_ssize_t start = 0, step = 1, count = 0;
        if (!slice_range(key, v, &start, &step, &count)) return nullptr;
        std::vector<Value*> part;
        for (Py_ssize_t i = 0; i < count; ++i) part.push_back(all[static_cast<size_t>(start + i * step)]);
        if (v->kind == Kind::list) return values.make_list(std::move(part));
        return values.make_tuple(std::move(part), v->type == known().size ? known().size : &PyTuple_Type);
      }
      Py_ssize_t i = 0;
      return find_position(*this, v, key, "index", &i) ? all[static_cast<size_t>(i)] : nullptr;
    }
    case Kind::dict: {
      PyObject* k = mappings.key_of(key);
      if (!k) return nullptr;
      if (Value* x = mappings.dict_get(v, k)) return x;
      if (is_user_class(v->type)) {
        if (PyObject* missing = attributes.own_method(v->type, names().__missing__)) return calls.call(values.wrap_constant_object(missing), {v, key});
      }
      if (Value* factory = body<Mapping>(v).default_factory; factory && !values.is_constant(factory, Py_None)) {
        Value* made = calls.call(factory, {});
        return made && store_subscript(v, key, made) ? made : nullptr;
      }
      return exceptions.raise(exceptions.make_exception(PyExc_KeyError, {key}));
    }
    case Kind::constant: {
      PyObject* k = key->kind == Kind::object ? nullptr : texts.to_plain(key);
      if (key->kind == Kind::slice && !k) {   // bounds that say themselves which numbers they are
        Slice& s = body<Slice>(key);
        std::vector<PyObject*> parts;
        for (Value* part : {s.start, s.stop, s.step}) {
          PyObject* n = values.kind(part) == Kind::object ? index_object(part) : texts.to_plain(part);
          if (!n && !exceptions.raised()) stop("opaque-object", values.describe(part) + " is a bound of a slice");
          if (!n) return nullptr;
          parts.push_back(n);
        }
        k = values.keep(PySlice_New(parts[0], parts[1], parts[2]));
      }
      if (!k && key->kind == Kind::object && !attributes.lookup_type(key->type, names().__index__)) {   // Python has a sentence for each type
        if (is_user_class(v->type) || !(PyUnicode_Check(v->real) || PyTuple_Check(v->real) || PyBytes_Check(v->real) || PyRange_Check(v->real))) stop("opaque-object", values.describe(v) + " is subscripted with " + values.describe(key));
        const char* words = PyUnicode_Check(v->real) ? (PY_VERSION_HEX >= 0x030b0000 ? "string indices must be integers, not '" : "string indices must be integers") : nullptr;
        if (!words) stop("opaque-object", values.describe(v) + " is subscripted with " + values.describe(key));
        return exceptions.raise(PyExc_TypeError, std::string(words) + key->type->tp_name + "'");
      }
      if (Py_ssize_t unused = 0; !k && !PyRange_Check(v->real) && !index_number(key, &unused)) return nullptr;   // its words name the class
      else if (!k && !(k = PyRange_Check(v->real) ? index_object(key) : values.keep(PyLong_FromSsize_t(unused)))) return nullptr;
      PyObject* r = PyObject_GetItem(v->real, k);
      if (!r) return exceptions.raise_python();
      return values.wrap_constant_object(values.keep(r));
    }
    case Kind::klass: {
      if (is_enum(reinterpret_cast<PyTypeObject*>(v->real)))
        if (PyObject* k = values.as_constant(key)) return values.constant_steal(PyObject_GetItem(v->real, k));
      static PyObject* const hook = PyUnicode_InternFromString("__class_getitem__");
      PyObject* own = attributes.lookup_type(reinterpret_cast<PyTypeObject*>(v->real), hook);
      if (own && classes.is_made_class(v->real)) {
        Value* f = attributes.getattr(v, hook);
        return f ? calls.call(f, {key}) : nullptr;
      }
      if (own && Py_TYPE(own) == &PyClassMethod_Type) {
        PyObject* inner = values.keep(PyObject_GetAttr(own, names().func_));
        PyObject* module = PyFunction_Check(inner) ? PyFunction_GET_MODULE(inner) : nullptr;
        if (module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "typing") != 0 && !PyObject_HasAttr(inner, names().__wrapped__)) return calls.call(values.wrap_constant_object(inner), {v, key});
      }
      PyObject* k = texts.to_plain(key);
      if (!k) k = alias_part(*this, key, 0);
      if (!k) stop("generic-alias", "a class is subscripted with something that is not constant");
      PyObject* r = PyObject_GetItem(v->real, k);   // list[int]: makes an alias, runs nothing of the program's own
      if (!r) return exceptions.raise_python();
      return values.wrap_constant_object(values.keep(r));
    }
    case Kind::opaque: stop("opaque-object", values.describe(v) + " is subscripted");
    default: break;
  }
  if (Value* own = attributes.special(v, names().__getitem__)) return calls.call(own, {key});
  if (exceptions.raised()) return nullptr;
  return exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object is not subscriptable");
}

bool Subscripts::store_subscript(Value* v, Value* key, Value* x) {
  const Tail tail = endings.take_tail();
  values.force(v);
  if (is_user_class(v->type) && v->kind != Kind::constant) {
    PyObject* own = attributes.own_method(v->type, names().__setitem__);
    if (own) { endings.hand_on(tail); return calls.call(values.wrap_constant_object(own), {v, key, x}) != nullptr; }
  }
  return plain_store_subscript(v, key, x);
}

bool Subscripts::plain_store_subscript(Value* v, Value* key, Value* x) {
  values.force(v);
  values.force(key);
  switch (v->kind) {
    case Kind::tensor:
      if (frames::SizeLog* log = frames::size_log()) note_slices(*this, *log, v, key);
      if (Value* part = select_by_numbers(*this, v, key)) v = part, key = values.constant(Py_Ellipsis);
      if (exceptions.raised()) return false;
      return leaves.call_leaf(operator_function("setitem"), nullptr, {v, key, x}) != nullptr;
    case Kind::list: {
      if (containers.is_deque(v)) return containers.deque_subscript(v, key, x, false) != nullptr;
      auto& all = values.items(v);
      if (key->kind == Kind::slice) {
        Py_ssize_t start = 0, step = 1, count = 0;
        if (!slice_range(key, v, &start, &step, &count)) return false;
        const size_t size = all.size();
        std::vector<Value*> part;
        Value* from = iteration.iter(x);
        if (!from && exceptions.raised_is(PyExc_TypeError)) { exceptions.take_raised(); exceptions.raise(PyExc_TypeError, step == 1 && PY_VERSION_HEX < 0x030D0000 ? "can only assign an iterable" : "must assign iterable to extended slice"); }
        if (!from || !iteration.unpack(from, &part)) return false;
        if (all.size() != size) stop("container-changed", "a list is changed by what is assigned to a part of it");
        if (step == 1) {
          all.erase(all.begin() + start, all.begin() + start + count);
          all.insert(all.begin() + start, part.begin(), part.end());
        } else {
          if (static_cast<Py_ssize_t>(part.size()) != count) {
            exceptions.raise(PyExc_ValueError, "attempt to assign sequence of size " + std::to_string(part.size()) + " to extended slice of size " + std::to_string(count));
            return false;
          }
          for (Py_ssize_t i = 0; i < count; ++i) all[static_cast<size_t>(start + i * step)] = part[static_cast<size_t>(i)];
        }
        effects.mark_changed(v);
        return true;
      }
      Py_ssize_t i = 0;
      if (!find_position(*this, v, key, "assignment index", &i)) return false;
      all[static_cast<size_t>(i)] = x;
      effects.mark_changed(v);
      return true;
    }
    case Kind::dict: {
      if (v->type == known().mappingproxy) break;
      PyObject* k = mappings.key_of(key);
      if (!k) return false;
      mappings.dict_set(v, k, x);
      return true;
    }
    case Kind::opaque: stop("opaque-object", "an item of " + values.describe(v) + " is set");
    default: break;
  }
  if (Value* own = attributes.special(v, names().__setitem__)) return calls.call(own, {key, x}) != nullptr;
  if (exceptions.raised()) return false;
  if (is_user_class(v->type) && attributes.lookup_type(v->type, names().__delitem__)) exceptions.raise(PyExc_AttributeError, "__setitem__");   // one slot of C is for both
  else exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + "' object does not support item assignment");
  return false;
}

bool Subscripts::delete_subscript(Value* v, Value* key) {
  const Tail tail = endings.take_tail();
  values.force(v);
  values.force(key);
  if (is_user_class(v->type) && v->kind != Kind::constant) {
    PyObject* own = attributes.own_method(v->type, names().__delitem__);
    if (own) { endings.hand_on(tail); return calls.call(values.wrap_constant_object(own), {v, key}) != nullptr; }
  }
  return plain_delete_subscript(v, key);
}

bool Subscripts::plain_delete_subscript(Value* v, Value* key) {
  values.force(v);
  values.force(key);
  if (containers.is_deque(v)) return containers.deque_subscript(v, key, nullptr, true) != nullptr;
  if (v->kind == Kind::list) {
    auto& all = values.items(v);
    if (key->kind == Kind::slice) {
      Py_ssize_t start = 0, step = 1, count = 0;
      if (!slice_range(key, v, &start, &step, &count)) return false;
      if (step < 0) { start += (count - 1) * step; step = -step; }
      for (Py_ssize_t i = count; i-- > 0;) all.erase(all.begin() + start + i * step);
      effects.mark_changed(v);
      return true;
    }
    Py_ssize_t i = 0;
    if (!find_position(*this, v, key, "assignment index", &i)) return false;
    all.erase(all.begin() + i);
    effects.mark_changed(v);
    return true;
  }
  if (v->kind == Kind::dict && v->type != known().mappingproxy) {
    PyObject* k = mappings.key_of(key);
    if (!k) return false;
    if (!mappings.dict_delete(v, k)) { exceptions.raise(exceptions.make_exception(PyExc_KeyError, {key})); return false; }
    return true;
  }
  if (v->kind == Kind::opaque) stop("opaque-object", "an item of " + values.describe(v) + " is deleted");
  if (Value* own = attributes.special(v, names().__delitem__)) return calls.call(own, {key}) != nullptr;
  if (exceptions.raised()) return false;
  if (is_user_class(v->type) && attributes.lookup_type(v->type, names().__setitem__)) { exceptions.raise(PyExc_AttributeError, "__delitem__"); return false; }
  PyObject* c = values.as_constant(key);
  const bool as_sequence = v->type->tp_as_sequence && c && PyIndex_Check(c);   // CPython asks another slot then, whose words differ
  exceptions.raise(PyExc_TypeError, std::string("'") + v->type->tp_name + (as_sequence ? "' object doesn't support item deletion" : "' object does not support item deletion"));
  return false;
}

int Subscripts::contains(Value* c, Value* x) {
  const Tail tail = endings.take_tail();
  if (frames::SizeLog* log = frames::size_log(); log && values.force(x)->kind == Kind::constant) log->used(x->real);
  values.force(c);
  if (is_user_class(c->type) && c->kind != Kind::constant) {
    if (attributes.lookup_type(c->type, names().__contains__) == Py_None) return exceptions.raise(PyExc_TypeError, std::string("'") + c->type->tp_name + "' object is not a container"), -1;
    if (PyObject* own = attributes.own_method(c->type, names().__contains__)) {
      endings.end_with(tail, "after_contains", {});
      Value* r = calls.call(values.wrap_constant_object(own), {c, x});
      return r ? truth(r) : -1;
    }
  }
  return plain_contains(c, x);
}

int Subscripts::plain_contains(Value* c, Value* x) {
  switch (c->kind) {
    case Kind::list: case Kind::tuple: {   // not by its iterator: a class below may have one of its own
      const size_t changes = body<Sequence>(c).changes;
      for (size_t i = 0; i < values.items(c).size(); ++i) {
        const int same = operators.equal(values.items(c)[i], x);
        if (same) return same;
        if (body<Sequence>(c).changes != changes) { exceptions.raise(PyExc_RuntimeError, "deque mutated during iteration"); return -1; }
      }
      return 0;
    }
    case Kind::dict: case Kind::set: {
      PyObject* k = c->kind == Kind::set ? mappings.key_to_find(x) : mappings.key_of(x);
      if (k && c->kind == Kind::set && mappings.is_hook_number(k)) mappings.check_hook_number(c, k);
      if (!k) return -1;
      if (c->kind == Kind::dict) return mappings.dict_get(c, k) != nullptr;
      if (!body<Mapping>(c).is_loaded) {
        if (const Value* v = mappings.stands_for(k); v && v->real != k) {   // made here, or with a hash of its own
          mappings.set_load(c);   // it holds numbers and text, or this refuses it
          return 0;
        }
        if (!mappings.has_plain_keys(c->real)) stop("set-of-objects", "a set from outside is asked that holds objects with a hash or comparison of their own");
        mappings.guard_key(k);
        const int r = PySet_Contains(c->real, k);
        guards.add(c->source, r == 1 ? GuardKind::contains : GuardKind::lacks, k);
        return r;
      }
      const int there = PyDict_Contains(body<Mapping>(c).items, k);
      mappings.check_keys();
      return there;
    }
    case Kind::view:
      if (body<View>(c).what == View::What::keys) return plain_contains(body<View>(c).dict, x);
      if (body<View>(c).what == View::What::items) {
        std::vector<Value*> pair;
        if (values.kind(x) == Kind::tuple ? values.items(x).size() != 2 : !(x->kind == Kind::constant && PyTuple_Check(x->real) && PyTuple_GET_SIZE(x->real) == 2)) return 0;
        if (is_user_class(x->type)) stop("view-comparison", "an instance of a class derived from tuple is looked for among the items of a dict");
        if (!iteration.unpack(x, &pair)) return -1;
        PyObject* k = mappings.key_of(pair[0]);
        Value* found = k ? mappings.dict_get(body<View>(c).dict, k) : nullptr;
        return !k ? -1 : found ? operators.equal(found, pair[1]) : 0;
      }
      break;
    case Kind::constant:
      if (PyObject* k = values.as_constant(x)) {
        const int r = PySequence_Contains(c->real, k);
        if (r < 0) exceptions.raise_python();
        return r;
      }
      if (PyUnicode_Check(c->real)) { exceptions.raise(PyExc_TypeError, std::string("'in <string>' requires string as left operand, not ") + values.type_of(x)->tp_name); return -1; }
      if (PyFrozenSet_Check(c->real)) { PyObject* k = mappings.key_to_find(x); const int r = k ? PySequence_Contains(c->real, k) : -1; mappings.check_keys(); return r; }
      if (PyBytes_Check(c->real)) stop("opaque-object", "membership of " + values.describe(x) + " in bytes is asked");
      break;
    case Kind::klass:
      if (PyObject* k = values.as_constant(x); k && is_enum(reinterpret_cast<PyTypeObject*>(c->real))) {
        const int r = PySequence_Contains(c->real, k);
        if (r < 0) exceptions.raise_python();
        return r;
      }
      break;
    case Kind::tensor: {
      Value* r = leaves.call_tensor_method(c, values.keep(PyUnicode_InternFromString("__contains__")), {c, x});
      return r ? truth(r) : -1;
    }
    case Kind::opaque: stop("opaque-object", "`in` is used with " + values.describe(c));
    default: break;
  }
  Value* it = iteration.iter(c);
  if (!it && exceptions.raised_is(PyExc_TypeError)) { exceptions.take_raised(); exceptions.raise(PyExc_TypeError, std::string("argument of type '") + c->type->tp_name + "' is not iterable"); }
  if (!it) return -1;
  for (;;) {
    bool done = false;
    Value* item = iteration.next(it, &done);
    if (done) return 0;
    if (!item) return -1;
    const int same = operators.equal(item, x);
    if (same) return same;
  }
}

}  // namespace cutaway::capture
