// Arrays of numpy inside captured code: instances of the class `ndarray` of _polyfills/numpy_arrays.py, whose methods are interpreted. What stands behind one is kept here: the array
// outside and its source, a tensor of the graph with its memory, or a real array of the trace's own whose content is known. What computes with known content runs now, by numpy itself;
// what computes with a tensor is a node that calls numpy. Content that is known becomes a tensor when the graph needs it, once for all arrays that share the memory.
#include <cstdint>
#include <string_view>

#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/builtins.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"
#include "compiler/guards/tensor_object.h"

namespace cutaway::capture {
namespace {

using guards::ObjectRef;

struct ArrayModule {
  PyTypeObject *array = nullptr, *number = nullptr, *real = nullptr, *place = nullptr, *made = nullptr;
  PyObject *names = nullptr, *views = nullptr, *same = nullptr, *takes_tensors = nullptr;
  PyObject* operator[](const char* name) const { return PyDict_GetItemString(names, name); }
};
/// Null where numpy is not loaded.
const ArrayModule* array_module() {
  static const ArrayModule* all = nullptr;
  if (all) return all;
  if (!PyDict_GetItemString(PyImport_GetModuleDict(), "numpy")) return nullptr;
  PyObject* module = PyImport_ImportModule("cutaway._polyfills.numpy_arrays");
  if (!module) { PyErr_Clear(); return nullptr; }
  auto* m = new ArrayModule;
  m->names = PyModule_GetDict(module);
  const auto type = [&](const char* name) { return reinterpret_cast<PyTypeObject*>((*m)[name]); };
  m->array = type("ndarray");
  m->number = type("number");
  m->place = type("Place");
  m->made = type("Made");
  m->views = (*m)["VIEWS"];
  m->same = (*m)["SAME"];
  m->takes_tensors = (*m)["TAKES_TENSORS"];
  m->real = reinterpret_cast<PyTypeObject*>(find_member("numpy", "ndarray"));
  return all = m;
}
const at::Tensor& fake_array(Value* v) { return unwrap_tensor(body<Tensor>(v).fake); }

/// The array that owns the memory, as far as numpy's own go.
PyObject* root_of(PyObject* array) {
  const ArrayModule& m = *array_module();
  PyObject* root = array;
  while (true) {
    PyObject* base = PyObject_GetAttrString(root, "base");
    Py_XDECREF(base);   // the array has it
    if (!base || Py_TYPE(base) != m.real) return root;
    root = base;
  }
}
bool is_in(PyObject* container, PyObject* o) {
  const int found = PySequence_Contains(container, o);
  if (found < 0) PyErr_Clear();   // it has no hash
  return found == 1;
}

}  // namespace

bool Library::is_array_value(Value* v) {
  if (v->kind != Kind::object) return false;
  const ArrayModule* m = array_module();
  return m && (v->type == m->array || v->type == m->number);
}

bool Library::is_array_number(Value* v) { return v->type == array_module()->number; }

PyTypeObject* Library::type_of_array(Value* v) {
  const ArrayModule& m = *array_module();
  if (v->type == m.array) return m.real;
  PyObject* kind = PyDict_GetItem(m["NUMBERS"], values.keep(PyObject_GetAttrString(body<Tensor>(tensor_of_array(v)).fake, "dtype")));
  if (!kind) stop("numpy", "the type of a number that numpy has none for is asked for");
  return reinterpret_cast<PyTypeObject*>(kind);
}

Value* Library::new_array(ArrayState state, bool is_number) {
  const ArrayModule& m = *array_module();
  Value* v = values.make_object(is_number ? m.number : m.array);
  arrays_[v] = state;
  return v;
}

bool Library::meet_array(Value* v) {
  const ArrayModule* m = array_module();
  if (!m || v->type != m->real || !v->source || v->source->kind == SourceKind::constant) return false;
  ObjectRef tensor = ObjectRef::steal(guards::tensor_of_array(v->real));
  if (!tensor) return false;   // torch cannot share its memory
  guards.add(v->source, GuardKind::type, reinterpret_cast<PyObject*>(m->real));
  arrays_[v] = {.outside = v->real, .source = v->source};
  v->kind = Kind::object;
  v->type = m->array;
  v->real = nullptr;   // from here on it is as if the trace had made it, but for the plan
  v->source = nullptr;
  values.give<Object>(v);
  return true;
}

const Library::ArrayState& Library::array_state(Value* v) {
  const auto it = arrays_.find(v);
  if (it == arrays_.end()) stop("numpy", "a numpy array is made in a way that capture does not know");
  return it->second;
}

PyObject* Library::known_array(Value* v) {
  const ArrayState& state = array_state(v);
  if (!state.known) return nullptr;
  const auto it = roots_.find(root_of(state.known));
  if (it != roots_.end() && fake_array(it->second.first)._version() != it->second.second) return nullptr;   // written to since
  return state.known;
}

Value* Library::tensor_of_array(Value* v) {
  ArrayState& state = arrays_[v];
  if (state.tensor) return state.tensor;
  if (state.outside) {
    Value* tensor = values.wrap(values.keep(guards::tensor_of_array(state.outside)), guards.sources().of(state.source, SourceKind::array_tensor));
    return state.tensor = values.force(tensor);
  }
  if (!state.known) stop("numpy", "a numpy array is made in a way that capture does not know");
  PyObject* root = root_of(state.known);
  auto it = roots_.find(root);
  if (it == roots_.end()) {
    // Each call of the program makes it anew, so the graph copies a constant.
    ObjectRef copy = ObjectRef::steal(PyObject_CallMethod(root, "copy", "s", "K"));
    ObjectRef shared = copy ? ObjectRef::steal(guards::tensor_of_array(copy.get())) : ObjectRef();
    if (!shared) { PyErr_Clear(); stop("numpy", "torch cannot share the memory of a numpy array"); }
    static PyObject* const clone = PyUnicode_InternFromString("clone");
    Value* constant = values.force(values.wrap_constant_object(values.keep(Py_NewRef(shared.get()))));
    Value* made = leaves.call_tensor_method(constant, clone, {constant});
    if (!made) stop("numpy", "torch cannot share the memory of a numpy array");
    it = roots_.emplace(root, std::pair(values.force(made), fake_array(made)._version())).first;
  }
  Value* of_root = it->second.first;
  if (root == state.known) return state.tensor = of_root;
  // A view of it, by its place in the memory.
  ObjectRef like = ObjectRef::steal(guards::tensor_of_array(state.known)), whole = ObjectRef::steal(guards::tensor_of_array(root));
  if (!like || !whole) stop("numpy", "torch cannot share the memory of a numpy array");
  const at::Tensor &view = unwrap_tensor(like.get()), &base = unwrap_tensor(whole.get());
  if (view.scalar_type() != base.scalar_type()) stop("numpy", "a numpy array is looked at as another type");
  const auto offset = (static_cast<const char*>(view.const_data_ptr()) - static_cast<const char*>(base.const_data_ptr())) / static_cast<std::ptrdiff_t>(view.element_size());
  const auto list = [&](at::IntArrayRef all) {
    std::vector<Value*> parts;
    for (const int64_t i : all) parts.push_back(values.integer(i));
    return values.make_tuple(std::move(parts));
  };
  static PyObject* const as_strided = PyUnicode_InternFromString("as_strided");
  Value* made = leaves.call_tensor_method(of_root, as_strided, {of_root, list(view.sizes()), list(view.strides()), values.integer(offset)});
  if (!made) stop("numpy", "a view of a numpy array cannot be made");
  return state.tensor = values.force(made);
}

// The arguments as a node keeps them: Place where an array or a number of the graph's stands. `real`: with the arrays themselves, where all are known. False: something else.
bool Library::form_of(Value* v, ArrayForm& into, PyObject** form, PyObject** real, int depth) {
  const ArrayModule& m = *array_module();
  values.force(v);
  if (depth > 16) return false;
  if (is_array_value(v) || v->kind == Kind::tensor) {
    if (v->kind == Kind::tensor && !into.takes_tensors) return false;
    PyObject* known = v->kind == Kind::tensor ? nullptr : known_array(v);
    into.arrays.push_back(v);
    into.is_known = into.is_known && known;
    *form = values.keep(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(m.place), v->type == m.number ? Py_True : Py_False, nullptr));
    *real = known ? known : Py_None;
    return true;
  }
  const auto part = [&](Value* x, PyObject* f, PyObject* r) {
    PyObject *a = nullptr, *b = nullptr;
    if (!form_of(x, into, &a, &b, depth + 1)) return false;
    PyList_Append(f, a);
    PyList_Append(r, b);
    return true;
  };
  if (v->kind == Kind::list || (v->kind == Kind::tuple && (v->type == &PyTuple_Type || v->type == known().size))) {
    if (v->kind == Kind::list && v->type != &PyList_Type) return false;
    PyObject *f = values.keep(PyList_New(0)), *r = values.keep(PyList_New(0));
    for (Value* i : values.items(v)) if (!part(i, f, r)) return false;
    *form = v->kind == Kind::list ? f : values.keep(PyList_AsTuple(f));
    *real = v->kind == Kind::list ? r : values.keep(PyList_AsTuple(r));
    return true;
  }
  if (v->kind == Kind::slice) {
    const Slice s = body<Slice>(v);
    PyObject *f = values.keep(PyList_New(0)), *r = values.keep(PyList_New(0));
    for (Value* i : {s.start, s.stop, s.step}) if (!part(i, f, r)) return false;
    *form = values.keep(PySlice_New(PyList_GET_ITEM(f, 0), PyList_GET_ITEM(f, 1), PyList_GET_ITEM(f, 2)));
    *real = values.keep(PySlice_New(PyList_GET_ITEM(r, 0), PyList_GET_ITEM(r, 1), PyList_GET_ITEM(r, 2)));
    return true;
  }
  if (v->kind == Kind::dict && v->type == &PyDict_Type) {
    PyObject *f = values.keep(PyDict_New()), *r = values.keep(PyDict_New());
    for (PyObject* k : mappings.keys_of(v)) {
      PyObject *a = nullptr, *b = nullptr;
      if (mappings.stands_for(k) || !form_of(mappings.dict_get(v, k), into, &a, &b, depth + 1)) return false;
      PyDict_SetItem(f, k, a);
      PyDict_SetItem(r, k, b);
    }
    *form = f;
    *real = r;
    return true;
  }
  PyObject* constant = values.as_constant(v);
  if (constant) {
    if (has_identities() && is_identity_number(constant)) return false;
    if (frames::SizeLog* log = frames::size_log()) log->used(constant), log->used_floats(constant);
  } else if (v->real && (v->kind == Kind::klass || v->kind == Kind::builtin)) {   // a type, a function of numpy's or of operator
    constant = v->real;
  }
  if (!constant) return false;
  *form = *real = constant;
  return true;
}

