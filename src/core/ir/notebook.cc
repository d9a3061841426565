#include "core/ir/notebook.h"

#include "core/ir/text.h"

namespace cutaway::ir {
namespace {

std::string counted(size_t n, std::string_view thing) { return std::to_string(n) + " " + std::string(thing) + (n == 1 ? "" : "s"); }

}  // namespace

std::string summary(const Graph& g) {
  return "<Graph" + (g.name.empty() ? std::string() : " " + g.name) + ": " + counted(g.inputs.size(), "input") + ", " + counted(count_nodes(g), "node") + ", " +
         counted(g.body.outputs.size(), "output") + ">";
}

ValueId find_value(const Graph& g, std::string_view name) {
  ValueId found = kNoValue;
  const auto look = [&](ValueId id) { if (id < g.values.size() && g.values[id].name == name) found = id; };
  for (const Input& in : g.inputs) look(in.value);
  for_each_node(g.body, [&](const Node& n) { for (ValueId id : n.results) look(id); });
  return found;
}

}  // namespace cutaway::ir
