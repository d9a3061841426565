// Rewrites of what training is made of: losses with their means, batch norm with its running statistics, optimiser steps over lists of tensors; and of copies.
#include <algorithm>
#include <map>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/maker.h"
#include "compiler/codegen/rewrite.h"

namespace cutaway::codegen {
namespace training {   // its helpers have names that other files of the folder use too
namespace {

const Argument* named(const ir::Node& n, size_t position, std::string_view name) {
  const Argument* found = position < n.args.size() ? &n.args[position] : nullptr;
  for (const auto& [key, a] : n.kwargs)
    if (key == name) found = &a;
  return found && found->is_none() ? nullptr : found;
}
std::optional<ValueId> tensor_named(const ir::Node& n, size_t position, std::string_view name) {
  const Argument* a = named(n, position, name);
  return a && a->as<ir::ValueRef>() ? std::optional(a->as<ir::ValueRef>()->id) : std::nullopt;
}
int64_t reduction_of_loss(const ir::Node& n, size_t position) {
  const Argument* a = named(n, position, "reduction");
  return a && a->as<int64_t>() ? *a->as<int64_t>() : 1;
}
/// Whether a tensor of these sizes is broadcast to others.
bool spreads_to(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i)
    if (const int64_t s = from[from.size() - 1 - i]; s != 1 && s != to[to.size() - 1 - i]) return false;
  return true;
}
bool is_contiguous(const ir::Graph& g, ValueId id) { return g.value(id).type.tensor.is_contiguous(); }

// --- losses

/// One loss a target by an operator that raises for a wrong class; then their sum over the sum of weights that count.
bool nll_loss_forward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0), target = tensor(n, 1), w = tensor_named(n, 2, "weight");
  if (n.args.size() != 5 || n.results.size() != 2 || !x || !target || !n.args[3].as<int64_t>() || !n.args[4].as<int64_t>() || (!w && !n.args[2].is_none())) return false;
  if (!is_plain(g, *x) || !shape_of(g.value(*target).type) || m.dtype(*target) != DType::i64 || (w && (!is_plain(g, *w) || m.dtype(*w) != m.dtype(*x)))) return false;
  const bool is_plane = n.target == "aten.nll_loss2d_forward";
  const Shape s = m.shape(*x), t = m.shape(*target);
  if (s.sizes.size() != (is_plane ? 4u : 2u) || t.sizes.size() + 1 != s.sizes.size() || t.numel() == 0 || m.dtype(n.results[0]) != m.dtype(*x) || m.dtype(n.results[1]) != m.dtype(*x)) return false;
  if (w && m.shape(*w).sizes != std::vector<int64_t>{s.sizes[1]}) return false;
  const int64_t how = *n.args[3].as<int64_t>(), ignored = *n.args[4].as<int64_t>();
  const DType dtype = m.dtype(*x);
  const char* one_each = is_plane ? "aten.nll_loss2d" : "aten.nll_loss";
  const std::vector<Argument> args = {ref(*x), ref(*target), n.args[2], int64_t{0}, ignored};
  if (how == 0) {
    m.give(0, one_each, args);
    m.give(1, "aten.full", {list({}), int64_t{0}}, {{"dtype", dtype}, {"device", m.device()}});
    return true;
  }
  const ValueId losses = m.make(one_each, args, t.sizes, dtype);
  if (w) {
    const ValueId is_ignored = m.make("aten.eq.Scalar", {ref(*target), ignored}, t.sizes, DType::boolean);
    const ValueId safe = m.make("aten.masked_fill.Scalar", {ref(*target), ref(is_ignored), int64_t{0}}, t.sizes, DType::i64);
    ir::List by;
    by.items.push_back(ref(safe));
    const ValueId each = m.make("aten.index.Tensor", {ref(*w), by}, t.sizes, dtype);
    m.give(1, "aten.sum", {ref(m.make("aten.masked_fill.Scalar", {ref(each), ref(is_ignored), int64_t{0}}, t.sizes, dtype))});
  } else {
    const ValueId counts = m.make("aten.ne.Scalar", {ref(*target), ignored}, t.sizes, DType::boolean);
    m.give(1, "aten._to_copy", {ref(m.make("aten.sum", {ref(counts)}, {}, DType::i64))}, {{"dtype", dtype}});
  }
  if (how == 2) {
    m.give(0, "aten.sum", {ref(losses)});
    return true;
  }
  m.give(0, "aten.div.Tensor", {ref(m.make("aten.sum", {ref(losses)}, {}, dtype)), ref(n.results[1])});
  return true;
}

/// The mean or the sum of losses that an operator of the same name gives one by one.
bool binary_cross_entropy(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0), y = tensor(n, 1);
  const int64_t how = reduction_of_loss(n, 3);
  if (how == 0 || !x || !y || !is_plain(g, *x) || !is_plain(g, *y) || m.dtype(*x) != m.dtype(*y) || m.shape(*x).sizes != m.shape(*y).sizes || m.dtype(n.results[0]) != m.dtype(*x)) return false;
  const Argument* w = named(n, 2, "weight");
  const Shape s = m.shape(*x);
  const ValueId losses = m.make("aten.binary_cross_entropy", {ref(*x), ref(*y), w ? *w : Argument(), int64_t{0}}, s.sizes, m.dtype(*x));
  m.give(0, how == 1 ? "aten.mean" : "aten.sum", {ref(losses)});
  return true;
}

