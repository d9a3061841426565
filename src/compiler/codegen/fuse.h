// Which nodes become one kernel. Nodes are taken in order; each joins the kernels that compute its operands where their spaces fit and no
// cycle would arise. Every decision is recorded with its reason.
// Main function: fuse.
#pragma once
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/loops.h"
#include "compiler/codegen/rules.h"
#include "compiler/codegen/views.h"

namespace cutaway::codegen {

/// What was done or not done, and why.
struct Decision {
  std::string action;     ///< "fuse", "merge", "kernel", "call"
  std::string identity;   ///< made of the operands' names: the same after sizes change
  std::string name;       ///< made of operators: means something in any graph ("aten.gelu into aten.add.Tensor")
  bool done = false;
  std::string reason;
};

/// Stops after so many actions of a kind, or leaves some out by name: how a wrong one is found by halving.
struct Fuel {
  int64_t fusions = std::numeric_limits<int64_t>::max();
  std::set<std::string, std::less<>> without;   ///< names of fusions
  bool serves_every_size = false;               ///< texts are for all sizes: what would put places of one size into them stays an operator
  bool epilogues = true;                        ///< of products: not where these are torch's
};

/// Rows whose sum is one step of a sum over all of them.
constexpr int64_t kBlockRows = 64;

/// A group of nodes that one kernel computes. Positions are those of top-level nodes.
struct Group {
  Form form = Form::pointwise;
  ir::Device device;                ///< where all its values are
  int64_t total = 0;                ///< elements
  int64_t inner = 0;                ///< of a row; 0 while nothing is reduced
  std::vector<size_t> nodes;        ///< in order
  int64_t product = -1;             ///< a matrix product among the nodes, whose epilogue the others are
  std::vector<int64_t> cuts;        ///< ascending: where the dimensions of the space must be cut, as numbers of elements
  std::vector<int64_t> preferred;   ///< where they would better be cut too
  bool sums_blocks = false;         ///< rows: among the nodes are sums over blocks of kBlockRows rows
  int64_t scan_rows = 0;            ///< columns: of scans over so many rows each; then nothing is reduced
  int64_t rows() const { return inner ? total / inner : 1; }
};

/// Where a value comes from when views are folded: the value with memory (or a term) of its own, and how it is looked at from there.
struct Root {
  ir::ValueId value = ir::kNoValue;
  int64_t offset = 0;
  bool is_linear = true;            ///< reshapes only: element number i is element number i of the root
  bool has_expand = false;          ///< linear but for repetition
  std::vector<int64_t> expanded_from, expanded_to;   ///< has_expand: sizes before and after
};

/// Which top-level node makes a value, and as which result; -1 for inputs.
struct Producer { int64_t node = -1; size_t result = 0; };
/// By value: what is found when views (and only views) are followed back.
struct Origins {
  std::vector<Producer> producer;
  std::vector<Root> root;
  explicit Origins(const ir::Graph&);
};

struct Fusion {
  explicit Fusion(const ir::Graph& graph) : from(graph) {}
  Origins from;
  std::vector<Group> groups;
  std::vector<int32_t> group_of;    ///< by top-level node; -1: called as it is
  std::vector<bool> is_free;        ///< views, constants, and what is worked out again where it is wanted: copied into every kernel that wants them
  std::vector<size_t> order;        ///< of units: group g as nodes.size() + g, else the node's position
  std::vector<Decision> decisions;
};

Fusion fuse(const ir::Graph&, const Fuel& = {});

/// Calls f(id) for every value that the node uses, in its regions too.
template <class F> void for_each_use_inside(const ir::Node& n, F&& f) {
  ir::for_each_use(n, f);
  for (const ir::Block& b : n.regions) {
    for (const ir::Node& inner : b.nodes) for_each_use_inside(inner, f);
    for (const ir::Argument& a : b.outputs) ir::for_each_value(a, f);
  }
}
/// Whether a node, also inside of a region, or an output uses the value.
inline bool is_wanted(const ir::Graph& g, ir::ValueId id) {
  bool found = false;
  const auto use = [&](ir::ValueId used) { found = found || used == id; };
  for (const ir::Node& n : g.body.nodes) for_each_use_inside(n, use);
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, use);
  return found;
}

/// The access of an operand of `sizes` and `strides` that is broadcast to `space` sizes, as (size, stride) pairs without ones, neighbours joined.
struct Piece { int64_t size, stride; };
std::vector<Piece> pieces(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, const std::vector<int64_t>& space);

}  // namespace cutaway::codegen
