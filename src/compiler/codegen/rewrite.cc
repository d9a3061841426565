#include "compiler/codegen/rewrite.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "compiler/codegen/activations.h"
#include "compiler/codegen/flash_attention.h"
#include "compiler/codegen/fuse.h"
#include "compiler/codegen/joined.h"
#include "compiler/codegen/layouts.h"
#include "compiler/codegen/maker.h"
#include "compiler/codegen/terms.h"
#include "compiler/codegen/views.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"

namespace cutaway::codegen {
namespace {

bool layer_norm(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.args.size() != 5 || !n.kwargs.empty() || !n.args[1].as<ir::List>() || !all_plain(g, n)) return false;
  const auto eps = n.args[4].as<double>();
  const auto x = tensor(n, 0), w = tensor(n, 2), b = tensor(n, 3);
  if (!x || !eps || (!w && !n.args[2].is_none()) || (!b && !n.args[3].is_none())) return false;
  const Shape s = m.shape(*x);
  const auto dims = last_dims(s, n.args[1].as<ir::List>()->items.size());
  const auto ones = with_ones(s, dims);
  const DType t = wide(m.dtype(*x));
  // Torch's own types of the statistics are not always those that its kernels give: where they are another dtype, nobody may want them.
  const bool gives_statistics = m.dtype(n.results[1]) == t && m.dtype(n.results[2]) == t;
  if (!gives_statistics && (is_wanted(g, n.results[1]) || is_wanted(g, n.results[2]))) return false;
  const ValueId from = widened(m, *x);
  const auto statistic = [&](size_t result, const char* target, std::vector<Argument> args) {
    if (!gives_statistics) return m.make(target, std::move(args), ones, t);
    m.give(result, target, std::move(args));
    return n.results[result];
  };
  const ValueId mean = statistic(1, "aten.mean.dim", {ref(from), list(dims), true});
  const ValueId centred = m.make("aten.sub.Tensor", {ref(from), ref(mean)}, s.sizes, t);
  const ValueId squares = m.make("aten.mul.Tensor", {ref(centred), ref(centred)}, s.sizes, t);
  const ValueId variance = m.make("aten.mean.dim", {ref(squares), list(dims), true}, ones, t);
  const ValueId safe = m.make("aten.add.Scalar", {ref(variance), *eps}, ones, t);
  const ValueId scale = statistic(2, "aten.rsqrt", {ref(safe)});
  ValueId y = n.results[0];
  if (!w && !b) {
    give_narrowed(m, n, 0, "aten.mul.Tensor", {ref(centred), ref(scale)});
    return true;
  }
  y = m.make("aten.mul.Tensor", {ref(centred), ref(scale)}, s.sizes, t);
  if (w && b) y = m.make("aten.mul.Tensor", {ref(y), ref(widened(m, *w, s.sizes))}, s.sizes, t);
  if (b) give_narrowed(m, n, 0, "aten.add.Tensor", {ref(y), ref(widened(m, *b, s.sizes))});
  else give_narrowed(m, n, 0, "aten.mul.Tensor", {ref(y), ref(widened(m, *w, s.sizes))});
  return true;
}

bool layer_norm_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.args.size() != 8 || !n.kwargs.empty() || !n.args[2].as<ir::List>() || n.results.size() != 3) return false;
  const auto dy = tensor(n, 0), x = tensor(n, 1), mean = tensor(n, 3), rstd = tensor(n, 4), w = tensor(n, 5);
  const auto* mask = n.args[7].as<ir::List>();
  if (!dy || !x || !mean || !rstd || !mask || mask->items.size() != 3) return false;
  for (const Argument& a : mask->items)
    if (!a.as<bool>()) return false;
  const auto wanted = [&](size_t i) { return *mask->items[i].as<bool>(); };
  for (size_t i = 0; i < 3; ++i)
    if (wanted(i) ? !is_plain(g, n.results[i]) : is_wanted(g, n.results[i])) return false;   // what is not asked for is none
  if (!is_plain(g, *dy) || !is_plain(g, *x) || !is_plain(g, *mean) || !is_plain(g, *rstd) || (w && !is_plain(g, *w))) return false;
  const Shape s = m.shape(*x);
  const size_t count = n.args[2].as<ir::List>()->items.size();
  const auto dims = last_dims(s, count);
  const auto ones = with_ones(s, dims);
  if (m.shape(*mean).sizes != ones) return false;
  std::vector<int64_t> front;
  for (size_t i = 0; i + count < s.sizes.size(); ++i) front.push_back(static_cast<int64_t>(i));
  if (front.empty()) return false;
  const DType t = wide(m.dtype(*x));
  if (m.dtype(*mean) != t || m.dtype(*rstd) != t) return false;
  const ValueId grad = widened(m, *dy), from = widened(m, *x);
  const auto mul = [&](ValueId a, ValueId b, const std::vector<int64_t>& sizes) { return m.make("aten.mul.Tensor", {ref(a), ref(b)}, sizes, t); };
  const ValueId centred = m.make("aten.sub.Tensor", {ref(from), ref(*mean)}, s.sizes, t);
  const ValueId hat = mul(centred, *rstd, s.sizes);
  const ValueId scaled = w ? mul(grad, widened(m, *w, s.sizes), s.sizes) : grad;
  const ValueId one = m.make("aten.mean.dim", {ref(scaled), list(dims), true}, ones, t);
  const ValueId product = mul(scaled, hat, s.sizes);
  const ValueId two = m.make("aten.mean.dim", {ref(product), list(dims), true}, ones, t);
  const ValueId first = m.make("aten.sub.Tensor", {ref(scaled), ref(one)}, s.sizes, t);
  const ValueId along = mul(hat, two, s.sizes);
  const ValueId inside = m.make("aten.sub.Tensor", {ref(first), ref(along)}, s.sizes, t);
  if (wanted(0)) give_narrowed(m, n, 0, "aten.mul.Tensor", {ref(inside), ref(*rstd)});
  const ValueId weighted = mul(grad, hat, s.sizes);
  if (wanted(1)) give_narrowed(m, n, 1, "aten.sum.dim_IntList", {ref(weighted), list(front)});
  if (wanted(2)) give_narrowed(m, n, 2, "aten.sum.dim_IntList", {ref(grad), list(front)});
  return true;
}

