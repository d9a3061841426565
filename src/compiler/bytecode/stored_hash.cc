#include "compiler/bytecode/stored_hash.h"

#if PY_VERSION_HEX >= 0x030D0000   // no longer exported: read from CPython's own structures
#define Py_BUILD_CORE 1
#include <internal/pycore_dict.h>
#undef Py_BUILD_CORE
#endif

namespace cutaway::bytecode {

std::optional<Py_hash_t> stored_hash(PyObject* dict, PyObject* key) {
#if PY_VERSION_HEX >= 0x030D0000
  PyDictKeysObject* keys = reinterpret_cast<PyDictObject*>(dict)->ma_keys;
  for (Py_ssize_t i = 0; i < keys->dk_nentries; ++i) {
    if (DK_IS_UNICODE(keys)) {   // texts know their hash
      if (DK_UNICODE_ENTRIES(keys)[i].me_key == key) return PyObject_Hash(key);
    } else if (DK_ENTRIES(keys)[i].me_key == key) {
      return DK_ENTRIES(keys)[i].me_hash;
    }
  }
#else
  PyObject *stored = nullptr, *value = nullptr;
  Py_hash_t hash = 0;
  for (Py_ssize_t at = 0; _PyDict_Next(dict, &at, &stored, &value, &hash);)
    if (stored == key) return hash;
#endif
  return std::nullopt;
}

}  // namespace cutaway::bytecode
