// The namespace of a class, which 3.12 keeps elsewhere for builtin types.
#pragma once
#include <Python.h>

namespace cutaway::bytecode {

/// Borrowed. Since 3.12 builtin types keep theirs with the interpreter, and tp_dict is null.
inline PyObject* dict_of_type(PyTypeObject* t) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* dict = PyType_GetDict(t);
  Py_XDECREF(dict);   // the type holds it
  return dict;
#else
  return t->tp_dict;
#endif
}

/// What the class itself says under a name, borrowed; null where it says nothing. Sets no exception.
inline PyObject* in_type_dict(PyTypeObject* t, const char* name) {
  PyObject* dict = dict_of_type(t);
  return dict ? PyDict_GetItemString(dict, name) : nullptr;
}

}  // namespace cutaway::bytecode
