// Modes of torch that the program switches: inference mode, whose context is an object of C, and the state in which a graph that ends inside
// a mode leaves torch for what goes on behind it.
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include "compiler/capture/effects/plan_builder.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"

namespace cutaway::capture {

using frames::Effect;
using guards::ObjectRef;

namespace {

PyObject* member(PyObject* of, const char* name) {
  PyObject* o = of ? PyObject_GetAttrString(of, name) : nullptr;
  if (!o) PyErr_Clear();
  return o;
}

struct InferenceMode {
  PyObject *enter, *exit, *context;
};
const InferenceMode& inference_mode() {
  static const InferenceMode m = [] {
    PyObject *type = find_member("torch", "inference_mode"), *context = find_member("torch._C", "_InferenceMode");
    return InferenceMode{member(type, "__enter__"), member(type, "__exit__"), context};
  }();
  return m;
}

// The context that torch.inference_mode keeps. Making one enters the mode, and leaving it returns to the grad mode and to the dispatch keys
// of that moment, which say whether autocast is on: one that is still open begins in the modes in which the program entered it.
PyObject* make_context(PyObject*, PyObject* const* args, Py_ssize_t count) {   // mode, is it still open, grad mode before, autocast before of each device
  const bool is_open = args[1] == Py_True;
  if (is_open) {
    c10::GradMode::set_enabled(args[2] == Py_True);
    for (Py_ssize_t i = 3; i < count; ++i) at::autocast::set_autocast_enabled(TensorTrace::kAutocastDevices[i - 3], args[i] == Py_True);
  }
  PyObject* context = PyObject_CallOneArg(inference_mode().context, args[0]);
  if (!context || is_open) return context;
  PyObject* left = PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None);
  if (!left) Py_CLEAR(context);
  Py_XDECREF(left);
  return context;
}
PyObject* context_maker() {
  static PyMethodDef method = {"inference_context", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_context)), METH_FASTCALL, nullptr};
  static PyObject* const made = PyCFunction_New(&method, nullptr);
  return made;
}

}  // namespace

// First of all recipes, in the order of entering: the mode holds for what goes on, and the graph has run.
void PlanBuilder::enter_contexts() {
  for (const auto& c : trace_.inference_contexts)
    if (c.is_open) (void)recipe(c.object);
}
frames::RecipeId PlanBuilder::inference_context(const Trace::InferenceContext& c) {
  const auto flag = [&](bool on) { return constant(on ? Py_True : Py_False); };
  std::vector<frames::RecipeId> parts = {constant(context_maker()), flag(c.mode), flag(c.is_open)};
  for (const bool is_on : c.before) parts.push_back(flag(is_on));
  const frames::RecipeId id = call(std::move(parts));
  plan_.recipes[id].acts = true;
  return id;
}

bool Trace::call_inference_mode(PyObject* function, const Args& args, Value** result) {
  const InferenceMode& m = inference_mode();
  if ((function != m.enter && function != m.exit) || !m.context || !args.count) return false;
  static PyObject* const context_name = PyUnicode_InternFromString("_inference_mode_context");
  *result = nullptr;
  if (function == m.enter) {
    Value* mode = getattr(args[0], "mode");
    if (!mode) return true;
    if (!is_constant(mode, Py_True) && !is_constant(mode, Py_False)) stop("inference-mode", "inference mode is entered with a value other than True or False");
    const bool on = mode->real == Py_True;
    Value* context = new_value(Kind::opaque, reinterpret_cast<PyTypeObject*>(m.context));
    if (!setattr(args[0], context_name, context)) return true;
    const TensorTrace::State state = TensorTrace::current_state();
    std::vector<bool> before = {state.grad};
    for (const auto& [is_on, dtype] : state.autocast) before.push_back(is_on);
    inference_contexts.push_back({context, on, true, std::move(before)});
    tensors_->enter_inference(on);
  } else {
    Value* context = getattr(args[0], context_name);
    if (!context) return true;
    InferenceContext* innermost = nullptr;
    for (auto& c : inference_contexts) if (c.is_open) innermost = &c;
    // One that was entered before the captured code is left by torch itself.
    if (!innermost || innermost->object != context) stop("inference-mode", "an inference mode is left that the compiled function has not entered last");
    innermost->is_open = false;
    tensors_->leave_inference();
  }
  *result = none_;
  return true;
}

// What goes on behind the graph finds torch as the program left it.
void PlanBuilder::mode_effects() {
  auto act = [&](PyObject* function, std::vector<frames::RecipeId> parts) {
    if (!function) throw frames::Skip{{.id = "mode-left-open", .what = "a mode of torch is entered in the graph and not left", .stack = trace_.user_stack()}};
    Effect e;
    e.kind = Effect::Kind::call;
    e.target = constant(function);
    e.parts = std::move(parts);
    plan_.effects.push_back(std::move(e));
  };
  const auto flag = [&](bool on) { return constant(on ? Py_True : Py_False); };
  const auto now = TensorTrace::current_state();
  auto start = trace_.tensors().state_at_start();
  static PyObject* const set_grad = find_member("torch._C", "_set_grad_enabled");
  if (const auto since = trace_.torch_calls().open_since()) {   // CPython enters it
    trace_.earlier_stop = since;
    act(nullptr, {});
  }
  if (trace_.torch_calls().in_mode() || TensorTrace::saved_hooks_are_disabled()) act(nullptr, {});
  bool inference = start.inference, grad = start.grad;
  const auto grad_becomes = [&](bool on) {
    if (grad != on) act(set_grad, {flag(on)});
    grad = on;
  };
  for (const auto& c : trace_.inference_contexts) {
    if (!c.is_open) continue;
    inference = c.mode;   // enter_contexts
    grad = !c.mode;
    for (size_t i = 0; i < start.autocast.size(); ++i) start.autocast[i].first = c.before[i + 1];
  }
  if (now.inference != inference) act(nullptr, {});
  grad_becomes(now.grad);
  static constexpr const char* kDevices[] = {"cpu", "cuda"};
  for (size_t i = 0; i < now.autocast.size() && i < std::size(kDevices); ++i) {
    if (now.autocast[i] == start.autocast[i]) continue;
    static PyObject* const set_enabled = find_member("torch", "set_autocast_enabled");
    static PyObject* const set_dtype = find_member("torch", "set_autocast_dtype");
    PyObject* device = trace_.keep(PyUnicode_FromString(kDevices[i]));
    if (now.autocast[i].first != start.autocast[i].first) act(set_enabled, {constant(device), flag(now.autocast[i].first)});
    if (now.autocast[i].second != start.autocast[i].second) act(set_dtype, {constant(device), constant(trace_.keep(dtype_object(now.autocast[i].second)))});
  }
  if (now.cache != start.cache) {
    static PyObject* const set_cache = find_member("torch", "set_autocast_cache_enabled");
    act(set_cache, {flag(now.cache)});
  }
  static PyObject *const up = find_member("torch", "autocast_increment_nesting"), *const down = find_member("torch", "autocast_decrement_nesting");
  for (int n = start.nesting; n < now.nesting; ++n) act(up, {});
  for (int n = start.nesting; n > now.nesting; --n) act(down, {});
  if (now.nesting < start.nesting && now.nesting == 0) {
    static PyObject* const clear = find_member("torch", "clear_autocast_cache");
    act(clear, {});
  }
}

}  // namespace cutaway::capture
