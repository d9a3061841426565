#include "compiler/codegen/plan.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace {

/// Operators of torch's that read their operands and give results of their own. One that is not here might give back what it was given, or a view of it:
/// what it reads is not planned.
bool gives_own_results(std::string_view target) {
  static const std::set<std::string_view> known = {
      "aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool2d_backward", "aten._log_softmax", "aten._log_softmax_backward_data", "aten._native_batch_norm_legit",
      "aten._native_batch_norm_legit_functional", "aten._safe_softmax", "aten._scaled_dot_product_flash_attention_for_cpu", "aten._scaled_dot_product_flash_attention_for_cpu_backward",
      "aten._softmax", "aten._softmax_backward_data", "aten.addmm", "aten.avg_pool2d", "aten.avg_pool2d_backward", "aten.baddbmm", "aten.bmm", "aten.cat", "aten.clone", "aten.convolution",
      "aten.convolution_backward", "aten.cumsum", "aten.embedding", "aten.embedding_dense_backward", "aten.empty_like", "aten.gather", "aten.index.Tensor", "aten.index_put", "aten.max_pool2d_with_indices",
      "aten.max_pool2d_with_indices_backward", "aten.mm", "aten.native_batch_norm", "aten.native_batch_norm_backward", "aten.native_group_norm", "aten.native_group_norm_backward", "aten.nll_loss_backward",
      "aten.nll_loss_forward", "aten.ones_like", "aten.scatter.src", "aten.scatter.value", "aten.scatter_add", "aten.slice_backward", "aten.select_backward", "aten.stack", "aten.sum.dim_IntList", "aten.topk",
      "aten.zeros_like",
  };
  return known.contains(target);
}

int64_t round_up(int64_t n) { return (n + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment; }

/// Bytes from the first element to the last one.
int64_t extent(const ir::Type& type) {
  const auto shape = shape_of(type);
  if (!shape || type.tensor.device.type != "cpu") return -1;   // a card's memory has torch's own pools
  int64_t last = 0;
  for (size_t d = 0; d < shape->sizes.size(); ++d) {
    if (shape->sizes[d] == 0) return -1;
    if (shape->strides[d] < 0) return -1;
    last += (shape->sizes[d] - 1) * shape->strides[d];
  }
  return (last + 1) * ir::dtype_bytes(type.tensor.dtype);
}

/// Free memory between planned values, the last freed one last.
class Holes {
 public:
  /// The hole that was freed last and is large enough: it is still in cache. Otherwise memory behind everything else.
  int64_t take(int64_t bytes) {
    for (size_t i = holes_.size(); i-- > 0;) {
      if (holes_[i].bytes < bytes) continue;
      const int64_t at = holes_[i].offset;
      holes_[i].offset += bytes;
      holes_[i].bytes -= bytes;
      if (holes_[i].bytes == 0) holes_.erase(holes_.begin() + static_cast<long>(i));
      return at;
    }
    int64_t at = end_;
    for (size_t i = 0; i < holes_.size(); ++i)
      if (holes_[i].offset + holes_[i].bytes == end_) {   // the last one grows
        at = holes_[i].offset;
        holes_.erase(holes_.begin() + static_cast<long>(i));
        break;
      }
    end_ = at + bytes;
    return at;
  }
  void give(int64_t offset, int64_t bytes) {
    for (size_t i = 0; i < holes_.size();) {
      const Hole h = holes_[i];
      if (h.offset + h.bytes != offset && offset + bytes != h.offset) { ++i; continue; }
      offset = std::min(offset, h.offset);
      bytes += h.bytes;
      holes_.erase(holes_.begin() + static_cast<long>(i));
      i = 0;
    }
    holes_.push_back({offset, bytes});
  }
  int64_t end() const { return end_; }

 private:
  struct Hole { int64_t offset, bytes; };
  std::vector<Hole> holes_;
  int64_t end_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const ir::Graph& graph) {
  const auto& nodes = graph.body.nodes;
  std::vector<ir::ValueId> base(graph.values.size());   // what a view looks at, followed to its end
  for (ir::ValueId id = 0; id < graph.values.size(); ++id) base[id] = id;
  std::vector<int64_t> bytes(graph.values.size(), 0);   // of those that can be planned
  std::vector<size_t> from(graph.values.size(), 0), to(graph.values.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& n = nodes[i];
    const bool is_ours = n.kind == ir::Node::Kind::call && n.target.starts_with("native.");
    const auto view = is_ours ? std::nullopt : view_of(graph, n);
    const bool is_known = is_ours || view || (n.regions.empty() && gives_own_results(n.target));
    const auto use = [&](ir::ValueId id) {
      to[base[id]] = i;
      if (!is_known) bytes[base[id]] = 0;
    };
    if (is_ours) ir::for_each_use(n, use);   // its region reads the same values
    else for_each_use_inside(n, use);
    for (ir::ValueId r : n.results) {
      if (view) base[r] = base[view->base];
      from[r] = to[r] = i;
      if (is_ours) bytes[r] = std::max<int64_t>(0, extent(graph.value(r).type));
    }
  }
  for (const ir::Argument& a : graph.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { bytes[base[id]] = 0; });

  MemoryPlan plan;
  Holes holes;
  std::vector<std::vector<size_t>> ends(nodes.size());   // places by the node that is the last to read them
  int64_t live = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (ir::ValueId r : nodes[i].results) {
      if (bytes[r] == 0 || base[r] != r) continue;
      const int64_t size = round_up(bytes[r]);
      ends[to[r]].push_back(plan.places.size());
      plan.places.push_back({r, bytes[r], holes.take(size), i, to[r]});
      plan.apart += size;
      live += size;
    }
    plan.live = std::max(plan.live, live);
    for (size_t p : ends[i]) {
      const MemoryPlan::Place& place = plan.places[p];
      holes.give(place.offset, round_up(place.bytes));
      live -= round_up(place.bytes);
    }
  }
  plan.bytes = holes.end();
  return plan;
}

std::string MemoryPlan::text(const ir::Graph& graph) const {
  std::string out = "planned values " + std::to_string(places.size()) + "\nbytes with the plan " + std::to_string(bytes) + "\nbytes wanted at one moment " + std::to_string(live) + "\nbytes without the plan " + std::to_string(apart) + "\n";
  if (places.empty()) return out;
  size_t width = 5;
  for (const Place& p : places) width = std::max(width, graph.value(p.value).name.size() + 1);
  const auto column = [](std::string s, size_t n) { return std::string(n > s.size() ? n - s.size() : 0, ' ') + s; };
  out += "value" + std::string(width - 5, ' ') + "       bytes      offset   from     to\n";
  for (const Place& p : places) {
    const std::string name = "%" + graph.value(p.value).name;
    out += name + std::string(width - name.size(), ' ') + column(std::to_string(p.bytes), 12) + column(std::to_string(p.offset), 12) + column(std::to_string(p.from), 7) + column(std::to_string(p.to), 7) + "\n";
  }
  return out;
}

}  // namespace cutaway::codegen
