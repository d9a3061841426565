// What a graph calls by name runs before the objects that the captured code wrote to are really written. Internal to compiler/capture.
#pragma once
#include "compiler/capture/trace.h"

namespace cutaway::capture {

/// True when a function, a class or an operator with kernels in Python can come by an object that the trace has written to: it would read the old value.
bool may_read_written(Trace& t, PyObject* called);

}  // namespace cutaway::capture
