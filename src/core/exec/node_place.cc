#include "core/exec/node_place.h"

#include "core/ir/text.h"

namespace cutaway::exec {
namespace {

/// Counts the nodes of the same text before it, so that of several equal lines the right one is found.
size_t equal_lines_before(const ir::Graph& graph, const ir::Node& node, const std::string& text) {
  size_t count = 0;
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    if (&n == &node) found = true;
    if (!found && n.target == node.target && ir::print_node(graph, n) == text) ++count;
  });
  return count;
}

std::string user_line(const ir::Graph& graph, const ir::Node& node) {
  if (node.location == ir::kNoLocation || node.location >= graph.locations.size()) return {};
  const ir::Location& l = graph.locations[node.location];
  if (!l.is_known()) return {};
  std::string out = l.file + ":" + std::to_string(l.line);
  if (!l.function.empty()) out += " in " + l.function;
  if (!l.module.empty()) out += " (" + l.module + ")";
  return out;
}

}  // namespace

std::string describe_node(const ir::Graph& graph, const ir::Node& node) {
  std::string text = ir::print_node(graph, node);
  if (size_t comment = text.rfind("  #"); comment != std::string::npos && !user_line(graph, node).empty()) {
    text.resize(comment);   // said in words below
    while (!text.empty() && text.back() == ' ') text.pop_back();
  }
  const std::string line = user_line(graph, node);
  return line.empty() ? text : text + " at " + line;
}

base::Error at_node(base::Error error, const ir::Graph& graph, const ir::Node& node) {
  const std::string text = ir::print_node(graph, node);
  const std::string printed = ir::print(graph, {.header = true});
  // Up to the comment, which may be printed elsewhere on the line.
  const std::string_view head = std::string_view(text).substr(0, text.find("  #"));
  size_t skip = equal_lines_before(graph, node, text), line_number = 0;
  std::string_view rest = printed;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    ++line_number;
    const size_t start = line.find_first_not_of(' ');
    if (start != std::string_view::npos && line.substr(start).starts_with(head) && skip-- == 0) {
      if (error.place.empty()) error.place = "<graph>:" + std::to_string(line_number) + ":" + std::to_string(start + 1);
      break;
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  if (error.excerpt.empty()) error.excerpt = "   " + describe_node(graph, node);
  return error;
}

const ir::Node* op_at(const ir::Graph& graph, size_t position) {
  const ir::Node* found = nullptr;
  size_t next = 0;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    if (n.kind == ir::Node::Kind::op && next++ == position) found = &n;
  });
  return found;
}

}  // namespace cutaway::exec
