#include "core/ir/notebook.h"

#include "core/base/markup.h"
#include "core/ir/printer.h"
#include "core/ir/text.h"

namespace cutaway::ir {
namespace {

constexpr size_t kMaxRows = 200;

std::string counted(size_t n, std::string_view thing) { return std::to_string(n) + " " + std::string(thing) + (n == 1 ? "" : "s"); }

}  // namespace

std::string summary(const Graph& g) {
  return "<Graph" + (g.name.empty() ? std::string() : " " + g.name) + ": " + counted(g.inputs.size(), "input") + ", " + counted(count_nodes(g), "node") + ", " +
         counted(g.body.outputs.size(), "output") + ">";
}

std::string html_table(const Graph& g) {
  std::string out = "<table><caption>" + base::escape_markup(summary(g)) + "</caption><tr><th>result</th><th>operator</th><th>source</th></tr>";
  size_t rows = 0;
  const auto row = [&](std::string_view a, std::string_view b, std::string_view c) {
    if (++rows <= kMaxRows) out += "<tr><td><code>" + base::escape_markup(a) + "</code></td><td><code>" + base::escape_markup(b) + "</code></td><td>" + base::escape_markup(c) + "</td></tr>";
  };
  for (const Input& in : g.inputs) row("%" + g.value(in.value).name + ": " + g.value(in.value).type.text(), "input", in.qualified_name);
  for (const Node& n : g.body.nodes) {
    const std::string text = print_node(g, n);
    const size_t equals = n.returns.empty() ? std::string::npos : text.find(" = ");
    std::string source;
    if (n.location < g.locations.size()) write_location(source, g.locations[n.location]);
    row(equals == std::string::npos ? "" : text.substr(0, equals), equals == std::string::npos ? text : text.substr(equals + 3), source);
  }
  std::string outputs;
  for (const Argument& a : g.body.outputs) outputs += (outputs.empty() ? "" : ", ") + print_argument(g, a);
  if (rows > kMaxRows) out += "<tr><td colspan=3>and " + counted(rows - kMaxRows, "more row") + "</td></tr>";
  return out + "<tr><td>return</td><td><code>" + base::escape_markup(outputs) + "</code></td><td></td></tr></table>";
}

ValueId find_value(const Graph& g, std::string_view name) {
  ValueId found = kNoValue;
  const auto look = [&](ValueId id) { if (id < g.values.size() && g.values[id].name == name) found = id; };
  for (const Input& in : g.inputs) look(in.value);
  for_each_node(g.body, [&](const Node& n) { for (ValueId id : n.results) look(id); });
  return found;
}

}  // namespace cutaway::ir
