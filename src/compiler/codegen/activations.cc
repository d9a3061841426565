#include "compiler/codegen/activations.h"

#include <map>
#include <set>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/views.h"
#include "core/ir/edit.h"

namespace cutaway::codegen {
namespace {

using ir::DType;
using ir::ValueId;

/// None for what is no activation that cuBLASLt has; else whether it is gelu.
std::optional<bool> activation_of(const ir::Node& n) {
  if (n.kind != ir::Node::Kind::op || n.results.size() != 1 || n.args.empty() || !n.args[0].as<ir::ValueRef>()) return std::nullopt;
  if (n.target == "aten.relu") return false;
  if (n.target != "aten.gelu") return std::nullopt;
  const auto is_tanh = [](const ir::Argument& a) { return a.as<std::string>() && *a.as<std::string>() == "tanh"; };
  if (n.args.size() > 1 && is_tanh(n.args[1])) return true;
  for (const auto& [key, a] : n.kwargs)
    if (key == "approximate" && is_tanh(a)) return true;
  return std::nullopt;
}

bool is_joinable(const ir::Graph& g, const ir::Node& n) {
  if (n.kind != ir::Node::Kind::op || n.target != "aten.addmm" || n.args.size() != 3 || !n.kwargs.empty() || n.results.size() != 1) return false;
  const ir::TensorType& t = g.value(n.results[0]).type.tensor;
  const auto* bias = n.args[0].as<ir::ValueRef>();
  return t.device.type == "cuda" && (t.dtype == DType::f32 || t.dtype == DType::bf16 || t.dtype == DType::f16) && bias && g.value(bias->id).type.tensor.sizes.size() == 1;
}

}  // namespace

void join_activations(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  if (options.off.contains("activation")) return;
  std::map<ValueId, size_t> uses, made_by;
  auto& nodes = g.body.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_each_use_inside(nodes[i], [&](ValueId id) { ++uses[id]; });
    for (ValueId r : nodes[i].results) made_by[r] = i;
  }
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, [&](ValueId id) { ++uses[id]; });
  std::set<size_t> gone;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto is_gelu = activation_of(nodes[i]);
    if (!is_gelu || static_cast<int64_t>(done.size()) >= options.fuel) continue;
    const ValueId operand = nodes[i].args[0].as<ir::ValueRef>()->id;
    ValueId from = operand;   // through reshapes that nobody else looks at
    while (uses[from] == 1 && made_by.contains(from)) {
      const auto view = view_of(g, nodes[made_by[from]]);
      if (!view || view->kind != View::Kind::reshape) break;
      from = view->base;
    }
    if (uses[from] != 1 || !made_by.contains(from) || !is_joinable(g, nodes[made_by[from]])) continue;
    if (g.value(operand).type.text() != g.value(nodes[i].results[0]).type.text()) continue;
    ir::Node& product = nodes[made_by[from]];
    product.target = "aten._addmm_activation";
    product.kwargs = {{"use_gelu", *is_gelu}};
    nodes[made_by[operand]].results[0] = nodes[i].results[0];   // what came before it gives the activation's value, under its name
    gone.insert(i);
    done.push_back({"activation", g.value(nodes[i].results[0]).name});
  }
  std::vector<ir::Node> kept;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!gone.contains(i)) kept.push_back(std::move(nodes[i]));
  nodes = std::move(kept);
}

}  // namespace cutaway::codegen