namespace {
PyObject* meta_of(const at::Tensor& t, PyObject* fake) {
  const auto list = [](at::IntArrayRef all) {
    PyObject* made = PyTuple_New(static_cast<Py_ssize_t>(all.size()));
    for (size_t i = 0; i < all.size(); ++i) PyTuple_SET_ITEM(made, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(all[i]));
    return made;
  };
  return Py_BuildValue("(NNN)", list(t.sizes()), list(t.strides()), PyObject_GetAttrString(fake, "dtype"));
}
}  // namespace

PyObject* Library::metas_of(const ArrayForm& given) {
  PyObject* metas = values.keep(PyList_New(0));
  for (Value* v : given.arrays) {
    Value* tensor = v->kind == Kind::tensor ? v : tensor_of_array(v);
    if (v->kind == Kind::tensor) require_numpy_tensor(v);
    ObjectRef meta = ObjectRef::steal(meta_of(fake_array(tensor), body<Tensor>(tensor).fake));
    PyList_Append(metas, meta.get());
  }
  return metas;
}

PyObject* Library::ask_numpy(PyObject* function, const ArrayForm& given, PyObject* form) {
  PyObject* found = PyObject_CallFunctionObjArgs((*array_module())["ask_numpy"], function, form, metas_of(given), nullptr);
  if (!found) { PyErr_Clear(); stop("numpy", "numpy cannot be asked about arrays of this kind"); }
  values.keep(found);
  if (PyUnicode_Check(found)) stop("numpy", std::string("a function of numpy's ") + PyUnicode_AsUTF8(found));
  return found;
}