/// min(x, 0) - log(1 + exp(-|x|)), and the power, which torch's operator gives too.
struct LogSigmoid { ValueId low, log; };
LogSigmoid log_sigmoid_parts(Maker& m, ValueId x, ValueId power) {
  const Shape s = m.shape(x);
  const DType t = m.dtype(x);
  return {m.make("aten.clamp_max", {ref(x), int64_t{0}}, s.sizes, t), m.make("aten.log1p", {ref(power)}, s.sizes, t)};
}
ValueId minus_size(Maker& m, ValueId x) { return m.make("aten.neg", {ref(m.make("aten.abs", {ref(x)}, m.shape(x).sizes, m.dtype(x)))}, m.shape(x).sizes, m.dtype(x)); }

bool log_sigmoid_forward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (n.args.size() != 1 || n.results.size() != 2 || !x || !is_plain(g, *x) || !is_contiguous(g, *x) || !is_plain(g, n.results[0]) || !is_plain(g, n.results[1]) || m.shape(n.results[1]).sizes != m.shape(*x).sizes) return false;
  m.give(1, "aten.exp", {ref(minus_size(m, *x))});
  const LogSigmoid parts = log_sigmoid_parts(m, *x, n.results[1]);
  m.give(0, "aten.sub.Tensor", {ref(parts.low), ref(parts.log)});
  return true;
}

bool binary_cross_entropy_with_logits(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0), y = tensor(n, 1);
  if (!x || !y || !is_plain(g, *x) || !is_plain(g, *y) || m.dtype(*x) != m.dtype(*y) || m.shape(*x).sizes != m.shape(*y).sizes || m.dtype(n.results[0]) != m.dtype(*x)) return false;
  const Shape s = m.shape(*x);
  const DType t = m.dtype(*x);
  const auto w = tensor_named(n, 2, "weight"), positive = tensor_named(n, 3, "pos_weight");
  for (const auto& v : {w, positive})
    if (v && (!is_plain(g, *v) || m.dtype(*v) != t || !spreads_to(m.shape(*v).sizes, s.sizes))) return false;
  const auto make = [&](const char* target, std::vector<Argument> args) { return m.make(target, std::move(args), s.sizes, t); };
  const LogSigmoid parts = log_sigmoid_parts(m, *x, make("aten.exp", {ref(minus_size(m, *x))}));
  ValueId log = make("aten.sub.Tensor", {ref(parts.low), ref(parts.log)});
  if (positive) {
    const Shape p = m.shape(*positive);
    const ValueId less = m.make("aten.sub.Scalar", {ref(*positive), int64_t{1}}, p.sizes, t);
    log = make("aten.mul.Tensor", {ref(log), ref(make("aten.add.Scalar", {ref(make("aten.mul.Tensor", {ref(less), ref(*y)})), int64_t{1}}))});
  }
  const ValueId wrong = make("aten.mul.Tensor", {ref(make("aten.rsub.Scalar", {ref(*y), int64_t{1}})), ref(*x)});
  const int64_t how = reduction_of_loss(n, 4);
  if (how == 0 && !w) {
    m.give(0, "aten.sub.Tensor", {ref(wrong), ref(log)});
    return true;
  }
  ValueId loss = make("aten.sub.Tensor", {ref(wrong), ref(log)});
  if (how == 0) {
    m.give(0, "aten.mul.Tensor", {ref(loss), ref(*w)});
    return true;
  }
  if (w) loss = make("aten.mul.Tensor", {ref(loss), ref(*w)});
  m.give(0, how == 1 ? "aten.mean" : "aten.sum", {ref(loss)});
  return true;
}

// --- batch norm in training, of tensors that are laid out row after row: [N, C, …]

/// [N, C, S] with S elements a channel and sample, and views of what is one a channel.
struct Channels {
  Shape s;
  int64_t samples, channels, inside;
  std::vector<int64_t> split, one_each, spread;   ///< [N, C, S], [N, C], [1, C, 1, …] of the tensor's own rank
  explicit Channels(const Shape& shape) : s(shape), samples(shape.sizes[0]), channels(shape.sizes[1]), inside(shape.numel() / (shape.sizes[0] * shape.sizes[1])), split{samples, channels, inside}, one_each{samples, channels}, spread(shape.sizes.size(), 1) { spread[1] = channels; }
  double count() const { return static_cast<double>(samples * inside); }
};

/// Sums of a value over samples and elements, one a channel; as result `result` of the old node where it is one.
ValueId channel_sum(Maker& m, const Channels& c, ValueId x, DType t, const char* target, std::optional<ValueId> of_samples, const ir::Node& n, std::optional<size_t> result) {
  const auto last = [&](std::vector<Argument> args) {
    if (!result) return m.make(target, std::move(args), {c.channels}, t);
    m.give(*result, target, std::move(args));
    return n.results[*result];
  };
  if (c.inside == 1) return last({ref(m.make("aten.view", {ref(x), list(c.one_each)}, c.one_each, t)), list({0})});
  if (c.samples == 1) return last({ref(m.make("aten.view", {ref(x), list({c.channels, c.inside})}, {c.channels, c.inside}, t)), list({1})});
  return last({ref(of_samples ? *of_samples : m.make(target, {ref(x), list({2})}, c.one_each, t)), list({0})});
}

