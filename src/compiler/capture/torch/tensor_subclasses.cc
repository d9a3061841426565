// Classes derived from Tensor, and other classes with __torch_function__. A tensor of such a class is a tensor of the trace whose fake is a plain one: which function
// eager would hand to __torch_function__, and with what, is asked of torch by stand-ins that only look; the class's own is then interpreted with just that. Tensor's own
// (a class that says nothing) is done here. The graph has plain tensors only: it runs with overriding switched off, and what leaves it gets its class back.
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/ops/empty_strided.h>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/protocols/iteration.h"
#include "compiler/capture/protocols/subscripts.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/operator_calls.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

PyObject* torch_function_of(PyTypeObject* t) { return _PyType_Lookup(t, names().__torch_function__); }
PyObject* disabled_function() {
  static PyObject* const f = find_member("torch._C", "_disabled_torch_function_impl");
  return f;
}
bool is_own_of_tensor(PyTypeObject* t) { return torch_function_of(t) == torch_function_of(known().tensor); }

// Special methods that take no part in computing; any other that is written in Python would have to be asked first.
bool is_harmless_dunder(std::string_view name) {
  static const std::unordered_set<std::string_view> all = {"__torch_function__", "__new__", "__init__", "__repr__", "__str__", "__format__", "__module__", "__doc__", "__dict__", "__weakref__",
      "__annotations__", "__annotate__", "__reduce_ex__", "__reduce__", "__setstate__", "__getstate__", "__deepcopy__", "__copy__", "__qualname__", "__firstlineno__", "__static_attributes__",
      "__parameters__", "__orig_bases__", "__torch_dispatch__", "__tensor_flatten__", "__tensor_unflatten__", "__metadata_guard__", "__coerce_tangent_metadata__",
      "__coerce_same_metadata_as_tangent__", "__slots__", "__hash__", "__init_subclass__", "__class_getitem__", "__abstractmethods__", "__annotations_cache__", "__annotate_func__", "__del__", "__dir__", "__sizeof__"};
  return all.contains(name);
}

bool look_at_class(PyTypeObject* t) {
  const KnownTypes& k = known();
  static PyObject* const dispatch = PyUnicode_InternFromString("__torch_dispatch__");
  if (is_uninitialized(t)) return false;
  if (!has_generic_getattr(t) || (_PyType_Lookup(t, dispatch) != _PyType_Lookup(k.tensor, dispatch) && !is_shell_class(t))) return false;
  PyObject* function = torch_function_of(t);
  if (!function || (function != disabled_function() && Py_TYPE(function) != &PyClassMethod_Type)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(t->tp_mro, i));
    if (base == k.tensor) break;
    if (base == k.parameter || base == k.buffer || base == &PyBaseObject_Type) continue;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(bytecode::dict_of_type(base), &position, &key, &value)) {
      const std::string_view name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : "";
      if (name.starts_with("__") && name.ends_with("__") && !is_harmless_dunder(name)) return false;
    }
  }
  return true;
}

}  // namespace

bool is_uninitialized(PyTypeObject* t) {
  static auto* const mixin = reinterpret_cast<PyTypeObject*>(find_member("torch.nn.parameter", "UninitializedTensorMixin"));
  return mixin && PyType_IsSubtype(t, mixin);
}

bool is_plain_tensor_subclass(PyTypeObject* t) {
  static auto* const seen = new std::unordered_map<PyTypeObject*, std::pair<unsigned, bool>>;
  _PyType_Lookup(t, names().__torch_function__);   // gives the type a version where it has none
  auto it = seen->find(t);
  if (it != seen->end() && it->second.first && it->second.first == t->tp_version_tag) return it->second.second;
  const bool is = look_at_class(t);
  (*seen)[t] = {t->tp_version_tag, is};
  return is;
}

bool overrides_torch_functions(PyTypeObject* t) {
  if (t == known().tensor || t == known().parameter || t == known().buffer) return false;
  PyObject* f = torch_function_of(t);
  return f && f != disabled_function();
}

bool TorchCalls::is_overriding_off() const {
  return overriding_off_ || all_off_ || at::impl::PythonTorchFunctionTLS::get_disabled_state() != at::impl::TorchFunctionDisabledState::ENABLED;
}
bool TorchCalls::is_all_off() const { return all_off_ || at::impl::PythonTorchFunctionTLS::get_disabled_state() == at::impl::TorchFunctionDisabledState::ALL_DISABLED; }

