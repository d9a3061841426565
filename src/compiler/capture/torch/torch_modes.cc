// Inference mode as the program enters and leaves it: its context is an object of C.
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

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

}  // namespace

bool Leaves::call_inference_mode(PyObject* function, const Args& args, Value** result) {
  const InferenceMode& m = inference_mode();
  if ((function != m.enter && function != m.exit) || !m.context || !args.count) return false;
  static PyObject* const context_name = PyUnicode_InternFromString("_inference_mode_context");
  *result = nullptr;
  if (function == m.enter) {
    Value* mode = attributes.getattr(args[0], "mode");
    if (!mode) return true;
    if (!values.is_constant(mode, Py_True) && !values.is_constant(mode, Py_False)) stop("inference-mode", "inference mode is entered with a value other than True or False");
    const bool on = mode->real == Py_True;
    Value* context = values.new_value(Kind::opaque, reinterpret_cast<PyTypeObject*>(m.context));
    if (!attributes.setattr(args[0], context_name, context)) return true;
    const TensorTrace::State state = TensorTrace::current_state();
    std::vector<bool> before = {state.grad};
    for (const auto& [is_on, dtype] : state.autocast) before.push_back(is_on);
    inference_contexts_.push_back({context, on, true, std::move(before)});
    tensors.enter_inference(on);
  } else {
    Value* context = attributes.getattr(args[0], context_name);
    if (!context) return true;
    InferenceContext* innermost = nullptr;
    for (auto& c : inference_contexts_) if (c.is_open) innermost = &c;
    // One that was entered before the captured code is left by torch itself.
    if (!innermost || innermost->object != context) stop("inference-mode", "an inference mode is left that the compiled function has not entered last");
    innermost->is_open = false;
    tensors.leave_inference();
  }
  *result = values.none();
  return true;
}

}  // namespace cutaway::capture