bool batch_norm_training(ir::Graph& g, const ir::Node& n, Maker& m) {
  const bool is_functional = n.target == "aten._native_batch_norm_legit_functional";
  if (n.args.size() != 8 || !n.kwargs.empty() || n.results.size() != (is_functional ? 5u : 3u)) return false;
  const auto x = tensor(n, 0), w = tensor(n, 1), b = tensor(n, 2), mean_before = tensor(n, 3), var_before = tensor(n, 4);
  const auto *is_training = n.args[5].as<bool>();
  const auto *momentum = n.args[6].as<double>(), *eps = n.args[7].as<double>();
  if (!x || !is_training || !*is_training || !momentum || !eps || (!w && !n.args[1].is_none()) || (!b && !n.args[2].is_none())) return false;
  if (is_functional ? !mean_before || !var_before : !n.args[3].is_none() || !n.args[4].is_none()) return false;
  const DType t = m.dtype(*x);
  for (ValueId r : n.results)
    if (!is_plain(g, r) || m.dtype(r) != t || !is_contiguous(g, r)) return false;
  if (!is_plain(g, *x) || is_narrow(t) || !is_contiguous(g, *x) || m.shape(*x).sizes.size() < 2) return false;
  const Channels c(m.shape(*x));
  if (c.samples * c.inside < 2) return false;
  for (const auto& v : {w, b, mean_before, var_before})
    if (v && (!is_plain(g, *v) || m.dtype(*v) != t || m.shape(*v).sizes != std::vector<int64_t>{c.channels})) return false;
  const std::vector<int64_t> one = {c.channels};
  const auto of_channel = [&](const char* target, std::vector<Argument> args) { return m.make(target, std::move(args), one, t); };
  // A mean and a mean of squares for each row while it is in cache; the rows' means are then joined, and what they are apart counts among the squares.
  ValueId mean, variance;
  if (c.inside == 1 || c.samples == 1) {
    mean = channel_sum(m, c, *x, t, "aten.mean.dim", std::nullopt, n, 1);
    const ValueId centred = m.make("aten.sub.Tensor", {ref(*x), ref(m.make("aten.view", {ref(mean), list(c.spread)}, c.spread, t))}, c.s.sizes, t);
    variance = channel_sum(m, c, m.make("aten.mul.Tensor", {ref(centred), ref(centred)}, c.s.sizes, t), t, "aten.mean.dim", std::nullopt, n, std::nullopt);
  } else {
    const std::vector<int64_t> one_a_row = {c.samples, c.channels, 1};
    const ValueId v = m.make("aten.view", {ref(*x), list(c.split)}, c.split, t);
    const ValueId means = m.make("aten.mean.dim", {ref(v), list({2})}, c.one_each, t);
    const ValueId centred = m.make("aten.sub.Tensor", {ref(v), ref(m.make("aten.view", {ref(means), list(one_a_row)}, one_a_row, t))}, c.split, t);
    const ValueId squares = m.make("aten.mean.dim", {ref(m.make("aten.mul.Tensor", {ref(centred), ref(centred)}, c.split, t)), list({2})}, c.one_each, t);
    mean = channel_sum(m, c, *x, t, "aten.mean.dim", means, n, 1);
    const ValueId apart = m.make("aten.sub.Tensor", {ref(means), ref(mean)}, c.one_each, t);
    const ValueId all = m.make("aten.add.Tensor", {ref(squares), ref(m.make("aten.mul.Tensor", {ref(apart), ref(apart)}, c.one_each, t))}, c.one_each, t);
    variance = channel_sum(m, c, *x, t, "aten.mean.dim", all, n, std::nullopt);
  }
  m.give(2, "aten.rsqrt", {ref(of_channel("aten.add.Scalar", {ref(variance), *eps}))});
  const ValueId factor = w ? of_channel("aten.mul.Tensor", {ref(n.results[2]), ref(*w)}) : n.results[2];
  const ValueId centre = of_channel("aten.mul.Tensor", {ref(mean), ref(factor)});
  const ValueId summand = b ? of_channel("aten.sub.Tensor", {ref(*b), ref(centre)}) : of_channel("aten.neg", {ref(centre)});
  if (is_functional) {
    const auto moved = [&](size_t result, ValueId now, ValueId before) {
      m.give(result, "aten.add.Tensor", {ref(of_channel("aten.mul.Scalar", {ref(now), *momentum})), ref(of_channel("aten.mul.Scalar", {ref(before), 1 - *momentum}))});
    };
    moved(3, mean, *mean_before);
    moved(4, of_channel("aten.mul.Scalar", {ref(variance), c.count() / (c.count() - 1)}), *var_before);
  }
  const auto spread = [&](ValueId v) { return ref(m.make("aten.view", {ref(v), list(c.spread)}, c.spread, t)); };
  m.give(0, "aten.add.Tensor", {ref(m.make("aten.mul.Tensor", {ref(*x), spread(factor)}, c.s.sizes, t)), spread(summand)});
  return true;
}

