#include <cstdint>

#include "app/casters/tensor_caster.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>

#include "compiler/backends/check.h"
#include "compiler/guards/tensor_object.h"
#include "compiler/guards/value_object.h"

namespace nb = nanobind;

namespace cutaway::casters {

bool is_tensor(PyObject* o) noexcept { return guards::is_tensor(o); }
const at::Tensor& unwrap_tensor(PyObject* o) noexcept { return guards::unwrap_tensor(o); }
PyObject* wrap_tensor(const at::Tensor& t) noexcept { return guards::wrap_tensor(t); }

nb::object wrap_dtype(at::ScalarType t) { return nb::borrow(reinterpret_cast<PyObject*>(torch::getTHPDtype(t))); }

void translate_torch_exceptions() {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(p);
    } catch (const torch::PyTorchError&) {
      torch::translate_exception_to_python(p);
    } catch (python_error& e) {
      e.restore();
    }
  });
}

namespace {
/// As torch raises exceptions of its own classes: it passes through autograd's threads as it is.
struct CheckError final : torch::PyTorchError {
  static PyObject* type;
  explicit CheckError(const std::string& text) : PyTorchError(text) {}
  PyObject* python_type() override { return type; }
};
PyObject* CheckError::type = nullptr;
}  // namespace

void raise_checks_as(nb::object type) {
  CheckError::type = type.release().ptr();   // as long as the process
  backends::set_check_failure([](const std::string& text) { throw CheckError(text); });
}

void raise_with_note(std::exception_ptr p, const std::string& note) {
  try {
    std::rethrow_exception(p);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (python_error& e) {
    e.restore();
  } catch (...) {
    torch::translate_exception_to_python(p);
  }
  if (PyErr_Occurred()) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    nb::object added = nb::steal(value ? PyObject_CallMethod(value, "add_note", "s", note.c_str()) : nullptr);
    if (!added.is_valid()) PyErr_Clear();   // a class may forbid notes; the exception matters more
    PyErr_Restore(type, value, trace);
    throw nb::python_error();
  }
  std::rethrow_exception(p);
}

std::vector<c10::IValue> to_ivalues(nb::handle sequence) {
  std::vector<c10::IValue> values;
  values.reserve(nb::len(sequence));
  for (nb::handle h : sequence) values.push_back(to_ivalue(h));
  return values;
}

c10::IValue to_ivalue(nb::handle h) {
  c10::IValue v;
  if (!guards::to_ivalue(h.ptr(), v)) throw nb::python_error();
  return v;
}

nb::object from_ivalue(const c10::IValue& v) {
  bytecode::ObjectRef o = guards::from_ivalue(v);
  if (!o) throw nb::python_error();
  return nb::steal(o.release());
}

void throw_through_torch(nb::python_error& e) {
  e.restore();
  python_error carried;
  carried.persist();
  throw carried;
}

nb::object take_torch_python_error(const std::exception_ptr& p) {
  try {
    std::rethrow_exception(p);
  } catch (python_error& e) {
    e.restore();
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return nb::steal(value);
  } catch (...) {
    return nb::object();
  }
}

}  // namespace cutaway::casters
