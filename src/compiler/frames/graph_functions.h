// Compiled graphs of the two kinds: a program that C++ runs, and a Python callable that a backend returned.
#pragma once
#include <memory>
#include <string>

#include "compiler/backends/backend.h"
#include "compiler/frames/plan.h"
#include "core/exec/interpreter.h"

namespace cutaway::frames {

/// Runs without the GIL. An exception gets a traceback entry at the user's line of the operator that raised.
std::shared_ptr<GraphFunction> make_program_graph(exec::Program, std::string name);
/// A graph that a backend of the C++ table compiled, from this one.
std::shared_ptr<GraphFunction> make_backend_graph(std::unique_ptr<backends::CompiledGraph>, const ir::Graph&);
/// Called with the inputs as arguments; returns a tuple or list of outputs (one output may come alone). Inputs at `floats` are floats, given as tensors.
std::shared_ptr<GraphFunction> make_callable_graph(ObjectRef callable, std::vector<size_t> floats = {});
/// Floats among the inputs become tensors without dimensions, of 64 bits, that the graph reads by item(): as plain arguments they would be constants to
/// whatever traces the graph. Gives their positions.
std::vector<size_t> floats_as_tensors(CapturedGraph&);
/// Values for a graph; false with a Python exception set for an object that no graph takes.
bool to_values(const std::vector<ObjectRef>&, std::vector<c10::IValue>&);

/// Whether the operators themselves raise on copies of these inputs, whatever a backend made of them.
bool program_raises(const ir::Graph&, const std::vector<ObjectRef>& inputs);

}  // namespace cutaway::frames
