// The items of a set in its own order, without an iterator.
#pragma once
#include <Python.h>

#if PY_VERSION_HEX >= 0x030D0000   // exported, but declared for CPython alone
extern "C" PyAPI_FUNC(int) _PySet_NextEntry(PyObject* set, Py_ssize_t* position, PyObject** key, Py_hash_t* hash);
#endif

namespace cutaway::bytecode {

/// Like PyDict_Next: begins at position 0, the item is borrowed, false at the end.
inline bool next_in_set(PyObject* set, Py_ssize_t* position, PyObject** item) {
  Py_hash_t hash = 0;
  return _PySet_NextEntry(set, position, item, &hash) != 0;
}

}  // namespace cutaway::bytecode
