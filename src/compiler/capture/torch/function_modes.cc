// Torch function modes that the program enters. A mode of the trace is not on torch's own stack: before a call of torch's runs, its __torch_function__ is
// interpreted. What it is given is what eager would give: torch is asked by a mode that only looks.
#include <ATen/PythonTorchFunctionTLS.h>

#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/protocols/calls.h"
#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/torch/operator_calls.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {
namespace {

PyObject* probe() {
  static PyObject* const f = polyfill_named("probe_mode");
  return f;
}

}  // namespace

bool TorchCalls::call_mode_stack(const std::string& name, const Args& args, Value** result) {
  const std::string last = name.substr(name.rfind('.') + 1);
  if (last == "_push_on_torch_function_stack" && args.count == 1) {
    if (in_transform() || all_bare_) return false;
    values.force(args[0]);
    modes_.push_back(args[0]);
    *result = values.none();
    return true;
  }
  if (last == "_pop_torch_function_stack" && !modes_.empty()) {
    *result = modes_.back();
    modes_.pop_back();
    return true;
  }
  if (last == "_is_torch_function_enabled" && !args.count) { *result = values.boolean(!is_overriding_off()); return true; }
  if (last == "_is_torch_function_all_disabled" && !args.count) { *result = values.boolean(is_all_off()); return true; }
  if (last == "_is_torch_function_mode_enabled" && !args.count) {   // a default device is one
    *result = values.boolean(!is_all_off() && (in_mode() || at::impl::PythonTorchFunctionTLS::stack_len() > 0));
    return true;
  }
  if (last == "_len_torch_function_stack" && !modes_.empty()) stop("function-mode", "the number of torch function modes is asked for inside one");
  return false;
}

// False: a mode would not be asked.
bool TorchCalls::call_by_mode(PyObject* callable, PyObject* positional, PyObject* keywords, const Args& args, Value** result) {
  if (modes_.empty()) return false;
  auto& recorder = tensors.recorder();
  recorder.begin_call("probe", {}, {}, {});
  PyObject* given = PyObject_CallFunctionObjArgs(probe(), callable, positional, keywords ? keywords : Py_None, nullptr);
  recorder.cancel_call();
  if (!given) {   // it raises before a mode would be asked, or there is none to ask: the call itself will tell
    PyErr_Clear();
    return false;
  }
  values.keep(given);
  if (given == Py_None) return false;
  if (PyFunction_Check(callable) && PyTuple_GET_ITEM(given, 0) != callable) {   // Python of torch's that asks for nothing itself; what it calls does
    *result = calls.call_python(values.force(values.wrap_constant_object(callable)), args);
    return true;
  }
  Value* mode = modes_.back();
  Value* function = values.wrap_constant_object(PyTuple_GET_ITEM(given, 0));
  std::vector<Value*> types;
  PyObject* classes = values.keep(PySequence_Tuple(PyTuple_GET_ITEM(given, 1)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); ++i) types.push_back(values.wrap_constant_object(PyTuple_GET_ITEM(classes, i)));
  std::vector<Value*> parts{function, values.make_tuple(std::move(types))};
  for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(given); ++i) parts.push_back(leaves.from_result(PyTuple_GET_ITEM(given, i)));   // arguments, and keywords where there are any
  modes_.pop_back();   // what it calls is not for it
  struct Back { std::vector<Value*>& modes; Value* mode; ~Back() { modes.push_back(mode); } } const back{modes_, mode};
  Value* method = attributes.getattr(mode, names().__torch_function__);
  *result = method ? calls.call(method, Args(parts)) : nullptr;
  if (!*result && is_operator_of_python(callable) && exceptions.raised() && PyType_IsSubtype(exceptions.raised()->type, reinterpret_cast<PyTypeObject*>(PyExc_TypeError)))
    stop("function-mode", "a TorchFunctionMode raises TypeError for an operator");
  if (*result && values.is_constant(*result, Py_NotImplemented)) stop("function-mode", "a TorchFunctionMode returns NotImplemented");
  return true;
}

}  // namespace cutaway::capture
