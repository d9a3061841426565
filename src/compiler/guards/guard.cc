#include "compiler/guards/guard.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "compiler/bytecode/set_entries.h"
#include "compiler/guards/guard_tree.h"
#include "compiler/guards/tensor_object.h"

namespace cutaway::guards {
namespace {

bool is_plain(PyObject* o) {
  return o == Py_None || o == Py_Ellipsis || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

std::string shortened(std::string text) { return text.size() > 80 ? text.substr(0, 77) + "..." : text; }

// How an object is shown. Only types whose repr is CPython's own are printed: a repr may be the user's code.
std::string shown(PyObject* o) {
  if (!o) return "missing";
  if (is_plain(o)) {
    ObjectRef text = ObjectRef::steal(PyObject_Repr(o));
    if (text && PyUnicode_AsUTF8(text.get())) return shortened(PyUnicode_AsUTF8(text.get()));
    PyErr_Clear();
  }
  if (PyType_Check(o)) return std::string("class ") + reinterpret_cast<PyTypeObject*>(o)->tp_name;
  if (PyFunction_Check(o)) return std::string("function ") + PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(o)->func_qualname);
  if (PyCFunction_Check(o)) return std::string("function ") + reinterpret_cast<PyCFunctionObject*>(o)->m_ml->ml_name;
  if (PyModule_Check(o)) { const char* name = PyModule_GetName(o); if (!name) PyErr_Clear(); return std::string("module ") + (name ? name : "?"); }
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    const bool tuple = PyTuple_CheckExact(o);
    const Py_ssize_t n = Py_SIZE(o);
    std::string out = tuple ? "(" : "[";
    for (Py_ssize_t i = 0; i < n && i < 8; ++i) out += (i ? ", " : "") + shown(tuple ? PyTuple_GET_ITEM(o, i) : PyList_GET_ITEM(o, i));
    return shortened(out + (n > 8 ? ", ..." : n == 1 && tuple ? "," : "")) + (tuple ? ")" : "]");
  }
  return std::string("an object of type ") + Py_TYPE(o)->tp_name;
}

// Same type and equal, NaN equal to NaN, 0.0 not equal to -0.0: what a constant folded into a trace needs.
bool equal_constants(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return (x == y && std::signbit(x) == std::signbit(y)) || (x != x && y != y);
  }
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    const auto same = [](double u, double v) { return (u == v && std::signbit(u) == std::signbit(v)) || (u != u && v != v); };
    return same(x.real, y.real) && same(x.imag, y.imag);
  }
  if (PyTuple_Check(a)) {
    if (Py_SIZE(a) != Py_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < Py_SIZE(a); ++i)
      if (!equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  if (PySlice_Check(a)) {
    auto *x = reinterpret_cast<PySliceObject*>(a), *y = reinterpret_cast<PySliceObject*>(b);
    return equal_constants(x->start, y->start) && equal_constants(x->stop, y->stop) && equal_constants(x->step, y->step);
  }
  if (const PyNumberMethods* n = Py_TYPE(a)->tp_as_number; n && n->nb_float && !PyLong_Check(a) && !PyComplex_Check(a)) {   // a number of numpy's
    const double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
    if (PyErr_Occurred()) PyErr_Clear();
    else if (x != x && y != y) return true;
    else if (std::signbit(x) != std::signbit(y)) return false;
  }
  // Everything else that capture calls a constant compares in C: int, str, bytes, dtypes, devices, frozensets of these, ranges.
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

Py_ssize_t length_of(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return Py_SIZE(o);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  if (PyAnySet_Check(o)) return PySet_GET_SIZE(o);
  // Other containers: the slot of the type's base written in C, never a user's __len__.
  if (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) || (Py_TYPE(o)->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) {   // deque, from 3.12
    const Py_ssize_t n = PyObject_Size(o);
    if (n < 0) PyErr_Clear();
    return n;
  }
  return -1;
}

// A set of equal items may have another order: it depends on the set's history.
bool same_items_in_order(PyObject* set, PyObject* items) {
  if (PySet_GET_SIZE(set) != PyTuple_GET_SIZE(items)) return false;
  PyObject* item = nullptr;
  Py_ssize_t at = 0, n = 0;
  while (bytecode::next_in_set(set, &at, &item)) {
    PyObject* expected = PyTuple_GET_ITEM(items, n++);
    if (item != expected && !(is_plain(item) && equal_constants(item, expected))) return false;
  }
  return true;
}

bool same_keys(PyObject* dict, PyObject* keys) {
  if (PyAnySet_Check(dict)) return same_items_in_order(dict, keys);
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  if (PyODict_Check(dict)) {
    const ObjectRef now = ObjectRef::steal(keys_in_order(dict));
    if (!now) { PyErr_Clear(); return false; }
    if (PyTuple_GET_SIZE(now.get()) != PyTuple_GET_SIZE(keys)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
      PyObject *is = PyTuple_GET_ITEM(now.get(), i), *was = PyTuple_GET_ITEM(keys, i);
      if (is != was && !(is_plain(is) && equal_constants(is, was))) return false;
    }
    return true;
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0, n = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    PyObject* expected = PyTuple_GET_ITEM(keys, n++);
    if (key != expected && !(is_plain(key) && equal_constants(key, expected))) return false;
  }
  return true;
}

int has_key(PyObject* container, PyObject* key) {
  const int found = PyDict_Check(container) ? PyDict_Contains(container, key) : PyAnySet_Check(container) ? PySet_Contains(container, key) : -2;
  if (found == -1) PyErr_Clear();
  return found;
}

bool instance_has(PyObject* o, PyObject* name) {
  PyObject** place = _PyObject_GetDictPtr(o);
  return place && *place && has_key(*place, name) > 0;
}

// Position of an iterator by its own __reduce__, which is C for these types.
int64_t iterator_position(PyObject* o) {
  if (Py_TYPE(o) != &PyListIter_Type && Py_TYPE(o) != &PyTupleIter_Type && Py_TYPE(o) != &PyRangeIter_Type && Py_TYPE(o) != &PyLongRangeIter_Type) return -1;
  ObjectRef reduced = ObjectRef::steal(PyObject_CallMethod(o, "__reduce__", nullptr));
  if (!reduced) { PyErr_Clear(); return -1; }
  if (PyTuple_GET_SIZE(reduced.get()) < 3) return PyTuple_GET_SIZE(reduced.get()) == 2 ? INT64_MAX : -1;   // exhausted
  const int64_t n = PyLong_AsLongLong(PyTuple_GET_ITEM(reduced.get(), 2));
  if (n == -1) PyErr_Clear();
  return n;
}

}  // namespace

PyObject* keys_in_order(PyObject* dict) {
  if (!PyDict_Check(dict)) return PySequence_Tuple(dict);
  const ObjectRef from = ObjectRef::steal(PyODict_Check(dict) ? PyODict_Type.tp_iter(dict) : PyDict_Keys(dict));
  return from ? PySequence_Tuple(from.get()) : nullptr;
}

void drop_implied(std::vector<Guard>& guards) {
  std::unordered_set<const Source*> seen;
  const auto note = [&](const Source* s) { for (; s && seen.insert(s).second; s = s->base) {} };
  for (const Guard& g : guards) {
    note(g.kind == GuardKind::exists ? g.source->base : g.source);
    if (g.other) note(g.other);
    for (const Source* s : g.others) note(s);
  }
  std::erase_if(guards, [&](const Guard& g) { return g.kind == GuardKind::exists && !seen.insert(g.source).second; });
}

bool holds(const Guard& g, PyObject* value) {
  switch (g.kind) {
    case GuardKind::type: return reinterpret_cast<PyObject*>(Py_TYPE(value)) == g.operand.get();
    case GuardKind::id: return value == g.operand.get();
    case GuardKind::const_eq: return equal_constants(value, g.operand.get());
    case GuardKind::tensor: return matches(*g.tensor, value);
    case GuardKind::length: return length_of(value) == g.number;
    case GuardKind::dict_keys: return same_keys(value, g.operand.get());
    case GuardKind::contains: return has_key(value, g.operand.get()) == 1;
    case GuardKind::lacks: return has_key(value, g.operand.get()) == 0;
    case GuardKind::no_attr: {
      PyObject* found = _PyType_Lookup(Py_TYPE(value), g.operand.get());
      if (!found) return !instance_has(value, g.operand.get());
      if (Py_TYPE(found) != &PyMemberDescr_Type) return false;
      const ObjectRef slot = ObjectRef::steal(PyMemberDescr_Type.tp_descr_get(found, value, reinterpret_cast<PyObject*>(Py_TYPE(value))));   // a slot: empty?
      if (!slot) PyErr_Clear();
      return !slot;
    }
    case GuardKind::no_instance_attr: return !instance_has(value, g.operand.get());
    case GuardKind::code: return PyFunction_Check(value) && PyFunction_GET_CODE(value) == g.operand.get();
    case GuardKind::iterator_at: return iterator_position(value) == g.number;
    case GuardKind::alive: return PyWeakref_Check(value) && PyWeakref_GET_OBJECT(value) != Py_None;
    case GuardKind::type_version: return value == g.operand.get() && g.content->is_same(reinterpret_cast<PyTypeObject*>(value));
    case GuardKind::truth: {
      const int is = PyObject_IsTrue(value);
      if (is < 0) PyErr_Clear();
      return is == g.number;
    }
    case GuardKind::size_range: {
      const int64_t n = PyLong_Check(value) ? PyLong_AsLongLong(value) : INT64_MIN;
      if (PyErr_Occurred()) PyErr_Clear();
      return n >= g.number && n <= g.most;
    }
    case GuardKind::exists: case GuardKind::same_object: case GuardKind::different_objects: case GuardKind::no_overlap: case GuardKind::size_equal: case GuardKind::size_relation: return true;
  }
  return false;
}

std::optional<int64_t> number_word(PyObject* o) {
  if (PyFloat_CheckExact(o)) return std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o));
  if (!PyLong_CheckExact(o)) return std::nullopt;
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return std::nullopt;
  return n;
}

