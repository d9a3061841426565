#include "diagnosis/report/draw_graph.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/text.h"
#include "core/ir/text.h"
#include "diagnosis/report/html.h"
#include "diagnosis/report/layout.h"

namespace cutaway::report {
namespace {

constexpr double kCharacter = 7.9, kLine = 18, kPadX = 12, kPadY = 9, kMargin = 8;   // 13 px, in the widest of the usual fixed-width fonts
constexpr double kLeastScale = 0.7;   // on a narrow screen the picture shrinks so far, then it scrolls
constexpr size_t kMaxCharacters = 36, kMaxBoxes = 400;

struct DrawnBox {
  std::string shape;                  // class: input, op, call, output
  std::vector<std::string> lines;
  std::string tip;                    // everything in full, shown on hover and read aloud
  bool is_marked = false;
};

/// Boxes in program order and the arrows between them.
struct Boxes {
  const ir::Graph& graph;
  const Marks& marks;
  std::vector<DrawnBox> boxes;
  std::vector<Edge> edges;
  std::unordered_map<ir::ValueId, size_t> source;   // which box defines a value

  void add_input(const ir::Input& in) {
    const ir::Value& v = graph.value(in.value);
    static constexpr const char* kinds[] = {"input", "parameter", "buffer", "constant"};
    const std::string kind = kinds[static_cast<size_t>(in.kind) & 3];
    source[in.value] = boxes.size();
    boxes.push_back({"input", {"%" + v.name, v.type.text()}, kind + " %" + v.name + ": " + v.type.text() + (in.qualified_name.empty() ? "" : " (" + in.qualified_name + ")"), false});
  }
  void use(const ir::Argument& a, size_t box) {
    ir::for_each_value(a, [&](ir::ValueId id) {
      if (auto it = source.find(id); it != source.end() && it->second < box) edges.push_back({it->second, box});
    });
  }
  void use_all(const ir::Node& n, size_t box) {
    for (const auto& a : n.args) use(a, box);
    for (const auto& [key, a] : n.kwargs) use(a, box);
    for (const ir::Block& region : n.regions) {
      for (const ir::Node& inner : region.nodes) use_all(inner, box);
      for (const auto& a : region.outputs) use(a, box);
    }
  }
  bool is_marked(const ir::Node& n) const {
    if (marks.nodes.contains(&n)) return true;
    for (const ir::Block& region : n.regions)
      for (const ir::Node& inner : region.nodes)
        if (is_marked(inner)) return true;
    return false;
  }
  void add_block(const ir::Block& block) {
    for (const ir::Node& n : block.nodes) {
      if (n.kind == ir::Node::Kind::scope) {
        for (const ir::Block& region : n.regions) {
          add_block(region);
          for (size_t i = 0; i < n.results.size() && i < region.outputs.size(); ++i)
            if (const auto* r = region.outputs[i].as<ir::ValueRef>())
              if (auto it = source.find(r->id); it != source.end()) source[n.results[i]] = it->second;
        }
        continue;
      }
      const size_t box = boxes.size();
      DrawnBox drawn{n.kind == ir::Node::Kind::call ? "call" : "op", {n.target}, ir::print_node(graph, n), is_marked(n)};
      if (n.results.size() == 1) drawn.lines.push_back("%" + graph.value(n.results[0]).name + ": " + graph.value(n.results[0]).type.text());
      else if (!n.results.empty()) drawn.lines.push_back("%" + graph.value(n.results[0]).name + " and " + std::to_string(n.results.size() - 1) + " more");
      if (n.location < graph.locations.size() && graph.locations[n.location].is_known()) {
        const ir::Location& l = graph.locations[n.location];
        drawn.lines.push_back(l.file.substr(l.file.rfind('/') + 1) + ":" + std::to_string(l.line));
      }
      if (drawn.is_marked && !marks.label.empty()) drawn.lines.push_back(marks.label);
      boxes.push_back(std::move(drawn));
      use_all(n, box);
      for (ir::ValueId id : n.results) source[id] = box;
    }
  }
  void add_outputs() {
    const size_t box = boxes.size();
    std::string names;
    for (const auto& a : graph.body.outputs) names += (names.empty() ? "" : ", ") + ir::print_argument(graph, a);
    boxes.push_back({"output", {"return"}, "returns " + names, false});
    for (const auto& a : graph.body.outputs) use(a, box);
  }
};

std::string path_of(const std::vector<Point>& points, double dx, double dy) {
  const auto at = [&](double x, double y) { return fixed(x + dx) + " " + fixed(y + dy); };
  std::string d = "M" + at(points[0].x, points[0].y);
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &a = points[i - 1], &b = points[i];
    const double middle = (a.y + b.y) / 2;
    if (i % 2 == 0 || a.x == b.x) d += " L" + at(b.x, b.y);
    else d += " C" + at(a.x, middle) + " " + at(b.x, middle) + " " + at(b.x, b.y);
  }
  return d;
}

}  // namespace

