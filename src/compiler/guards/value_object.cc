#include "compiler/guards/value_object.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/guards/tensor_object.h"

namespace cutaway::guards {
namespace {

using bytecode::ObjectRef;

// As an operator's schema has them: a list of one kind is a list of that kind, also where Python has a tuple of tensors or of integers.
bool list_to_ivalue(PyObject* o, c10::IValue& out) {
  const Py_ssize_t n = PySequence_Size(o);
  std::vector<c10::IValue> items(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    const ObjectRef item = ObjectRef::steal(PySequence_GetItem(o, i));
    if (!item || !to_ivalue(item.get(), items[static_cast<size_t>(i)])) return false;
  }
  const auto all = [&](auto is) { return n > 0 && std::ranges::all_of(items, is); };
  if (all([](const c10::IValue& v) { return v.isTensor(); })) {
    std::vector<at::Tensor> v;
    for (auto& i : items) v.push_back(i.toTensor());
    out = std::move(v);
  } else if (all([](const c10::IValue& v) { return v.isInt(); })) {
    std::vector<int64_t> v;
    for (auto& i : items) v.push_back(i.toInt());
    out = std::move(v);
  } else if (PyTuple_Check(o)) {
    out = c10::ivalue::Tuple::create(std::move(items));
  } else if (all([](const c10::IValue& v) { return v.isDouble(); })) {
    std::vector<double> v;
    for (auto& i : items) v.push_back(i.toDouble());
    out = std::move(v);
  } else if (all([](const c10::IValue& v) { return v.isBool(); })) {
    c10::List<bool> v;
    for (auto& i : items) v.push_back(i.toBool());
    out = std::move(v);
  } else {
    c10::List<c10::IValue> v(c10::AnyType::get());
    for (auto& i : items) v.push_back(std::move(i));
    out = c10::IValue(std::move(v));
  }
  return true;
}

}  // namespace

bool to_ivalue(PyObject* o, c10::IValue& out) {   // what a graph is given comes first: every call asks
  if (is_tensor(o)) { out = unwrap_tensor(o); return true; }
  if (PyBool_Check(o)) { out = o == Py_True; return true; }
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) { PyErr_SetString(PyExc_OverflowError, "an integer argument does not fit into 64 bits"); return false; }
    out = static_cast<int64_t>(n);
    return true;
  }
  if (PyFloat_Check(o)) { out = PyFloat_AS_DOUBLE(o); return true; }
  if (o == Py_None) { out = c10::IValue(); return true; }
  if (PyComplex_Check(o)) { out = c10::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)); return true; }
  if (PyUnicode_Check(o)) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &length);
    if (!text) return false;   // lone surrogates
    out = std::string(text, static_cast<size_t>(length));
    return true;
  }
  if (THPDtype_Check(o)) { out = reinterpret_cast<THPDtype*>(o)->scalar_type; return true; }
  if (THPDevice_Check(o)) { out = reinterpret_cast<THPDevice*>(o)->device; return true; }
  if (THPLayout_Check(o)) { out = reinterpret_cast<THPLayout*>(o)->layout; return true; }
  if (THPMemoryFormat_Check(o)) { out = reinterpret_cast<THPMemoryFormat*>(o)->memory_format; return true; }
  if (THPGenerator_Check(o)) { out = reinterpret_cast<THPGenerator*>(o)->cdata; return true; }
  if (PyList_Check(o) || PyTuple_Check(o)) return list_to_ivalue(o, out);
  PyErr_Format(PyExc_TypeError, "a value of type %s cannot be passed to an operator", Py_TYPE(o)->tp_name);
  return false;
}

ObjectRef from_ivalue(const c10::IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() ? ObjectRef::steal(wrap_tensor(v.toTensor())) : ObjectRef::borrow(Py_None);
  if (v.isNone()) return ObjectRef::borrow(Py_None);
  if (v.isBool()) return ObjectRef::borrow(v.toBool() ? Py_True : Py_False);
  if (v.isInt()) return ObjectRef::steal(PyLong_FromLongLong(v.toInt()));
  if (v.isDouble()) return ObjectRef::steal(PyFloat_FromDouble(v.toDouble()));
  if (v.isComplexDouble()) return ObjectRef::steal(PyComplex_FromDoubles(v.toComplexDouble().real(), v.toComplexDouble().imag()));
  if (v.isString()) return ObjectRef::steal(PyUnicode_FromStringAndSize(v.toStringRef().data(), static_cast<Py_ssize_t>(v.toStringRef().size())));
  if (v.isDevice()) return ObjectRef::steal(THPDevice_New(v.toDevice()));
  if (v.isGenerator()) return ObjectRef::steal(THPGenerator_Wrap(v.toGenerator()));
  if (v.isGenericDict()) {
    ObjectRef out = ObjectRef::steal(PyDict_New());
    for (const auto& item : v.toGenericDict()) {
      const ObjectRef key = from_ivalue(item.key()), value = from_ivalue(item.value());
      if (!out || !key || !value || PyDict_SetItem(out.get(), key.get(), value.get()) < 0) return {};
    }
    return out;
  }
  if (v.isList() || v.isTuple()) {
    const bool tuple = v.isTuple();
    const auto items = tuple ? v.toTupleRef().elements().vec() : v.toListRef().vec();
    ObjectRef out = ObjectRef::steal(tuple ? PyTuple_New(static_cast<Py_ssize_t>(items.size())) : PyList_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t i = 0; out && i < items.size(); ++i) {
      ObjectRef item = from_ivalue(items[i]);
      if (!item) return {};
      if (tuple) PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item.release());
      else PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item.release());
    }
    return out;
  }
  PyErr_Format(PyExc_TypeError, "an operator gave a value of kind %s, which Python is not told about", v.tagKind().c_str());
  return {};
}

}  // namespace cutaway::guards