/// Of running statistics: a factor and a summand for each channel. In training without them: statistics of its own.
bool batch_norm(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.args.size() == 8 && n.args[5].as<bool>() && *n.args[5].as<bool>()) return m.device().type == "cpu" && rewrite_batch_norm_training(g, n, m);
  if (n.args.size() != 8 || !n.kwargs.empty() || n.results.size() != 3) return false;
  const auto x = tensor(n, 0), w = tensor(n, 1), b = tensor(n, 2), mean = tensor(n, 3), var = tensor(n, 4);
  const auto *training = n.args[5].as<bool>();
  const auto* eps = n.args[7].as<double>();
  if (!x || !mean || !var || !training || *training || !eps || (!w && !n.args[1].is_none()) || (!b && !n.args[2].is_none())) return false;
  for (const auto& v : {x, mean, var, w, b})
    if (v && (!is_plain(g, *v) || m.dtype(*v) != m.dtype(*x))) return false;
  const Shape s = m.shape(*x);
  for (size_t i = 1; i < 3; ++i)
    if (!shape_of(g.value(n.results[i]).type) || m.shape(n.results[i]).sizes != std::vector<int64_t>{0}) return false;
  if (s.sizes.size() < 2 || !is_plain(g, n.results[0])) return false;
  const DType t = wide(m.dtype(*x)), given = m.dtype(*x);
  const std::vector<int64_t> channels = {s.sizes[1]};
  std::vector<int64_t> shaped(s.sizes.size(), 1);
  shaped[1] = s.sizes[1];
  for (const auto& v : {mean, var, w, b})
    if (v && m.shape(*v).sizes != channels) return false;
  // All of it for each element: a kernel works out what is the same along a row once a row.
  const std::vector<ir::Dim> laid_out = g.value(n.results[0]).type.tensor.strides;
  const auto make = [&](const char* target, std::vector<Argument> args, std::vector<std::pair<std::string, Argument>> kwargs = {}) { return m.make(target, std::move(args), s.sizes, t, std::move(kwargs), &laid_out); };
  const auto spread = [&](ValueId v) {
    std::vector<ir::Dim> repeated(s.sizes.size(), ir::Dim(0));
    repeated[1] = ir::Dim(1);
    const ValueId one = m.make("aten.expand", {ref(m.make("aten.view", {ref(v), list(shaped)}, shaped, given)), list(s.sizes)}, s.sizes, given, {}, &repeated);
    return is_narrow(given) ? m.make("aten._to_copy", {ref(one)}, s.sizes, t, {{"dtype", t}}, &laid_out) : one;
  };
  ValueId factor = make("aten.rsqrt", {ref(make("aten.add.Scalar", {ref(spread(*var)), *eps}))});
  if (w) factor = make("aten.mul.Tensor", {ref(spread(*w)), ref(factor)});
  const ValueId centre = make("aten.mul.Tensor", {ref(spread(*mean)), ref(factor)});
  const ValueId summand = b ? make("aten.sub.Tensor", {ref(spread(*b)), ref(centre)}) : make("aten.neg", {ref(centre)});
  const ValueId from = is_narrow(given) ? make("aten._to_copy", {ref(*x)}, {{"dtype", t}}) : *x;
  const ValueId product = make("aten.mul.Tensor", {ref(from), ref(factor)});
  if (is_narrow(given)) m.give(0, "aten._to_copy", {ref(make("aten.add.Tensor", {ref(product), ref(summand)}))}, {{"dtype", given}});
  else m.give(0, "aten.add.Tensor", {ref(product), ref(summand)});
  for (size_t i = 1; i < 3; ++i) m.give(i, "aten.full", {list({0}), int64_t{0}}, {{"dtype", m.dtype(n.results[i])}, {"device", m.device()}});
  return true;
}

