// Where a node stands, for messages: its line in the printed graph, which also shows the user's own line that it came from.
#pragma once
#include <string>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::exec {

/// Fills place ("<graph>:line:column" of the printed form with its header) and excerpt. For errors only: it prints the graph.
base::Error at_node(base::Error, const ir::Graph&, const ir::Node&);
/// "%h: f32[2, 64] = aten.mm(%x, %w), from model.py:12 Net.forward": one line, for a note on an exception.
std::string describe_node(const ir::Graph&, const ir::Node&);
/// The op with this position; null when there is none.
const ir::Node* op_at(const ir::Graph&, size_t position);

}  // namespace cutaway::exec