bool batch_norm_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.args.size() != 10 || !n.kwargs.empty() || n.results.size() != 3) return false;
  const auto dy = tensor(n, 0), x = tensor(n, 1), w = tensor(n, 2), running = tensor(n, 3), spread_before = tensor(n, 4), saved_mean = tensor(n, 5), saved_factor = tensor(n, 6);
  const auto *is_training = n.args[7].as<bool>();
  const auto *eps = n.args[8].as<double>();
  const auto* mask = n.args[9].as<ir::List>();
  if (!dy || !x || !is_training || !eps || !mask || mask->items.size() != 3 || (!w && !n.args[2].is_none())) return false;
  if (*is_training ? !saved_mean || !saved_factor : !running || !spread_before) return false;
  const auto wanted = [&](size_t i) { return *mask->items[i].as<bool>(); };
  const DType t = m.dtype(*x);
  for (size_t i = 0; i < 3; ++i) {
    if (!mask->items[i].as<bool>()) return false;
    const ValueId r = n.results[i];
    if (wanted(i) ? !is_plain(g, r) || m.dtype(r) != t || !is_contiguous(g, r) : is_wanted(g, r)) return false;   // what is not asked for is none
  }
  for (ValueId v : {*x, *dy})
    if (!is_plain(g, v) || m.dtype(v) != t || !is_contiguous(g, v) || m.shape(v).sizes != m.shape(*x).sizes) return false;
  if (is_narrow(t) || m.shape(*x).sizes.size() < 2) return false;
  const Channels c(m.shape(*x));
  const ValueId mean = *is_training ? *saved_mean : *running;
  for (const auto& v : {w, std::optional(mean), *is_training ? saved_factor : spread_before})
    if (v && (!is_plain(g, *v) || m.dtype(*v) != t || m.shape(*v).sizes != std::vector<int64_t>{c.channels})) return false;
  const std::vector<int64_t> one = {c.channels};
  const auto of_channel = [&](const char* target, std::vector<Argument> args) { return m.make(target, std::move(args), one, t); };
  const auto make = [&](const char* target, std::vector<Argument> args) { return m.make(target, std::move(args), c.s.sizes, t); };
  const auto spread = [&](ValueId v) { return ref(m.make("aten.view", {ref(v), list(c.spread)}, c.spread, t)); };
  const ValueId factor = *is_training ? *saved_factor : of_channel("aten.rsqrt", {ref(of_channel("aten.add.Scalar", {ref(*spread_before), *eps}))});
  // Sums of the gradient, and of its product with what is away from the mean.
  const auto rows_of = [&](ValueId v) { return c.inside == 1 || c.samples == 1 ? v : m.make("aten.view", {ref(v), list(c.split)}, c.split, t); };
  const std::optional<size_t> for_bias = wanted(2) ? std::optional<size_t>(2) : std::nullopt;
  ValueId total, along;
  if (c.inside == 1 || c.samples == 1) {
    const ValueId away = make("aten.sub.Tensor", {ref(*x), spread(mean)});
    total = channel_sum(m, c, *dy, t, "aten.sum.dim_IntList", std::nullopt, n, for_bias);
    along = channel_sum(m, c, make("aten.mul.Tensor", {ref(*dy), ref(away)}), t, "aten.sum.dim_IntList", std::nullopt, n, std::nullopt);
  } else {
    const std::vector<int64_t> a_channel = {1, c.channels, 1};
    const ValueId gradient = rows_of(*dy);
    const ValueId away = m.make("aten.sub.Tensor", {ref(rows_of(*x)), ref(m.make("aten.view", {ref(mean), list(a_channel)}, a_channel, t))}, c.split, t);
    const ValueId product = m.make("aten.mul.Tensor", {ref(gradient), ref(away)}, c.split, t);
    const ValueId totals = m.make("aten.sum.dim_IntList", {ref(gradient), list({2})}, c.one_each, t);
    const ValueId alongs = m.make("aten.sum.dim_IntList", {ref(product), list({2})}, c.one_each, t);
    total = channel_sum(m, c, *dy, t, "aten.sum.dim_IntList", totals, n, for_bias);
    along = channel_sum(m, c, *dy, t, "aten.sum.dim_IntList", alongs, n, std::nullopt);
  }
  ValueId of_weight = n.results[1];
  if (wanted(1)) m.give(1, "aten.mul.Tensor", {ref(along), ref(factor)});
  else of_weight = of_channel("aten.mul.Tensor", {ref(along), ref(factor)});
  if (!wanted(0)) return true;
  const ValueId scale = w ? of_channel("aten.mul.Tensor", {ref(factor), ref(*w)}) : factor;
  if (!*is_training) {
    m.give(0, "aten.mul.Tensor", {ref(*dy), spread(scale)});
    return true;
  }
  const ValueId base = of_channel("aten.div.Scalar", {ref(total), c.count()});
  const ValueId slope = of_channel("aten.div.Scalar", {ref(of_channel("aten.mul.Tensor", {ref(of_weight), ref(factor)})), c.count()});
  const ValueId away = make("aten.sub.Tensor", {ref(*x), spread(mean)});
  const ValueId rest = make("aten.sub.Tensor", {ref(make("aten.sub.Tensor", {ref(*dy), spread(base)})), ref(make("aten.mul.Tensor", {ref(away), spread(slope)}))});
  m.give(0, "aten.mul.Tensor", {ref(rest), spread(scale)});
  return true;
}

// --- products of halves