Picture draw_graph(const ir::Graph& graph, const Marks& marks) {
  const size_t nodes = ir::count_nodes(graph);
  if (nodes > kMaxDrawnNodes) return {"", "Not drawn: " + base::count_of(nodes, "node") + " would not be readable (the limit is " + std::to_string(kMaxDrawnNodes) + ")."};
  if (graph.inputs.size() > kMaxBoxes) return {"", "Not drawn: " + base::count_of(graph.inputs.size(), "input") + " would not be readable (the limit is " + std::to_string(kMaxBoxes) + ")."};
  Boxes b{graph, marks, {}, {}, {}};
  for (const ir::Input& in : graph.inputs) b.add_input(in);
  b.add_block(graph.body);
  b.add_outputs();

  std::vector<Box> sizes;
  for (DrawnBox& box : b.boxes) {
    size_t widest = 4;
    for (std::string& line : box.lines) {
      line = shorten(line, kMaxCharacters);
      widest = std::max(widest, count_characters(line));
    }
    sizes.push_back({static_cast<double>(widest) * kCharacter + 2 * kPadX, static_cast<double>(box.lines.size()) * kLine + 2 * kPadY});
  }
  const std::optional<Layout> layout = lay_out(sizes, b.edges);
  if (!layout) return {"", "Not drawn: too many long edges to be readable."};

  std::string out = "<svg class=\"graph\" role=\"img\" aria-labelledby=\"graph-title graph-desc\" xmlns=\"http://www.w3.org/2000/svg\" width=\"" + fixed(layout->width + 2 * kMargin) + "\" height=\"" +
                    fixed(layout->height + 2 * kMargin) + "\" viewBox=\"0 0 " + fixed(layout->width + 2 * kMargin) + " " + fixed(layout->height + 2 * kMargin) + "\" style=\"min-width: " + fixed((layout->width + 2 * kMargin) * kLeastScale) + "px\">\n";
  out += "<title id=\"graph-title\">The graph" + (graph.name.empty() ? "" : " " + escape(graph.name)) + "</title>\n<desc id=\"graph-desc\">" + base::count_of(nodes, "node") + ", " +
         base::count_of(graph.inputs.size(), "input") + ", drawn from top to bottom in the order in which values flow. The same graph follows as text.</desc>\n";
  out += "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path class=\"tip\" d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n";
  for (const Layout::Route& r : layout->routes) out += "<path class=\"edge\" d=\"" + path_of(r.points, kMargin, kMargin) + "\" marker-end=\"url(#arrow)\"/>\n";
  for (size_t i = 0; i < b.boxes.size(); ++i) {
    const DrawnBox& box = b.boxes[i];
    const Point centre{layout->centres[i].x + kMargin, layout->centres[i].y + kMargin};
    const double top = centre.y - sizes[i].height / 2;
    out += "<g class=\"box " + box.shape + (box.is_marked ? " marked" : "") + "\"><title>" + escape(shorten(box.tip, 400)) + "</title><rect x=\"" + fixed(centre.x - sizes[i].width / 2) + "\" y=\"" + fixed(top) +
           "\" width=\"" + fixed(sizes[i].width) + "\" height=\"" + fixed(sizes[i].height) + "\" rx=\"" + (box.shape == "op" || box.shape == "call" ? "6" : "16") + "\"/>";
    for (size_t l = 0; l < box.lines.size(); ++l)
      out += "<text class=\"" + std::string(l == 0 ? "name" : box.is_marked && l + 1 == box.lines.size() ? "mark" : "detail") + "\" x=\"" + fixed(centre.x) + "\" y=\"" +
             fixed(top + kPadY + static_cast<double>(l) * kLine + 13) + "\">" + escape(box.lines[l]) + "</text>";
    out += "</g>\n";
  }
  return {out + "</svg>\n", ""};
}

}  // namespace cutaway::report
