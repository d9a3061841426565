// Methods and attributes of tensors: nodes, constants of the trace, or refused.
#include <ATen/ops/data_ops.h>

#include <cstdint>
#include <cstring>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/library.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/torch/torch_warnings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/size_log.h"
#include "compiler/guards/tensor_object.h"

namespace cutaway::capture {

namespace {
// The storage offset of a tensor that the trace made: as its fake has it where the storage is new, else counted from where the tensor from outside begins. Null: not known, or
// it may depend on sizes.
Value* offset_in_storage(const Owners& t, Value* tensor) {
  const at::Tensor& fake = unwrap_tensor(body<Tensor>(tensor).fake);
  const frames::SizeLog* log = frames::size_log();
  if (!fake.has_storage() || (log && log->has_dynamic && fake.storage_offset() != 0)) return nullptr;
  const auto storage = [](const at::Tensor& x) { return x.has_storage() ? x.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() : nullptr; };
  Value* base = nullptr;
  for (Value* v : t.tensors.inputs()) {
    const at::Tensor& input = unwrap_tensor(body<Tensor>(v).fake);
    if (storage(input) != storage(fake)) continue;
    if (base || input.storage_offset() != 0 || !v->real || !v->source) return nullptr;
    base = v;
  }
  if (!base) return t.values.integer(fake.storage_offset());
  Value* begins = t.values.force(t.values.wrap(t.values.keep(PyLong_FromLongLong(unwrap_tensor(base->real).storage_offset())), t.guards.sources().of(base->source, SourceKind::tensor_storage_offset)));
  return fake.storage_offset() == 0 ? begins : t.values.integer(PyLong_AsLongLong(begins->real) + fake.storage_offset());
}
}  // namespace

Value* Leaves::call_tensor_method(Value* tensor, PyObject* name, const Args& args) {
  const char* text = PyUnicode_AsUTF8(name);
  if (torch_calls.is_shell(tensor))
    for (const char* own : {"retain_grad", "register_hook", "register_post_accumulate_grad_hook", "new_tensor", "__bool__", "item", "tolist", "__int__", "__float__", "__index__"})
      if (!std::strcmp(text, own)) stop("tensor-class", std::string("Tensor.") + text + "() is called on a tensor of a class with __torch_dispatch__");
  // It is not asked of the class.
  if (std::strcmp(text, "as_subclass") == 0 && args.count == 2 && !args.keyword_count && values.kind(args[1]) == Kind::klass &&
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[1]->real), known().tensor))
    return torch_calls.as_subclass(tensor, reinterpret_cast<PyTypeObject*>(args[1]->real));
  // x.new(2, 3) and x.new(y.size()): of these sizes, with nothing in it.
  if (std::strcmp(text, "new") == 0 && !args.keyword_count && !overrides_torch_functions(tensor->type)) {
    const auto is_size = [&](Value* v) { return values.kind(v) == Kind::constant && PyLong_CheckExact(v->real); };
    bool sizes = true;
    for (size_t i = 1; i < args.count; ++i) sizes = sizes && is_size(args[i]);
    static PyObject* const new_empty = PyUnicode_InternFromString("new_empty");
    if (args.count == 2 && values.type_of(args[1]) == known().size) return call_tensor_method(tensor, new_empty, {args[0], args[1]});
    if (sizes && args.count > 1) return call_tensor_method(tensor, new_empty, {args[0], values.make_tuple({args.positional + 1, args.positional + args.count})});
    if (args.count == 1) return call_tensor_method(tensor, new_empty, {args[0], values.make_tuple({values.integer(0)})});
  }
  if (torch_calls.overrides_by_default(tensor)) {
    Value* r = nullptr;
    {
      TorchCalls::Off const off(torch_calls);
      r = call_tensor_method(tensor, name, args);
    }
    return torch_calls.converted(r, tensor->type);
  }
  if (torch_calls.is_shell(tensor) && !std::strcmp(text, "requires_grad_")) {
    if (Value* r = nullptr; torch_calls.call_by_subclass(_PyType_Lookup(known().tensor, name), args, &r)) return r;
  } else if (overrides_torch_functions(tensor->type))
    for (const char* own : {"requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "new_tensor", "storage_offset"})
      if (!std::strcmp(text, own) && (torch_calls.overrides(tensor) || !tensor->real)) stop("tensor-class", std::string("Tensor.") + text + "() is called on a tensor of a class derived from Tensor");
  static const std::unordered_map<std::string, const char*> refused = {
      {"backward", "backward"}, {"register_hook", "tensor-hook"}, {"register_post_accumulate_grad_hook", "tensor-hook"}, {"numpy", "numpy"}, {"__array__", "numpy"}, {"requires_grad_", "requires-grad"},
      {"retain_grad", "requires-grad"}, {"data_ptr", "data-pointer"}, {"storage", "data-pointer"}, {"untyped_storage", "data-pointer"}, {"share_memory_", "data-pointer"}, {"set_", "data-pointer"},
      {"resize_", "resize"}, {"__reduce_ex__", "pickle"}, {"__deepcopy__", "copy-of-a-tensor"}, {"map_", "python-loop"}, {"apply_", "python-loop"}, {"map2_", "python-loop"}, {"__repr__", "text-of-a-tensor"},
      {"__format__", "text-of-a-tensor"}, {"__str__", "text-of-a-tensor"}, {"pin_memory", "pin-memory"}, {"_make_subclass", "tensor-class"}, {"as_subclass", "tensor-class"}, {"__setstate__", "pickle"}, {"swap_tensors", "data-pointer"}, {"is_inference", "inference-mode"}, {"_backward_hooks", "tensor-hook"}, {"new", "legacy-constructor"}};
  if (torch_calls.in_mode())
    for (const char* own : {"requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "new_tensor", "storage_offset"})   // answered here, past the mode
      if (!std::strcmp(text, own)) stop("function-mode", std::string("Tensor.") + text + "() is called inside a TorchFunctionMode");
  if (std::strcmp(text, "requires_grad_") == 0 && args.keyword_count == 0 && args.count <= 2) {
    // torch takes a bool and nothing else, so nothing is asked for its truth.
    if (args.count == 2 && !values.is_constant(args[1], Py_True) && !values.is_constant(args[1], Py_False)) stop("requires-grad", "Tensor.requires_grad_() is called with something other than True or False");
    return torch_calls.set_requires_grad(tensor, args.count != 2 || args[1]->real == Py_True);
  }
  if (std::strcmp(text, "retain_grad") == 0 && args.count == 1 && !args.keyword_count) return torch_calls.retain_grad(tensor);
  for (const char* method : {"register_hook", "register_post_accumulate_grad_hook"})
    if (std::strcmp(text, method) == 0 && args.count == 2 && !args.keyword_count) return torch_calls.register_hook(tensor, args[1], method);
  if (std::strcmp(text, "new_tensor") == 0 && args.count == 2) {   // a function of C that asks the tensor's type for a device, which a fake's has not
    std::vector<Keyword> keywords(args.keywords, args.keywords + args.keyword_count);
    for (const char* name : {"dtype", "device"}) {
      bool given = false;
      for (auto& k : keywords) given |= PyUnicode_CompareWithASCIIString(k.first, name) == 0;
      if (!given) keywords.emplace_back(values.keep(PyUnicode_InternFromString(name)), attributes.getattr(tensor, name));
    }
    static PyObject* const make = [] { PyObject* m = PyImport_ImportModule("torch"); PyObject* f = PyObject_GetAttrString(m, "tensor"); Py_DECREF(m); return f; }();
    return call_leaf(make, nullptr, Args({args[1]}, keywords));
  }
  if (std::strcmp(text, "numpy") == 0 && args.count == 1 && !args.keyword_count) return library.array_sharing(tensor);
  if (auto it = refused.find(text); it != refused.end()) stop(it->second, std::string("Tensor.") + text + "() is called");
  if (args.count == 1 && !args.keyword_count && !std::strcmp(text, "storage_offset") && tensor->real && tensor->source)   // fakes begin at 0
    return values.wrap(values.keep(PyLong_FromLongLong(unwrap_tensor(tensor->real).storage_offset())), guards.sources().of(tensor->source, SourceKind::tensor_storage_offset));
  if (args.count == 1 && !args.keyword_count && !std::strcmp(text, "storage_offset") && !tensor->real && !torch_calls.in_transform() && !torch_calls.is_shell(tensor))
    if (Value* offset = offset_in_storage(*this, tensor)) return offset;
  PyObject* found = _PyType_Lookup(known().tensor, name);
  if (!found) return attributes.raise_no_attribute(tensor, name);
  if (!is_own_of_torch(found)) stop("replaced-function", std::string("Tensor.") + text + " is called, which the program has replaced by a function of its own");
  return call_leaf(found, text, args);
}

Value* Leaves::call_leaf_constant(Value* tensor, const char* method) {
  PyObject* name = values.keep(PyUnicode_InternFromString(method));
  Value* r = call_tensor_method(tensor, name, {tensor});
  if (!r) return nullptr;
  if (!values.as_constant(r) && !number_of(r)) stop("item", std::string("Tensor.") + method + "() does not return a number");
  return r;
}

int Leaves::tensor_truth(Value* v) {
  if (PyObject* own = _PyType_Lookup(known().tensor, names().__bool__); own && !is_own_of_torch(own)) stop("replaced-function", "Tensor.__bool__ is called, which the program has replaced by a function of its own");
  if ((torch_calls.overrides(v) && !torch_calls.overrides_by_default(v)) || torch_calls.is_shell(v)) stop("tensor-class", "a tensor is used as a condition, whose class defines __torch_function__ or __torch_dispatch__");
  auto& recorder = tensors.recorder();
  recorder.begin_call("Tensor.__bool__", {}, {}, {});
  if (unwrap_tensor(body<Tensor>(v).fake).numel() != 1) {
    recorder.cancel_call();
    exceptions.raise(PyExc_RuntimeError, unwrap_tensor(body<Tensor>(v).fake).numel() ? "Boolean value of Tensor with more than one value is ambiguous" : "Boolean value of Tensor with no values is ambiguous");
    exceptions.doubt("Tensor.__bool__");
    return -1;
  }
  const int r = PyObject_IsTrue(body<Tensor>(v).fake);
  recorder.cancel_call();
  if (r >= 0) return r;
  if (PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
    PyErr_Clear();
    stop("data-dependent-branch", "the value of a tensor decides which branch runs");
  }
  leaf_raised("Tensor.__bool__");
  return -1;
}

namespace {
// By the dispatcher, where the recorder sees it; Python's getter does not go there.
PyObject* data_of(PyObject* fake) {
  try {
    return wrap_tensor(at::_ops::data::call(unwrap_tensor(fake)));
  } catch (...) {
    guards::set_python_error();
    return nullptr;
  }
}
}  // namespace

// Nothing is guarded by asking: of the many methods that are called on tensors hardly one is ever hidden.
bool Leaves::has_own_attribute(Value* v, PyObject* name) {
  if (!v->real) return body<Tensor>(v).attributes != nullptr;
  PyObject** const dict = _PyObject_GetDictPtr(v->real);
  return (dict && *dict && PyDict_Contains(*dict, name) == 1) || body<Tensor>(v).attributes != nullptr;
}

Value* Leaves::tensor_attribute(Value* v, PyObject* name) {
  const KnownTypes& k = known();
  PyObject* found = _PyType_Lookup(v->type, name);
  Tensor& t = body<Tensor>(v);
  const char* text = PyUnicode_AsUTF8(name);
  if (found && Py_TYPE(found) == k.member_descriptor && is_shell_class(v->type)) {   // of __slots__
    if (!v->real) {
      if (Value* own = mappings.dict_get(attributes.instance_dict(v), name)) return own;
      return attributes.raise_no_attribute(v, name);
    }
    PyObject* got = Py_TYPE(found)->tp_descr_get(found, v->real, reinterpret_cast<PyObject*>(v->type));
    if (!got) { PyErr_Clear(); stop("tensor-class", "a tensor with an empty slot is read"); }
    return values.wrap(values.keep(got), guards.sources().attr(v->source, name));
  }
  if (v->type != k.tensor && v->type != k.parameter && found != _PyType_Lookup(k.tensor, name)) return attributes.generic_attribute(v, name, nullptr);   // the class's own
  if (found && !Py_TYPE(found)->tp_descr_set && has_own_attribute(v, name))   // hides a method of torch's: `self.inner = …`
    if (Value* own = mappings.dict_get(attributes.instance_dict(v), name)) return own;
  if (!found) {
    if (Value* own = mappings.dict_get(attributes.instance_dict(v), name)) return own;
    return attributes.raise_no_attribute(v, name);
  }
  PyTypeObject* ft = Py_TYPE(found);
  if (ft == &PyFunction_Type) return values.make_method(values.wrap_constant_object(found), v);
  if (ft == k.method_descriptor || ft == k.wrapper_descriptor) return values.bind_c_method(found, v);
  if (ft == &PyStaticMethod_Type || ft == &PyClassMethod_Type) return attributes.apply_descriptor(found, v, nullptr, name, nullptr);
  if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(v->type));
  if (torch_calls.overrides(v) && name != names().__dict__) {
    static PyObject* const get = PyObject_GetAttrString(PyImport_ImportModule("builtins"), "getattr");
    if (Value* r = nullptr; torch_calls.call_by_subclass(get, {v, values.constant(name)}, &r)) return r;
  }
  if (torch_calls.in_mode()) {
    static PyObject* const get = PyObject_GetAttrString(PyImport_ImportModule("builtins"), "getattr");
    if (Value* r = nullptr; torch_calls.call_by_mode(get, values.keep(PyTuple_Pack(2, t.fake, name)), nullptr, {v, values.constant(name)}, &r)) return r;
  }
  if (name == names().grad) {
    if (t.grad) return t.grad;
    if (v->real && v->source) {
      WarningWatch warnings;
      PyObject* g = [&] { const guards::WithoutTorchFunction off(v->real); return PyObject_GetAttr(v->real, name); }();
      refuse_warning("Tensor.grad", warnings.end());
      if (!g) return exceptions.raise_python();
      return values.wrap(values.keep(g), guards.sources().attr(v->source, name));
    }
    if (unwrap_tensor(t.fake).is_leaf() && !torch_calls.in_transform() && !TorchCalls::is_wrapper(unwrap_tensor(t.fake))) return values.none();   // no backward pass has arrived at it
    stop("tensor-attribute", "the gradient of a tensor is read that the compiled function created");
  }
  for (const char* asked : {"grad_fn", "is_leaf", "requires_grad"})
    if (std::strcmp(text, asked) == 0) torch_calls.note_autograd_question(std::string("for ") + text + " of a tensor");
  if (std::strcmp(text, "grad_fn") == 0) return torch_calls.grad_fn(v);
  if (std::strcmp(text, "is_leaf") == 0) return values.boolean(torch_calls.is_leaf(v));
  static const std::unordered_set<std::string> refused = {"retains_grad", "_version", "_base", "_grad", "_grad_fn", "output_nr", "_backward_hooks", "__dict__", "names", "volatile", "_cdata", "is_shared", "__array_interface__", "__cuda_array_interface__"};
  if (refused.contains(text)) stop("tensor-attribute", std::string("the attribute ") + text + " of a tensor is read");
  if (ft != k.getset_descriptor && ft != k.member_descriptor && ft != &PyProperty_Type) return values.wrap_constant_object(found);
  if (torch_calls.is_shell(v)) {
    static PyObject* const get = PyObject_GetAttrString(PyImport_ImportModule("builtins"), "getattr");
    return finish_bare(get, std::string("Tensor.") + text, values.keep(PyTuple_Pack(2, t.fake, name)), nullptr);
  }
  auto& recorder = tensors.recorder();
  if (torch_calls.is_transformed({v})) {
    WarningWatch warnings;
    PyObject* r = PyObject_GetAttr(t.fake, name);
    refuse_warning(std::string("Tensor.") + text, warnings.end());
    return r ? from_result(values.keep(r)) : leaf_raised(std::string("Tensor.") + text);
  }
  recorder.begin_call("builtins.getattr", {recorder.argument(unwrap_tensor(t.fake)), ir::Argument(std::string(text))}, {}, frame_stack.location());
  // x.data has a version of its own, so that a write to it is none to x: an operator of its own, where detach would share the version.
  WarningWatch warnings;
  PyObject* r = std::strcmp(text, "data") == 0 ? data_of(t.fake) : PyObject_GetAttr(t.fake, name);
  refuse_warning(std::string("Tensor.") + text, warnings.end());
  if (!r) {
    recorder.cancel_call();
    if (PyErr_ExceptionMatches(PyExc_NotImplementedError)) { PyErr_Clear(); stop("tensor-attribute", std::string("the attribute ") + text + " of a tensor is read"); }
    return leaf_raised(std::string("Tensor.") + text);
  }
  values.keep(r);
  if (is_tensor_object(r)) {
    recorder.end_call({c10::IValue(unwrap_tensor(r))}, {ir::Node::kSingle});
    return from_result(r);
  }
  recorder.cancel_call();
  return from_result(r);
}

bool Leaves::set_tensor_attribute(Value* v, PyObject* name, Value* x) {
  if (torch_calls.in_mode()) stop("function-mode", "an attribute of a tensor is set inside a TorchFunctionMode");
  PyObject* found = _PyType_Lookup(v->type, name);
  const bool is_method = found && !Py_TYPE(found)->tp_descr_set && found == _PyType_Lookup(known().tensor, name);   // the attribute hides it
  if (!found || is_method || (Py_TYPE(found) == known().member_descriptor && is_shell_class(v->type) && !v->real)) {   // a slot of what is made here counts as an attribute
    mappings.dict_set(attributes.instance_dict(v), name, x);
    return true;
  }
  if (found != _PyType_Lookup(known().tensor, name)) return attributes.generic_setattr(v, name, x);   // the class's own
  if (torch_calls.overrides(v) && !torch_calls.overrides_by_default(v)) stop("tensor-class", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of a tensor is set, whose class defines __torch_function__");
  // A gradient that is dropped, or one that was there before or is computed here, put in its place after the graph.
  if (name == names().grad && (v->real ? v->source && v->source->kind != SourceKind::constant : unwrap_tensor(body<Tensor>(v).fake).is_leaf()) && (values.is_constant(x, Py_None) || values.kind(x) == Kind::tensor)) {
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    const bool fits = values.kind(x) != Kind::tensor || (unwrap_tensor(body<Tensor>(x).fake).sizes() == fake.sizes() && unwrap_tensor(body<Tensor>(x).fake).dtype() == fake.dtype());
    if (fits) {
      body<Tensor>(v).grad = x;
      effects.mark_changed(v);
      return true;
    }
  }
  if (PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0) {
    if (!values.is_constant(x, Py_True) && !values.is_constant(x, Py_False)) stop("requires-grad", "requires_grad of a tensor is set to something other than True or False");
    if (!torch_calls.is_leaf(v)) stop("requires-grad", "requires_grad is set on a tensor that autograd has computed");
    return torch_calls.set_requires_grad(v, x->real == Py_True) != nullptr;
  }
  if (PyUnicode_CompareWithASCIIString(name, "data") == 0 && values.kind(x) == Kind::tensor) return torch_calls.set_data(v, x);
  stop("tensor-attribute-store", std::string("the attribute ") + PyUnicode_AsUTF8(name) + " of a tensor is set");
}

}  // namespace cutaway::capture