/// Torch's own product of halves goes through its operands number by number on most processors: a fifth of the speed of one in float, to which the operands are cast first and whose tiles are
/// cast back. Sums are in float, and rounded once. Not of few rows or columns: there the casts cost more than the product. (bfloat16 stays torch's, which has instructions for it.)
bool half_product(ir::Graph& g, const ir::Node& n, Maker& m) {
  constexpr int64_t kFewest = 16;
  const bool has_bias = n.target == "aten.addmm", is_batch = n.target == "aten.bmm";
  if (!n.kwargs.empty() || n.args.size() != (has_bias ? 3u : 2u) || n.results.size() != 1) return false;
  const auto a = tensor(n, has_bias ? 1 : 0), b = tensor(n, has_bias ? 2 : 1);
  const size_t rank = is_batch ? 3 : 2;
  const auto is_half = [&](ValueId v) { return shape_of(g.value(v).type) && m.dtype(v) == DType::f16; };
  if (!a || !b || !is_half(*a) || !is_half(*b) || !is_half(n.results[0]) || !is_contiguous(g, n.results[0])) return false;
  const Shape out = m.shape(n.results[0]);
  if (m.shape(*a).sizes.size() != rank || m.shape(*b).sizes.size() != rank || out.numel() == 0 || out.sizes[rank - 2] < kFewest || out.sizes[rank - 1] < kFewest || m.shape(*a).sizes.back() < kFewest) return false;
  const auto in_float = [&](ValueId v) -> std::optional<ValueId> {   // as it lies, where nothing lies between
    const Shape s = m.shape(v);
    std::vector<ir::Dim> strides = g.value(v).type.tensor.strides;
    const bool is_turned = rank == 2 && s.strides[0] == 1 && s.strides[1] == s.sizes[0];
    if (!is_contiguous(g, v) && !is_turned) return std::nullopt;
    return m.make("aten._to_copy", {ref(v)}, s.sizes, DType::f32, {{"dtype", DType::f32}}, &strides);
  };
  const auto left = in_float(*a), right = in_float(*b);
  if (!left || !right) return false;
  std::vector<Argument> args = {ref(*left), ref(*right)};
  if (has_bias) {
    const auto bias = tensor(n, 0);
    if (!bias || !is_half(*bias) || !is_contiguous(g, *bias) || m.shape(*bias).sizes != std::vector<int64_t>{out.sizes[1]}) return false;
    args.insert(args.begin(), ref(m.make("aten._to_copy", {ref(*bias)}, {out.sizes[1]}, DType::f32, {{"dtype", DType::f32}})));
  }
  m.give(0, "aten._to_copy", {ref(m.make(n.target.c_str(), std::move(args), out.sizes, DType::f32))}, {{"dtype", DType::f16}});
  return true;
}

// --- copies

/// Each dimension is repeated: a dimension of size 1 in front of it is expanded, and what is seen so is copied.
bool repeat(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  const auto* times = n.args.size() == 2 ? n.args[1].as<ir::List>() : nullptr;
  if (!x || !times || !shape_of(g.value(*x).type) || !is_contiguous(g, n.results[0]) || m.shape(n.results[0]).numel() == 0) return false;
  const Shape s = m.shape(*x);
  const DType t = m.dtype(*x);
  std::vector<int64_t> counts;
  for (const Argument& a : times->items) {
    if (!a.as<int64_t>()) return false;
    counts.push_back(*a.as<int64_t>());
  }
  if (counts.size() < s.sizes.size() || counts.size() > 4) return false;
  std::vector<int64_t> sizes = s.sizes;
  std::vector<ir::Dim> strides = g.value(*x).type.tensor.strides;
  ValueId v = *x;
  const auto add_one = [&](size_t at) {
    sizes.insert(sizes.begin() + static_cast<long>(at), 1);
    strides.insert(strides.begin() + static_cast<long>(at), ir::Dim(0));
    std::vector<ir::Dim> seen = strides;   // as torch counts the stride of a new dimension
    seen[at] = at + 1 < sizes.size() ? ir::Dim(sizes[at + 1] * *strides[at + 1].number()) : ir::Dim(1);
    strides = seen;
    v = m.make("aten.unsqueeze", {ref(v), static_cast<int64_t>(at)}, sizes, t, {}, &strides);
  };
  while (sizes.size() < counts.size()) add_one(0);
  std::vector<int64_t> wide;
  for (size_t i = 0; i < counts.size(); ++i) {
    add_one(2 * i);
    wide.push_back(counts[i]);
    wide.push_back(sizes[2 * i + 1]);
  }
  std::vector<ir::Dim> repeated = strides;
  for (size_t i = 0; i < wide.size(); ++i)
    if (sizes[i] != wide[i]) repeated[i] = ir::Dim(0);
  v = m.make("aten.expand", {ref(v), list(wide)}, wide, t, {}, &repeated);
  v = m.make("aten.clone", {ref(v)}, wide, t, {{"memory_format", ir::MemoryFormat::contiguous_format}});
  m.give(0, "aten.view", {ref(v), list(m.shape(n.results[0]).sizes)});
  return true;
}

