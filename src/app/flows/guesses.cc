#include "app/flows/guesses.h"

#include <map>

#include "core/ir/text.h"
#include "diagnosis/minify/prune.h"

namespace cutaway::flows {
namespace {

bool is_op(const std::string& wanted, const std::string& target) {
  return target == wanted || (target.size() > wanted.size() && target.compare(0, wanted.size(), wanted) == 0 && target[wanted.size()] == '.');
}

bool runs_op(const ir::Node& n, const std::string& op) {
  if (n.kind == ir::Node::Kind::op) return is_op(op, n.target);
  for (const ir::Block& r : n.regions)
    for (const ir::Node& inner : r.nodes)
      if (runs_op(inner, op)) return true;
  return false;
}

// Operator, types of its tensors, literals: nodes that agree compile to the same code.
std::string kind_of(const ir::Graph& g, const ir::Node& n) {
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

minify::Guesses make_guesses(const minify::Case& c, minify::RecordedValues& values, const std::string& op) {
  const ir::Graph& g = c.graph;
  std::map<std::string, size_t> first;   // kind -> first node
  std::vector<size_t> order;
  for (size_t i = 0; i < g.body.nodes.size(); ++i)
    if (first.emplace(kind_of(g, g.body.nodes[i]), i).second) order.push_back(i);
  minify::Guesses guesses;
  if (!op.empty())
    for (size_t i : order)
      if (runs_op(g.body.nodes[i], op)) guesses.push_back(only(c, {i}, values));
  if (order.size() * 2 < g.body.nodes.size() || order.size() < g.body.nodes.size()) {
    minify::Case all = only(c, order, values);
    guesses.push_back(std::move(all));
  }
  return guesses;
}

}  // namespace cutaway::flows
