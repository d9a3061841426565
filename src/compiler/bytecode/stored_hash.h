// The hash under which a dictionary has stored a key: of an object whose __hash__ answers otherwise by now it is another one.
#pragma once
#include <Python.h>

#include <optional>

namespace cutaway::bytecode {

/// Nothing where the dictionary does not have this very object as a key. Calls no code of the program's.
std::optional<Py_hash_t> stored_hash(PyObject* dict, PyObject* key);

}  // namespace cutaway::bytecode
