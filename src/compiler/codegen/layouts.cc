#include "compiler/codegen/layouts.h"

#include <map>
#include <optional>
#include <set>

#include "compiler/codegen/rules.h"
#include "compiler/codegen/views.h"
#include "core/ir/edit.h"

namespace cutaway::codegen {
namespace laying_out {   // its helpers have names that other files of the folder use too
namespace {

using ir::DType;
using ir::ValueId;

constexpr size_t kFewest = 4;   ///< convolutions, below which it is not worth it

ValueId image_id(const ir::Argument& a) { return a.as<ir::ValueRef>() ? a.as<ir::ValueRef>()->id : ir::kNoValue; }

std::vector<ir::Dim> channels_last(const std::vector<int64_t>& s) { return {ir::Dim(s[1] * s[2] * s[3]), ir::Dim(1), ir::Dim(s[3] * s[1]), ir::Dim(s[1])}; }

class Layouts {
 public:
  Layouts(const ir::Graph& g, bool has_tf32) : g_(g), has_tf32_(has_tf32) {}

  /// None when it is not worth it.
  std::optional<ir::Graph> run() {
    size_t convolutions = 0;
    for (const ir::Node& n : g_.body.nodes) convolutions += is_convolution(n);
    if (convolutions < kFewest) return std::nullopt;
    std::vector<ir::Node> from;
    std::swap(from, g_.body.nodes);
    for (ir::Node& n : from) take(std::move(n));
    size_t returned = 0;
    for (ir::Argument& a : g_.body.outputs)
      ir::for_each_value(a, [&](ValueId& id) {
        if (!turned_.contains(id)) return;
        ++returned;
        id = as_before(id, ir::kNoLocation);
      });
    if (returned > 2 || turned_back_ > returned + convolutions / 4) return std::nullopt;
    return std::move(g_);
  }

 private:
  std::optional<Shape> image(ValueId id) const {
    if (id == ir::kNoValue) return std::nullopt;
    auto s = shape_of(g_.value(id).type);
    return s && s->sizes.size() == 4 && s->numel() > 0 && type(id).device.type == "cuda" ? s : std::nullopt;
  }
  const ir::TensorType& type(ValueId id) const { return g_.value(id).type.tensor; }

  /// Without groups, forward, of a dtype that has kernels for it.
  bool is_convolution(const ir::Node& n) const {
    if (n.kind != ir::Node::Kind::op || n.target != "aten.convolution" || n.args.size() != 9 || n.results.size() != 1) return false;
    const auto *transposed = n.args[6].as<bool>();
    const auto *groups = n.args[8].as<int64_t>();
    const ValueId x = image_id(n.args[0]), w = image_id(n.args[1]);
    if (!transposed || *transposed || !groups || *groups != 1 || !image(x) || !image(w) || !image(n.results[0])) return false;
    const DType d = type(x).dtype;
    if (d != DType::bf16 && d != DType::f16 && !(d == DType::f32 && has_tf32_)) return false;
    return type(w).dtype == d && type(w).is_contiguous() && type(n.results[0]).is_contiguous();
  }

  void take(ir::Node n) {
    if (is_convolution(n)) {
      const ValueId x = image_id(n.args[0]), w = image_id(n.args[1]);
      if (!turned_.contains(x)) n.args[0] = ir::ValueRef{laid_out(x, n.location)};
      const Shape s = *image(w);
      if (s.sizes[1] > 1 && s.sizes[2] * s.sizes[3] > 1) n.args[1] = ir::ValueRef{laid_out(w, n.location)};
      turn(n.results[0]);
    } else if (is_elementwise(n)) {
      turn(n.results[0]);
    } else if (is_pool(n)) {
      for (ValueId r : n.results) turn(r);
    } else if (!reduction_of(g_, n)) {
      for (ir::Argument& a : n.args) ir::for_each_value(a, [&](ValueId& id) { if (turned_.contains(id)) id = as_before(id, n.location); });
      for (auto& [key, a] : n.kwargs) ir::for_each_value(a, [&](ValueId& id) { if (turned_.contains(id)) id = as_before(id, n.location); });
      if (!n.regions.empty()) turned_back_ += 1000;   // a functional graph has none
    }
    g_.body.nodes.push_back(std::move(n));
  }