void Library::require_numpy_tensor(Value* tensor) {
  const at::Tensor& t = fake_array(tensor);
  const ArrayModule& m = *array_module();
  ObjectRef dtype = ObjectRef::steal(PyObject_GetAttrString(body<Tensor>(tensor).fake, "dtype"));
  if (t.requires_grad() || !t.device().is_cpu() || t.layout() != at::kStrided || t.is_conj() || t.is_neg() || TorchCalls::is_wrapper(t) || !PyDict_GetItem(m["NUMBERS"], dtype.get()))
    stop("numpy", "a tensor becomes a numpy array that torch refuses to share its memory with, or warns about");
  if (tensor->type != known().tensor && tensor->type != known().parameter && tensor->type != known().buffer) stop("numpy", "a tensor of a class derived from Tensor becomes a numpy array");
}

Value* Library::array_sharing(Value* tensor) {
  if (!array_module()) stop("numpy", "Tensor.numpy() is called");
  require_numpy_tensor(tensor);
  if (torch_calls.in_transform()) stop("numpy", "Tensor.numpy() is called inside a function transform");
  static PyObject* const detach = PyUnicode_InternFromString("detach");
  Value* shared = leaves.call_tensor_method(tensor, detach, {tensor});
  return shared ? new_array({.tensor = values.force(shared)}, false) : nullptr;
}

