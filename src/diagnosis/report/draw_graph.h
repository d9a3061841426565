// A small graph as an inline SVG picture: inputs, operators and the results as boxes, values as arrows.
#pragma once
#include <set>
#include <string>

#include "core/ir/graph.h"

namespace cutaway::report {

/// Nodes that the picture, the text and the words point to, and why.
struct Marks {
  std::set<const ir::Node*> nodes;
  std::string label;                 ///< "first wrong", "named by the failure"
};

struct Picture {
  std::string svg;                   ///< empty: not drawn
  std::string reason;                ///< why not, as a sentence
};
inline constexpr size_t kMaxDrawnNodes = 150;
/// A captured call is one box; what a scope holds is drawn as if it stood outside. Values as operands of nothing are left out.
Picture draw_graph(const ir::Graph&, const Marks&);

}  // namespace cutaway::report