  bool is_elementwise(const ir::Node& n) const {
    if (n.kind != ir::Node::Kind::op || n.results.size() != 1 || view_of(g_, n)) return false;
    const RuleRow* row = find_rule(n.target);
    const auto result = image(n.results[0]);
    if (!row || row->moves || !result || !type(n.results[0]).is_contiguous()) return false;
    for (const auto& [key, a] : n.kwargs)
      if (key == "memory_format") return false;
    bool found = false;
    ir::for_each_use(n, [&](ValueId id) { found = found || (turned_.contains(id) && image(id)->sizes == result->sizes); });
    return found;
  }
  bool is_pool(const ir::Node& n) const {
    if (n.kind != ir::Node::Kind::op || (n.target != "aten.max_pool2d_with_indices" && n.target != "aten.max_pool2d" && n.target != "aten.avg_pool2d" && n.target != "aten._adaptive_avg_pool2d") || n.args.empty() || !turned_.contains(image_id(n.args[0]))) return false;
    for (ValueId r : n.results)
      if (!image(r) || !type(r).is_contiguous()) return false;
    return true;
  }

  void turn(ValueId id) {
    g_.values[id].type.tensor.strides = channels_last(image(id)->sizes);
    turned_.insert(id);
  }
  ValueId laid_out(ValueId id, ir::LocationId location) {
    const auto [it, is_new] = last_.try_emplace(id, ir::kNoValue);
    if (is_new) {
      it->second = clone(id, ir::MemoryFormat::channels_last, channels_last(image(id)->sizes), location);
    }
    return it->second;
  }
  ValueId as_before(ValueId id, ir::LocationId location) {
    const auto [it, is_new] = before_.try_emplace(id, ir::kNoValue);
    if (is_new) {
      ++turned_back_;
      it->second = clone(id, ir::MemoryFormat::contiguous_format, ir::contiguous_strides(type(id).sizes), location);
    }
    return it->second;
  }
  ValueId clone(ValueId id, ir::MemoryFormat format, std::vector<ir::Dim> strides, ir::LocationId location) {
    ir::TensorType t = type(id);
    t.strides = std::move(strides);
    const ValueId made = g_.add_value(g_.value(id).name + (format == ir::MemoryFormat::channels_last ? ".last" : ".before"), ir::Type::of(std::move(t)));
    ir::Node n;
    n.target = "aten.clone";
    n.args = {ir::Argument(ir::ValueRef{id})};
    n.kwargs = {{"memory_format", format}};
    n.results = {made};
    n.returns = {ir::Node::kSingle};
    n.location = location;
    g_.body.nodes.push_back(std::move(n));
    return made;
  }

  ir::Graph g_;
  const bool has_tf32_;
  std::set<ValueId> turned_;                   ///< whose channels are last now
  std::map<ValueId, ValueId> last_, before_;   ///< copies in the other layout
  size_t turned_back_ = 0;
};

}  // namespace
}  // namespace laying_out

void lay_out_convolutions(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  if (options.off.contains("channels last") || static_cast<int64_t>(done.size()) >= options.fuel) return;
  std::string first;
  for (const ir::Node& n : g.body.nodes)
    if (first.empty() && n.target == "aten.convolution") first = g.value(n.results[0]).name;
  if (first.empty()) return;
  if (auto made = laying_out::Layouts(g, options.has_tf32_convolutions).run()) {
    g = std::move(*made);
    done.push_back({"channels last", first});
  }
}

}  // namespace cutaway::codegen