Value* Library::result_of_numpy(PyObject* o, const std::vector<Value*>* made) {
  const ArrayModule& m = *array_module();
  PyTypeObject* t = Py_TYPE(o);
  if (t == m.made) {
    const auto index = static_cast<size_t>(PyLong_AsLong(values.keep(PyObject_GetAttrString(o, "index"))));
    return new_array({.tensor = values.force(made->at(index))}, values.keep(PyObject_GetAttrString(o, "is_number")) == Py_True);
  }
  if (t == m.real) {
    if (ObjectRef const shared = ObjectRef::steal(guards::tensor_of_array(o)); !shared) stop("numpy", "an array is made whose memory torch cannot share");
    return new_array({.known = values.keep(Py_NewRef(o))}, false);
  }
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    std::vector<Value*> all;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) all.push_back(result_of_numpy(PySequence_Fast_GET_ITEM(o, i), made));
    return PyList_CheckExact(o) ? values.make_list(std::move(all)) : values.make_tuple(std::move(all), t);
  }
  if (kind_of_type(t, o) != Kind::constant) stop("numpy", std::string("numpy gives an object of ") + t->tp_name);
  return values.constant(o);
}

Value* Library::run_on_arrays(PyObject* function, Value* args, Value* keywords) {
  const ArrayModule& m = *array_module();
  ArrayForm given;
  given.takes_tensors = is_in(m.takes_tensors, function);
  PyObject *form = nullptr, *real = nullptr;
  if (!form_of(values.make_tuple({args, keywords}), given, &form, &real)) stop("numpy", "a function of numpy's is called with something that is no array, number or list of these");
  if (PyDict_GetItemString(PyTuple_GET_ITEM(form, 1), "out")) stop("numpy", "a function of numpy's is called with out=");
  if (given.is_known) {
    static PyObject* const quietly = polyfill_named("numpy_without_warnings");
    PyObject* r = PyObject_CallFunctionObjArgs(quietly, function, PyTuple_GET_ITEM(real, 0), PyTuple_GET_ITEM(real, 1), nullptr);
    if (!r) { PyErr_Clear(); stop("numpy", "a function of numpy's raises or warns"); }
    return result_of_numpy(values.keep(r), nullptr);
  }
  PyObject* found = ask_numpy(function, given, form);
  PyObject *shown = PyTuple_GET_ITEM(found, 0), *metas = PyTuple_GET_ITEM(found, 1);
  std::vector<Value*> tensors;
  for (Value* v : given.arrays) tensors.push_back(v->kind == Kind::tensor ? v : tensor_of_array(v));
  const Py_ssize_t count = PyList_GET_SIZE(metas);
  if (!count) return result_of_numpy(shown, nullptr);
  if (torch_calls.in_transform()) stop("numpy", "numpy is called inside a function transform");
  std::vector<at::Tensor> like;
  std::vector<bool> grad;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* meta = PyList_GET_ITEM(metas, i);
    if (PyLong_AsLong(PyTuple_GET_ITEM(meta, 3)) >= 0) stop("numpy", "a function of numpy's gives a view in a way that capture does not know");
    like.push_back(unwrap_tensor(torch_calls.fake_like(PyTuple_GET_ITEM(meta, 0), PyTuple_GET_ITEM(meta, 1), PyTuple_GET_ITEM(meta, 2))));
    grad.push_back(false);
  }
  PyObject* callable = PyObject_CallFunctionObjArgs(m["node_of"], function, form, metas_of(given), metas, nullptr);
  ObjectRef name = ObjectRef::steal(PyObject_CallOneArg(m["name_of"], function));
  if (!callable || !name) throw std::runtime_error("a function of numpy's cannot be called by name");
  values.keep(callable);
  const std::vector<Value*> made = torch_calls.call_named(PyUnicode_AsUTF8(name.get()), callable, tensors, like, grad);
  return result_of_numpy(shown, &made);
}

