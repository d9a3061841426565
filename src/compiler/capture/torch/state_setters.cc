// Setters of switches that belong to the process (torch.backends, the default dtype, deterministic mode): they act now, so that what follows is traced under
// them, and the graph has an operator that does the same. The trace puts them back; a run that fails does, too.
#include <ATen/core/dispatch/Dispatcher.h>

#include "compiler/capture/effects/effects.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/mappings.h"
#include "compiler/capture/values/values.h"
#include "compiler/frames/stance.h"
#include "core/exec/process_state.h"

namespace cutaway::capture {

bool TorchCalls::call_setter(const std::string& name, PyObject* callable, PyObject* positional, PyObject* keywords, const Args& args, Value** result) {
  const std::string last = name.substr(name.rfind('.') + 1);
  const int number = exec::switch_set_by(last);
  if (number < 0) return false;
  if (!name.starts_with("torch._C.") || in_transform()) stop("torch-state", name + " changes state of torch inside a function transform");
  *result = nullptr;
  auto& recorder = tensors.recorder();
  std::vector<ir::Argument> arguments;
  std::vector<std::pair<std::string, ir::Argument>> named;
  for (size_t i = 0; i < args.count; ++i) arguments.push_back(leaves.to_argument(args[i]));
  for (size_t i = 0; i < args.keyword_count; ++i) named.emplace_back(PyUnicode_AsUTF8(args.keywords[i].first), leaves.to_argument(args.keywords[i].second));
  PyObject* r = PyObject_Call(callable, positional, keywords);
  if (!r) {
    exceptions.raise_python();   // it was called for real
    return true;
  }
  values.keep(r);
  recorder.begin_call(name, std::move(arguments), std::move(named), frame_stack.location());
  static const auto set = c10::Dispatcher::singleton().findSchemaOrThrow("cutaway::set_switch", "").typed<void(std::string_view, int64_t)>();
  set.call(last, exec::switch_now(number));
  recorder.end_call({}, {});
  effects.note_effect_node();
  sets_switches_ = true;
  *result = values.none();
  return true;
}

bool TorchCalls::breaks_raise() {
  PyObject* home = frames::break_switch_home();
  Value* const met = home ? values.met(home) : nullptr;
  if (!met) return frames::breaks_raise_now();
  Value* v = mappings.dict_get(values.force(met), values.keep(PyUnicode_InternFromString(frames::kBreakSwitch)));
  return v && values.as_constant(v) == Py_True;
}

}  // namespace cutaway::capture
