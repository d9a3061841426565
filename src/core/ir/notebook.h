// How a graph shows itself at a prompt.
#pragma once
#include <string>
#include <string_view>

#include "core/ir/graph.h"

namespace cutaway::ir {

/// "<Graph forward: 3 inputs, 12 nodes, 1 output>".
std::string summary(const Graph&);
/// The value of this name among those that the graph defines, or kNoValue.
ValueId find_value(const Graph&, std::string_view name);

}  // namespace cutaway::ir
