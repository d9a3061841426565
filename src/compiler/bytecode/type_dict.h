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

}  // namespace cutaway::bytecode
