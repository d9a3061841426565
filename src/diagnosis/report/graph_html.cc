#include "diagnosis/report/graph_html.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/ir/text.h"
#include "diagnosis/report/html.h"

namespace cutaway::report {
namespace {

constexpr size_t kGraphTextLines = 3000;

}  // namespace

std::string scroll(const std::string& label, const std::string& inner) { return "<div class=\"scroll\" role=\"region\" aria-label=\"" + escape(label) + "\" tabindex=\"0\">\n" + inner + "</div>\n"; }

std::string picture_html(const ir::Graph& graph, const Marks& marks) {
  const Picture picture = draw_graph(graph, marks);
  if (picture.svg.empty()) return "<p class=\"quiet\">" + escape(picture.reason) + "</p>\n";
  return "<figure>\n" + scroll("Picture of the graph", picture.svg) + "</figure>\n";
}

std::string graph_text_html(const ir::Graph& graph, const Marks& marks) {
  // The printer writes each definition as "%name: type" before " = ".
  std::set<std::string> names;
  for (const ir::Node* n : marks.nodes)
    for (ir::ValueId id : n->results) names.insert("%" + graph.value(id).name + ":");
  const auto is_marked = [&](std::string_view line) {
    const std::string_view left = line.substr(0, std::min(line.find(" = "), line.size()));
    return left.size() < line.size() && std::any_of(names.begin(), names.end(), [&](const std::string& n) { return left.find(n) != std::string_view::npos; });
  };
  const std::string text = ir::print(graph);
  std::string lines;
  size_t count = 0, rest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (++count > kGraphTextLines) { ++rest; continue; }
    lines += is_marked(line) ? "<mark>" + escape(line) + "</mark>\n" : escape(line) + "\n";
  }
  std::string out = "<pre tabindex=\"0\" aria-label=\"The graph as text\"><code>" + lines + "</code></pre>\n";
  if (rest > 0) out += "<p class=\"quiet\">And " + base::count_of(rest, "more line") + ": <code>cutaway show</code> prints them all.</p>\n";
  return out;
}

}  // namespace cutaway::report
