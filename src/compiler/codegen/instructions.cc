#include "compiler/codegen/instructions.h"

#include <set>
#include <vector>

#include "core/ir/text.h"

namespace cutaway::codegen {
namespace {

/// What a node uses that nothing behind it does, by node; inputs too, which a boxed call gives away.
std::vector<std::vector<ir::ValueId>> last_uses(const ir::Graph& g) {
  std::vector<std::vector<ir::ValueId>> out(g.body.nodes.size());
  std::set<ir::ValueId> used;
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { used.insert(id); });
  for (size_t i = g.body.nodes.size(); i-- > 0;) {
    std::set<ir::ValueId> inside;   // what a region defines is gone with it
    ir::for_each_node(g.body.nodes[i].regions.empty() ? ir::Block{} : g.body.nodes[i].regions[0], [&](const ir::Node& n) { inside.insert(n.results.begin(), n.results.end()); });
    for_each_use_inside(g.body.nodes[i], [&](ir::ValueId id) { if (!inside.contains(id) && used.insert(id).second) out[i].push_back(id); });
  }
  return out;
}

}  // namespace

std::string instructions_text(const Program& program) {
  const ir::Graph& g = program.graph;
  const auto names = [&](const auto& ids) {
    std::string out;
    for (ir::ValueId id : ids) out += (out.empty() ? "%" : ", %") + g.value(id).name;
    return out;
  };
  std::string out;
  for (const ir::Input& i : g.inputs) out += "input   %" + g.value(i.value).name + ": " + g.value(i.value).type.text() + "\n";
  const auto freed = last_uses(g);
  for (size_t i = 0; i < g.body.nodes.size(); ++i) {
    const ir::Node& n = g.body.nodes[i];
    std::string head = std::to_string(i);
    head.resize(std::max<size_t>(head.size() + 1, 5), ' ');
    out += head + (n.kind != ir::Node::Kind::call ? "torch    " : n.target.starts_with("native.p") ? "product  " : "kernel   ");
    std::string operands;
    ir::for_each_use(n, [&](ir::ValueId id) { operands += (operands.empty() ? "%" : ", %") + g.value(id).name; });
    out += names(n.results) + " = " + n.target + "(" + operands + ")";
    if (!freed[i].empty()) out += "   frees " + names(freed[i]);
    if (n.location != ir::kNoLocation)
      if (const ir::Location& l = g.locations[n.location]; l.is_known()) out += "   # " + l.file.substr(l.file.rfind('/') + 1) + ":" + std::to_string(l.line);
    out += "\n";
  }
  std::string returned;
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { returned += (returned.empty() ? "%" : ", %") + g.value(id).name; });
  return out + "return  " + returned + "\n";
}

}  // namespace cutaway::codegen
