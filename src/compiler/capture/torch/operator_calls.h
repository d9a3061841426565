// Operators of Tensor read a TypeError of the program's __torch_function__ as NotImplemented, and Python then asks the other operand.
#pragma once
#include <Python.h>

#include <string_view>

namespace cutaway::capture {

/// True for `operator.add` and the like, and for methods with two underscores at both ends.
inline bool is_operator_of_python(PyObject* callable) {
  PyObject *name = PyObject_GetAttrString(callable, "__name__"), *module = PyObject_GetAttrString(callable, "__module__");
  PyErr_Clear();
  const bool is = (module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "_operator") == 0) ||
                  (name && PyUnicode_Check(name) && std::string_view(PyUnicode_AsUTF8(name)).starts_with("__"));
  Py_XDECREF(name);
  Py_XDECREF(module);
  return is;
}

}  // namespace cutaway::capture
