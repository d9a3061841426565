// Tensors of classes with __torch_dispatch__ that torch.Tensor._make_wrapper_subclass made: shells, without data of their own, around other tensors. The graph never has
// one. In the trace a shell is a tensor of torch's whose class only hands on what it is asked: torch takes a call apart as it would, and for each operator that reaches the
// class the program's own __torch_dispatch__ is interpreted. What that computes with the tensors inside is recorded; these are inputs of the graph where it reads them.
// A shell that leaves the graph is made by the very call that made it in the trace, and gets its attributes.
#include <ATen/autocast_mode.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>

#include "compiler/bytecode/type_dict.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
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
#include "compiler/guards/tensor_object.h"
#include "core/trace/dispatch_keys.h"
#include "core/trace/shells.h"

namespace cutaway::capture {
namespace {

PyObject* dispatch_name() {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  return name;
}

// torch's own, which are more than their Python: sizes that are symbols, kernels in C++, state of the process.
bool is_torchs_own_class(PyTypeObject* t) {
  PyObject* module = bytecode::in_type_dict(t, "__module__");
  const std::string_view name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
  for (const char* own : {"torch._", "torch.distributed", "torch.nested", "torch.fx", "torch.utils"})
    if (name.starts_with(own)) return true;
  return false;
}

PyObject* make_wrapper() {
  static PyObject* const f = find_member("torch", "Tensor._make_wrapper_subclass");
  return f;
}
PyObject* make_subclass_function() {
  static PyObject* const f = find_member("torch", "Tensor._make_subclass");
  return f;
}

thread_local TorchCalls* asked = nullptr;   // whose call of torch is running, and may come back by a shell

PyObject* hand_on(PyObject*, PyObject* given) {
  if (!asked) {
    PyErr_SetString(PyExc_RuntimeError, "cutaway: a tensor of a trace is used outside of it");
    return nullptr;
  }
  return asked->answer_dispatch(PyTuple_GET_ITEM(given, 0), PyTuple_GET_ITEM(given, 1), PyTuple_GET_ITEM(given, 2));
}

// The class of what stands for shells in the trace.
PyObject* stand_in_class() {
  static PyObject* const klass = [] {
    static PyMethodDef method = {"hand_on", &hand_on, METH_VARARGS, nullptr};
    PyObject *make = polyfill_named("shell_class"), *function = PyCFunction_New(&method, nullptr);
    PyObject* made = PyObject_CallOneArg(make, function);
    Py_DECREF(function);
    return made;
  }();
  return klass;
}

}  // namespace

bool is_shell_class(PyTypeObject* t) {
  PyObject* own = t == known().tensor ? nullptr : _PyType_Lookup(t, dispatch_name());
  return own && own != _PyType_Lookup(known().tensor, dispatch_name()) && Py_TYPE(own) == &PyClassMethod_Type && !is_torchs_own_class(t);
}

bool TorchCalls::is_shell(const at::Tensor& t) { return t.defined() && t.key_set().has(c10::DispatchKey::Python); }
bool TorchCalls::is_shell(Value* v) { return met_shells_ && v->kind == Kind::tensor && is_shell(unwrap_tensor(body<Tensor>(v).fake)); }

void TorchCalls::meet_shells() {
  // In torch 2.11 fake tensors come before __torch_dispatch__.
  if constexpr (static_cast<uint16_t>(trace::kBelowKey) > static_cast<uint16_t>(c10::DispatchKey::Python)) stop("tensor-class", "a tensor of a class with __torch_dispatch__ is used, which needs torch 2.12");
  if (in_transform() || all_bare_ || in_mode()) stop("tensor-class", "a tensor of a class with __torch_dispatch__ is used inside a function transform or a mode, or beside torch.autograd.grad()");
  met_shells_ = true;
  trace::expect_shells(true);
}

void TorchCalls::add_shell(Value* v, Tensor& body) {
  const at::Tensor& real = unwrap_tensor(v->real);
  const auto refuse = [&](const std::string& why) {
    v->kind = Kind::lazy;
    stop("tensor-class", std::string("a tensor of the class ") + v->type->tp_name + " is used, " + why);
  };
  const bool has_sizes = real.layout() == at::kStrided && !real.unsafeGetTensorImpl()->has_symbolic_sizes_strides() && real.unsafeGetTensorImpl()->is_python_dispatch();
  if (!has_sizes || !real.has_storage() || real.storage().allocator() != c10::GetAllocator(c10::kMeta)) refuse("whose class has __torch_dispatch__, and which has data or sizes of its own");
  if (real.requires_grad() && !real.is_leaf()) refuse("which autograd has computed");
  if (real.is_inference()) refuse("which was made in inference mode");
  meet_shells();
  static PyObject* const make = polyfill_named("shell_like");
  PyObject* fake = nullptr;
  {
    const guards::WithoutTorchFunction off(v->real);
    fake = PyObject_CallFunctionObjArgs(make, stand_in_class(), v->real, nullptr);
  }
  if (!fake) { PyErr_Clear(); refuse("which cannot be described"); }
  body.fake = values.keep(fake);
  values.bind_fake(v, fake);
  guards.add_type_version(v->type);
}

// torch.Tensor._make_wrapper_subclass(cls, size, …) and _make_subclass(cls, data, require_grad=False). False: another function.
bool TorchCalls::call_maker(PyObject* callable, const Args& args, Value** result) {
  const bool is_wrapper = callable == make_wrapper();
  if (!is_wrapper && callable != make_subclass_function()) return false;
  *result = nullptr;
  if (args.count < 2 || values.kind(args[0]) != Kind::klass || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[0]->real), known().tensor))
    stop("tensor-class", "a tensor of a subclass is made from arguments that capture does not know");
  auto* t = reinterpret_cast<PyTypeObject*>(args[0]->real);
  *result = is_wrapper ? make_shell(t, args) : make_subclass(t, args);
  return true;
}

