// Texts that serve every size. A graph with symbols is generated at the numbers of one call; where the graph with its symbols is known too, kernels
// take sizes, strides, offsets and numbers made of them as arguments, so that the texts of two sizes are equal.
// Main type: SymbolicSizes, what the graph with symbols tells about the one with numbers.
#pragma once
#include <vector>

#include "compiler/codegen/fuse.h"
#include "core/ir/graph.h"

namespace cutaway::codegen {

class SymbolicSizes {
 public:
  /// Must outlive this. Values have the same ids in the graph with numbers; those beyond are made by rewrites.
  explicit SymbolicSizes(const ir::Graph& symbolic);

  /// The node with its symbols; null when a rewrite made it.
  const ir::Node* node_of(const ir::Node& at_numbers) const;
  /// Whether `inner` of `total` elements of a group's space is the same number at every size.
  bool is_fixed(const ir::Graph& at_numbers, const Group&, int64_t inner, int64_t total) const;

 private:
  const ir::Graph& symbolic_;
  std::vector<const ir::Node*> producer_;   ///< by value
};

}  // namespace cutaway::codegen
