#include "compiler/aot/partial_backward.h"

#include <algorithm>
#include <set>

#include "compiler/aot/symbolic_joint.h"
#include "core/exec/interpreter.h"
#include "core/ir/edit.h"

namespace cutaway::aot {
namespace {

bool same_kind(const ir::Type& a, const ir::Type& b) { return a.is_tensor() && b.is_tensor() && a.tensor.dtype == b.tensor.dtype && a.tensor.device == b.tensor.device && a.tensor.sizes == b.tensor.sizes; }

/// empty_strided for what has this type.
ir::Node make_memory(const ir::TensorType& t, ir::ValueId result, ir::LocationId location) {
  const auto to_list = [](const std::vector<ir::Dim>& dims) {
    ir::List list;
    for (const ir::Dim& d : dims) list.items.push_back(d.is_symbolic() ? ir::Argument(d) : ir::Argument(d.value()));
    return list;
  };
  ir::Node n;
  n.target = "aten.empty_strided";
  n.args = {to_list(t.sizes), to_list(t.strides)};
  n.kwargs = {{"dtype", t.dtype}, {"device", t.device}};
  n.results = {result};
  n.returns = {ir::Node::kSingle};
  n.location = location;
  return n;
}

}  // namespace

std::vector<std::set<size_t>> find_origins(const ir::Graph& backward, size_t saved, size_t tangents) {
  std::vector<std::set<size_t>> from(backward.values.size());
  for (size_t i = 0; i < tangents; ++i) from[backward.inputs[saved + i].value] = {i};
  for (const ir::Node& n : backward.body.nodes) {
    std::set<size_t> all;
    ir::for_each_use(n, [&](ir::ValueId id) { all.insert(from[id].begin(), from[id].end()); });
    for (const ir::ValueId r : n.results)
      if (r != ir::kNoValue) from[r] = all;
  }
  return from;
}

bool is_sum(const ir::Node& n) {
  const auto is_one = [](const ir::Argument& a) { const auto* i = a.as<int64_t>(); return i && *i == 1; };
  return n.target == "aten.add.Tensor" && n.args.size() >= 2 && n.args[0].as<ir::ValueRef>() && n.args[1].as<ir::ValueRef>() && std::all_of(n.args.begin() + 2, n.args.end(), is_one) &&
         std::all_of(n.kwargs.begin(), n.kwargs.end(), [&](const auto& k) { return is_one(k.second); });
}

TangentFacts find_tangent_facts(const ir::Graph& backward, size_t saved, size_t tangents) {
  TangentFacts facts;
  facts.spent_with.resize(tangents);
  const bool is_one = tangents < 2;   // all or nothing
  if (tangents == 1 && saved) facts.spent_with[0] = {0};
  std::vector<std::set<size_t>> from = is_one ? std::vector<std::set<size_t>>(backward.values.size()) : find_origins(backward, saved, tangents);
  if (!is_one) {
    // What follows from saved values alone is one: backward reads it in place of them.
    std::vector<bool> is_kept(backward.values.size(), false);
    for (size_t i = 0; i < saved; ++i) is_kept[backward.inputs[i].value] = true;
    std::vector<std::set<size_t>> spent(tangents);
    for (const ir::Node& n : backward.body.nodes) {
      bool reads = false;
      std::set<size_t> origins;
      ir::for_each_use(n, [&](ir::ValueId id) {
        reads = reads || is_kept[id];
        origins.insert(from[id].begin(), from[id].end());
      });
      if (origins.empty())
        for (const ir::ValueId r : n.results) if (r != ir::kNoValue) is_kept[r] = reads;
      if (reads)
        for (const size_t i : origins) spent[i].insert(origins.begin(), origins.end());
    }
    for (size_t i = 0; i < tangents; ++i) facts.spent_with[i].assign(spent[i].begin(), spent[i].end());   // one that reads nothing may come again
  }
  for (const ir::Argument& a : backward.body.outputs) {
    const auto* ref = a.as<ir::ValueRef>();
    facts.tangents_of.emplace_back();
    if (!ref) continue;
    for (size_t i = 0; i < tangents; ++i)   // one that follows from none of them (zeros of a fixed size) counts as following from all
      if (from[ref->id].empty() || from[ref->id].contains(i)) facts.tangents_of.back().push_back(i);
  }
  return facts;
}

std::vector<size_t> take_sums_apart(ir::Graph& backward, const std::set<std::string>& sums, size_t count) {
  std::vector<size_t> uses(backward.values.size(), 0);
  std::vector<const ir::Node*> made_by(backward.values.size(), nullptr);
  for (const ir::Node& n : backward.body.nodes) {
    ir::for_each_use(n, [&](ir::ValueId id) { ++uses[id]; });
    for (const ir::ValueId r : n.results)
      if (r != ir::kNoValue) made_by[r] = &n;
  }
  for (const ir::Argument& a : backward.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { ++uses[id]; });
  std::vector<size_t> gradient_of;
  std::vector<ir::Argument> outputs;
  for (size_t g = 0; g < backward.body.outputs.size(); ++g) {
    std::vector<ir::Argument> terms;   // the last one first
    ir::Argument rest = backward.body.outputs[g];
    for (const auto* ref = rest.as<ir::ValueRef>(); ref && g < count; ref = rest.as<ir::ValueRef>()) {
      const ir::Node* n = made_by[ref->id];
      if (!n || !is_sum(*n) || uses[ref->id] != 1 || !sums.contains(backward.value(ref->id).name)) break;   // what a derivative adds stays one term
      const ir::ValueId a = n->args[0].as<ir::ValueRef>()->id, b = n->args[1].as<ir::ValueRef>()->id;
      if (!same_kind(backward.values[a].type, backward.values[b].type) || !same_kind(backward.values[a].type, backward.values[ref->id].type)) break;
      terms.push_back(n->args[1]);
      rest = n->args[0];
    }
    terms.push_back(rest);
    for (auto t = terms.rbegin(); t != terms.rend(); ++t) {
      outputs.push_back(*t);
      gradient_of.push_back(g);
    }
  }
  if (outputs.size() == backward.body.outputs.size()) return gradient_of;
  backward.body.outputs = std::move(outputs);
  ir::remove_dead_code(backward, &exec::dispatcher_schemas());
  ir::renumber(backward, ir::Names::keep);
  return gradient_of;
}

BackwardGraph take_part(const ir::Graph& backward, size_t saved, const std::vector<bool>& given, bool is_symbolic) {
  const auto from = find_origins(backward, saved, given.size());
  const auto is_absent = [&](ir::ValueId id) { return !from[id].empty() && std::none_of(from[id].begin(), from[id].end(), [&](size_t t) { return given[t]; }); };
  BackwardGraph part{.graph = backward};
  ir::Graph& g = part.graph;
  g.name += "_of_";
  for (const bool is : given) g.name += is ? '1' : '0';
  std::vector<ir::ValueId> stands_for(g.values.size());
  for (ir::ValueId id = 0; id < stands_for.size(); ++id) stands_for[id] = id;
  const auto replace = [&](ir::ValueId& id) { id = stands_for[id]; };
  std::vector<ir::Node> nodes;
  for (ir::Node& n : g.body.nodes) {
    if (is_sum(n)) {
      const ir::ValueId a = n.args[0].as<ir::ValueRef>()->id, b = n.args[1].as<ir::ValueRef>()->id;
      const ir::ValueId kept = is_absent(a) ? b : a, r = n.results[0];
      if (is_absent(a) != is_absent(b) && same_kind(g.values[kept].type, g.values[r].type)) {
        if (g.values[kept].type.tensor.strides == g.values[r].type.tensor.strides) {
          stands_for[r] = stands_for[kept];
        } else {   // views behind the sum were recorded for its layout
          const ir::ValueId memory = g.add_value("memory", g.values[r].type);
          nodes.push_back(make_memory(g.values[r].type.tensor, memory, n.location));
          n.target = "aten.copy";
          n.args = {ir::ValueRef{memory}, ir::ValueRef{stands_for[kept]}};
          n.kwargs.clear();
          nodes.push_back(std::move(n));
        }
        continue;
      }
    }
    for (ir::Argument& a : n.args) ir::for_each_value(a, replace);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, replace);
    nodes.push_back(std::move(n));
  }
  g.body.nodes = std::move(nodes);
  for (ir::Argument& a : g.body.outputs) {
    const auto* ref = a.as<ir::ValueRef>();
    if (ref && is_absent(ref->id)) a = ir::None{};
    else ir::for_each_value(a, replace);
  }
  ir::remove_dead_code(g, &exec::dispatcher_schemas());
  for (const size_t i : ir::remove_unused_inputs(g)) {
    if (i < saved) part.saved.push_back(i);
    else if (i < saved + given.size()) part.tangents.push_back(i - saved);
  }
  ir::renumber(g, ir::Names::keep);
  if (is_symbolic) part.symbol_inputs = add_symbol_inputs(g);
  return part;
}

}  // namespace cutaway::aot
