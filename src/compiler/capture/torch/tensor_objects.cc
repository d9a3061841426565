#include <ATen/ops/item_ops.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/types.h"
#include "compiler/guards/tensor_object.h"
#include "compiler/guards/value_object.h"
#include "core/tensor/convert.h"

namespace cutaway::capture {

bool is_tensor_object(PyObject* o) { return THPVariableClass && PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(THPVariableClass)); }
const at::Tensor& unwrap_tensor(PyObject* o) { return THPVariable_Unpack(o); }
PyObject* wrap_tensor(const at::Tensor& t) { return THPVariable_Wrap(t); }
PyObject* dtype_object(int scalar_type) { return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<at::ScalarType>(scalar_type)))); }

bool is_symbolic_object(PyObject* o) { return torch::is_symint(py::handle(o)) || torch::is_symfloat(py::handle(o)) || torch::is_symbool(py::handle(o)); }
c10::IValue unwrap_symbolic(PyObject* o) {
  const py::handle h(o);
  const py::object node = h.attr("node");
  if (!py::isinstance<c10::SymNodeImpl>(node)) return {};   // one of torch's own
  const c10::SymNode symbolic = node.cast<c10::SymNode>();
  if (torch::is_symint(h)) return c10::SymInt(symbolic);
  if (torch::is_symfloat(h)) return c10::SymFloat(symbolic);
  return c10::SymBool(symbolic);
}
PyObject* wrap_symbolic(const c10::IValue& v) {
  // By hand: for floats and bools torch's own conversion knows nodes of Python alone.
  const py::handle type = v.isSymInt() ? torch::get_symint_class() : v.isSymFloat() ? torch::get_symfloat_class() : torch::get_symbool_class();
  const c10::SymNode node = v.isSymInt() ? v.toSymInt().toSymNode() : v.isSymFloat() ? v.toSymFloat().toSymNodeImpl() : v.toSymBool().toSymNodeImpl();
  return type(py::cast(node)).release().ptr();
}
PyObject* item_object(const at::Tensor& t) {
  try {
    const c10::IValue number = at::_ops::item::call(t);
    return number.isSymInt() || number.isSymFloat() || number.isSymBool() ? wrap_symbolic(number) : guards::from_ivalue(number).release();
  } catch (...) {
    guards::set_python_error();
    return nullptr;
  }
}
// torch's bindings make a tensor of a number where an operator takes one, and leave the number on its object.
c10::IValue wrapped_symbolic(const at::Tensor& t) {
  const py::gil_scoped_acquire gil;
  static PyObject* const name = PyUnicode_InternFromString("_wrapped_number");
  PyObject* object = THPVariable_Wrap(t);
  PyObject* number = object ? PyObject_GetAttr(object, name) : nullptr;
  if (!number) PyErr_Clear();
  const c10::IValue value = number && is_symbolic_object(number) ? unwrap_symbolic(number) : c10::IValue();
  Py_XDECREF(number);
  Py_XDECREF(object);
  return value;
}

std::optional<ir::Argument> literal_of(PyObject* o) {
  if (o == Py_None) return ir::Argument(ir::None{});
  if (o == Py_Ellipsis) return ir::Argument(ir::Ellipsis{});
  if (PyBool_Check(o)) return ir::Argument(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) return std::nullopt;
    return ir::Argument(static_cast<int64_t>(v));
  }
  if (PyFloat_Check(o)) return ir::Argument(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) return ir::Argument(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (PyUnicode_Check(o)) {
    const char* text = PyUnicode_AsUTF8(o);
    if (!text) { PyErr_Clear(); return std::nullopt; }
    return ir::Argument(std::string(text));
  }
  if (THPDtype_Check(o)) return ir::Argument(tensor::from_aten(reinterpret_cast<THPDtype*>(o)->scalar_type));
  if (THPDevice_Check(o)) return ir::Argument(tensor::from_aten(reinterpret_cast<THPDevice*>(o)->device));
  if (THPLayout_Check(o)) return ir::Argument(tensor::from_aten(reinterpret_cast<THPLayout*>(o)->layout));
  if (THPMemoryFormat_Check(o)) return ir::Argument(tensor::from_aten(reinterpret_cast<THPMemoryFormat*>(o)->memory_format));
  auto sequence = [&](Py_ssize_t n, auto&& item) -> std::optional<std::vector<ir::Argument>> {
    std::vector<ir::Argument> all;
    for (Py_ssize_t i = 0; i < n; ++i) {
      auto a = literal_of(item(i));
      if (!a) return std::nullopt;
      all.push_back(std::move(*a));
    }
    return all;
  };
  if (PyTuple_Check(o)) {
    auto all = sequence(PyTuple_GET_SIZE(o), [&](Py_ssize_t i) { return PyTuple_GET_ITEM(o, i); });
    if (all) return ir::Argument(ir::Tuple{std::move(*all)});
    return std::nullopt;
  }
  if (PyList_Check(o)) {
    auto all = sequence(PyList_GET_SIZE(o), [&](Py_ssize_t i) { return PyList_GET_ITEM(o, i); });
    if (all) return ir::Argument(ir::List{std::move(*all)});
    return std::nullopt;
  }
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    auto a = literal_of(s->start), b = literal_of(s->stop), c = literal_of(s->step);
    if (a && b && c) return ir::Argument(ir::Slice{{*a, *b, *c}});
    return std::nullopt;
  }
  if (is_numpy_number(Py_TYPE(o))) {
    PyObject* number = number_of_numpy(o);
    auto a = number ? literal_of(number) : std::nullopt;
    Py_XDECREF(number);
    PyErr_Clear();
    return a;
  }
  // Types that stand for a dtype; other types, functions and modules have no form in an fx graph.
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return ir::Argument(tensor::from_aten(at::kBool));
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return ir::Argument(tensor::from_aten(at::kLong));
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return ir::Argument(tensor::from_aten(at::kDouble));
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return ir::Argument(tensor::from_aten(at::kComplexDouble));
  if (std::string_view(Py_TYPE(o)->tp_name) == "torch.tensortype") return ir::Argument(std::string(reinterpret_cast<PyTypeObject*>(o)->tp_name));   // torch.HalfTensor, which has a name instead
  return std::nullopt;
}

}  // namespace cutaway::capture