/// What the gate lets through. Backward is a rule.
bool glu(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || !n.kwargs.empty() || !is_plain(g, *x) || !is_plain(g, n.results[0]) || is_narrow(m.dtype(*x))) return false;
  const Shape s = m.shape(*x);
  const auto rank = static_cast<int64_t>(s.sizes.size());
  int64_t d = n.args.size() > 1 && n.args[1].as<int64_t>() ? *n.args[1].as<int64_t>() : -1;
  if (d < 0) d += rank;
  if (d < 0 || d >= rank || s.sizes[static_cast<size_t>(d)] % 2 != 0) return false;
  const int64_t half = s.sizes[static_cast<size_t>(d)] / 2;
  std::vector<int64_t> sizes = s.sizes;
  sizes[static_cast<size_t>(d)] = half;
  const DType t = m.dtype(*x);
  const std::vector<ir::Dim> strides = g.value(*x).type.tensor.strides;
  const auto part = [&](int64_t first) { return m.make("aten.slice.Tensor", {ref(*x), d, first, first + half}, sizes, t, {}, &strides); };
  const ValueId passed = part(0);
  m.give(0, "aten.mul.Tensor", {ref(passed), ref(m.make("aten.sigmoid", {ref(part(half))}, sizes, t))});
  return true;
}

bool prelu_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto dy = tensor(n, 0), x = tensor(n, 1), w = tensor(n, 2);
  if (n.args.size() != 3 || !n.kwargs.empty() || n.results.size() != 2 || !dy || !x || !w || !all_plain(g, n) || is_narrow(m.dtype(*x))) return false;
  const DType t = m.dtype(*x);
  const Shape s = m.shape(*x);
  for (ValueId v : {*dy, *w, n.results[0], n.results[1]})
    if (m.dtype(v) != t || !spreads_to(m.shape(v).sizes, s.sizes)) return false;
  if (m.shape(n.results[0]).sizes != s.sizes || m.shape(n.results[1]).sizes != s.sizes) return false;
  const auto make = [&](const char* target, ValueId a, ValueId b) { return m.make(target, {ref(a), ref(b)}, s.sizes, t); };
  const ValueId is_passed = m.make("aten.gt.Scalar", {ref(*x), int64_t{0}}, s.sizes, DType::boolean);
  m.give(0, "aten.where.self", {ref(is_passed), ref(*dy), ref(make("aten.mul.Tensor", *w, *dy))});
  m.give(1, "aten.masked_fill.Scalar", {ref(make("aten.mul.Tensor", *x, *dy)), ref(is_passed), int64_t{0}});
  return true;
}

/// [.., C r r, H, W] to [.., C, H r, W r], and back: a view, its dimensions in another order, a copy.
bool pixel_shuffle(ir::Graph& g, const ir::Node& n, Maker& m) {
  const bool is_back = n.target == "aten.pixel_unshuffle";
  const auto x = tensor(n, 0);
  const auto* factor = n.args.size() == 2 ? n.args[1].as<int64_t>() : nullptr;
  if (!x || !factor || *factor < 1 || !shape_of(g.value(*x).type) || !is_contiguous(g, n.results[0]) || m.shape(n.results[0]).numel() == 0 || !shape_of(g.value(n.results[0]).type)) return false;
  const Shape s = m.shape(*x);
  const size_t rank = s.sizes.size(), front = rank - 3;
  const int64_t r = *factor;
  if (rank < 3 || (is_back ? s.sizes[rank - 2] % r != 0 || s.sizes[rank - 1] % r != 0 : s.sizes[rank - 3] % (r * r) != 0)) return false;
  const int64_t c = s.sizes[rank - 3], h = s.sizes[rank - 2], w = s.sizes[rank - 1], at_c = s.strides[rank - 3], at_h = s.strides[rank - 2], at_w = s.strides[rank - 1];
  const std::vector<int64_t> split = is_back ? std::vector<int64_t>{c, h / r, r, w / r, r} : std::vector<int64_t>{c / (r * r), r, r, h, w};
  const std::vector<int64_t> steps = is_back ? std::vector<int64_t>{at_c, at_h * r, at_h, at_w * r, at_w} : std::vector<int64_t>{at_c * r * r, at_c * r, at_c, at_h, at_w};
  const std::vector<size_t> order = is_back ? std::vector<size_t>{0, 2, 4, 1, 3} : std::vector<size_t>{0, 3, 1, 4, 2};
  std::vector<int64_t> sizes(s.sizes.begin(), s.sizes.begin() + static_cast<long>(front)), turned = sizes, dims;
  std::vector<ir::Dim> strides(g.value(*x).type.tensor.strides.begin(), g.value(*x).type.tensor.strides.begin() + static_cast<long>(front)), turned_strides = strides;
  for (size_t d = 0; d < front; ++d) dims.push_back(static_cast<int64_t>(d));
  for (size_t i = 0; i < 5; ++i) {
    sizes.push_back(split[i]);
    strides.emplace_back(steps[i]);
    turned.push_back(split[order[i]]);
    turned_strides.emplace_back(steps[order[i]]);
    dims.push_back(static_cast<int64_t>(front + order[i]));
  }
  const DType t = m.dtype(*x);
  ValueId v = m.make("aten.view", {ref(*x), list(sizes)}, sizes, t, {}, &strides);
  v = m.make("aten.permute", {ref(v), list(dims)}, turned, t, {}, &turned_strides);
  v = m.make("aten.clone", {ref(v)}, turned, t, {{"memory_format", ir::MemoryFormat::contiguous_format}});
  m.give(0, "aten.view", {ref(v), list(m.shape(n.results[0]).sizes)});
  return true;
}

// --- steps of an optimiser over lists of tensors: the same operator for each tensor, which then joins its neighbours

