// cutaway::call_named in Python: a function that a graph calls by its name (marks.h), on tensors. Graphs run without the GIL.
#include <torch/csrc/Exceptions.h>

#include "compiler/bytecode/object_ref.h"
#include "compiler/frames/marks.h"
#include "compiler/guards/tensor_object.h"
#include "core/exec/control_flow.h"

namespace cutaway::frames {
namespace {

using bytecode::ObjectRef;

struct WithGil {
  PyGILState_STATE state = PyGILState_Ensure();
  ~WithGil() { PyGILState_Release(state); }
};

[[noreturn]] void raise_python() {
  python_error e;
  e.persist();
  throw e;   // NOLINT: torch's own type, which its translation knows
}

std::vector<at::Tensor> call_by_name(std::string_view name, at::TensorList args) {
  const WithGil held;
  PyObject* function = named_callable(std::string(name));
  TORCH_CHECK(function, "cutaway::call_named: there is no function ", name, " in this process");
  ObjectRef tuple = ObjectRef::steal(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  if (!tuple) raise_python();
  for (size_t i = 0; i < args.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), guards::wrap_tensor(args[i]));
  ObjectRef result = ObjectRef::steal(PyObject_Call(function, tuple.get(), nullptr));
  if (!result) raise_python();
  std::vector<at::Tensor> out;
  if (result.get() == Py_None) return out;
  TORCH_CHECK(PyTuple_Check(result.get()), "cutaway::call_named: ", name, " gave something that is not a tuple of tensors");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i) {
    PyObject* t = PyTuple_GET_ITEM(result.get(), i);
    TORCH_CHECK(guards::is_tensor(t), "cutaway::call_named: ", name, " gave something that is not a tuple of tensors");
    out.push_back(guards::unwrap_tensor(t));
  }
  return out;
}

[[maybe_unused]] const bool registered = (exec::set_named_call(call_by_name), true);

}  // namespace
}  // namespace cutaway::frames