Value* TorchCalls::make_shell(PyTypeObject* t, const Args& args) {
  if (!is_shell_class(t) || !is_plain_tensor_subclass(t)) stop("tensor-class", std::string("an instance of ") + t->tp_name + " is created");
  for (size_t i = 0; i < args.keyword_count; ++i)
    for (const char* other : {"dispatch_sizes_strides_policy", "dispatch_device", "dispatch_layout", "pin_memory", "data_ptr", "_extra_dispatch_keys", "storage_size"})
      if (PyUnicode_CompareWithASCIIString(args.keywords[i].first, other) == 0 && !values.is_constant(args.keywords[i].second, Py_None) && !values.is_constant(args.keywords[i].second, Py_False))
        stop("tensor-class", std::string("torch.Tensor._make_wrapper_subclass is called with ") + other);
  meet_shells();
  PyObject* positional = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.count)));
  PyTuple_SET_ITEM(positional, 0, Py_NewRef(stand_in_class()));
  for (size_t i = 1; i < args.count; ++i) PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), leaves.to_python(args[i]));
  PyObject* keywords = values.keep(PyDict_New());
  for (size_t i = 0; i < args.keyword_count; ++i) {
    PyObject* x = leaves.to_python(args.keywords[i].second);
    PyDict_SetItem(keywords, args.keywords[i].first, x);
    Py_DECREF(x);
  }
  PyObject* fake = PyObject_Call(make_wrapper(), positional, keywords);
  if (!fake) return leaves.leaf_raised("torch.Tensor._make_wrapper_subclass");
  Value* v = values.make_tensor(values.keep(fake));
  v->type = t;
  guards.add_type_version(t);
  note_class(v);
  body<Tensor>(v).is_seen = true;
  shells_[v] = {{args.positional + 1, args.positional + args.count}, {args.keywords, args.keywords + args.keyword_count}};
  return v;
}

