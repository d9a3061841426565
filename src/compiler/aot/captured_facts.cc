#include "compiler/aot/captured_facts.h"

#include <algorithm>

#include "core/exec/interpreter.h"
#include "core/trace/value_checks.h"

namespace cutaway::aot {
namespace {

void collect_locations(const ir::Block& block, ir::LocationId around, std::vector<ir::LocationId>& by_position) {
  for (const ir::Node& n : block.nodes) {
    const ir::LocationId here = n.location != ir::kNoLocation ? n.location : around;
    if (n.kind == ir::Node::Kind::op) by_position.push_back(here);
    for (const ir::Block& r : n.regions) collect_locations(r, here, by_position);
  }
}

}  // namespace

bool writes_to_arguments(const ir::Graph& graph) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) {
    if (n.kind != ir::Node::Kind::op || found) return;
    const auto* schema = exec::dispatcher_schemas().find(n.target);
    found = schema && std::any_of(schema->args.begin(), schema->args.end(), [](const ir::Schema::Arg& a) { return a.is_written; });
  });
  return found;
}

std::vector<ir::LocationId> locations_by_position(const ir::Graph& graph) {
  std::vector<ir::LocationId> list;
  collect_locations(graph.body, ir::kNoLocation, list);
  return list;
}

bool takes_data(const ir::Graph& graph) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { found = found || n.target == "aten.data"; });
  return found;
}

bool uses_offsets(const ir::Graph& graph) {
  bool found = false;
  ir::for_each_node(graph.body, [&](const ir::Node& n) { found = found || n.target.starts_with("aten.as_strided"); });
  return found;
}

std::string_view checking_operator(const std::string& target) {
  const auto op = ir::split_op_name(target);
  return op ? trace::checking_operator(op->overload.empty() ? op->name : op->name + "." + op->overload) : std::string_view();
}

}  // namespace cutaway::aot
