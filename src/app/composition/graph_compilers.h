// What becomes of a graph that capture made: the reference interpreter, a backend of the C++ table, or a Python function, each as a frames::Compile.
// Here is the policy of falling back, and what is kept of every graph in the debug directory.
#pragma once
#include <memory>
#include <string>

#include "compiler/bytecode/object_ref.h"
#include "compiler/frames/plan.h"

namespace cutaway::composition {

/// A graph for C++ to run; a refusal is raised as cutaway.Error.
std::shared_ptr<frames::GraphFunction> compile_program(frames::CapturedGraph);
/// A graph for a backend of the C++ table. Its refusal leads to the reference interpreter: numbers are right, and the log tells why.
frames::Compile compile_by_table(std::string name);
/// A graph for a Python function: compile(graph, examples, name, sizes) gives a callable, and with sizes what it took for granted about them.
frames::Compile compile_by(bytecode::ObjectRef function);
/// The graph in the debug directory, where that is on: as text, as fx, and as a script that runs with torch alone.
void keep_graph_files(const frames::CapturedGraph&);

}  // namespace cutaway::composition
