// What goes on after the graph finds torch as the program left it: modes that are still open, and switches of the process.
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <stdexcept>

#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/plan/plan_builder.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "core/exec/process_state.h"

namespace cutaway::capture {

using frames::Effect;

namespace {

PyObject* inference_class() {
  static PyObject* const context = find_member("torch._C", "_InferenceMode");
  return context;
}

// The context that torch.inference_mode keeps. Making one enters the mode, and leaving it returns to the grad mode and to the dispatch keys
// of that moment, which say whether autocast is on: one that is still open begins in the modes in which the program entered it.
PyObject* make_context(PyObject*, PyObject* const* args, Py_ssize_t count) {   // mode, is it still open, grad mode before, autocast before of each device
  const bool is_open = args[1] == Py_True;
  if (is_open) {
    c10::GradMode::set_enabled(args[2] == Py_True);
    for (Py_ssize_t i = 3; i < count; ++i) at::autocast::set_autocast_enabled(TensorTrace::kAutocastDevices[i - 3], args[i] == Py_True);
  }
  PyObject* context = PyObject_CallOneArg(inference_class(), args[0]);
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
  for (const auto& c : leaves.inference_contexts())
    if (c.is_open) (void)recipe(c.object);
}
frames::RecipeId PlanBuilder::inference_context(const Leaves::InferenceContext& c) {
  const auto flag = [&](bool on) { return constant(on ? Py_True : Py_False); };
  std::vector<frames::RecipeId> parts = {constant(context_maker()), flag(c.mode), flag(c.is_open)};
  for (const bool is_on : c.before) parts.push_back(flag(is_on));
  const frames::RecipeId id = call(std::move(parts));
  plan_.recipes[id].acts = true;
  return id;
}

// What goes on behind the graph finds torch as the program left it.
void PlanBuilder::mode_effects() {
  auto act = [&](PyObject* function, std::vector<frames::RecipeId> parts) {
    if (!function) throw frames::Skip{{.id = "mode-left-open", .what = "a mode of torch is entered in the graph and not left", .stack = frame_stack.user_stack()}};
    Effect e;
    e.kind = Effect::Kind::call;
    e.target = constant(function);
    e.parts = std::move(parts);
    plan_.effects.push_back(std::move(e));
  };
  const auto flag = [&](bool on) { return constant(on ? Py_True : Py_False); };
  const auto now = TensorTrace::current_state();
  auto start = tensors.state_at_start();
  static PyObject* const set_grad = find_member("torch._C", "_set_grad_enabled");
  if (const auto since = torch_calls.open_since()) {   // CPython enters it
    interpreter.end_earlier(since);
    act(nullptr, {});
  }
  if (torch_calls.in_mode() || TensorTrace::saved_hooks_are_disabled()) act(nullptr, {});
  bool inference = start.inference, grad = start.grad;
  const auto grad_becomes = [&](bool on) {
    if (grad != on) act(set_grad, {flag(on)});
    grad = on;
  };
  for (const auto& c : leaves.inference_contexts()) {
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
    PyObject* device = values.keep(PyUnicode_FromString(kDevices[i]));
    if (now.autocast[i].first != start.autocast[i].first) act(set_enabled, {constant(device), flag(now.autocast[i].first)});
    if (now.autocast[i].second != start.autocast[i].second) act(set_dtype, {constant(device), constant(values.keep(dtype_object(now.autocast[i].second)))});
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

// What goes on behind the graph finds the switches as the program left them, whatever the backend made of the operators.
void PlanBuilder::switch_effects() {
  for (auto& [cell, contents] : torch_calls.hook_cells())
    if (body<Cell>(cell).contents != contents)
      throw frames::Skip{{.id = "tensor-hook", .what = "a variable that a hook on a tensor uses is assigned afterwards", .stack = frame_stack.user_stack()}};
  plan_.runs_without_overriding = torch_calls.has_subclasses();
  if (plan_.runs_without_overriding && torch_calls.calls_by_name())
    throw frames::Skip{{.id = "tensor-class", .what = "the graph calls Python functions beside tensors of a subclass of Tensor", .stack = frame_stack.user_stack()}};
  const exec::SwitchState& start = tensors.switches_at_start();
  plan_.restore_switches = torch_calls.sets_switches();
  if (!plan_.restore_switches) return;
  for (int i = 0; i < start.size(); ++i) {
    const int64_t now = exec::switch_now(i);
    if (now == start[i]) continue;
    const std::string setter = exec::setter_of(i);
    PyObject* value = setter == "_set_default_dtype" ? values.keep(dtype_object(static_cast<int>(now))) : now ? Py_True : Py_False;
    if (now > 1 && setter == "_set_deterministic_algorithms") throw frames::Skip{{.id = "mode-left-open", .what = "deterministic mode is left on with warn_only=True", .stack = frame_stack.user_stack()}};
    PyObject* module = values.keep(PyImport_ImportModule("torch._C"));
    PyObject* function = module ? values.keep(PyObject_GetAttrString(module, setter.c_str())) : nullptr;
    if (!function) throw std::runtime_error("torch._C has no " + setter);
    frames::Effect e;
    e.kind = frames::Effect::Kind::call;
    e.target = constant(function);
    e.parts = {constant(value)};
    plan_.effects.push_back(std::move(e));
  }
}

}  // namespace cutaway::capture
