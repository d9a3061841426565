// Compiled graphs of the two kinds: a program that C++ runs, and a Python callable that a backend gave.
#pragma once
#include <memory>
#include <string>

#include "compiler/frames/plan.h"
#include "core/exec/interpreter.h"

namespace cutaway::frames {

/// Runs without the GIL. An exception gets a traceback entry at the user's line of the operator that raised.
std::shared_ptr<GraphFunction> make_program_graph(exec::Program, std::string name);
/// Called with the inputs as arguments; gives a tuple or list of outputs (one output may come alone).
std::shared_ptr<GraphFunction> make_callable_graph(ObjectRef callable);

}  // namespace cutaway::frames