struct OfEach { const char* target; std::string_view rest; };   ///< rest: what stands behind the first list: l a list of tensors, s a number, n a list of numbers, t one tensor; small letters may be missing at the end
const std::map<std::string_view, OfEach>& lists() {
  static const std::map<std::string_view, OfEach> kLists = {
      {"aten._foreach_add.Scalar", {"aten.add.Scalar", "s"}}, {"aten._foreach_add.List", {"aten.add.Tensor", "l"}}, {"aten._foreach_add.ScalarList", {"aten.add.Scalar", "n"}}, {"aten._foreach_add.Tensor", {"aten.add.Tensor", "t"}},
      {"aten._foreach_sub.Scalar", {"aten.sub.Scalar", "s"}}, {"aten._foreach_sub.List", {"aten.sub.Tensor", "l"}}, {"aten._foreach_sub.ScalarList", {"aten.sub.Scalar", "n"}},
      {"aten._foreach_mul.Scalar", {"aten.mul.Scalar", "s"}}, {"aten._foreach_mul.List", {"aten.mul.Tensor", "l"}}, {"aten._foreach_mul.ScalarList", {"aten.mul.Scalar", "n"}}, {"aten._foreach_mul.Tensor", {"aten.mul.Tensor", "t"}},
      {"aten._foreach_div.Scalar", {"aten.div.Scalar", "s"}}, {"aten._foreach_div.List", {"aten.div.Tensor", "l"}}, {"aten._foreach_div.ScalarList", {"aten.div.Scalar", "n"}}, {"aten._foreach_div.Tensor", {"aten.div.Tensor", "t"}},
      {"aten._foreach_maximum.List", {"aten.maximum", "l"}}, {"aten._foreach_minimum.List", {"aten.minimum", "l"}},
      {"aten._foreach_clamp_min.Scalar", {"aten.clamp_min", "s"}}, {"aten._foreach_clamp_max.Scalar", {"aten.clamp_max", "s"}}, {"aten._foreach_clamp_min.ScalarList", {"aten.clamp_min", "n"}}, {"aten._foreach_clamp_max.ScalarList", {"aten.clamp_max", "n"}},
      {"aten._foreach_addcmul.Scalar", {"aten.addcmul", "llv"}}, {"aten._foreach_addcdiv.Scalar", {"aten.addcdiv", "llv"}}, {"aten._foreach_addcmul.ScalarList", {"aten.addcmul", "llw"}}, {"aten._foreach_addcdiv.ScalarList", {"aten.addcdiv", "llw"}},
      {"aten._foreach_lerp.Scalar", {"aten.lerp.Scalar", "ls"}}, {"aten._foreach_lerp.List", {"aten.lerp.Tensor", "ll"}}, {"aten._foreach_lerp.ScalarList", {"aten.lerp.Scalar", "ln"}}, {"aten._foreach_pow.Scalar", {"aten.pow.Tensor_Scalar", "s"}},
      {"aten._foreach_sqrt", {"aten.sqrt", ""}}, {"aten._foreach_rsqrt", {"aten.rsqrt", ""}}, {"aten._foreach_neg", {"aten.neg", ""}}, {"aten._foreach_abs", {"aten.abs", ""}}, {"aten._foreach_exp", {"aten.exp", ""}}, {"aten._foreach_log", {"aten.log", ""}},
      {"aten._foreach_reciprocal", {"aten.reciprocal", ""}}, {"aten._foreach_sign", {"aten.sign", ""}}, {"aten._foreach_sigmoid", {"aten.sigmoid", ""}}, {"aten._foreach_tanh", {"aten.tanh", ""}}, {"aten._foreach_floor", {"aten.floor", ""}},
      {"aten._foreach_ceil", {"aten.ceil", ""}}, {"aten._foreach_round", {"aten.round", ""}}, {"aten._foreach_trunc", {"aten.trunc", ""}}, {"aten._foreach_erf", {"aten.erf", ""}}, {"aten._foreach_expm1", {"aten.expm1", ""}}, {"aten._foreach_log1p", {"aten.log1p", ""}},
  };
  return kLists;
}

bool of_each(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto row = lists().find(n.target);
  if (row == lists().end() || n.args.empty() || n.args.size() > 1 + row->second.rest.size()) return false;
  const auto* first = n.args[0].as<ir::List>();
  const size_t count = n.results.size();
  if (!first || first->items.size() != count) return false;
  for (ValueId r : n.results)
    if (!shape_of(g.value(r).type)) return false;
  for (size_t i = 1; i < n.args.size(); ++i) {
    const char kind = row->second.rest[i - 1];
    const bool is_list = kind == 'l' || kind == 'n' || kind == 'w';
    if (is_list != (n.args[i].as<ir::List>() != nullptr) || (is_list && n.args[i].as<ir::List>()->items.size() != count)) return false;
  }
  for (size_t k = 0; k < count; ++k) {
    std::vector<Argument> args = {first->items[k]};
    auto kwargs = n.kwargs;
    for (size_t i = 1; i < n.args.size(); ++i) {
      const char kind = row->second.rest[i - 1];
      Argument a = n.args[i].as<ir::List>() ? n.args[i].as<ir::List>()->items[k] : n.args[i];
      if (kind == 'v' || kind == 'w') kwargs.emplace_back("value", std::move(a));
      else args.push_back(std::move(a));
    }
    m.give(k, row->second.target, std::move(args), std::move(kwargs));
  }
  return true;
}

}  // namespace
}  // namespace training

