// The callable that compile() returns: a C++ type with vectorcall that behaves like a function (binds to instances, has __dict__, __wrapped__).
#pragma once
#include <Python.h>

#include <memory>

#include "compiler/frames/session.h"

namespace cutaway::frames {

/// The type object; made at the first call. Borrowed. Null with an exception set.
PyTypeObject* compiled_function_type();
/// New reference. `target` is what runs: a function, a method, any callable.
PyObject* make_compiled_function(PyObject* target, std::shared_ptr<Session>);
/// The target of a compiled function (borrowed), or null for any other object.
PyObject* compiled_target(PyObject*);
/// A callable that runs `target` with nothing captured in it or below it.
PyObject* make_disabled_function(PyObject* target);

}  // namespace cutaway::frames