bool softmax(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  const bool is_safe = n.target == "aten._safe_softmax";   // a row of minus infinities alone gives zeros
  if (!x || !all_plain(g, n)) return false;
  if (is_safe ? n.args.size() != 2 || !n.kwargs.empty() || m.dtype(*x) != m.dtype(n.results[0]) : n.args.size() != 3 || !n.args[2].as<bool>() || *n.args[2].as<bool>()) return false;
  const Shape s = m.shape(*x);
  const auto dims = one_dim(n, 1, s);
  if (!dims) return false;
  const auto ones = with_ones(s, *dims);
  const DType t = wide(m.dtype(*x));
  if (m.dtype(n.results[0]) != m.dtype(*x)) return false;
  const ValueId from = widened(m, *x);
  const ValueId top = m.make("aten.amax", {ref(from), list(*dims), true}, ones, t);
  const ValueId below = m.make("aten.sub.Tensor", {ref(from), ref(top)}, s.sizes, t);
  const ValueId powers = m.make("aten.exp", {ref(below)}, s.sizes, t);
  const ValueId total = m.make("aten.sum.dim_IntList", {ref(powers), list(*dims), true}, ones, t);
  if (n.target == "aten._log_softmax") {
    const ValueId log = m.make("aten.log", {ref(total)}, ones, t);
    give_narrowed(m, n, 0, "aten.sub.Tensor", {ref(below), ref(log)});
  } else if (is_safe) {
    const ValueId y = m.make("aten.div.Tensor", {ref(powers), ref(total)}, s.sizes, t);
    const ValueId masked = m.make("aten.eq.Scalar", {ref(top), -std::numeric_limits<double>::infinity()}, ones, DType::boolean);
    give_narrowed(m, n, 0, "aten.masked_fill.Scalar", {ref(y), ref(masked), 0.0});
  } else {
    give_narrowed(m, n, 0, "aten.div.Tensor", {ref(powers), ref(total)});
  }
  return true;
}

bool softmax_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto dy = tensor(n, 0), y = tensor(n, 1);
  if (n.args.size() != 4 || !dy || !y || !all_plain(g, n) || m.dtype(*dy) != m.dtype(n.results[0])) return false;
  const Shape s = m.shape(*y);
  const auto dims = one_dim(n, 2, s);
  if (!dims || m.shape(*dy).sizes != s.sizes) return false;
  const auto ones = with_ones(s, *dims);
  const DType t = wide(m.dtype(*y));
  if (m.dtype(*dy) != m.dtype(*y)) return false;
  const ValueId grad = widened(m, *dy), out = widened(m, *y);
  if (n.target == "aten._log_softmax_backward_data") {
    const ValueId total = m.make("aten.sum.dim_IntList", {ref(grad), list(*dims), true}, ones, t);
    const ValueId powers = m.make("aten.exp", {ref(out)}, s.sizes, t);
    const ValueId share = m.make("aten.mul.Tensor", {ref(powers), ref(total)}, s.sizes, t);
    give_narrowed(m, n, 0, "aten.sub.Tensor", {ref(grad), ref(share)});
    return true;
  }
  const ValueId product = m.make("aten.mul.Tensor", {ref(grad), ref(out)}, s.sizes, t);
  const ValueId total = m.make("aten.sum.dim_IntList", {ref(product), list(*dims), true}, ones, t);
  const ValueId rest = m.make("aten.sub.Tensor", {ref(grad), ref(total)}, s.sizes, t);
  give_narrowed(m, n, 0, "aten.mul.Tensor", {ref(rest), ref(out)});
  return true;
}

