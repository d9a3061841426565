// #line directives: what computes a value of the user's program is said to stand at the user's line, so that gdb and perf show the model's code.
#pragma once
#include <string>

#include "core/ir/graph.h"

namespace cutaway::codegen {

/// `text` with marks around every statement that computes a named value of `graph`; the rest keeps its own lines, in a file called `own_file`.
std::string with_line_marks(const std::string& text, const ir::Graph& graph, const std::string& own_file);

}  // namespace cutaway::codegen
