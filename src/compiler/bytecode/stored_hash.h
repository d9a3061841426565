// The hash under which a dictionary has stored a key: of an object whose __hash__ answers otherwise by now it is another one.
#pragma once
#include <Python.h>

namespace cutaway::bytecode {

/// Whether the dictionary has this very object under no other hash; it may be there twice, stored before its hash changed and after. Calls no code of the program's.
bool is_stored_under(Py_hash_t hash, PyObject* dict, PyObject* key);

}  // namespace cutaway::bytecode