/// full_like, zeros_like, …: their tensor is asked for its sizes alone, which are known.
bool make_filled(ir::Graph& g, const ir::Node& n, Maker& m) {
  const ir::TensorType& t = g.value(n.results[0]).type.tensor;
  if (!shape_of(g.value(n.results[0]).type) || !t.is_contiguous()) return false;
  Argument value = n.target.find("ones") != std::string::npos ? Argument(int64_t{1}) : Argument(int64_t{0});
  if (n.target == "aten.full_like") {
    if (n.args.size() < 2) return false;
    value = n.args[1];
  }
  m.give(0, "aten.full", {list(m.shape(n.results[0]).sizes), value}, {{"dtype", t.dtype}, {"device", m.device()}});
  return true;
}

/// Its tensor is asked for sizes and dtype alone: any of these will do, and a constant that is never made is the cheapest.
bool random_like(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || !shape_of(g.value(*x).type)) return false;
  const DType t = m.dtype(*x);
  if (t != DType::f32 && t != DType::f64 && t != DType::bf16 && t != DType::f16) return false;
  const std::vector<int64_t> sizes = m.shape(*x).sizes;
  const ValueId like = m.make("aten.full", {list(sizes), int64_t{0}}, sizes, t, {{"dtype", t}, {"device", ir::Device{}}});
  std::vector<Argument> args = n.args;
  args[0] = ref(like);
  m.give(0, "aten.bernoulli.p", std::move(args), n.kwargs);
  return true;
}

const std::vector<RewriteRow>& rows() {
  static const std::vector<RewriteRow> kRows = [] {
    std::vector<RewriteRow> all = {
      {"full_like", "aten.full_like", make_filled},
      {"zeros_like", "aten.zeros_like", make_filled},
      {"ones_like", "aten.ones_like", make_filled},
      {"new_zeros", "aten.new_zeros", make_filled},
      {"new_ones", "aten.new_ones", make_filled},
      {"layer_norm", "aten.native_layer_norm", layer_norm},
      {"layer_norm_backward", "aten.native_layer_norm_backward", layer_norm_backward},
      {"batch_norm", "aten.native_batch_norm", batch_norm},
      {"bernoulli", "aten.bernoulli.p", random_like, true},
      {"softmax", "aten._softmax", softmax},
      {"log_softmax", "aten._log_softmax", softmax},
      {"safe_softmax", "aten._safe_softmax", softmax},
      {"softmax_backward", "aten._softmax_backward_data", softmax_backward},
      {"log_softmax_backward", "aten._log_softmax_backward_data", softmax_backward},
    };
    for (const RewriteRow& r : reduction_rewrites()) all.push_back(r);
    for (const RewriteRow& r : training_rewrites()) all.push_back(r);
    for (const RewriteRow& r : pooling_rewrites()) all.push_back(r);
    return all;
  }();
  return kRows;
}

/// What a node computes, as text: equal texts are equal values. Empty for what must run each time.
std::string meaning(const ir::Graph& g, const ir::Node& n) {
  if (n.kind != ir::Node::Kind::op || !n.target.starts_with("aten.") || ir::has_effects(n)) return {};
  std::string key = n.target;
  const auto add = [&](const Argument& a) { key += "|" + ir::print_argument(g, a); };
  for (const Argument& a : n.args) add(a);
  for (const auto& [name, a] : n.kwargs) {
    key += "|" + name + "=";
    add(a);
  }
  for (ValueId r : n.results) key += "|" + g.value(r).type.text();
  return key;
}

/// Nodes that compute the same as an earlier one go. What the graph returns stays: two results that the caller may write to are never one.
void share_equal(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  std::set<ValueId> returned;
  const Origins from(g);
  for (const Argument& a : g.body.outputs) ir::for_each_value(a, [&](ValueId id) { returned.insert(from.root[id].value); returned.insert(id); });
  std::map<std::string, const ir::Node*> known;
  std::map<ValueId, ValueId> instead;
  const auto rename = [&](ValueId& id) { if (const auto it = instead.find(id); it != instead.end()) id = it->second; };
  for (ir::Node& n : g.body.nodes) {
    for (Argument& a : n.args) ir::for_each_value(a, rename);
    for (auto& [key, a] : n.kwargs) ir::for_each_value(a, rename);
    if (!n.regions.empty()) return;   // a functional graph has none
    const std::string key = meaning(g, n);
    if (key.empty()) continue;
    const auto [it, is_new] = known.try_emplace(key, &n);
    if (is_new || static_cast<int64_t>(done.size()) >= options.fuel) continue;
    if (std::ranges::any_of(n.results, [&](ValueId r) { return returned.contains(r); })) continue;
    for (size_t i = 0; i < n.results.size(); ++i) instead[n.results[i]] = it->second->results[i];
    done.push_back({"equal", g.value(n.results[0]).name});
  }
  for (Argument& a : g.body.outputs) ir::for_each_value(a, rename);
}

