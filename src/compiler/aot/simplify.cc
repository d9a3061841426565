#include "compiler/aot/simplify.h"

#include <algorithm>
#include <vector>

namespace cutaway::aot {

void simplify(ir::Graph& graph) {
  std::vector<ir::ValueId> stands_for(graph.values.size());
  for (ir::ValueId id = 0; id < stands_for.size(); ++id) stands_for[id] = id;
  std::vector<bool> is_returned(graph.values.size(), false);
  for (const ir::Argument& a : graph.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { is_returned[id] = true; });
  auto replace = [&](ir::ValueId& id) { id = stands_for[id]; };
  std::erase_if(graph.body.nodes, [&](ir::Node& n) {
    for (ir::Argument& a : n.args) ir::for_each_value(a, replace);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, replace);
    if ((n.target != "aten.detach" && n.target != "aten.alias") || is_returned[n.results[0]]) return false;
    const auto* from = n.args[0].as<ir::ValueRef>();
    if (!from) return false;
    stands_for[n.results[0]] = from->id;
    return true;
  });
}

}  // namespace cutaway::aot
