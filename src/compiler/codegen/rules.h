// Which operators become loops, and how: a table with one row an operator. An operator without a row is called as torch's own.
// Main functions: find_rule and Lowering, through which a rule reads its node.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/terms.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::codegen {

/// How a rule reads tensors, in the space of its result. Strides have one entry a dimension of the result; terms of positions are i64.
class Reads {
 public:
  virtual ~Reads() = default;
  /// The operand's element, broadcast to the result.
  virtual TermId element(ir::ValueId) = 0;
  /// Of an operand with as many dimensions as the result, whose element 0 lies at `first` of the result: its element where the mask holds, else 0.
  virtual TermId moved(ir::ValueId, const std::vector<int64_t>& first, TermId mask) = 0;
  /// The operand's memory with other strides, from an element of it on. With a mask: where it holds, else 0.
  virtual TermId strided(ir::ValueId, const std::vector<int64_t>& strides, int64_t offset, std::optional<TermId> mask) = 0;
  /// The same, that many elements further.
  virtual TermId further(ir::ValueId, const std::vector<int64_t>& strides, TermId elements) = 0;
  /// The sum of index times stride.
  virtual TermId position(const std::vector<int64_t>& strides) = 0;
  /// A mask: first <= index < past in a dimension. All three are multiples of `block`: a kernel may cut the dimension there.
  virtual TermId is_within(size_t dim, int64_t first, int64_t past, int64_t block) = 0;
};

/// A node as its rule sees it.
class Lowering {
 public:
  Lowering(const ir::Graph& graph, const ir::Node& node, Terms& terms, Reads& reads) : graph(graph), node(node), terms(terms), reads(reads) {}

  const ir::Graph& graph;
  const ir::Node& node;
  Terms& terms;
  Reads& reads;

  /// By position, or by name where it was given so; null when it is not given or None.
  const ir::Argument* argument(size_t position, std::string_view name) const;
  bool is_tensor(const ir::Argument*) const;
  /// A tensor's element, or a number, in this form. Refuses what is neither.
  base::Result<TermId> value(const ir::Argument*, Held);
  /// A number without a tensor; the default where it is not given.
  base::Result<double> number(size_t position, std::string_view name, std::optional<double> otherwise = {}) const;
  /// The same node before numbers were put in place of its symbols; null where it had none.
  const ir::Node* symbolic = nullptr;
  /// Whether a number among the arguments is made of sizes.
  bool is_of_sizes(const ir::Argument*) const;
  ir::DType result() const { return graph.value(node.results[0]).type.tensor.dtype; }
  Held held() const { return *held_for(result()); }
  /// The dtype that torch computes in for these operands.
  std::optional<ir::DType> promoted(const std::vector<const ir::Argument*>&) const;
};

/// What a rule makes of its node: the term of its only result, not yet rounded to the result's dtype.
using Rule = base::Result<TermId> (*)(Lowering&);

struct RuleRow {
  std::string_view target;    ///< "aten.add.Tensor"
  Rule rule;
  /// It may read elements of an operand at other places than its own: that operand must lie in memory, or be worked out again.
  bool moves = false;
  /// moves, and the places come from a tensor: a text for every size can hold it.
  bool is_by_index = false;
  /// Each element of a row is made of those before it: rows are walked in order.
  bool scans = false;
};
/// The rows of rules_index.cc: what reads at places that a rule works out.
std::vector<RuleRow> indexing_rules();
/// The rows of rules_losses.cc: losses and activations.
std::vector<RuleRow> loss_rules();
constexpr int64_t kMostOfWindow = 16;   ///< elements of a window of a pool: each is a load of its own
/// The rows of rules_pooling.cc.
std::vector<RuleRow> pooling_rules();
/// Null when the operator has no row.
const RuleRow* find_rule(std::string_view target);
const std::vector<RuleRow>& all_rules();

/// Operators that are reductions of rows or columns, in order.
std::vector<std::string_view> all_reductions();

/// A reduction: what is computed for each row or column, out of the reduced operand's element.
struct Reduction {
  std::vector<int64_t> dims;   ///< of the operand, in order, none negative
  Op op = Op::sum;
  bool is_mean = false;
};
/// None when the node is not a reduction of the table, or when this one cannot be a loop.
std::optional<Reduction> reduction_of(const ir::Graph&, const ir::Node&);

}  // namespace cutaway::codegen