/// Sums over all rows of what is larger than caches: over blocks of rows first, which the kernel does that reads the rows anyway, and then over the blocks.
/// The order of additions is that of a kernel of columns. Small sums stay: there a second kernel would cost more than it saves.
void sum_blocks(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  constexpr int64_t kLeastElements = int64_t{4} << 20, kLeastColumns = 64, kMostColumns = 8192;
  if (options.off.contains("sum of blocks")) return;
  std::vector<ir::Node> nodes;
  for (ir::Node& n : g.body.nodes) {
    const auto x = tensor(n, 0);
    const auto* dims = n.target == "aten.sum.dim_IntList" && n.args.size() >= 2 && n.kwargs.empty() && x ? n.args[1].as<ir::List>() : nullptr;
    const bool can = dims && is_plain(g, *x) && is_plain(g, n.results[0]) && g.value(*x).type.tensor.dtype == g.value(n.results[0]).type.tensor.dtype && g.value(*x).type.tensor.device.type == "cpu" &&
                     g.value(*x).type.tensor.is_contiguous() && g.value(n.results[0]).type.tensor.is_contiguous() && static_cast<int64_t>(done.size()) < options.fuel;
    int64_t rows = 1, columns = 1;
    bool is_leading = can && !dims->items.empty();
    if (can) {
      const Shape s = *shape_of(g.value(*x).type);
      for (size_t d = 0; d < s.sizes.size(); ++d) (d < dims->items.size() ? rows : columns) *= s.sizes[d];
      for (size_t d = 0; d < dims->items.size(); ++d) is_leading = is_leading && dims->items[d].as<int64_t>() && *dims->items[d].as<int64_t>() == static_cast<int64_t>(d);
    }
    if (!is_leading || rows % kBlockRows != 0 || columns < kLeastColumns || columns > kMostColumns || rows * columns < kLeastElements) { nodes.push_back(std::move(n)); continue; }
    Maker m(g, n);
    const DType t = m.dtype(*x);
    const std::vector<int64_t> in_blocks = {rows / kBlockRows, kBlockRows, columns}, blocks = {rows / kBlockRows, columns};
    const ValueId parts = m.make("aten.sum.dim_IntList", {ref(m.make("aten.view", {ref(*x), list(in_blocks)}, in_blocks, t)), list({1})}, blocks, t);
    const std::vector<int64_t> sizes = m.shape(n.results[0]).sizes;
    if (sizes == std::vector<int64_t>{columns}) {
      m.give(0, "aten.sum.dim_IntList", {ref(parts), list({0})});
    } else {
      m.give(0, "aten.view", {ref(m.make("aten.sum.dim_IntList", {ref(parts), list({0})}, {columns}, t)), list(sizes)});
    }
    done.push_back({"sum of blocks", g.value(n.results[0]).name});
    for (ir::Node& made : m.nodes) nodes.push_back(std::move(made));
  }
  g.body.nodes = std::move(nodes);
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> all_rewrites() {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const RewriteRow& r : rows()) all.emplace_back(r.name, r.target);
  return all;
}

std::vector<Rewritten> rewrite(ir::Graph& graph, const RewriteOptions& options) {
  std::vector<Rewritten> done;
  std::vector<ir::Node> nodes;
  for (ir::Node& n : graph.body.nodes) {
    const RewriteRow* found = nullptr;
    for (const RewriteRow& r : rows())
      if (n.kind == ir::Node::Kind::op && r.target == n.target && !options.off.contains(r.name)) found = &r;
    if (found && found->cpu_only && graph.value(n.results[0]).type.tensor.device.type != "cpu") found = nullptr;
    if (found && static_cast<int64_t>(done.size()) < options.fuel) {
      Maker maker(graph, n);
      if (found->run(graph, n, maker)) {
        done.push_back({found->name, graph.value(n.results[0]).name});
        for (ir::Node& made : maker.nodes) nodes.push_back(std::move(made));
        continue;
      }
    }
    nodes.push_back(std::move(n));
  }
  graph.body.nodes = std::move(nodes);
  if (!options.off.contains("equal")) share_equal(graph, options, done);
  pick_losses(graph, options, done);
  split_long_sums(graph, options, done);
  sum_blocks(graph, options, done);
  join_activations(graph, options, done);
  join_products(graph, options, done);
  choose_attention(graph, options, done);
  lay_out_convolutions(graph, options, done);
  return done;
}

}  // namespace cutaway::codegen
