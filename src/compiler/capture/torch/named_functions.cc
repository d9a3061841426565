// Functions of Python that a graph calls by name, on tensors: torch.autograd.Function.apply, hooks on tensors, backward hooks of modules. What is not a tensor among the
// arguments is fixed when the frame is captured. An fx graph calls the function itself; C++ does through cutaway::call_named.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/real_errors.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/marks.h"

namespace cutaway::capture {
namespace {

const at::Tensor& fake_of(Value* v) { return unwrap_tensor(body<Tensor>(v).fake); }

}  // namespace

// A tuple of the arguments with PLACE where tensors stand; null when one is neither a tensor nor constant.
PyObject* TorchCalls::template_of(const std::vector<Value*>& args, std::vector<Value*>& tensors) {
  static PyObject* const place = polyfill_named("PLACE");
  PyObject* form = values.keep(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  for (size_t i = 0; i < args.size(); ++i) {
    PyObject* item = place;
    if (values.kind(args[i]) == Kind::tensor) tensors.push_back(args[i]);
    else item = values.as_constant(args[i]);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(form, static_cast<Py_ssize_t>(i), Py_NewRef(item));
  }
  return form;
}

// The object is the function's in every graph that calls it.
std::string Leaves::name_callable(std::string name, PyObject* o, PyObject* key) {
  hold_callable(guards::ObjectRef::borrow(o));
  return frames::name_callable(std::move(name), o, key);
}

std::vector<Value*> TorchCalls::call_named(const std::string& name, PyObject* callable, const std::vector<Value*>& given, const std::vector<at::Tensor>& like, const std::vector<bool>& grad) {
  has_named_ = true;
  auto& recorder = tensors.recorder();
  real_errors.note_block();
  const std::string known_as = leaves.name_callable(name, callable);
  std::vector<ir::Argument> arguments;
  std::vector<at::Tensor> used;
  for (Value* v : given) {
    arguments.push_back(recorder.argument(fake_of(v)));
    used.push_back(fake_of(v));
  }
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::call_named", "").typed<std::vector<at::Tensor>(std::string_view, at::TensorList)>();
  return finish_results(known_as, std::move(arguments), [&] { op.call(known_as, used); }, like, grad, used);
}

PyObject* TorchCalls::fake_like(PyObject* size, PyObject* stride, PyObject* dtype) {
  static PyObject* const make = find_member("torch", "empty_strided");
  auto& recorder = tensors.recorder();
  recorder.begin_call("fake", {}, {}, {});
  PyObject* words = values.keep(Py_BuildValue("{s:O}", "dtype", dtype));
  PyObject* fake = PyObject_Call(make, values.keep(Py_BuildValue("(OO)", size, stride)), words);
  recorder.cancel_call();
  if (!fake) throw std::runtime_error("a fake tensor cannot be made");
  return values.keep(fake);
}

Value* TorchCalls::apply_function(const std::string& shown, Value* klass, const Args& args) {
  static PyObject* const interpreted = polyfill_named("trace_function");
  static PyObject* const make = polyfill_named("applies_function");
  const std::vector<Value*> given(args.positional + 1, args.positional + args.count);
  std::vector<Value*> used;
  PyObject* form = template_of(given, used);
  if (!form) stop("autograd-function", shown + " is called with something that is neither a tensor nor a constant");
  auto& recorder = tensors.recorder();
  const size_t before = effects.outside_count();
  recorder.begin_call("forward", {}, {}, {});
  Value* pair = calls.call_python(values.force(values.wrap_constant_object(interpreted)), args);
  const bool has_effects = recorder.call_has_effects();
  recorder.cancel_call();
  if (!pair) return nullptr;
  if (effects.outside_count() != before || has_effects) stop("autograd-function", shown + " does more than compute its result");
  Value* result = values.force(values.items(values.force(pair)).at(0));
  const std::vector<Value*> without = values.items(values.force(values.items(pair).at(1)));
  std::vector<Value*> flat;
  if (result->kind != Kind::tensor && (result->kind != Kind::tuple || result->type != &PyTuple_Type)) stop("autograd-function", shown + " returns something that is not a tensor");
  for (Value* v : result->kind == Kind::tensor ? std::vector<Value*>{result} : values.items(result)) {
    if (values.kind(v) == Kind::tensor) flat.push_back(v);
    else if (!values.as_constant(v)) stop("autograd-function", shown + " returns something that is neither a tensor nor a constant");
  }
  std::vector<at::Tensor> like;
  std::vector<bool> grad;
  for (Value* v : flat) {
    const at::Tensor& t = fake_of(v);
    like.push_back(t);
    grad.push_back((at::isFloatingType(t.scalar_type()) || at::isComplexType(t.scalar_type())) && std::find(without.begin(), without.end(), v) == without.end());
  }
  PyObject* callable = PyObject_CallFunctionObjArgs(make, klass->real, form, nullptr);
  if (!callable) throw std::runtime_error(shown + " cannot be called by name");
  values.keep(callable);
  if (options.runs_python) require_pure_function(shown, klass, args, pair);
  const std::vector<Value*> made = call_named(std::string(reinterpret_cast<PyTypeObject*>(klass->real)->tp_name) + ".apply", callable, used, like, grad);
  if (result->kind == Kind::tensor) return made.front();
  std::vector<Value*> all;   // what is no tensor is the same each time
  size_t next = 0;
  for (Value* v : values.items(result)) all.push_back(v->kind == Kind::tensor ? made[next++] : v);
  return values.make_tuple(std::move(all));
}

// An attribute of ctx that shares its memory with an argument, a result or a tensor from outside.
bool TorchCalls::keeps_other_tensors(Value* ctx, const std::vector<Value*>& given, Value* results) {
  std::unordered_set<const c10::StorageImpl*> shared;
  const auto storage = [](Value* v) -> const c10::StorageImpl* { return fake_of(v).has_storage() ? fake_of(v).storage().unsafeGetStorageImpl() : nullptr; };
  const auto add = [&](Value* v) { if (values.kind(v) == Kind::tensor) shared.insert(storage(v)); };
  for (Value* v : given) add(v);
  for (Value* v : values.kind(results) == Kind::tuple ? values.items(results) : std::vector<Value*>{results}) add(v);
  for (Value* v : tensors.inputs()) add(v);
  Value* kept = attributes.instance_dict(ctx);
  for (PyObject* name : mappings.keys_of(kept)) {
    if (PyUnicode_CompareWithASCIIString(name, "saved_tensors") == 0 || PyUnicode_CompareWithASCIIString(name, "without_gradient") == 0) continue;
    Value* v = values.force(mappings.dict_get(kept, name));
    if (v->kind == Kind::tensor ? shared.contains(storage(v)) : leaves.contains_tensor(v)) return true;
  }
  return false;
}

void TorchCalls::require_pure_backward(const std::string& shown, std::vector<Value*> call, const std::vector<Value*>& given, Value* ctx, Value* results) {
  if (keeps_other_tensors(ctx, given, results))
    stop("autograd-function", shown + " keeps a tensor that others may write to, past save_for_backward: a backend that differentiates the graph would save it as it is");
  Value* f = call.front();
  call.erase(call.begin());
  for (Value* v : values.kind(results) == Kind::tuple ? values.items(results) : std::vector<Value*>{results}) call.push_back(values.kind(v) == Kind::tensor ? gradient_like(v) : values.none());
  require_pure("autograd-function", "the backward part of " + shown, f, call);
}

void TorchCalls::require_pure_function(const std::string& shown, Value* klass, const Args& args, Value* traced) {
  static PyObject* const interpreted = polyfill_named("trace_backward");
  const std::vector<Value*>& parts = values.items(traced);
  require_pure_backward(shown, {values.force(values.wrap_constant_object(interpreted)), klass, parts.at(2)}, {args.positional + 1, args.positional + args.count}, parts.at(2), parts.at(0));
}

namespace {
PyObject* python_parts_of(PyObject* op) {   // new reference
  static PyObject* const find = polyfill_named("python_parts_of");
  PyObject* found = PyObject_CallOneArg(find, op);
  if (!found) PyErr_Clear();
  return found ? found : Py_NewRef(Py_None);
}
}  // namespace

void TorchCalls::refuse_python_kernels(const std::string& name, PyObject* op, const Args& args) {
  if (effects.may_be_read_by(op)) stop("autograd-function", name + " has a kernel in Python, which may read what the captured code has written: that is put in place behind the graph");
  PyObject* found = values.keep(python_parts_of(op));
  bool needs_grad = false;
  for (size_t i = 0; i < args.count; ++i) needs_grad = needs_grad || (values.kind(args[i]) == Kind::tensor && fake_of(args[i]).requires_grad());
  if (found == Py_True || (found == Py_False && needs_grad && c10::GradMode::is_enabled()))
    stop("autograd-function", name + " has a kernel in Python that tracing would run");
}

void TorchCalls::require_pure_operator(const std::string& name, PyObject* op, const Args& args, Value* result) {
  static PyObject *const setup = polyfill_named("trace_operator"), *const interpreted = polyfill_named("trace_operator_backward");
  PyObject* found = values.keep(python_parts_of(op));
  std::vector<Value*> results{result};
  if (values.kind(result) == Kind::tuple || values.kind(result) == Kind::list) results = values.items(result);
  bool needs_grad = false;
  for (Value* v : results) needs_grad = needs_grad || (values.kind(v) == Kind::tensor && fake_of(v).requires_grad());
  if (!PyTuple_Check(found) || !needs_grad) return;
  const std::vector<Value*> given(args.positional, args.positional + args.count);
  Value* ctx = calls.call_python(values.force(values.wrap_constant_object(setup)), {values.wrap_constant_object(PyTuple_GET_ITEM(found, 0)), values.make_tuple(given), result});
  if (!ctx) stop("autograd-function", "the setup of the backward of " + name + " raises");
  require_pure_backward(name, {values.force(values.wrap_constant_object(interpreted)), values.wrap_constant_object(PyTuple_GET_ITEM(found, 1)), values.force(ctx)}, given, values.force(ctx), values.make_tuple(results));
}

std::optional<uint64_t> TorchCalls::open_since() const {
  std::optional<uint64_t> first;
  if (in_transform()) first = first_level_at_;
  if (!whole_calls_.empty()) first = std::min(first.value_or(whole_calls_.front()), whole_calls_.front());
  for (const auto& [self, site] : hook_sites_) if (site.is_open) first = std::min(first.value_or(site.entered_at), site.entered_at);
  return first;
}

// As BackwardHook calls them.
void TorchCalls::require_pure_hooks(Value* self, const std::vector<Value*>& inputs, const std::vector<Value*>& outputs) {
  const auto gradients = [&](const std::vector<Value*>& of) {
    std::vector<Value*> all;
    for (Value* v : of) all.push_back(values.kind(v) == Kind::tensor ? gradient_like(v) : values.none());
    return values.make_tuple(std::move(all));
  };
  Value *module = attributes.getattr(self, "module"), *hooks = attributes.getattr(self, "user_hooks"), *pre = attributes.getattr(self, "user_pre_hooks");
  const std::string what = "a backward hook of a module";
  for (Value* hook : std::vector(values.items(values.force(pre)))) require_pure("backward-hook", what, hook, {module, gradients(outputs)});
  for (Value* hook : std::vector(values.items(values.force(hooks)))) require_pure("backward-hook", what, hook, {module, gradients(inputs), gradients(outputs)});
}

// torch.utils.hooks.BackwardHook.setup_input_hook and setup_output_hook: each gives views of its tensors whose node in autograd's graph knows the module's hooks.
// And labels of the profiler that were made outside: captured work has none, but the object knows whether it was entered, so a graph that would end inside ends before it (open_since).
Value* TorchCalls::backward_hook(Value* f, const Args& args) {
  static PyObject* const enter_label = find_member("torch.autograd.profiler", "record_function.__enter__");
  static PyObject* const leave_label = find_member("torch.autograd.profiler", "record_function.__exit__");
  if (f->real == enter_label || f->real == leave_label) {
    const bool enters = f->real == enter_label;
    if (args.count != (enters ? 1 : 4) || args.keyword_count) stop("profiler-label", "a record_function is entered or left in another way");
    HookSite& label = hook_sites_[values.force(args[0])];
    if (label.is_open == enters) stop("profiler-label", enters ? "a record_function is entered twice" : "a record_function is left that was entered before the graph");
    label.is_open = enters;
    if (enters) label.entered_at = frame_stack.step_now();
    return enters ? args[0] : values.none();
  }
  static PyObject* const make = polyfill_named("ModuleHooks");
  static PyObject* const setup_input = [] {
    PyObject* m = PyImport_ImportModule("torch.utils.hooks");
    PyObject* c = PyObject_GetAttrString(m, "BackwardHook");
    return PyObject_GetAttrString(c, "setup_input_hook");
  }();
  const bool is_input = f->real == setup_input;
  const auto refuse = [&](const std::string& why) { stop("backward-hook", "a module with a backward hook is called, and " + why); };
  if (args.count != 2 || args.keyword_count) refuse("its hooks are set up in another way");
  Value *self = values.force(args[0]), *given = values.force(args[1]);
  const bool is_tuple = given->kind == Kind::tuple && given->type == &PyTuple_Type;
  if (!is_tuple && (is_input || given->kind != Kind::tensor)) refuse("it takes or returns something that is neither a tensor nor a tuple");
  const std::vector<Value*> all = is_tuple ? values.items(given) : std::vector<Value*>{given};
  bool any = false;
  for (Value* v : all) any = any || (values.kind(v) == Kind::tensor && fake_of(v).requires_grad());
  if (!any || !c10::GradMode::is_enabled()) return calls.call_python(f, args);   // nothing to hook
  if (is_transformed(args)) refuse("a transform or torch.autograd.grad is around it");
  // The graph would take numbers for handles before the program's own are made, which come first in eager.
  if (class_data.has_handles()) refuse("the captured code registers hooks as well");
  HookSite& site = hook_sites_[self];
  Value* input_count = nullptr;   // of a module none of whose inputs requires grad: its hooks are called with its outputs' gradients
  if (!is_input && !site.object) {
    input_count = attributes.getattr(self, "n_inputs");
    if (!input_count) return nullptr;
    if (!values.as_constant(input_count)) refuse("the number of its inputs is not known");
    Value* hooked = attributes.getattr(self, "input_tensors_index");
    if (!hooked) return nullptr;
    if (values.force(hooked) != values.none()) refuse("the hooks of its inputs were set up before the graph");
  }
  if (is_input || input_count) {
    // The very objects: eager calls the hooks of the moment at which the module was called.
    const auto real = [&](Value* v) -> PyObject* {
      values.force(v);
      if (!v->real || !v->source) refuse("its hooks were created by the compiled function");
      guards.add(v->source, GuardKind::id, v->real);
      return v->real;
    };
    Value *module = attributes.getattr(self, "module"), *hooks = attributes.getattr(self, "user_hooks"), *pre = attributes.getattr(self, "user_pre_hooks");
    if (!module || !hooks || !pre) return nullptr;
    const auto list = [&](Value* v) {
      PyObject* l = values.keep(PyList_New(0));
      if (values.kind(v) != Kind::list) refuse("its hooks are not a list");
      for (Value* i : values.items(v)) PyList_Append(l, real(i));
      return l;
    };
    PyObject* made = PyObject_CallFunctionObjArgs(make, real(module), list(hooks), list(pre), nullptr);
    if (!made) throw std::runtime_error("hooks of a module cannot be kept");
    site = {values.keep(made), frame_stack.step_now(), false, is_input ? all : std::vector<Value*>(input_count ? static_cast<size_t>(std::max(PyLong_AsLong(values.as_constant(input_count)), 0L)) : 0, values.none())};
  }
  if (!is_input && options.runs_python) require_pure_hooks(self, site.inputs, all);
  site.is_open = is_input;
  std::vector<Value*> tensors;
  PyObject* form = template_of(all, tensors);
  if (!form) refuse("it is given or gives something that is neither a tensor nor constant");
  PyObject* callable = PyObject_CallMethod(site.object, is_input ? "enter" : "leave", "OOO", form, is_tuple ? Py_True : Py_False, input_count ? values.as_constant(input_count) : Py_None);
  if (!callable) throw std::runtime_error("hooks of a module cannot be called by name");
  values.keep(callable);
  std::vector<at::Tensor> like;
  std::vector<bool> grad;
  for (Value* v : tensors) {
    like.push_back(fake_of(v));
    grad.push_back(fake_of(v).requires_grad());
  }
  const std::vector<Value*> made = call_named(is_input ? "cutaway.enter_module" : "cutaway.leave_module", callable, tensors, like, grad);
  std::vector<Value*> result = all;
  size_t next = 0;
  for (Value*& v : result) if (v->kind == Kind::tensor) v = made[next++];
  return is_tuple ? values.make_tuple(std::move(result)) : result.front();
}

}  // namespace cutaway::capture
