#include "core/ir/edit.h"

#include <algorithm>
#include <unordered_map>

namespace cutaway::ir {
namespace {

/// Calls f(id) for every use in the block: arguments, regions and outputs.
template <class F> void for_each_use_in(const Block& b, F&& f) {
  for_each_node(b, [&](const Node& n) {
    for_each_use(n, f);
    for (const Block& region : n.regions)
      for (const Argument& a : region.outputs) for_each_value(a, f);
  });
  for (const Argument& a : b.outputs) for_each_value(a, f);
}
template <class F> void for_each_use_in(const Node& n, F&& f) {
  for_each_use(n, f);
  for (const Block& region : n.regions) for_each_use_in(region, f);
}
template <class F> void change_uses(Block& b, F&& f) {
  for (Node& n : b.nodes) {
    for (Argument& a : n.args) for_each_value(a, f);
    for (auto& [key, a] : n.kwargs) for_each_value(a, f);
    for (Block& region : n.regions) change_uses(region, f);
  }
  for (Argument& a : b.outputs) for_each_value(a, f);
}
class DeadCode {
 public:
  DeadCode(const Graph& g, const SchemaTable* schemas) : schemas_(schemas), live_(g.values.size(), false) {}
  size_t removed = 0;

  void sweep(Block& b) {
    const auto mark = [this](ValueId id) { if (id < live_.size()) live_[id] = true; };
    for (const Argument& a : b.outputs) for_each_value(a, mark);
    size_t kept = b.nodes.size();   // nodes[kept, end) stay
    for (size_t i = b.nodes.size(); i-- > 0;) {
      Node& n = b.nodes[i];
      const bool used = std::any_of(n.results.begin(), n.results.end(), [this](ValueId id) { return is_live(id); });
      if (!used && !has_effects(n, schemas_)) {
        ++removed;
        continue;
      }
      for (Block& region : n.regions) sweep(region);
      for_each_use(n, mark);
      if (--kept != i) b.nodes[kept] = std::move(n);
    }
    b.nodes.erase(b.nodes.begin(), b.nodes.begin() + static_cast<ptrdiff_t>(kept));
  }

 private:
  bool is_live(ValueId id) const { return id < live_.size() && live_[id]; }
  const SchemaTable* schemas_;
  std::vector<bool> live_;
};

/// Where a value gets its definition at the top level: node and position among its results.
struct Definition {
  size_t node;
  size_t result;
};
std::optional<Definition> find_definition(const Graph& g, ValueId id) {
  for (size_t i = 0; i < g.body.nodes.size(); ++i) {
    const std::vector<ValueId>& results = g.body.nodes[i].results;
    if (const auto it = std::find(results.begin(), results.end(), id); it != results.end()) return Definition{i, static_cast<size_t>(it - results.begin())};
  }
  return std::nullopt;
}

/// Copies nodes into a new graph, giving values and locations new ids as it meets their definitions.
class Copier {
 public:
  explicit Copier(const Graph& from) : from_(from), map_(from.values.size(), kNoValue), locations_(from.locations.size(), kNoLocation) { to.name = from.name; }
  Graph to;

  ValueId define(ValueId old) {
    if (old >= map_.size()) return kNoValue;
    to.values.push_back(from_.values[old]);   // names were unique in the old graph
    return map_[old] = static_cast<ValueId>(to.values.size() - 1);
  }
  void input(const Input& in) { to.inputs.push_back({define(in.value), in.kind, in.qualified_name}); }
  ValueId mapped(ValueId old) const { return old < map_.size() ? map_[old] : kNoValue; }
  void node(const Node& n, Block& into) { into.nodes.push_back(copy(n)); }
  void outputs(const std::vector<Argument>& from, Block& into) {
    for (const Argument& a : from) into.outputs.push_back(copy(a));
  }

 private:
  Argument copy(const Argument& a) const {
    Argument out = a;
    for_each_value(out, [this](ValueId& id) { id = mapped(id); });
    return out;
  }
  LocationId location(LocationId old) {
    if (old >= locations_.size()) return kNoLocation;
    if (locations_[old] == kNoLocation) locations_[old] = to.add_location(from_.locations[old]);
    return locations_[old];
  }
  Node copy(const Node& n) {
    Node out;
    out.kind = n.kind;
    out.target = n.target;
    out.returns = n.returns;
    out.state = n.state;
    out.location = location(n.location);
    for (const Argument& a : n.args) out.args.push_back(copy(a));
    for (const auto& [key, a] : n.kwargs) out.kwargs.emplace_back(key, copy(a));
    // Results before what the region defines: the order of the text, so that reading a printed graph gives the same ids.
    for (ValueId id : n.results) out.results.push_back(define(id));
    for (const Block& region : n.regions) {
      Block& inner = out.regions.emplace_back();
      for (const Node& x : region.nodes) node(x, inner);
      outputs(region.outputs, inner);
    }
    return out;
  }

