// Equality of what the text form shows. Values are compared by their names, not by their ids, which the text does not show.
#include "core/ir/graph.h"

namespace cutaway::ir {
namespace {

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool graphs() const {
    if (a_.name != b_.name || a_.inputs.size() != b_.inputs.size()) return false;
    for (size_t i = 0; i < a_.inputs.size(); ++i) {
      const Input &x = a_.inputs[i], &y = b_.inputs[i];
      if (x.kind != y.kind || x.qualified_name != y.qualified_name || !definitions(x.value, y.value)) return false;
    }
    return blocks(a_.body, b_.body);
  }

 private:
  bool uses(ValueId x, ValueId y) const {
    const bool x_known = x < a_.values.size(), y_known = y < b_.values.size();
    if (!x_known || !y_known) return x_known == y_known && x == y;
    return a_.value(x).name == b_.value(y).name;
  }
  bool definitions(ValueId x, ValueId y) const {
    return uses(x, y) && (x >= a_.values.size() || a_.value(x).type == b_.value(y).type);
  }
  bool lists(const std::vector<Argument>& x, const std::vector<Argument>& y) const {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!arguments(x[i], y[i])) return false;
    return true;
  }
  bool named(const std::vector<std::pair<std::string, Argument>>& x, const std::vector<std::pair<std::string, Argument>>& y) const {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i].first != y[i].first || !arguments(x[i].second, y[i].second)) return false;
    return true;
  }
  bool arguments(const Argument& x, const Argument& y) const {
    if (x.v.index() != y.v.index()) return false;
    if (auto* r = x.as<ValueRef>()) return uses(r->id, y.as<ValueRef>()->id);
    if (auto* l = x.as<List>()) return lists(l->items, y.as<List>()->items);
    if (auto* t = x.as<Tuple>()) return lists(t->items, y.as<Tuple>()->items);
    if (auto* s = x.as<Slice>()) return lists(s->parts, y.as<Slice>()->parts);
    if (auto* d = x.as<Dict>()) return named(d->items, y.as<Dict>()->items);
    return x == y;
  }
  static Location location(const Graph& g, const Node& n) { return n.location < g.locations.size() ? g.locations[n.location] : Location{}; }
  bool locations(const Node& x, const Node& y) const {
    const bool x_known = x.location < a_.locations.size(), y_known = y.location < b_.locations.size();
    if (x_known && y_known) return a_.locations[x.location] == b_.locations[y.location];
    return location(a_, x) == location(b_, y);
  }
  bool nodes(const Node& x, const Node& y) const {
    if (x.kind != y.kind || x.target != y.target || x.returns != y.returns || x.results.size() != y.results.size() ||
        x.state != y.state || x.regions.size() != y.regions.size() || !locations(x, y))
      return false;
    for (size_t i = 0; i < x.results.size(); ++i)
      if (!definitions(x.results[i], y.results[i])) return false;
    if (!lists(x.args, y.args) || !named(x.kwargs, y.kwargs)) return false;
    for (size_t i = 0; i < x.regions.size(); ++i)
      if (!blocks(x.regions[i], y.regions[i])) return false;
    return true;
  }
  bool blocks(const Block& x, const Block& y) const {
    if (x.nodes.size() != y.nodes.size()) return false;
    for (size_t i = 0; i < x.nodes.size(); ++i)
      if (!nodes(x.nodes[i], y.nodes[i])) return false;
    return lists(x.outputs, y.outputs);
  }

  const Graph &a_, &b_;
};

}  // namespace

bool identical(const Graph& a, const Graph& b) { return Comparison(a, b).graphs(); }

}  // namespace cutaway::ir