void TorchCalls::note_class(Value* v) {
  if (!overrides_torch_functions(v->type)) return;
  guards.add_type_version(v->type);
  has_subclasses_ = true;
}

bool TorchCalls::overrides(Value* v) {
  return has_subclasses_ && !is_overriding_off() && v->kind == Kind::tensor && overrides_torch_functions(v->type);
}
bool TorchCalls::overrides_by_default(Value* v) { return overrides(v) && is_own_of_tensor(v->type); }

void TorchCalls::refuse_subclasses(const std::string& what) {
  if (has_subclasses_ || met_shells_) stop("tensor-class", what + " beside tensors of a subclass of Tensor");
}

// A new object of the class that shares the tensor's data.
Value* TorchCalls::as_subclass(Value* tensor, PyTypeObject* t) {
  static PyObject* const alias = find_member("torch", "ops.aten.alias.default");
  if (PyType_IsSubtype(t, known().parameter) || (t != known().tensor && (!is_plain_tensor_subclass(t) || is_shell_class(t))) || is_shell(tensor)) stop("tensor-class", std::string("a tensor is converted to an instance of ") + t->tp_name);
  if (in_transform() || all_bare_ || in_mode()) stop("tensor-class", "a tensor is converted to a subclass inside a function transform or a mode, or beside torch.autograd.grad()");
  Off const off(*this);
  Value* made = leaves.call_leaf(alias, nullptr, {tensor});
  if (!made) return nullptr;
  if (made == tensor || made->real) stop("tensor-class", "an alias of a tensor is the tensor itself");
  made->type = t;
  note_class(made);
  return made;
}

// What Tensor.__torch_function__ makes of what the call gave.
Value* TorchCalls::converted(Value* r, PyTypeObject* t) {
  if (!r || t == known().tensor) return r;
  values.force(r);
  if (r->kind == Kind::tensor) {
    if (PyType_IsSubtype(r->type, t)) return r;
    if (r->real || r->type != known().tensor || body<Tensor>(r).is_seen) return as_subclass(r, t);
    if (is_shell_class(t)) stop("tensor-class", std::string("a call gives a plain tensor, which becomes an instance of ") + t->tp_name + " that has nothing inside");
    r->type = t;   // made by this call, and nobody has it yet
    note_class(r);
    return r;
  }
  if (r->kind == Kind::tuple || r->kind == Kind::list) {
    if (!leaves.contains_tensor(r)) return r;
    std::vector<Value*> all;
    for (Value* i : values.items(r)) {
      all.push_back(converted(i, t));
      if (!all.back()) return nullptr;
    }
    return r->kind == Kind::list ? values.make_list(std::move(all)) : values.make_tuple(std::move(all), r->type);
  }
  return r;
}

namespace {
bool is_not_wrapped(PyObject* function) {   // torch.overrides.get_default_nowrap_functions
  static PyObject* const all = [] {
    PyObject* get = find_member("torch.overrides", "get_default_nowrap_functions");
    return get ? PyObject_CallNoArgs(get) : nullptr;
  }();
  const int r = all ? PySet_Contains(all, function) : -1;
  PyErr_Clear();
  return r == 1;
}
}  // namespace

