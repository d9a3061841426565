#include <cstdint>

#include "app/casters/tensor_caster.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include "compiler/backends/check.h"

namespace nb = nanobind;

namespace cutaway::casters {

// By type, not by isinstance: that asks Python code of torch's metaclass, which may raise (at the recursion limit, say).
bool is_tensor(PyObject* o) noexcept { return THPVariableClass && PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(THPVariableClass)); }
const at::Tensor& unwrap_tensor(PyObject* o) noexcept { return THPVariable_Unpack(o); }
PyObject* wrap_tensor(const at::Tensor& t) noexcept { return THPVariable_Wrap(t); }

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
  PyObject* o = h.ptr();
  if (o == Py_None) return {};
  if (is_tensor(o)) return THPVariable_Unpack(o);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) throw nb::value_error("an integer argument does not fit into 64 bits");
    return static_cast<int64_t>(v);
  }
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (PyComplex_Check(o)) return c10::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
  if (PyUnicode_Check(o)) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &length);
    if (!text) throw nb::python_error();   // lone surrogates
    return std::string(text, static_cast<size_t>(length));
  }
  if (THPDtype_Check(o)) return reinterpret_cast<THPDtype*>(o)->scalar_type;
  if (THPDevice_Check(o)) return reinterpret_cast<THPDevice*>(o)->device;
  if (THPLayout_Check(o)) return reinterpret_cast<THPLayout*>(o)->layout;
  if (THPMemoryFormat_Check(o)) return reinterpret_cast<THPMemoryFormat*>(o)->memory_format;
  if (THPGenerator_Check(o)) return reinterpret_cast<THPGenerator*>(o)->cdata;
  if (PyList_Check(o) || PyTuple_Check(o)) {
    const Py_ssize_t n = PySequence_Size(o);
    std::vector<c10::IValue> items;
    items.reserve(n);
    bool tensors = n > 0, ints = n > 0, floats = n > 0, bools = n > 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
      nb::object item = nb::steal(PySequence_GetItem(o, i));
      items.push_back(to_ivalue(item));
      tensors &= items.back().isTensor();
      ints &= items.back().isInt();
      floats &= items.back().isDouble();
      bools &= items.back().isBool();
    }
    if (PyTuple_Check(o) && !ints && !tensors) return c10::ivalue::Tuple::create(std::move(items));
    if (tensors) { std::vector<at::Tensor> v; for (auto& i : items) v.push_back(i.toTensor()); return v; }
    if (ints) { std::vector<int64_t> v; for (auto& i : items) v.push_back(i.toInt()); return v; }
    if (floats) { std::vector<double> v; for (auto& i : items) v.push_back(i.toDouble()); return v; }
    if (bools) { c10::List<bool> v; for (auto& i : items) v.push_back(i.toBool()); return v; }
    c10::List<c10::IValue> list(c10::AnyType::get());
    for (auto& i : items) list.push_back(std::move(i));
    return c10::IValue(std::move(list));
  }
  throw nb::type_error((std::string("a value of type ") + Py_TYPE(o)->tp_name + " cannot be passed to an operator").c_str());
}

nb::object from_ivalue(const c10::IValue& v) {
  if (v.isNone()) return nb::none();
  if (v.isTensor()) {
    if (!v.toTensor().defined()) return nb::none();
    return nb::steal(THPVariable_Wrap(v.toTensor()));
  }
  if (v.isBool()) return nb::bool_(v.toBool());
  if (v.isInt()) return nb::int_(v.toInt());
  if (v.isDouble()) return nb::float_(v.toDouble());
  if (v.isComplexDouble()) { auto c = v.toComplexDouble(); return nb::steal(PyComplex_FromDoubles(c.real(), c.imag())); }
  if (v.isString()) return nb::str(v.toStringRef().c_str(), v.toStringRef().size());
  if (v.isDevice()) return nb::steal(THPDevice_New(v.toDevice()));
  if (v.isGenerator()) return nb::steal(THPGenerator_Wrap(v.toGenerator()));
  if (v.isTuple()) {
    const auto& e = v.toTupleRef().elements();
    nb::object t = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(e.size())));
    for (size_t i = 0; i < e.size(); ++i) PyTuple_SET_ITEM(t.ptr(), static_cast<Py_ssize_t>(i), from_ivalue(e[i]).release().ptr());
    return t;
  }
  if (v.isGenericDict()) {
    nb::dict d;
    for (const auto& item : v.toGenericDict()) d[from_ivalue(item.key())] = from_ivalue(item.value());
    return d;
  }
  if (v.isList()) {
    nb::list l;
    for (const c10::IValue& e : v.toListRef()) l.append(from_ivalue(e));
    return l;
  }
  throw nb::type_error(("an operator gave a value of kind " + v.tagKind() + ", which Python is not told about").c_str());
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
