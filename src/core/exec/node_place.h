// Where a node stands, for messages: its line in the printed graph, and the user's own line that it came from.
#pragma once
#include <string>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::exec {

/// Fills place ("<graph>:line:column" of the printed form with its header) and excerpt (the node, and the user's line). For errors only:
/// it prints the graph.
base::Error at_node(base::Error, const ir::Graph&, const ir::Node&);
/// "%h = aten.mm(%x, %w) at model.py:12 in Net.forward": one line for a note on an exception.
std::string describe_node(const ir::Graph&, const ir::Node&);
/// The op with this position; null when there is none.
const ir::Node* op_at(const ir::Graph&, size_t position);

}  // namespace cutaway::exec