bool relations_hold(const std::vector<const Guard*>& relations, const std::vector<ObjectRef>& values, const std::vector<int32_t>& places) {
  const Guard& g = *relations.front();
  if (g.kind == GuardKind::size_relation) {
    c10::SmallVector<int64_t, 8> numbers;
    for (const int32_t p : places) {
      const auto word = values[p] ? number_word(values[p].get()) : std::nullopt;
      if (!word) return false;
      numbers.push_back(*word);
    }
    return std::ranges::all_of(relations, [&](const Guard* r) { return r->relation({numbers.data(), numbers.size()}); });
  }
  std::vector<PyObject*> all;
  all.reserve(places.size());
  for (int32_t p : places) {
    all.push_back(values[p].get());
    if (!all.back()) return false;
  }
  if (g.kind == GuardKind::same_object) return all[0] == all[1];
  if (g.kind == GuardKind::size_equal) return equal_constants(all[0], all[1]);
  if (g.kind == GuardKind::no_overlap) {
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = i + 1; j < all.size(); ++j)
        if (is_tensor(all[i]) && is_tensor(all[j]) && at::get_overlap_status(unwrap_tensor(all[i]), unwrap_tensor(all[j])) != at::MemOverlapStatus::No) return false;
  }
  if (all.size() == 2) return all[0] != all[1];
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) == all.end();
}