bool Library::answer_for_arrays(PyObject* function, const Args& args, Value** result) {
  const ArrayModule* loaded = array_module();
  if (!loaded) return false;
  const ArrayModule& m = *loaded;
  if (function == m["array_of"]) { *result = array_sharing(values.force(args[0])); return true; }
  if (function == m["must_be_one_graph"]) { *result = values.boolean(options.fullgraph); return true; }
  if (function == m["number_of"]) { *result = new_array({.tensor = values.force(args[0])}, true); return true; }
  if (function == m["tensor_of"]) {
    if (!is_array_value(values.force(args[0]))) stop("numpy", "a numpy array is needed");
    *result = tensor_of_array(args[0]);
    return true;
  }
  if (function == m["is_known"]) {
    ArrayForm given;
    PyObject *form = nullptr, *real = nullptr;
    *result = values.boolean(form_of(args[0], given, &form, &real) && given.is_known);
    return true;
  }
  if (function == m["call_numpy"]) {
    if (!values.force(args[0])->real) stop("numpy", "a function of numpy's is called that capture does not know");
    *result = run_on_arrays(args[0]->real, values.force(args[1]), values.force(args[2]));
    return true;
  }
  if (function == m["view_of"]) {
    ArrayForm given;
    PyObject *form = nullptr, *real = nullptr;
    if (!form_of(values.make_tuple({values.force(args[1]), values.force(args[2])}), given, &form, &real)) stop("numpy", "a view of a numpy array is made in a way that capture does not know");
    PyObject* found = ask_numpy(values.force(args[0])->real, given, form);
    PyObject* metas = PyTuple_GET_ITEM(found, 1);
    Value* tensor = values.force(args[3]);
    const at::Tensor& fake = fake_array(tensor);
    ObjectRef meta = ObjectRef::steal(meta_of(fake, body<Tensor>(tensor).fake));
    const bool one = PyList_GET_SIZE(metas) == 1 && Py_TYPE(PyTuple_GET_ITEM(found, 0)) == m.made;
    bool same = one;
    for (Py_ssize_t i = 0; i < 3 && same; ++i) {
      if (i == 1 && fake.numel() <= 1) continue;   // strides that nobody steps by
      PyObject* theirs = PyTuple_GET_ITEM(PyList_GET_ITEM(metas, 0), i);
      PyObject* ours = PyTuple_GET_ITEM(meta.get(), i);
      if (i != 1) { same = PyObject_RichCompareBool(theirs, ours, Py_EQ) == 1; continue; }
      for (int64_t d = 0; d < fake.dim() && same; ++d)
        same = fake.size(d) == 1 || PyObject_RichCompareBool(PyTuple_GET_ITEM(theirs, d), PyTuple_GET_ITEM(ours, d), Py_EQ) == 1;
    }
    const bool shares = one && PyLong_AsLong(PyTuple_GET_ITEM(PyList_GET_ITEM(metas, 0), 3)) >= 0;
    if (fake.numel()) same = same && shares == fake.storage().is_alias_of(fake_array(tensor_of_array(given.arrays.front())).storage());
    if (!same) stop("numpy", "torch makes another view of an array than numpy");
    *result = new_array({.tensor = tensor}, false);
    return true;
  }
  if (function == m["write_known"]) {
    ArrayForm given;
    PyObject *form = nullptr, *real = nullptr;
    *result = values.boolean(false);
    if (!form_of(values.force(args[1]), given, &form, &real) || !given.is_known) return true;
    if (roots_.contains(root_of(known_array(given.arrays.front())))) return true;   // the graph has it: it is written there
    static PyObject* const quietly = polyfill_named("numpy_without_warnings");
    PyObject* r = PyObject_CallFunctionObjArgs(quietly, values.force(args[0])->real, real, values.keep(PyDict_New()), nullptr);
    if (!r) { PyErr_Clear(); stop("numpy", "a function of numpy's that writes to an array raises or warns"); }
    values.keep(r);
    *result = values.boolean(true);
    return true;
  }
  return false;
}