  const Graph& from_;
  std::vector<ValueId> map_;
  std::vector<LocationId> locations_;
};

/// The values that the chosen nodes define and something else uses, in order of definition.
std::vector<ValueId> used_elsewhere(const Graph& g, const std::vector<bool>& chosen) {
  std::vector<bool> used(g.values.size(), false);
  const auto mark = [&](ValueId id) { if (id < used.size()) used[id] = true; };
  for (size_t i = 0; i < g.body.nodes.size(); ++i)
    if (!chosen[i]) for_each_use_in(g.body.nodes[i], mark);
  for (const Argument& a : g.body.outputs) for_each_value(a, mark);
  std::vector<ValueId> out;
  for (size_t i = 0; i < g.body.nodes.size(); ++i)
    if (chosen[i])
      for (ValueId id : g.body.nodes[i].results)
        if (id < used.size() && used[id]) out.push_back(id);
  return out;
}

}  // namespace

size_t remove_dead_code(Graph& g, const SchemaTable* schemas) {
  DeadCode dead(g, schemas);
  dead.sweep(g.body);
  return dead.removed;
}

std::vector<size_t> remove_unused_inputs(Graph& g) {
  std::vector<bool> used(g.values.size(), false);
  for_each_use_in(g.body, [&](ValueId id) { if (id < used.size()) used[id] = true; });
  std::vector<size_t> stay;
  std::vector<Input> inputs;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    if (!used[g.inputs[i].value]) continue;
    stay.push_back(i);
    inputs.push_back(std::move(g.inputs[i]));
  }
  g.inputs = std::move(inputs);
  return stay;
}

void keep_outputs(Graph& g, const std::vector<size_t>& positions) {
  std::vector<Argument> outputs;
  for (size_t p : positions) outputs.push_back(g.body.outputs.at(p));
  g.body.outputs = std::move(outputs);
}

ValueId replace_value_by_input(Graph& g, ValueId id) {
  for (const Input& in : g.inputs)
    if (in.value == id) return id;
  const std::optional<Definition> at = find_definition(g, id);
  if (!at) return kNoValue;
  std::vector<bool> used(g.values.size(), false);
  for_each_use_in(g.body, [&](ValueId u) { if (u < used.size()) used[u] = true; });
  Node& n = g.body.nodes[at->node];
  const bool needed = has_effects(n) || std::any_of(n.results.begin(), n.results.end(), [&](ValueId r) { return r != id && used[r]; });
  if (needed) n.results[at->result] = g.add_value(g.value(id).name, g.value(id).type);
  else g.body.nodes.erase(g.body.nodes.begin() + static_cast<ptrdiff_t>(at->node));
  g.inputs.push_back({id, InputKind::user, {}});
  return id;
}

void replace_uses(Graph& g, ValueId from, ValueId to) {
  change_uses(g.body, [=](ValueId& id) { if (id == from) id = to; });
}

Graph extract_subgraph(const Graph& g, const std::vector<size_t>& positions, std::vector<ValueId>* lifted, std::vector<ValueId>* produced) {
  std::vector<bool> chosen(g.body.nodes.size(), false);
  for (size_t p : positions) chosen.at(p) = true;
  std::vector<bool> inside(g.values.size(), false);
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) {
      for (ValueId id : g.body.nodes[i].results) inside[id] = true;
      for (const Block& region : g.body.nodes[i].regions)
        for_each_node(region, [&](const Node& n) { for (ValueId id : n.results) inside[id] = true; });
    }

  std::unordered_map<ValueId, const Input*> inputs;
  for (const Input& in : g.inputs) inputs.emplace(in.value, &in);
  Copier copy(g);
  std::vector<ValueId> from_outside;
  const auto lift = [&](ValueId id) {
    if (inside[id]) return;
    inside[id] = true;   // once
    from_outside.push_back(id);
    const auto it = inputs.find(id);
    copy.input(it != inputs.end() ? *it->second : Input{id, InputKind::user, {}});
  };
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) for_each_use_in(g.body.nodes[i], lift);

  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) copy.node(g.body.nodes[i], copy.to.body);
  std::vector<ValueId> results = used_elsewhere(g, chosen);
  for (ValueId id : results) copy.to.body.outputs.push_back(ValueRef{copy.mapped(id)});
  if (lifted) *lifted = std::move(from_outside);
  if (produced) *produced = std::move(results);
  return std::move(copy.to);
}

Graph prefix(const Graph& g, size_t last) {
  assert(last < g.body.nodes.size() && "a position in the graph");
  std::vector<bool> chosen(g.body.nodes.size(), false);
  std::fill(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(last) + 1, true);
  std::vector<ValueId> results = used_elsewhere(g, chosen);
  if (results.empty()) results = g.body.nodes[last].results;
  Copier copy(g);
  for (const Input& in : g.inputs) copy.input(in);
  for (size_t i = 0; i <= last; ++i) copy.node(g.body.nodes[i], copy.to.body);
  for (ValueId id : results) copy.to.body.outputs.push_back(ValueRef{copy.mapped(id)});
  return std::move(copy.to);
}

void renumber(Graph& g, Names names) {
  Copier copy(g);
  for (const Input& in : g.inputs) copy.input(in);
  for (const Node& n : g.body.nodes) copy.node(n, copy.to.body);
  copy.outputs(g.body.outputs, copy.to.body);
  g = std::move(copy.to);
  if (names == Names::canonical)
    for (size_t i = 0; i < g.values.size(); ++i) g.values[i].name = std::to_string(i);
}

}  // namespace cutaway::ir