std::string Guard::text() const {
  const std::string name = source ? source->shown() : "?";
  const auto list = [&] {
    std::string out = name;
    for (const Source* s : others) out += ", " + s->shown();
    return out;
  };
  switch (kind) {
    case GuardKind::type: return "type(" + name + ") is " + reinterpret_cast<PyTypeObject*>(operand.get())->tp_name;
    case GuardKind::id: return name + " is " + shown(operand.get());
    case GuardKind::const_eq: return name + " == " + shown(operand.get());
    case GuardKind::tensor: {
      std::string out = name + ": " + tensor->python_type->tp_name + " " + at::toString(static_cast<at::ScalarType>(tensor->dtype)) + "[";
      for (size_t i = 0; i < tensor->sizes.size(); ++i) out += (i ? ", " : "") + (tensor->sizes[i] == TensorSpec::kAny ? std::string("*") : std::to_string(tensor->sizes[i]));
      out += "] strides [";
      for (size_t i = 0; i < tensor->strides.size(); ++i) out += (i ? ", " : "") + (tensor->strides[i] == TensorSpec::kAny ? std::string("*") : std::to_string(tensor->strides[i]));
      return out + "] on " + c10::Device(static_cast<c10::DeviceType>(tensor->device_type), tensor->device_index).str() + (tensor->requires_grad ? ", requires grad" : "");
    }
    case GuardKind::length: return "len(" + name + ") == " + std::to_string(number);
    case GuardKind::dict_keys: return "list(" + name + ") == " + shown(operand.get());
    case GuardKind::contains: return shown(operand.get()) + " in " + name;
    case GuardKind::lacks: return shown(operand.get()) + " not in " + name;
    case GuardKind::no_attr: return name + " has no attribute " + shown(operand.get());
    case GuardKind::no_instance_attr: return name + " has no attribute of its own " + shown(operand.get());
    case GuardKind::code: return name + " runs " + (operand.get() && PyCode_Check(operand.get()) ? PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(operand.get())->co_qualname) : "a code that is gone");
    case GuardKind::iterator_at: return name + " stands at " + std::to_string(number);
    case GuardKind::same_object: return name + " is " + other->shown();
    case GuardKind::different_objects: return list() + " are different objects";
    case GuardKind::no_overlap: return list() + " share no memory";
    case GuardKind::exists: return name + " exists";
    case GuardKind::alive: return name + " is alive";
    case GuardKind::type_version: return std::string("class ") + reinterpret_cast<PyTypeObject*>(operand.get())->tp_name + " is unchanged";
    case GuardKind::truth: return std::string(number ? "" : "not ") + name;
    case GuardKind::size_equal: return name + " == " + other->shown();
    case GuardKind::size_relation: return relation_text;
    case GuardKind::size_range: return name + " >= " + std::to_string(number) + (most != INT64_MAX ? " and <= " + std::to_string(most) : "");
  }
  return name;
}

