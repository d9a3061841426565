#include "diagnosis/minify/prune.h"

#include <algorithm>

#include "core/ir/edit.h"

namespace cutaway::minify {
namespace {

template <class F> void for_each_use_inside(const ir::Node& n, F&& f) {
  ir::for_each_use(n, f);
  for (const ir::Block& r : n.regions) {
    for (const ir::Node& inner : r.nodes) for_each_use_inside(inner, f);
    for (const ir::Argument& a : r.outputs) ir::for_each_value(a, f);
  }
}

void keep_inputs(Case& c, const std::vector<size_t>& kept) {
  std::vector<bundle::InputRef> inputs;
  inputs.reserve(kept.size());
  for (size_t i : kept) inputs.push_back(std::move(c.manifest.inputs[i]));
  c.manifest.inputs = std::move(inputs);
}

}  // namespace

void prune(Case& c, const PassContext& context) {
  ir::remove_dead_code(c.graph, context.schemas);
  keep_inputs(c, ir::remove_unused_inputs(c.graph));
}

void remove_nodes(Case& c, std::vector<bool> removed, const PassContext& context) {
  ir::Graph& g = c.graph;
  const size_t n = g.body.nodes.size();
  // From the last node to the first: what is kept says which values are needed; a needed value that nobody recorded keeps its node.
  std::vector<bool> needed(g.values.size(), false), used_before(g.values.size(), false);
  std::vector<std::pair<ir::ValueId, bundle::InputRef>> lifted;
  for (size_t i = n; i-- > 0;) {
    const ir::Node& node = g.body.nodes[i];
    for_each_use_inside(node, [&](ir::ValueId v) { used_before[v] = true; });
    if (removed[i]) {
      std::vector<std::pair<ir::ValueId, bundle::InputRef>> mine;
      for (ir::ValueId v : node.results) {
        if (!needed[v]) continue;
        auto recorded = g.value(v).type.is_tensor() && context.values ? context.values->find(g.value(v).name) : std::nullopt;
        if (!recorded) { removed[i] = false; break; }
        mine.emplace_back(v, std::move(*recorded));
      }
      if (removed[i]) { std::move(mine.begin(), mine.end(), std::back_inserter(lifted)); continue; }
    }
    for_each_use_inside(node, [&](ir::ValueId v) { needed[v] = true; });
  }
  if (std::all_of(removed.begin(), removed.end(), [](bool r) { return r; })) return;

  std::vector<bool> gone(g.values.size(), false);
  std::vector<ir::Node> nodes;
  std::vector<ir::ValueId> orphans;   // results whose users are all gone
  for (size_t i = 0; i < n; ++i) {
    ir::Node& node = g.body.nodes[i];
    if (removed[i]) for (ir::ValueId v : node.results) gone[v] = true;
    else for (ir::ValueId v : node.results) if (used_before[v] && !needed[v]) orphans.push_back(v);
    if (!removed[i]) nodes.push_back(std::move(node));
  }
  g.body.nodes = std::move(nodes);
  std::reverse(lifted.begin(), lifted.end());
  for (auto& [v, ref] : lifted) {
    gone[v] = false;
    // The recorded tensor is what eager made; a leaf now, and it asks for a gradient where the value did.
    ref.tensor.requires_grad = g.value(v).type.tensor.requires_grad;
    g.inputs.push_back({v, ir::InputKind::user, {}});
    c.manifest.inputs.push_back(std::move(ref));
  }
  std::vector<ir::Argument> outputs;
  std::vector<bool> is_output(g.values.size(), false);
  for (ir::Argument& a : g.body.outputs) {
    bool whole = true, any = false;
    ir::for_each_value(a, [&](ir::ValueId v) { any = true; whole = whole && !gone[v]; });
    if (!any || !whole) continue;   // a literal among the outputs says nothing about the failure
    ir::for_each_value(a, [&](ir::ValueId v) { is_output[v] = true; });
    outputs.push_back(std::move(a));
  }
  for (ir::ValueId v : orphans)
    if (!is_output[v] && g.value(v).type.is_tensor()) outputs.emplace_back(ir::ValueRef{v});
  g.body.outputs = std::move(outputs);
  // Only inputs: a kept node that was dead before may be what fails, and drop_dead_code asks about it.
  keep_inputs(c, ir::remove_unused_inputs(g));
}

}  // namespace cutaway::minify
