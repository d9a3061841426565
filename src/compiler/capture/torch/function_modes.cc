// Torch function modes that the program enters. A mode of the trace is not on torch's own stack: before a call of torch's runs, its __torch_function__ is
// interpreted. What it is given is what eager would give: torch is asked by a mode that only looks.
#include <ATen/PythonTorchFunctionTLS.h>

#include "compiler/capture/torch/operator_calls.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"

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
    t_.force(args[0]);
    modes_.push_back(args[0]);
    *result = t_.none();
    return true;
  }
  if (last == "_pop_torch_function_stack" && !modes_.empty()) {
    *result = modes_.back();
    modes_.pop_back();
    return true;
  }
  if (last == "_is_torch_function_enabled" && !args.count) { *result = t_.boolean(!is_overriding_off()); return true; }
  if (last == "_is_torch_function_all_disabled" && !args.count) { *result = t_.boolean(is_all_off()); return true; }
  if (last == "_is_torch_function_mode_enabled" && !args.count) {   // a default device is one
    *result = t_.boolean(!is_all_off() && (in_mode() || at::impl::PythonTorchFunctionTLS::stack_len() > 0));
    return true;
  }
  if (last == "_len_torch_function_stack" && !modes_.empty()) t_.stop("function-mode", "the number of torch function modes is asked for inside one");
  return false;
}

// False: a mode would not be asked.
bool TorchCalls::call_by_mode(PyObject* callable, PyObject* positional, PyObject* keywords, const Args& args, Value** result) {
  if (modes_.empty()) return false;
  auto& recorder = t_.tensors().recorder();
  recorder.begin_call("probe", {}, {}, {});
  PyObject* given = PyObject_CallFunctionObjArgs(probe(), callable, positional, keywords ? keywords : Py_None, nullptr);
  recorder.cancel_call();
  if (!given) {   // it raises before a mode would be asked, or there is none to ask: the call itself will tell
    PyErr_Clear();
    return false;
  }
  t_.keep(given);
  if (given == Py_None) return false;
  if (PyFunction_Check(callable) && PyTuple_GET_ITEM(given, 0) != callable) {   // Python of torch's that asks for nothing itself; what it calls does
    *result = t_.call_python(t_.force(t_.wrap_constant_object(callable)), args);
    return true;
  }
  Value* mode = modes_.back();
  Value* function = t_.wrap_constant_object(PyTuple_GET_ITEM(given, 0));
  std::vector<Value*> types;
  PyObject* classes = t_.keep(PySequence_Tuple(PyTuple_GET_ITEM(given, 1)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); ++i) types.push_back(t_.wrap_constant_object(PyTuple_GET_ITEM(classes, i)));
  std::vector<Value*> parts{function, t_.make_tuple(std::move(types))};
  for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(given); ++i) parts.push_back(t_.from_result(PyTuple_GET_ITEM(given, i)));   // arguments, and keywords where there are any
  modes_.pop_back();   // what it calls is not for it
  struct Back { std::vector<Value*>& modes; Value* mode; ~Back() { modes.push_back(mode); } } const back{modes_, mode};
  Value* method = t_.getattr(mode, names().__torch_function__);
  *result = method ? t_.call(method, Args(parts)) : nullptr;
  if (!*result && is_operator_of_python(callable) && t_.raised() && PyType_IsSubtype(t_.raised()->type, reinterpret_cast<PyTypeObject*>(PyExc_TypeError)))
    t_.stop("function-mode", "a TorchFunctionMode raises TypeError for an operator");
  if (*result && t_.is_constant(*result, Py_NotImplemented)) t_.stop("function-mode", "a TorchFunctionMode returns NotImplemented");
  return true;
}

}  // namespace cutaway::capture