std::string explain_guard(const Guard& g, PyObject* value, int* dim) {
  const std::string name = g.source->shown();
  const auto says = [&](const std::string& what, const std::string& was, const std::string& is) { return "`" + what + "` was " + was + ", is " + is; };
  switch (g.kind) {
    case GuardKind::type: return says("type(" + name + ")", reinterpret_cast<PyTypeObject*>(g.operand.get())->tp_name, Py_TYPE(value)->tp_name);
    case GuardKind::id: {
      const std::string was = shown(g.operand.get()), is = shown(value);
      return says(name, was, was == is ? "another one" : is);
    }
    case GuardKind::const_eq: return says(name, shown(g.operand.get()), shown(value));
    case GuardKind::tensor: return difference(*g.tensor, value, name, dim);
    case GuardKind::length: return says("len(" + name + ")", std::to_string(g.number), std::to_string(length_of(value)));
    case GuardKind::dict_keys: {
      ObjectRef keys = PyDict_Check(value) ? ObjectRef::steal(PyDict_Keys(value)) : PyAnySet_Check(value) ? ObjectRef::steal(PySequence_List(ObjectRef::steal(PySet_Type.tp_iter(value)).get())) : ObjectRef();
      return says("list(" + name + ")", shown(g.operand.get()), keys ? shown(keys.get()) : "no dictionary");
    }
    case GuardKind::iterator_at: return says(name + "'s position", std::to_string(g.number), std::to_string(iterator_position(value)));
    case GuardKind::truth: return says("bool(" + name + ")", g.number ? "True" : "False", g.number ? "False" : "True");
    case GuardKind::size_range: return says(name, "at least " + std::to_string(g.number), shown(value));
    default: return "`" + g.text() + "` does not hold";
  }
}

}  // namespace cutaway::guards