// np.sin(a), np.zeros(3): functions and makers of numpy's. False: another function, or not one that a graph can hold.
bool Library::call_on_arrays(PyObject* function, const Args& args, Value** result) {
  const ArrayModule* loaded = array_module();
  if (!loaded || PyFunction_Check(function) != 0) {
    if (!loaded || !is_in((*loaded)["MAKERS"], function)) return false;
  }
  const ArrayModule& m = *loaded;
  ObjectRef may = ObjectRef::steal(PyObject_CallOneArg(m["may_call"], function));
  if (!may || may.get() != Py_True) { PyErr_Clear(); return false; }
  for (size_t i = 0; i < args.count; ++i) values.force(args[i]);
  const bool on_array = args.count && is_array_value(args[0]);
  if (PyObject* view = on_array ? PyDict_GetItem(m.views, function) : nullptr) { *result = calls.call(values.wrap_constant_object(view), args); return true; }
  if (is_in(m.same, function) && args.count == 1 && !args.keyword_count) {
    if (on_array && args[0]->type == m.array) { *result = args[0]; return true; }
    if (args[0]->kind == Kind::tensor) { *result = array_sharing(args[0]); return true; }
  }
  Value* keywords = values.make_dict();
  for (size_t i = 0; i < args.keyword_count; ++i) mappings.dict_set(keywords, args.keywords[i].first, args.keywords[i].second);
  *result = run_on_arrays(function, values.make_tuple({args.positional, args.positional + args.count}), keywords);
  return true;
}

// torch.from_numpy gives a tensor of its own at each call.
Value* Library::tensor_from_array(Value* v) {
  Value* tensor = tensor_of_array(v);
  ArrayState& state = arrays_[v];
  if (!state.is_given) { state.is_given = true; return tensor; }
  static PyObject* const detach = PyUnicode_InternFromString("detach");
  return leaves.call_tensor_method(tensor, detach, {tensor});
}

bool Library::array_outside(Value* v, SourceRef* source) const {
  const auto it = arrays_.find(v);
  if (it == arrays_.end() || !it->second.outside) return false;
  *source = it->second.source;
  return true;
}

}  // namespace cutaway::capture
