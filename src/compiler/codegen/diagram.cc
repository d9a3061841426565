#include "compiler/codegen/diagram.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/markup.h"

namespace cutaway::codegen {
namespace {

constexpr int kLine = 26, kBox = 20, kArcs = 160, kWidth = 1100;   // of the picture, in units of a pixel

std::string type_text(const ir::Type& t) {
  if (!t.is_tensor()) return "";
  std::string out = std::string(ir::dtype_name(t.tensor.dtype)) + "[";
  for (size_t i = 0; i < t.tensor.sizes.size(); ++i) out += (i ? ", " : "") + t.tensor.sizes[i].text();
  return out + "]";
}

std::string operators_of(const ir::Node& n) {
  std::string out;
  for (const ir::Block& b : n.regions)
    for (const ir::Node& inner : b.nodes) out += (out.empty() ? "" : ", ") + (inner.target.starts_with("aten.") ? inner.target.substr(5) : inner.target);
  return out;
}

struct Row { std::string text, hint, colour; };

}  // namespace

std::string diagram(const Program& program) {
  const ir::Graph& g = program.graph;
  std::vector<Row> rows;
  std::map<ir::ValueId, size_t> made;
  std::set<std::pair<size_t, size_t>> arcs;
  for (const ir::Input& i : g.inputs) {
    made[i.value] = rows.size();
    rows.push_back({"%" + g.value(i.value).name + "   " + type_text(g.value(i.value).type), "input", "#e8eef7"});
  }
  for (const ir::Node& n : g.body.nodes) {
    const size_t at = rows.size();
    for_each_use_inside(n, [&](ir::ValueId id) { if (const auto it = made.find(id); it != made.end()) arcs.emplace(it->second, at); });
    std::string values, types, place;
    for (ir::ValueId r : n.results) {
      made[r] = at;
      values += (values.empty() ? "%" : ", %") + g.value(r).name;
      types += (types.empty() ? "" : ", ") + type_text(g.value(r).type);
    }
    if (n.location != ir::kNoLocation) {
      const ir::Location& l = g.locations[n.location];
      place = "   " + l.file.substr(l.file.rfind('/') + 1) + ":" + std::to_string(l.line);
    }
    const std::string inside = operators_of(n);
    const bool is_call = n.kind == ir::Node::Kind::call;
    rows.push_back({values + " = " + n.target + (inside.empty() ? "" : " (" + (inside.size() > 60 ? inside.substr(0, 57) + "…" : inside) + ")") + "   " + types + place, inside.empty() ? n.target : inside,
                    !is_call ? "#eeeeee" : n.target.starts_with("native.p") ? "#f7e3c8" : "#d3efd6"});
  }
  const size_t end = rows.size();
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { if (const auto it = made.find(id); it != made.end()) arcs.emplace(it->second, end); });
  rows.push_back({"return", "outputs", "#e8eef7"});

  const auto y = [](size_t row) { return std::to_string(40 + static_cast<int>(row) * kLine); };
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) + "\" height=\"" + std::to_string(60 + static_cast<int>(rows.size()) * kLine) +
                    "\" font-family=\"monospace\" font-size=\"12\">\n<text x=\"10\" y=\"20\">" + base::escape_markup(g.name.empty() ? "graph" : g.name) +
                    ": inputs and outputs blue, kernels green, products orange, torch's operators grey</text>\n";
  for (const auto& [from, to] : arcs) {   // the longer, the further out
    const int reach = std::min<int>(kArcs - 10, 8 + static_cast<int>(to - from) * 6);
    const std::string x = std::to_string(kArcs), bend = std::to_string(kArcs - reach);
    out += "<path d=\"M" + x + " " + y(from) + " C" + bend + " " + y(from) + " " + bend + " " + y(to) + " " + x + " " + y(to) + "\" fill=\"none\" stroke=\"#7a8699\"/>\n";
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const int top = 40 + static_cast<int>(i) * kLine - kBox / 2;
    out += "<g><title>" + base::escape_markup(rows[i].hint) + "</title><rect x=\"" + std::to_string(kArcs) + "\" y=\"" + std::to_string(top) + "\" width=\"" + std::to_string(kWidth - kArcs - 10) + "\" height=\"" + std::to_string(kBox) +
           "\" rx=\"3\" fill=\"" + rows[i].colour + "\"/><text x=\"" + std::to_string(kArcs + 8) + "\" y=\"" + std::to_string(top + 14) + "\">" + base::escape_markup(rows[i].text) + "</text></g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace cutaway::codegen
