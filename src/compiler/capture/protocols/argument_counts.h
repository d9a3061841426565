// How many arguments, and which keywords, something written in C takes: from its flags, its text signature, or a short table.
// Where a call has others, the words of the exception are Python's own: the real thing is called with stand-ins, and refuses them.
#pragma once
#include <Python.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cutaway::capture {

struct ArgumentCounts {
  size_t least = 0, most = SIZE_MAX;     ///< positional ones; a required one may come by its name, too
  bool takes_any_keyword = true;
  std::vector<std::string> keywords;     ///< names that it takes
  size_t first_place = 0;                ///< the place of the first name among the positional arguments; the others follow it
};

/// Of a method descriptor, a slot wrapper, a C function or a type; without `self`.
const ArgumentCounts& argument_counts(PyObject* callable);
/// What the real callable raises when it gets this many arguments with these names: an exception is set then. False: it takes them.
/// `owner`: the type that it is a method of, or null.
bool refuses(PyObject* callable, PyTypeObject* owner, size_t count, const std::vector<PyObject*>& keywords);

}  // namespace cutaway::capture
