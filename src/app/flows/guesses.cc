#include "app/flows/guesses.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/ir/op_name.h"
#include "core/ir/text.h"
#include "diagnosis/minify/prune.h"
#include "diagnosis/oracle/fx_name.h"

namespace cutaway::flows {
namespace {

bool runs_op(const ir::Node& n, const std::string& op) {
  if (ir::is_op(op, n.target)) return true;   // a captured call by its own name, too
  for (const ir::Block& r : n.regions)
    for (const ir::Node& inner : r.nodes)
      if (runs_op(inner, op)) return true;
  return false;
}

// Operator, types of its tensors, literals: nodes that agree compile to the same code.
std::string guessed_kind(const ir::Graph& g, const ir::Node& n) {
  std::string text = n.target + "(";
  auto add = [&](const ir::Argument& a) {
    if (auto* r = a.as<ir::ValueRef>()) text += g.value(r->id).type.text();
    else if (auto* l = a.as<ir::List>()) {
      text += "[";
      for (const auto& x : l->items) { if (auto* r = x.as<ir::ValueRef>()) text += g.value(r->id).type.text(); else text += ir::print_argument(g, x); text += ","; }
      text += "]";
    } else text += ir::print_argument(g, a);
    text += ",";
  };
  for (const auto& a : n.args) add(a);
  for (const auto& [k, a] : n.kwargs) { text += k + "="; add(a); }
  return text + ")";
}

minify::Case only(const minify::Case& c, const std::vector<size_t>& positions, minify::RecordedValues& values) {
  minify::Case small = c;
  std::vector<bool> removed(c.graph.body.nodes.size(), true);
  for (size_t p : positions) removed[p] = false;
  minify::remove_nodes(small, std::move(removed), {&values, nullptr});
  return small;
}

}  // namespace

minify::Guesses make_guesses(const minify::Case& c, minify::RecordedValues& values, const Hints& hints) {
  constexpr size_t kFew = 6, kManyAlone = 64;
  const ir::Graph& g = c.graph;
  struct Kind { size_t first, count; };
  std::map<std::string, Kind> kinds;
  std::vector<size_t> order;   // the first node of each kind
  std::vector<std::string> kind(g.body.nodes.size());
  for (size_t i = 0; i < g.body.nodes.size(); ++i) {
    kind[i] = guessed_kind(g, g.body.nodes[i]);
    auto [it, is_new] = kinds.try_emplace(kind[i], Kind{i, 0});
    ++it->second.count;
    if (is_new) order.push_back(i);
  }
  minify::Guesses guesses;
  if (!hints.op.empty())
    for (size_t i : order)
      if (runs_op(g.body.nodes[i], hints.op)) guesses.push_back(only(c, {i}, values));

  const std::set<std::string> named(hints.suspects.begin(), hints.suspects.end());
  std::vector<size_t> suspects;
  std::set<std::string> met;
  for (size_t i = 0; i < g.body.nodes.size() && !named.empty(); ++i) {
    const std::vector<ir::ValueId>& results = g.body.nodes[i].results;
    const bool is_named = std::any_of(results.begin(), results.end(), [&](ir::ValueId id) { return named.count(oracle::fx_name(g.value(id).name)) > 0; });
    if (is_named && met.insert(kind[i]).second) suspects.push_back(i);
  }
  const auto add_alone = [&](std::vector<size_t> alone) {
    // A compiler that fails on what the graph is full of would have failed earlier.
    std::stable_sort(alone.begin(), alone.end(), [&](size_t a, size_t b) { return kinds.at(kind[a]).count < kinds.at(kind[b]).count; });
    for (size_t i : alone) guesses.push_back(only(c, {i}, values));
  };
  if (suspects.size() <= kFew) add_alone({suspects.rbegin(), suspects.rend()});
  if (suspects.size() > 1) guesses.push_back(only(c, suspects, values));
  if (hints.is_hang && order.size() <= kManyAlone) add_alone({order.rbegin(), order.rend()});
  if (order.size() < g.body.nodes.size()) guesses.push_back(only(c, order, values));
  return guesses;
}

}  // namespace cutaway::flows
