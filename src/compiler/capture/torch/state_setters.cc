// Setters of switches that belong to the process (torch.backends, the default dtype, deterministic mode): they act now, so that what follows is traced under
// them, and the graph has an operator that does the same. The trace puts them back; a run that fails does, too.
#include "core/exec/process_state.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "compiler/capture/effects/plan_builder.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/frames/stance.h"

namespace cutaway::capture {

bool TorchCalls::call_setter(const std::string& name, PyObject* callable, PyObject* positional, PyObject* keywords, const Args& args, Value** result) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const int number = exec::switch_set_by(last);
  if (number < 0) return false;
  if (!name.starts_with("torch._C.") || in_transform()) t_.stop("torch-state", name + " changes state of torch inside a function transform");
  *result = nullptr;
  auto& recorder = t_.tensors().recorder();
  std::vector<ir::Argument> arguments;
  std::vector<std::pair<std::string, ir::Argument>> named;
  for (size_t i = 0; i < args.count; ++i) arguments.push_back(t_.to_argument(args[i]));
  for (size_t i = 0; i < args.keyword_count; ++i) named.emplace_back(PyUnicode_AsUTF8(args.keywords[i].first), t_.to_argument(args.keywords[i].second));
  PyObject* r = PyObject_Call(callable, positional, keywords);
  if (!r) {
    t_.raise_python();   // it was called for real
    return true;
  }
  t_.keep(r);
  recorder.begin_call(name, std::move(arguments), std::move(named), t_.location());
  static const auto set = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::set_switch", "").typed<void(std::string_view, int64_t)>();
  set.call(last, exec::switch_now(number));
  recorder.end_call({}, {});
  ++t_.effect_nodes;
  sets_switches = true;
  *result = t_.none();
  return true;
}

bool TorchCalls::breaks_raise() {
  PyObject* home = frames::break_switch_home();
  const auto met = home ? t_.by_object_.find(home) : t_.by_object_.end();
  if (met == t_.by_object_.end()) return frames::breaks_raise_now();
  Value* v = t_.dict_get(t_.force(met->second), t_.keep(PyUnicode_InternFromString(frames::kBreakSwitch)));
  return v && t_.as_constant(v) == Py_True;
}

// What goes on behind the graph finds the switches as the program left them, whatever the backend made of the operators.
void PlanBuilder::switch_effects() {
  for (auto& [cell, contents] : trace_.torch_calls().hook_cells)
    if (body<Cell>(cell).contents != contents)
      throw frames::Skip{{.id = "tensor-hook", .what = "a variable that a hook on a tensor uses is assigned afterwards", .stack = trace_.user_stack()}};
  plan_.runs_without_overriding = trace_.torch_calls().has_subclasses();
  if (plan_.runs_without_overriding && trace_.torch_calls().has_named)
    throw frames::Skip{{.id = "tensor-class", .what = "the graph calls Python functions beside tensors of a subclass of Tensor", .stack = trace_.user_stack()}};
  const exec::SwitchState& start = trace_.tensors().switches_at_start();
  plan_.restore_switches = trace_.torch_calls().sets_switches;
  if (!plan_.restore_switches) return;
  for (int i = 0; i < start.size(); ++i) {
    const int64_t now = exec::switch_now(i);
    if (now == start[i]) continue;
    const std::string setter = exec::setter_of(i);
    PyObject* value = setter == "_set_default_dtype" ? trace_.keep(dtype_object(static_cast<int>(now))) : now ? Py_True : Py_False;
    if (now > 1 && setter == "_set_deterministic_algorithms") throw frames::Skip{{.id = "mode-left-open", .what = "deterministic mode is left on with warn_only=True", .stack = trace_.user_stack()}};
    PyObject* module = trace_.keep(PyImport_ImportModule("torch._C"));
    PyObject* function = module ? trace_.keep(PyObject_GetAttrString(module, setter.c_str())) : nullptr;
    if (!function) throw std::runtime_error("torch._C has no " + setter);
    frames::Effect e;
    e.kind = frames::Effect::Kind::call;
    e.target = constant(function);
    e.parts = {constant(value)};
    plan_.effects.push_back(std::move(e));
  }
}

}  // namespace cutaway::capture
