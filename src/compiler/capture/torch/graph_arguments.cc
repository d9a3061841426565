// Between values and what a call of torch takes and gives: fakes for tensors, arguments of nodes, results.
#include <cstdint>

#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/numbers.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

bool Leaves::contains_tensor(Value* v, int depth) {
  values.force(v);
  switch (v->kind) {
    case Kind::tensor: return true;
    case Kind::list: case Kind::tuple:
      if (depth > 4) return false;
      for (Value* i : values.items(v)) if (contains_tensor(i, depth + 1)) return true;
      return false;
    case Kind::slice: return contains_tensor(body<Slice>(v).start) || contains_tensor(body<Slice>(v).stop) || contains_tensor(body<Slice>(v).step);
    case Kind::dict:
      if (depth > 2 || v->type != &PyDict_Type) return false;
      for (PyObject* k : mappings.keys_of(v)) if (contains_tensor(mappings.dict_get(v, k), depth + 1)) return true;
      return false;
    default: return false;
  }
}
bool Leaves::has_tensor(const Args& args) {
  for (size_t i = 0; i < args.count; ++i) if (contains_tensor(args[i])) return true;
  for (size_t i = 0; i < args.keyword_count; ++i) if (contains_tensor(args.keywords[i].second)) return true;
  return false;
}

PyObject* Leaves::to_python(Value* v) {
  const Depth depth(argument_depth_);
  if (argument_depth_ > 100) stop("torch-argument", "a container that holds itself is passed to a torch function");
  v = numbers.plain_or_self(v);
  if (!probes_.empty())
    if (auto it = probes_.find(v); it != probes_.end()) return Py_NewRef(it->second);
  if (v->kind == Kind::tensor) return Py_NewRef(body<Tensor>(v).fake);
  if (const Number* n = number_of(v)) return Py_NewRef(n->symbolic);
  if (PyObject* c = values.as_constant(v)) return Py_NewRef(c);
  switch (v->kind) {
    case Kind::list: case Kind::tuple: {
      auto& all = values.items(v);
      PyObject* l = PyList_New(static_cast<Py_ssize_t>(all.size()));
      for (size_t i = 0; i < all.size(); ++i) PyList_SET_ITEM(l, static_cast<Py_ssize_t>(i), to_python(all[i]));
      if (v->kind == Kind::list) return l;
      PyObject* t = PyList_AsTuple(l);
      Py_DECREF(l);
      return t;
    }
    case Kind::slice: {
      Slice& s = body<Slice>(v);
      PyObject *a = to_python(s.start), *b = to_python(s.stop), *c = to_python(s.step);
      PyObject* r = PySlice_New(a, b, c);
      Py_DECREF(a);
      Py_DECREF(b);
      Py_DECREF(c);
      return r;
    }
    case Kind::dict: {
      PyObject* d = PyDict_New();
      for (PyObject* k : mappings.keys_of(v)) {
        PyObject* x = to_python(mappings.dict_get(v, k));
        PyDict_SetItem(d, k, x);
        Py_DECREF(x);
      }
      return d;
    }
    case Kind::iterator: case Kind::generator: case Kind::view: {
      std::vector<Value*> all;
      if (!iteration.unpack(v, &all)) { exceptions.take_raised(); stop("iterator-argument", "an iterator that raises is passed to a torch function"); }
      return to_python(values.make_list(std::move(all)));
    }
    case Kind::builtin: case Kind::klass: case Kind::module: return Py_NewRef(v->real);
    default: stop("torch-argument", values.describe(v) + " is passed to a torch function");
  }
}

ir::Argument Leaves::to_argument(Value* v) {
  const Depth depth(argument_depth_);
  if (argument_depth_ > 100) stop("torch-argument", "a container that holds itself is passed to a torch function");
  v = numbers.plain_or_self(v);
  if (torch_calls.is_shell(v)) stop("tensor-class", values.describe(v) + " is given to a call of the graph");
  if (v->kind == Kind::tensor) return tensors.recorder().argument(unwrap_tensor(body<Tensor>(v).fake));
  if (const Number* n = number_of(v)) {
    try {
      return tensors.recorder().argument(unwrap_symbolic(n->symbolic));
    } catch (const c10::Error& e) {
      stop("data-dependent-operator", e.what_without_backtrace());
    }
  }
  if (PyObject* c = values.as_constant(v)) {
    if (auto a = literal_of(c)) return std::move(*a);
    if (PyFrozenSet_Check(c)) stop("torch-argument", "a frozenset is passed to a torch function");
    stop("torch-argument", values.describe(v) + " is passed to a torch function");
  }
  switch (v->kind) {
    case Kind::list: { ir::List l; for (Value* i : values.items(v)) l.items.push_back(to_argument(i)); return l; }
    case Kind::tuple: { ir::Tuple l; for (Value* i : values.items(v)) l.items.push_back(to_argument(i)); return l; }
    case Kind::slice: { Slice& s = body<Slice>(v); return ir::Slice{{to_argument(s.start), to_argument(s.stop), to_argument(s.step)}}; }
    case Kind::dict: {
      ir::Dict d;
      for (PyObject* k : mappings.keys_of(v)) {
        if (!PyUnicode_Check(k)) stop("torch-argument", "a dict with keys that are not strings is passed to a torch function");
        d.items.emplace_back(PyUnicode_AsUTF8(k), to_argument(mappings.dict_get(v, k)));
      }
      return d;
    }
    default: stop("torch-argument", values.describe(v) + " is passed to a torch function");
  }
}

Value* Leaves::from_result(PyObject* o) {
  if (is_tensor_object(o)) {
    if (Value* known_one = values.of_fake(o)) return known_one;   // a shell, too
    if (!PyType_IsSubtype(Py_TYPE(o), known().tensor) || (Py_TYPE(o) != known().tensor && Py_TYPE(o) != known().parameter)) stop("tensor-class", "a torch function returns an instance of a subclass of Tensor");
    return values.make_tensor(o);
  }
  if (PyTuple_Check(o)) {
    std::vector<Value*> all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) all.push_back(from_result(PyTuple_GET_ITEM(o, i)));
    return values.make_tuple(std::move(all), Py_TYPE(o));
  }
  if (PyList_CheckExact(o)) {
    std::vector<Value*> all;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) all.push_back(from_result(PyList_GET_ITEM(o, i)));
    return values.make_list(std::move(all));
  }
  if (PyDict_CheckExact(o)) {
    Value* d = values.make_dict();
    PyObject *k, *x;
    Py_ssize_t position = 0;
    while (PyDict_Next(o, &position, &k, &x)) mappings.dict_set(d, values.keep(Py_NewRef(k)), from_result(x));
    return d;
  }
  if (is_symbolic_object(o)) return number_from(o);
  // Anything that is not a plain value may hold on to fakes: a storage, a generator, a graph's node.
  const Kind k = kind_of_type(Py_TYPE(o), o);
  if (k != Kind::constant && k != Kind::klass) stop("opaque-result", std::string("a torch function returns an object of type ") + Py_TYPE(o)->tp_name);
  return values.wrap_constant_object(values.keep(Py_NewRef(o)));
}

}  // namespace cutaway::capture