// Tensor.__torch_function__(cls, func, types, args=(), kwargs=None)
Value* TorchCalls::default_torch_function(Value* klass, Value* function, const std::vector<Value*>& types, const Args& args) {
  auto* t = reinterpret_cast<PyTypeObject*>(values.force(klass)->real);
  for (Value* other : types)
    if (values.kind(other) != Kind::klass || !PyType_IsSubtype(t, reinterpret_cast<PyTypeObject*>(other->real))) return values.constant(Py_NotImplemented);
  Value* r = nullptr;
  {
    Off const off(*this);
    r = calls.call(function, args);
  }
  if (!r || (values.force(function)->real && is_not_wrapped(function->real))) return r;
  return converted(r, t);
}
Value* TorchCalls::tensor_torch_function(Value*, const Args& args) {
  std::vector<Value*> given(args.positional, args.positional + args.count);
  for (size_t i = 0; i < args.keyword_count; ++i) {
    static constexpr const char* kNames[] = {"cls", "func", "types", "args", "kwargs"};
    for (size_t n = 0; n < 5; ++n)
      if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, kNames[n]) == 0) {
        if (given.size() <= n) given.resize(n + 1, nullptr);
        given[n] = args.keywords[i].second;
      }
  }
  if (given.size() < 3 || !given[0] || !given[1] || !given[2] || values.kind(given[0]) != Kind::klass) stop("tensor-class", "Tensor.__torch_function__ is called with arguments that capture does not know");
  std::vector<Value*> types, positional;
  std::vector<Keyword> keywords;
  if (!iteration.unpack(given[2], &types) || (given.size() > 3 && given[3] && !iteration.unpack(given[3], &positional))) return nullptr;
  if (given.size() > 4 && given[4] && !values.is_constant(given[4], Py_None)) {
    if (values.kind(given[4]) != Kind::dict) stop("tensor-class", "Tensor.__torch_function__ is called with keywords that are not a dict");
    for (PyObject* key : mappings.keys_of(given[4])) keywords.emplace_back(key, mappings.dict_get(given[4], key));
  }
  return default_torch_function(given[0], given[1], types, Args(positional, keywords));
}

// torch._C.DisableTorchFunctionSubclass and DisableTorchFunction, which _polyfills has in Python.
Value* TorchCalls::switch_overriding(Value*, const Args& args) {
  PyObject* by = values.as_constant(args[0]);
  const bool modes_too = subscripts.truth(args[1]) == 1;
  if (modes_too && in_mode()) stop("function-mode", "torch function modes are switched off inside one");
  (modes_too ? all_off_ : overriding_off_) += static_cast<int>(PyLong_AsLong(by));
  return values.none();
}

void TorchCalls::find_overriding(Value* v, std::vector<Value*>& into, int depth) {
  values.force(v);
  switch (v->kind) {
    case Kind::tensor:
      if (has_subclasses_ && overrides_torch_functions(v->type)) into.push_back(v);
      break;
    case Kind::object:
      if (PyObject* f = torch_function_of(v->type); f && Py_TYPE(f) == &PyClassMethod_Type) { guards.add_type_version(v->type); into.push_back(v); }
      break;
    case Kind::list: case Kind::tuple:
      if (depth < 3 && values.items(v).size() < 256)
        for (Value* i : values.items(v)) find_overriding(i, into, depth + 1);
      break;
    case Kind::slice:
      for (Value* i : {body<Slice>(v).start, body<Slice>(v).stop, body<Slice>(v).step}) find_overriding(i, into, depth + 1);
      break;
    default: break;
  }
}

Value* TorchCalls::from_probe(PyObject* o, const std::vector<std::pair<PyObject*, Value*>>& probes) {
  for (auto& [probe, v] : probes) if (probe == o) return v;
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    std::vector<Value*> all;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) all.push_back(from_probe(PySequence_Fast_GET_ITEM(o, i), probes));
    return PyTuple_Check(o) ? values.make_tuple(std::move(all), Py_TYPE(o)) : values.make_list(std::move(all));
  }
  if (PyDict_CheckExact(o)) {
    Value* d = values.make_dict();
    PyObject *k, *x;
    Py_ssize_t position = 0;
    while (PyDict_Next(o, &position, &k, &x)) mappings.dict_set(d, values.keep(Py_NewRef(k)), from_probe(x, probes));
    return d;
  }
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    return values.make_slice(from_probe(s->start, probes), from_probe(s->stop, probes), from_probe(s->step, probes));
  }
  if (PyCFunction_Check(o) || PyFunction_Check(o)) return values.wrap_constant_object(o);
  return leaves.from_result(o);
}

