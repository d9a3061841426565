// The version of a dictionary: another number after each change, and no two dictionaries have the same. Deprecated from 3.12 on, and there up to 3.13.
#pragma once
#include <Python.h>

#include <cstdint>

namespace cutaway::bytecode {

/// 0: no version, it may have changed. Since 3.13 the dictionary of an object shares its values with the object, whose stores leave the version as it is.
inline uint64_t dict_version(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const auto* d = reinterpret_cast<PyDictObject*>(dict);
#if PY_VERSION_HEX >= 0x030D0000
  if (d->ma_values) return 0;
#endif
  return d->ma_version_tag;
#pragma GCC diagnostic pop
}
inline bool has_version(PyObject* dict, uint64_t version) { return version && dict_version(dict) == version; }

}  // namespace cutaway::bytecode