Value* TorchCalls::make_subclass(PyTypeObject* t, const Args& args) {
  const bool is_own = t == known().parameter || t == known().buffer;
  if (is_shell_class(t) || (!is_own && !is_plain_tensor_subclass(t)) || args.count > 3 || args.keyword_count || values.kind(args[1]) != Kind::tensor || is_shell(args[1]))
    stop("tensor-class", std::string("an instance of ") + t->tp_name + " is created");
  if (in_transform() || in_mode() || all_bare_) stop("tensor-class", std::string("an instance of ") + t->tp_name + " is created inside a function transform or a mode, or beside torch.autograd.grad()");
  bool wanted = false;
  if (args.count == 3) {
    if (!values.is_constant(args[2], Py_True) && !values.is_constant(args[2], Py_False)) stop("tensor-class", std::string("an instance of ") + t->tp_name + " is created");
    wanted = args[2]->real == Py_True;
  }
  static PyObject* const detach = PyUnicode_InternFromString("detach");
  Off const off(*this);
  Value* made = leaves.call_tensor_method(args[1], detach, {args[1]});
  if (!made) return nullptr;
  if (made == args[1] || made->real) stop("tensor-class", "a detached tensor is the tensor itself");
  made->type = t;
  note_class(made);
  body<Tensor>(made).is_seen = true;
  return wanted ? set_requires_grad(made, true) : made;
}

// --- calls that reach a shell ---

TorchCalls::ShellCall::ShellCall(TorchCalls& c) : calls(c), before(std::exchange(asked, &c)), entered(c.shell_keys_) {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  c.shell_keys_ = {keys.included_.raw_repr(), keys.excluded_.raw_repr()};
}
TorchCalls::ShellCall::~ShellCall() {
  asked = before;
  calls.shell_keys_ = entered;
}

bool TorchCalls::end_shell_call(PyObject* result) {
  if (shell_stop_) {
    PyErr_Clear();
    std::rethrow_exception(std::exchange(shell_stop_, nullptr));
  }
  if (!shell_raised_) return true;
  shell_raised_ = false;
  if (result) stop("tensor-class", "torch handles an exception that __torch_dispatch__ has raised");
  PyErr_Clear();
  return false;
}

namespace {
void find_classes(PyObject* o, const std::function<Value*(PyObject*)>& of, std::vector<PyTypeObject*>& all, int depth = 0) {
  if (is_tensor_object(o)) {
    Value* v = of(o);
    if (!v || !TorchCalls::is_shell(unwrap_tensor(o)) || std::find(all.begin(), all.end(), v->type) != all.end()) return;
    // A class comes before those that it derives from.
    const auto place = std::find_if(all.begin(), all.end(), [&](PyTypeObject* t) { return PyType_IsSubtype(v->type, t); });
    all.insert(place, v->type);
    return;
  }
  if (depth < 3 && (PyTuple_Check(o) || PyList_Check(o)))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) find_classes(PySequence_Fast_GET_ITEM(o, i), of, all, depth + 1);
  if (depth < 3 && PyDict_Check(o)) {
    PyObject *k, *x;
    Py_ssize_t position = 0;
    while (PyDict_Next(o, &position, &k, &x)) find_classes(x, of, all, depth + 1);
  }
}
bool any_requires_grad(PyObject* o, int depth = 0) {
  if (is_tensor_object(o)) return unwrap_tensor(o).requires_grad();
  if (depth < 3 && (PyTuple_Check(o) || PyList_Check(o)))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) if (any_requires_grad(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return true;
  return false;
}
}  // namespace

PyObject* TorchCalls::answer_dispatch(PyObject* function, PyObject* args, PyObject* keywords) {
  if (shell_stop_ || shell_raised_) {   // torch went on after an error; what it does now does not count
    PyErr_SetString(PyExc_RuntimeError, "cutaway: a call has ended");
    return nullptr;
  }
  try {
    PyObject* r = dispatch_to_class(function, args, keywords);
    if (r) return r;
    shell_raised_ = true;
  } catch (...) {   // it may not pass through torch's frames
    shell_stop_ = std::current_exception();
  }
  PyErr_SetString(PyExc_RuntimeError, "cutaway: __torch_dispatch__ has not returned");
  return nullptr;
}

