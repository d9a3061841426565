// What changed between two graphs: in words, by structure, and as a unified text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::ir {

struct Difference {
  enum class Kind { node_removed, node_added, node_changed, input_removed, input_added, input_changed, outputs_changed, name_changed };
  Kind kind;
  std::string where;   ///< "%relu_3 (node 12)", "input %x"
  std::string text;    ///< one sentence
};
/// Nodes are matched by structure (operator, literals, operands' matches), not by the names of values. Empty, or no more than a
/// name_changed of the graph itself, exactly when digest() agrees.
std::vector<Difference> diff(const Graph& a, const Graph& b);
/// Unified diff of two texts, with `context` lines around each change. Empty when equal.
std::string unified_diff(std::string_view a, std::string_view b, std::string_view a_name, std::string_view b_name, int context = 3);

}  // namespace cutaway::ir
