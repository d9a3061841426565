#include "compiler/codegen/sizes.h"

namespace cutaway::codegen {

SymbolicSizes::SymbolicSizes(const ir::Graph& symbolic) : symbolic_(symbolic), producer_(symbolic.values.size(), nullptr) {
  for (const ir::Node& n : symbolic.body.nodes)
    for (ir::ValueId r : n.results) producer_[r] = &n;
}

const ir::Node* SymbolicSizes::node_of(const ir::Node& n) const {
  if (n.results.empty() || n.results[0] >= producer_.size()) return nullptr;
  const ir::Node* found = producer_[n.results[0]];
  return found && found->target == n.target && found->args.size() == n.args.size() ? found : nullptr;
}

bool SymbolicSizes::is_fixed(const ir::Graph& at_numbers, const Group& group, int64_t inner, int64_t total) const {
  bool found = false, all_fixed = true;
  const auto look = [&](ir::ValueId id) {
    if (id >= symbolic_.values.size()) {   // a rewrite's: nobody knows
      all_fixed = false;
      return;
    }
    const ir::Type& type = symbolic_.value(id).type;
    if (!type.is_tensor()) return;
    const auto shape = shape_of(at_numbers.value(id).type);
    const bool is_whole = shape && shape->numel() == total;   // of all elements: what one has for each row says nothing about rows
    int64_t product = 1;
    size_t d = type.tensor.sizes.size();
    for (; d > 0 && type.tensor.sizes[d - 1].number(); --d) found = found || ((product *= *type.tensor.sizes[d - 1].number()) == inner && is_whole);
    all_fixed = all_fixed && d == 0;
  };
  for (size_t i : group.nodes) {
    const ir::Node& n = at_numbers.body.nodes[i];
    for (ir::ValueId r : n.results) look(r);
    ir::for_each_use(n, look);
  }
  // All elements of a space that grows are no fixed number, also where they happen to be as many as those of something fixed.
  return found && (inner < total || all_fixed);
}

}  // namespace cutaway::codegen
