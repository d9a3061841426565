// The one place of these folders that knows how torch keeps a tensor in a Python object; torch's Python headers are slow to compile.
#pragma once
#include <Python.h>

#include <string>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>

#include "compiler/guards/global_state.h"
#include "compiler/guards/guard.h"
#include "compiler/guards/source.h"

namespace cutaway::guards {

/// A torch.Tensor or an instance of a subclass.
bool is_tensor(PyObject*) noexcept;
const at::Tensor& unwrap_tensor(PyObject*) noexcept;
/// New reference to the tensor's Python object. Throws what torch throws.
PyObject* wrap_tensor(const at::Tensor&);
/// Exceptions of torch and of C++ as the Python exception that torch would raise; call it in a catch block, with the GIL.
void set_python_error();

/// Torch's warnings become Python's while one lives: they are collected and issued by end(), with the GIL.
class WarningScope {
 public:
  WarningScope();
  ~WarningScope();
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;
  /// False with a Python exception set when a filter turned a warning into one.
  bool end();

 private:
  alignas(8) unsigned char room_[128];
  bool open_ = true;
};

/// Something is called with the gradient of a leaf, or when that is stored: hooks of Python's or of C++ (DistributedDataParallel has some).
bool has_gradient_hooks(const at::Tensor&) noexcept;
/// A number for what the class torch.Tensor has now: the same one whenever it has the same.
uint32_t number_tensor_class() noexcept;
/// The torch function mode at this position of the stack.
GlobalState::Mode describe_function_mode(int64_t position);
/// Whether the object is a tensor as the spec says.
bool matches(const TensorSpec&, PyObject*) noexcept;
/// What differs, as "`x.shape[0]` was 2, is 3"; `dim` is set when that is a size. Empty when nothing does.
std::string difference(const TensorSpec&, PyObject*, const std::string& name, int* dim);

/// One step of a source. Borrowed unless `owned` is set; null when the way does not exist. Sets no exception.
PyObject* read_step(SourceKind, PyObject* key, int64_t index, PyObject* base, const FrameView&, bool& owned);

/// C's getters of a tensor ask __torch_function__ of its class and of modes, which are the program's: neither guards nor capture run any of that.
struct WithoutTorchFunction {
  explicit WithoutTorchFunction(PyObject* o) : is_on(is_tensor(o)), before(at::impl::PythonTorchFunctionTLS::get_disabled_state()) {
    if (is_on) at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  ~WithoutTorchFunction() { if (is_on) at::impl::PythonTorchFunctionTLS::set_disabled_state(before); }
  WithoutTorchFunction(const WithoutTorchFunction&) = delete;
  WithoutTorchFunction& operator=(const WithoutTorchFunction&) = delete;
  const bool is_on;
  const at::impl::TorchFunctionDisabledState before;
};

}  // namespace cutaway::guards