std::vector<RewriteRow> training_rewrites() {
  using namespace training;
  std::vector<RewriteRow> rows = {
      {"nll_loss", "aten.nll_loss_forward", nll_loss_forward, true}, {"nll_loss2d", "aten.nll_loss2d_forward", nll_loss_forward, true},
      {"binary_cross_entropy", "aten.binary_cross_entropy", binary_cross_entropy, true}, {"binary_cross_entropy_with_logits", "aten.binary_cross_entropy_with_logits", binary_cross_entropy_with_logits, true},
      {"log_sigmoid", "aten.log_sigmoid_forward", log_sigmoid_forward, true},
      {"batch_norm_training", "aten._native_batch_norm_legit_functional", batch_norm_training, true}, {"batch_norm_backward", "aten.native_batch_norm_backward", batch_norm_backward, true},
      {"repeat", "aten.repeat", repeat, true}, {"glu", "aten.glu", glu, true}, {"prelu_backward", "aten._prelu_kernel_backward", prelu_backward, true},
      {"half_product", "aten.mm", half_product, true}, {"half_product", "aten.addmm", half_product, true}, {"half_product", "aten.bmm", half_product, true},
      {"pixel_shuffle", "aten.pixel_shuffle", pixel_shuffle, true}, {"pixel_unshuffle", "aten.pixel_unshuffle", pixel_shuffle, true},
  };
  for (const auto& [target, of] : lists()) rows.push_back({"of_each", target, of_each, true});
  return rows;
}

void pick_losses(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  if (options.off.contains("picked loss")) return;
  std::map<ValueId, size_t> uses;
  const auto use = [&](ValueId id) { ++uses[id]; };
  for (const ir::Node& n : g.body.nodes) for_each_use_inside(n, use);
  for (const Argument& a : g.body.outputs) ir::for_each_value(a, use);
  std::map<ValueId, std::pair<ValueId, ValueId>> differences;   // of what
  for (const ir::Node& n : g.body.nodes)
    if (n.target == "aten.sub.Tensor" && n.args.size() == 2 && n.kwargs.empty() && tensor(n, 0) && tensor(n, 1)) differences[n.results[0]] = {*tensor(n, 0), *tensor(n, 1)};
  const auto difference = [&](ValueId id) -> std::optional<std::pair<ValueId, ValueId>> {
    const auto found = differences.find(id);
    return found == differences.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<ir::Node> nodes;
  for (ir::Node& n : g.body.nodes) {
    const auto scores = tensor(n, 0), target = tensor(n, 1);
    const bool is_loss = n.target == "aten.nll_loss" && n.args.size() == 5 && n.kwargs.empty() && scores && target && n.args[2].is_none() && n.args[4].as<int64_t>();
    const auto outer = is_loss && uses[*scores] == 1 && static_cast<int64_t>(done.size()) < options.fuel ? difference(*scores) : std::nullopt;
    const auto inner = outer ? difference(outer->first) : std::nullopt;
    if (!inner || !is_plain(g, inner->first) || g.value(*scores).type.tensor.device.type != "cpu") { nodes.push_back(std::move(n)); continue; }
    Maker m(g, n);
    const auto [x, top] = *inner;
    const ValueId log = outer->second;
    const std::vector<int64_t> rows = m.shape(*target).sizes, ones = {rows.empty() ? 0 : rows[0], 1};
    const DType t = m.dtype(*scores);
    const auto is_one_a_row = [&](ValueId id) { return shape_of(g.value(id).type) && m.shape(id).sizes == ones && m.dtype(id) == t && g.value(id).type.tensor.is_contiguous(); };
    if (rows.size() != 1 || m.dtype(x) != t || m.shape(x).sizes != m.shape(*scores).sizes || !is_one_a_row(top) || !is_one_a_row(log)) { nodes.push_back(std::move(n)); continue; }
    const auto make = [&](const char* what, std::vector<Argument> args, DType dtype) { return m.make(what, std::move(args), rows, dtype); };
    const auto row = [&](ValueId id) { return ref(make("aten.view", {ref(id), list(rows)}, t)); };
    std::vector<Argument> args = n.args;
    args[0] = ref(x);
    const ValueId score = make("aten.neg", {ref(make("aten.nll_loss", std::move(args), t))}, t);
    const ValueId below = make("aten.sub.Tensor", {ref(score), row(top)}, t);
    const ValueId loss = make("aten.neg", {ref(make("aten.sub.Tensor", {ref(below), row(log)}, t))}, t);
    const ValueId is_ignored = make("aten.eq.Scalar", {ref(*target), *n.args[4].as<int64_t>()}, DType::boolean);
    m.give(0, "aten.masked_fill.Scalar", {ref(loss), ref(is_ignored), int64_t{0}});
    done.push_back({"picked loss", g.value(n.results[0]).name});
    for (ir::Node& made : m.nodes) nodes.push_back(std::move(made));
  }
  g.body.nodes = std::move(nodes);
}
/// In training without running statistics (instance norm).
bool rewrite_batch_norm_training(ir::Graph& g, const ir::Node& n, Maker& m) { return training::batch_norm_training(g, n, m); }

}  // namespace cutaway::codegen
