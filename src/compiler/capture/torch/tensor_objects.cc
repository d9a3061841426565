#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/types.h"
#include "core/tensor/convert.h"

namespace cutaway::capture {

bool is_tensor_object(PyObject* o) { return THPVariableClass && PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(THPVariableClass)); }
const at::Tensor& unwrap_tensor(PyObject* o) { return THPVariable_Unpack(o); }
PyObject* wrap_tensor(const at::Tensor& t) { return THPVariable_Wrap(t); }
PyObject* dtype_object(int scalar_type) { return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<at::ScalarType>(scalar_type)))); }

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
