#include "compiler/codegen/flash_attention.h"

#include <set>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/views.h"
#include "core/ir/edit.h"

namespace cutaway::codegen {
namespace {

constexpr int64_t kMostPlaces = 512;   ///< of a sequence: beyond, the work itself counts

/// The arguments of the flash kernel; none when this one stays.
std::optional<std::vector<ir::Argument>> flash_arguments(const ir::Graph& g, const ir::Node& n) {
  // query, key, value, mask, whether sums are wanted, dropout, causal, debug mask; the last ones may be missing
  if (n.args.size() < 5 || n.args.size() > 8 || n.results.size() != 9 || !n.args[3].is_none()) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    const auto* r = n.args[i].as<ir::ValueRef>();
    const auto s = r ? shape_of(g.value(r->id).type) : std::nullopt;
    if (!s || s->sizes.size() != 4 || s->numel() == 0 || s->strides[3] != 1 || s->sizes[3] % 8 != 0 || s->sizes[3] > 128 || s->sizes[2] > kMostPlaces) return std::nullopt;
    const ir::DType d = g.value(r->id).type.tensor.dtype;
    if (d != ir::DType::bf16 && d != ir::DType::f16) return std::nullopt;
    if (i > 0 && s->sizes[1] != shape_of(g.value(n.args[0].as<ir::ValueRef>()->id).type)->sizes[1]) return std::nullopt;
  }
  if (n.args.size() > 5 && !(n.args[5].as<double>() && *n.args[5].as<double>() == 0)) return std::nullopt;
  bool causal = false;
  if (n.args.size() > 6) {
    if (!n.args[6].as<bool>()) return std::nullopt;
    causal = *n.args[6].as<bool>();
  }
  if (n.args.size() > 7 && !(n.args[7].as<bool>() && !*n.args[7].as<bool>())) return std::nullopt;
  for (const auto& [key, a] : n.kwargs)
    if (key != "scale") return std::nullopt;
  const Shape q = *shape_of(g.value(n.args[0].as<ir::ValueRef>()->id).type), k = *shape_of(g.value(n.args[1].as<ir::ValueRef>()->id).type);
  if (causal && q.sizes[2] != k.sizes[2]) return std::nullopt;   // they differ in where the triangle begins
  return std::vector<ir::Argument>{n.args[0], n.args[1], n.args[2], 0.0, causal};
}

}  // namespace

void choose_attention(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  if (options.off.contains("flash attention")) return;
  std::set<ir::ValueId> used;
  for (const ir::Node& n : g.body.nodes) for_each_use_inside(n, [&](ir::ValueId id) { used.insert(id); });
  for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { used.insert(id); });
  for (ir::Node& n : g.body.nodes) {
    if (n.kind != ir::Node::Kind::op || n.target != "aten._scaled_dot_product_cudnn_attention" || static_cast<int64_t>(done.size()) >= options.fuel) continue;
    auto args = flash_arguments(g, n);
    for (size_t i = 1; args && i < n.results.size(); ++i)
      if (used.contains(n.results[i])) args.reset();
    if (!args) continue;
    n.target = "aten._scaled_dot_product_flash_attention";
    n.args = std::move(*args);
    done.push_back({"flash attention", g.value(n.results[0]).name});
  }
}

}  // namespace cutaway::codegen