bool TorchCalls::call_by_subclass(PyObject* callable, const Args& args, Value** result) {
  endings.take_tail();   // what the class gives goes through torch
  if (is_overriding_off()) return false;
  std::vector<Value*> found;
  for (size_t i = 0; i < args.count; ++i) find_overriding(args[i], found, 0);
  for (size_t i = 0; i < args.keyword_count; ++i) find_overriding(args.keywords[i].second, found, 0);
  if (found.empty()) return false;
  *result = nullptr;
  if (in_mode() || in_transform() || all_bare_) stop("tensor-class", "a tensor of a subclass of Tensor is used inside a function transform or a mode, or beside torch.autograd.grad()");
  PyTypeObject* type = found.front()->type;
  for (Value* v : found) if (v->type != type) stop("tensor-class", std::string("one call takes tensors of two classes, ") + type->tp_name + " and " + v->type->tp_name);
  static PyObject *const make_probe = polyfill_named("probe_of"), *const ask = polyfill_named("probe_subclass");
  std::vector<std::pair<PyObject*, Value*>> probes;
  auto& recorder = tensors.recorder();
  recorder.begin_call("probe", {}, {}, {});
  struct Cancel { trace::Recorder& r; const Owners& t; ~Cancel() { r.cancel_call(); t.leaves.clear_probes(); } };
  PyObject* given = nullptr;
  {
    const Cancel cancel{recorder, *this};
    for (Value* v : found) {
      if (leaves.has_probe(v)) continue;
      PyObject* like = v->kind != Kind::tensor ? Py_None : body<Tensor>(v).fake;
      if (is_shell(v)) {
        const at::Tensor& shell = unwrap_tensor(like);
        like = values.keep(wrap_tensor(at::empty_strided(shell.sizes(), shell.strides(), shell.options())));
      }
      PyObject* probe = PyObject_CallOneArg(make_probe, like);
      if (!probe) { PyErr_Clear(); stop("tensor-class", "what torch passes to __torch_function__ is not known"); }
      probes.emplace_back(values.keep(probe), v);
      leaves.set_probe(v, probe);
    }
    PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
    for (size_t i = 0; i < args.count; ++i) PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), leaves.to_python(args[i]));
    PyObject* keywords = values.keep(PyDict_New());
    for (size_t i = 0; i < args.keyword_count; ++i) {
      PyObject* x = leaves.to_python(args.keywords[i].second);
      PyDict_SetItem(keywords, args.keywords[i].first, x);
      Py_DECREF(x);
    }
    given = PyObject_CallFunctionObjArgs(ask, callable, positional, keywords, nullptr);
  }
  if (!given) {   // it raises before anybody is asked: the call itself will tell
    PyErr_Clear();
    return false;
  }
  values.keep(given);
  if (given == Py_None) return false;
  PyObject* function = PyTuple_GET_ITEM(given, 0);
  if (PyFunction_Check(callable) && function != callable) {   // Python of torch's that asks for nothing itself; what it calls does
    *result = calls.call_python(values.force(values.wrap_constant_object(callable)), args);
    return true;
  }
  Value* klass = values.wrap_constant_object(reinterpret_cast<PyObject*>(type));
  Value* shown = values.wrap_constant_object(function);
  std::vector<Value*> positional;
  std::vector<Keyword> keywords;
  Value* tuple = from_probe(PyTuple_GET_ITEM(given, 2), probes);
  if (found.front()->kind == Kind::tensor && is_own_of_tensor(type)) {
    positional = values.items(tuple);
    if (PyTuple_GET_SIZE(given) > 3 && PyTuple_GET_ITEM(given, 3) != Py_None) {
      PyObject *k, *x;
      Py_ssize_t position = 0;
      while (PyDict_Next(PyTuple_GET_ITEM(given, 3), &position, &k, &x)) keywords.emplace_back(values.keep(Py_NewRef(k)), from_probe(x, probes));
    }
    *result = default_torch_function(klass, shown, {}, Args(positional, keywords));
    return true;
  }
  std::vector<Value*> parts{shown, values.make_tuple({klass}), tuple};
  for (Py_ssize_t i = 3; i < PyTuple_GET_SIZE(given); ++i) parts.push_back(from_probe(PyTuple_GET_ITEM(given, i), probes));
  Value* method = attributes.getattr(klass, names().__torch_function__);
  *result = method ? calls.call(method, Args(parts)) : nullptr;
  if (!*result && is_operator_of_python(callable) && exceptions.raised() && PyType_IsSubtype(exceptions.raised()->type, reinterpret_cast<PyTypeObject*>(PyExc_TypeError)))
    stop("tensor-class", std::string(type->tp_name) + ".__torch_function__ raises TypeError for an operator");
  if (*result && values.is_constant(*result, Py_NotImplemented)) stop("tensor-class", std::string(type->tp_name) + ".__torch_function__ returns NotImplemented");
  if (*result && values.kind(*result) == Kind::tensor) body<Tensor>(*result).is_seen = true;   // the program's code had it
  return true;
}

}  // namespace cutaway::capture
