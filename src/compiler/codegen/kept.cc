#include "compiler/codegen/kept.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/ir/edit.h"
#include "core/ir/expressions.h"

namespace cutaway::codegen {

Kept::Kept(ir::Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  const auto mark = [&](ir::ValueId id) { if (id < used.size()) used[id] = true; };
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    ir::for_each_use(n, mark);
    for (const ir::Block& region : n.regions)
      for (const ir::Argument& a : region.outputs) ir::for_each_value(a, mark);
  });
  for (const ir::Argument& a : graph.body.outputs) ir::for_each_value(a, mark);
  std::erase_if(graph.body.nodes, [&](ir::Node& n) {
    const bool is_used = n.results.empty() || std::ranges::any_of(n.results, [&](ir::ValueId r) { return r < used.size() && used[r]; });
    if (is_used || n.kind != ir::Node::Kind::op || !n.regions.empty() || ir::has_effects(n)) return false;
    ir::for_each_use(n, [&](ir::ValueId id) { if (std::ranges::find(reads_, id) == reads_.end()) reads_.push_back(id); });
    nodes_.push_back(std::move(n));
    return true;
  });
  for (const ir::ValueId id : reads_) graph.body.outputs.emplace_back(ir::ValueRef{id});
}

void Kept::put_back(ir::Graph& graph) const {
  auto& outputs = graph.body.outputs;
  std::map<ir::ValueId, ir::Argument> now;
  const size_t first = outputs.size() - reads_.size();
  for (size_t i = 0; i < reads_.size(); ++i) now.emplace(reads_[i], outputs[first + i]);
  outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(first), outputs.end());
  const auto replace = [&](ir::Argument& leaf) {
    const auto* ref = leaf.as<ir::ValueRef>();
    if (!ref) return;
    ir::Argument other = now.at(ref->id);
    leaf = std::move(other);
  };
  for (ir::Node n : nodes_) {
    for (ir::Argument& a : n.args) ir::for_each_leaf(a, replace);
    for (auto& [key, a] : n.kwargs) ir::for_each_leaf(a, replace);
    graph.body.nodes.push_back(std::move(n));
  }
}

}  // namespace cutaway::codegen
