#include "core/exec/node_place.h"

#include "core/ir/source_place.h"
#include "core/ir/text.h"

namespace cutaway::exec {
namespace {

/// How many nodes before it print the same (only nodes without results can), so that of equal lines the right one is found.
size_t equal_lines_before(const ir::Graph& graph, const ir::Node& node, const std::string& text) {
  size_t count = 0;
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    if (&n == &node) found = true;
    if (!found && n.target == node.target && ir::print_node(graph, n) == text) ++count;
  });
  return count;
}

}  // namespace

std::string describe_node(const ir::Graph& graph, const ir::Node& node) {
  std::string text = ir::print_node(graph, node);
  if (node.location >= graph.locations.size()) return text;
  const ir::Location& l = graph.locations[node.location];
  if (!l.is_known()) return text;
  text += ", from " + l.file + ":" + std::to_string(l.line);
  if (!l.function.empty()) text += " in " + l.function;
  if (!l.module.empty()) text += " (" + l.module + ")";
  return text;
}

base::Error at_node(base::Error error, const ir::Graph& graph, const ir::Node& node) {
  if (!error.place.empty()) return error;
  const std::string head = ir::print_node(graph, node);
  const std::string printed = ir::print(graph, {.header = true});
  size_t skip = equal_lines_before(graph, node, head);
  for (size_t begin = 0; begin < printed.size();) {
    const size_t end = std::min(printed.find('\n', begin), printed.size());
    const size_t start = printed.find_first_not_of(' ', begin);
    if (start < end && printed.compare(start, head.size(), head) == 0 && skip-- == 0) {
      // The caret goes under the operator's name.
      const size_t target = node.target.empty() ? std::string::npos : printed.find(node.target, start);
      const bool shown = target < end;
      return ir::error_at(printed, "<graph>", shown ? target : start, shown ? node.target.size() : 1, std::move(error.what), std::move(error.because), std::move(error.hint));
    }
    begin = end + 1;
  }
  error.place = "<graph>";
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
