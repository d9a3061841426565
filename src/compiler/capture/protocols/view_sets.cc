// Keys and items of dicts as sets: & | - ^ with any iterable on the other side. The result is built as Python builds it, since its order shows.
#include <cstdint>

#include "compiler/capture/protocols/containers.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/operators.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

Value* Containers::set_of_keys(PyObject* real) {
  Value* s = values.make_set();
  Mapping& m = body<Mapping>(s);
  values.keep(real);
  PyObject* iterator = values.keep(PyObject_GetIter(real));
  while (PyObject* k = PyIter_Next(iterator)) {
    PyObject* number = PyLong_FromVoidPtr(mappings.value_of_key(k));
    PyDict_SetItem(m.items, k, number);
    Py_DECREF(number);
    values.keep(k);
  }
  m.order = real;
  return s;
}

Value* Containers::view_binary(int op, Value* a, Value* b, bool* is_known) {
  const int index = op >= 13 ? op - 13 : op;
  const auto is_view = [](Value* v) { return v->kind == Kind::view && body<View>(v).what != View::What::values; };
  *is_known = index == 1 || index == 7 || index == 10 || index == 12;
  if (!*is_known) return nullptr;
  if (!is_view(a) && (a->kind == Kind::object || a->kind == Kind::opaque || a->kind == Kind::tensor)) { *is_known = false; return nullptr; }
  if (!is_view(b) && (b->kind == Kind::object || b->kind == Kind::opaque)) { *is_known = false; return nullptr; }
  auto keys = [&](Value* v, std::vector<PyObject*>* into) {
    std::vector<Value*> all;
    if (!iteration.unpack(v, &all)) return false;
    for (Value* x : all) { PyObject* k = mappings.key_of(x); if (!k) return false; into->push_back(k); }
    return true;
  };
  if (index == 12 && is_view(a) && is_view(b) && body<View>(a).what == View::What::items && body<View>(b).what == View::What::items)
    stop("view-comparison", "the items of two dicts are combined with ^");   // values that are equal need no hash there
  if (index == 1) {   // which side is looked up in the other depends on their lengths
    if (!is_view(a)) std::swap(a, b);
    auto size = [&](Value* v) { Value* n = subscripts.length(v); return n ? PyLong_AsLongLong(n->real) : -1; };
    if (b->kind == Kind::set && b->type == &PySet_Type && size(a) <= size(b)) {   // the set is asked for each item
      std::vector<PyObject*> mine;
      if (!keys(a, &mine)) return nullptr;
      PyObject* result = values.keep(PySet_New(nullptr));
      mappings.set_load(b);
      for (PyObject* k : mine) if (PySet_Contains(body<Mapping>(b).order, k) == 1) PySet_Add(result, k);
      return set_of_keys(Py_NewRef(result));
    }
    if (is_view(b) && size(b) > size(a)) std::swap(a, b);
    std::vector<Value*> theirs;
    if (!iteration.unpack(b, &theirs)) return nullptr;
    PyObject* result = values.keep(PySet_New(nullptr));
    for (Value* x : theirs) {
      int there = 0;
      if (body<View>(a).what == View::What::keys) there = subscripts.contains(a, x);
      else {
        std::vector<Value*> pair;
        const Kind k = values.kind(x);
        if ((k == Kind::tuple || (k == Kind::constant && PyTuple_Check(x->real))) && iteration.unpack(x, &pair) && pair.size() == 2) {
          PyObject* key = mappings.key_of(pair[0]);
          Value* found = key ? mappings.dict_get(body<View>(a).dict, key) : nullptr;
          if (exceptions.raised()) return nullptr;
          there = found ? operators.equal(found, pair[1]) : 0;
        }
      }
      if (there < 0) return nullptr;
      PyObject* key = there ? mappings.key_of(x) : nullptr;
      if (there && !key) return nullptr;
      if (there) PySet_Add(result, key);
    }
    return set_of_keys(Py_NewRef(result));
  }
  std::vector<PyObject*> mine, theirs;
  if (!keys(a, &mine) || !keys(b, &theirs)) return nullptr;
  PyObject *result = values.keep(PySet_New(nullptr)), *other = values.keep(PySet_New(nullptr));
  for (PyObject* k : mine) PySet_Add(result, k);
  for (PyObject* k : theirs) {
    if (index == 7) PySet_Add(result, k);
    else if (index == 10) PySet_Discard(result, k);
    else PySet_Add(other, k);
  }
  if (index == 12) {
    PyObject* iterator = values.keep(PyObject_GetIter(other));
    while (PyObject* k = PyIter_Next(iterator)) { values.keep(k); if (PySet_Discard(result, k) == 0) PySet_Add(result, k); }
  }
  return set_of_keys(Py_NewRef(result));
}

}  // namespace cutaway::capture
