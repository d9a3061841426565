// What rewrites are written with: nodes in place of one, and questions about operands.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/codegen/rewrite.h"
#include "compiler/codegen/views.h"
#include "core/ir/graph.h"

namespace cutaway::codegen {

using ir::Argument;
using ir::DType;
using ir::ValueId;

/// Makes nodes in place of one. All values are plain tensors of one device whose sizes are numbers.
class Maker {
 public:
  Maker(ir::Graph& graph, const ir::Node& old) : graph_(graph), old_(old) {}

  /// Contiguous unless strides are given.
  ValueId make(const char* target, std::vector<Argument> args, std::vector<int64_t> sizes, DType dtype, std::vector<std::pair<std::string, Argument>> kwargs = {}, const std::vector<ir::Dim>* strides = nullptr) {
    ir::TensorType t;
    t.dtype = dtype;
    t.device = device();
    for (int64_t s : sizes) t.sizes.emplace_back(s);
    t.strides = strides ? *strides : ir::contiguous_strides(t.sizes);
    const ValueId id = graph_.add_value(graph_.value(old_.results[0]).name + "." + std::string(target).substr(5, std::string(target).find('.', 5) - 5), ir::Type::of(std::move(t)));
    define(target, std::move(args), id, std::move(kwargs));
    return id;
  }
  /// The same, for a result of the old node: its name and type stay.
  void give(size_t result, const char* target, std::vector<Argument> args, std::vector<std::pair<std::string, Argument>> kwargs = {}) { define(target, std::move(args), old_.results[result], std::move(kwargs)); }

  Shape shape(ValueId id) const { return *shape_of(graph_.value(id).type); }
  DType dtype(ValueId id) const { return graph_.value(id).type.tensor.dtype; }
  /// Where the old node's results are.
  ir::Device device() const { return graph_.value(old_.results[0]).type.tensor.device; }
  std::vector<ir::Node> nodes;