// Null: the program raised.
PyObject* TorchCalls::dispatch_to_class(PyObject* function, PyObject* args, PyObject* keywords) {
  endings.take_tail();   // what the class gives goes through torch
  if (in_transform() || all_bare_ || in_mode()) stop("tensor-class", "a tensor of a class with __torch_dispatch__ is used inside a function transform or a mode, or beside torch.autograd.grad()");
  for (const auto d : TensorTrace::kAutocastDevices)
    if (at::autocast::is_autocast_enabled(d)) stop("tensor-class", "a tensor of a class with __torch_dispatch__ is used under autocast, which is off inside");
  std::vector<PyTypeObject*> classes;
  const auto of = [&](PyObject* o) { return values.of_fake(o); };
  find_classes(args, of, classes);
  find_classes(keywords, of, classes);
  if (classes.empty()) stop("tensor-class", "torch asks __torch_dispatch__ of a tensor that capture does not know");
  std::vector<Value*> types;
  for (PyTypeObject* t : classes) types.push_back(values.wrap_constant_object(reinterpret_cast<PyObject*>(t)));
  // As the call of torch was entered: here torch has switched off everything above __torch_dispatch__, the recorder among it. Autograd is above it as well: nothing that
  // the class computes has a history.
  const c10::impl::ForceDispatchKeyGuard keys({c10::DispatchKeySet(c10::DispatchKeySet::RAW, shell_keys_.first), c10::DispatchKeySet(c10::DispatchKeySet::RAW, shell_keys_.second)});
  const bool was_bare = leaves.swap_bare(false);
  struct Bare { Leaves& l; bool was; ~Bare() { l.swap_bare(was); } } const bare{leaves, was_bare};
  const ShellCall again(*this);
  for (PyTypeObject* t : classes) {
    Value* klass = values.wrap_constant_object(reinterpret_cast<PyObject*>(t));
    Value* method = attributes.getattr(klass, dispatch_name());
    if (!method) return nullptr;
    Value* r = calls.call(method, {values.wrap_constant_object(function), values.make_tuple(types), leaves.from_result(args), leaves.from_result(keywords)});
    if (!r) return nullptr;
    if (values.is_constant(r, Py_NotImplemented)) continue;
    refuse_history(r);
    PyObject* given = leaves.to_python(r);
    // torch makes a view of what an operator that gives views returns, which in eager has no history here. The recorder knows the copy by its storage.
    if (r->kind == Kind::tensor && !r->real && !is_shell(r) && unwrap_tensor(given).is_view()) {
      const auto& impl = unwrap_tensor(given).getIntrusivePtr();
      PyObject* copy = wrap_tensor(at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(), /*allow_tensor_metadata_change=*/true)));
      Py_DECREF(given);
      return copy;
    }
    return given;
  }
  stop("tensor-class", std::string(classes.front()->tp_name) + ".__torch_dispatch__ returns NotImplemented");
}

// Autograd is off inside __torch_dispatch__, and on in the graph.
void TorchCalls::refuse_history(Value* v, int depth) {
  values.force(v);
  if (v->kind == Kind::tensor) {
    const at::Tensor& fake = unwrap_tensor(body<Tensor>(v).fake);
    if (!is_shell(fake) && !v->real && fake.requires_grad() && !fake.is_leaf()) stop("tensor-class", "__torch_dispatch__ computes with tensors that require grad");
    if (is_shell(fake) && !v->real && depth < 4)
      if (Value* d = body<Tensor>(v).attributes)
        for (PyObject* k : mappings.keys_of(d)) refuse_history(mappings.dict_get(d, k), depth + 1);
  } else if ((v->kind == Kind::tuple || v->kind == Kind::list) && depth < 4) {
    for (Value* i : values.items(v)) refuse_history(i, depth + 1);
  }
}

void TorchCalls::refuse_gradients(PyObject* result) {
  if (met_shells_ && c10::GradMode::is_enabled() && any_requires_grad(result)) {
    const auto computed = [](PyObject* o, const auto& self, int depth) -> bool {
      if (is_tensor_object(o)) return unwrap_tensor(o).requires_grad() && !unwrap_tensor(o).is_leaf();
      if (depth < 3 && (PyTuple_Check(o) || PyList_Check(o)))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) if (self(PySequence_Fast_GET_ITEM(o, i), self, depth + 1)) return true;
      return false;
    };
    if (computed(result, computed, 0)) stop("tensor-class", "gradients flow through a tensor of a class with __torch_dispatch__", "compute under torch.no_grad(), or let the class take part in no gradient");
  }
}

}  // namespace cutaway::capture
