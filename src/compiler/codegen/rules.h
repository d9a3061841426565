// Which operators become loops, and how: a table with one row an operator. An operator without a row is called as torch's own.
// Main functions: find_rule and Lowering, through which a rule reads its node.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/terms.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::codegen {

/// A node as its rule sees it.
class Lowering {
 public:
  using Operand = std::function<TermId(ir::ValueId)>;
  Lowering(const ir::Graph& graph, const ir::Node& node, Terms& terms, Operand operand) : graph(graph), node(node), terms(terms), operand_(std::move(operand)) {}

  const ir::Graph& graph;
  const ir::Node& node;
  Terms& terms;

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

 private:
  Operand operand_;
};

/// What a rule makes of its node: the term of its only result, not yet rounded to the result's dtype.
using Rule = base::Result<TermId> (*)(Lowering&);

struct RuleRow {
  std::string_view target;    ///< "aten.add.Tensor"
  Rule rule;
};
/// Null when the operator has no row.
const RuleRow* find_rule(std::string_view target);
const std::vector<RuleRow>& all_rules();

/// A reduction: what is computed for each row or column, out of the reduced operand's element.
struct Reduction {
  std::vector<int64_t> dims;   ///< of the operand, in order, none negative
  Op op = Op::sum;
  bool is_mean = false;
};
/// None when the node is not a reduction of the table, or when this one cannot be a loop.
std::optional<Reduction> reduction_of(const ir::Graph&, const ir::Node&);

}  // namespace cutaway::codegen