 private:
  void define(const char* target, std::vector<Argument> args, ValueId id, std::vector<std::pair<std::string, Argument>> kwargs) {
    ir::Node n;
    n.target = target;
    n.args = std::move(args);
    n.kwargs = std::move(kwargs);
    n.results = {id};
    n.returns = {ir::Node::kSingle};
    n.location = old_.location;
    nodes.push_back(std::move(n));
  }
  ir::Graph& graph_;
  const ir::Node& old_;
};

inline Argument ref(ValueId id) { return ir::ValueRef{id}; }
inline std::optional<ValueId> tensor(const ir::Node& n, size_t i) {
  if (i < n.args.size())
    if (const auto* r = n.args[i].as<ir::ValueRef>()) return r->id;
  return std::nullopt;
}
inline Argument list(const std::vector<int64_t>& dims) {
  ir::List l;
  for (int64_t d : dims) l.items.emplace_back(d);
  return l;
}

/// Of dtypes narrower than f32 ATen keeps the steps in float: the rewrite of those begins and ends with a cast. On CUDA; its CPU kernels differ from operator to operator.
inline bool is_narrow(DType t) { return t == DType::bf16 || t == DType::f16; }
inline DType wide(DType t) { return is_narrow(t) ? DType::f32 : t; }
inline bool is_plain(const ir::Graph& g, ValueId id) {
  const ir::Type& t = g.value(id).type;
  const auto s = shape_of(t);
  return s && s->numel() > 0 && (t.tensor.dtype == DType::f32 || t.tensor.dtype == DType::f64 || (is_narrow(t.tensor.dtype) && t.tensor.device.type == "cuda"));
}
/// The value in the dtype that is computed in.
inline ValueId widened(Maker& m, ValueId id) {
  const DType t = m.dtype(id);
  return is_narrow(t) ? m.make("aten._to_copy", {Argument(ir::ValueRef{id})}, m.shape(id).sizes, wide(t), {{"dtype", wide(t)}}) : id;
}
/// The same, repeated to these sizes first: the cast is then a part of the kernel that reads it, and not a kernel of few elements.
inline ValueId widened(Maker& m, ValueId id, const std::vector<int64_t>& sizes) {
  const DType t = m.dtype(id);
  if (!is_narrow(t)) return id;
  const Shape s = m.shape(id);
  std::vector<ir::Dim> strides(sizes.size() - s.sizes.size(), ir::Dim(0));
  for (size_t d = 0; d < s.sizes.size(); ++d) strides.emplace_back(s.sizes[d] == 1 && sizes[sizes.size() - s.sizes.size() + d] != 1 ? 0 : s.strides[d]);
  const ValueId spread = m.make("aten.expand", {Argument(ir::ValueRef{id}), list(sizes)}, sizes, t, {}, &strides);
  return m.make("aten._to_copy", {Argument(ir::ValueRef{spread})}, sizes, wide(t), {{"dtype", wide(t)}});
}
/// Makes a result of the old node: by an operator in the dtype that is computed in, and a cast where the result has a narrower one.
inline void give_narrowed(Maker& m, const ir::Node& n, size_t result, const char* target, std::vector<Argument> args) {
  const DType t = m.dtype(n.results[result]);
  if (!is_narrow(t)) { m.give(result, target, std::move(args)); return; }
  const ValueId y = m.make(target, std::move(args), m.shape(n.results[result]).sizes, wide(t));
  m.give(result, "aten._to_copy", {Argument(ir::ValueRef{y})}, {{"dtype", t}});
}
inline bool all_plain(const ir::Graph& g, const ir::Node& n) {
  for (const Argument& a : n.args)
    if (const auto* r = a.as<ir::ValueRef>(); r && !is_plain(g, r->id)) return false;
  for (ValueId r : n.results)
    if (!is_plain(g, r)) return false;
  return true;
}

/// How many of the last dimensions a normalized_shape covers, and their numbers.
inline std::vector<int64_t> last_dims(const Shape& s, size_t count) {
  std::vector<int64_t> dims;
  for (size_t i = s.sizes.size() - count; i < s.sizes.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  return dims;
}
inline std::vector<int64_t> with_ones(const Shape& s, const std::vector<int64_t>& dims) {
  std::vector<int64_t> sizes = s.sizes;
  for (int64_t d : dims) sizes[static_cast<size_t>(d)] = 1;
  return sizes;
}

/// The dimension that argument `at` names, as a list.
inline std::optional<std::vector<int64_t>> one_dim(const ir::Node& n, size_t at, const Shape& s) {
  const auto* d = at < n.args.size() ? n.args[at].as<int64_t>() : nullptr;
  if (!d || s.sizes.empty()) return std::nullopt;
  return std::vector<int64_t>{*d < 0 ? *d + static_cast<int64_t>(s.sizes.size()) : *d};
}

/// False when this node cannot be rewritten; then nothing that it made counts.
using Rewrite = bool (*)(ir::Graph&, const ir::Node&, Maker&);
struct RewriteRow { std::string_view name, target; Rewrite run; bool cpu_only = false; };
/// The rows of rewrite_reductions.cc: variances, losses and softmaxes as sums that loops have.
std::vector<RewriteRow> reduction_rewrites();
/// The rows of rewrite_training.cc: losses, batch norm in training, steps of optimisers.
std::vector<RewriteRow> training_rewrites();
/// The rows of rewrite_pooling.cc.
std::vector<RewriteRow> pooling_rewrites();
/// A loss that reads one of a row's log-probabilities, which nobody else wants, reads that score alone and takes its row's maximum and logarithm away: the others are never stored.
void pick_losses(ir::Graph&, const RewriteOptions&, std::vector<Rewritten>& done);
/// A sum or mean of all elements of a large tensor, such as a loss: of rows first, which threads share and whose kernel computes what is summed, and then of the rows' sums.
void split_long_sums(ir::Graph&, const RewriteOptions&, std::vector<Rewritten>& done);
/// aten.native_batch_norm in training without running statistics (instance norm).
bool rewrite_batch_norm_training(ir::Graph&, const ir::Node&, Maker&);

}  // namespace cutaway::codegen
