#include "compiler/bytecode/stored_hash.h"

#if PY_VERSION_HEX >= 0x030D0000   // _PyDict_Next is no longer exported: read from CPython's own structures
#define Py_BUILD_CORE 1
#include <internal/pycore_dict.h>
#undef Py_BUILD_CORE
#endif

namespace cutaway::bytecode {

bool is_stored_under(Py_hash_t hash, PyObject* dict, PyObject* key) {
#if PY_VERSION_HEX >= 0x030D0000
  PyDictKeysObject* keys = reinterpret_cast<PyDictObject*>(dict)->ma_keys;
  if (DK_IS_UNICODE(keys)) return true;   // texts alone, whose hash is always the same
  for (Py_ssize_t i = 0; i < keys->dk_nentries; ++i)
    if (DK_ENTRIES(keys)[i].me_key == key && DK_ENTRIES(keys)[i].me_hash != hash) return false;
#else
  PyObject *stored = nullptr, *value = nullptr;
  Py_hash_t of_stored = 0;
  for (Py_ssize_t at = 0; _PyDict_Next(dict, &at, &stored, &value, &of_stored);)
    if (stored == key && of_stored != hash) return false;
#endif
  return true;
}

}  // namespace cutaway::bytecode
