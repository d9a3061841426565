// What a function with functools.lru_cache remembers, looked up without calling it: nothing is counted, and its order stays.
#pragma once
#include <Python.h>

#include <utility>
#include <vector>

namespace cutaway::guards {

/// Whether the way in which this Python keeps such a cache was understood (it is tried out once). Where not, nothing is ever found.
bool knows_caches();
/// The key under which a call is remembered: a new reference, or null.
PyObject* key_of_call(PyObject* cached, PyObject* positional, const std::vector<std::pair<PyObject*, PyObject*>>& keywords);
/// The result that is remembered under the key, borrowed; null: none.
PyObject* remembered(PyObject* cached, PyObject* key);
/// Whether one more result pushes none out.
bool has_room(PyObject* cached);
/// A call was made ahead of the program's own one, which will find it remembered: that one is not to be counted as a hit.
void counts_as_miss(PyObject* cached);

}  // namespace cutaway::guards
