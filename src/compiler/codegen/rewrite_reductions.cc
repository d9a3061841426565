// Rewrites of operators that are sums, maxima and pointwise steps: variances, losses, norms of groups, the place of a maximum.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/maker.h"

namespace cutaway::codegen {
namespace reducing {   // its helpers have names that other files of the folder use too
namespace {

const Argument* named(const ir::Node& n, size_t position, std::string_view name) {
  const Argument* found = position < n.args.size() ? &n.args[position] : nullptr;
  for (const auto& [key, a] : n.kwargs)
    if (key == name) found = &a;
  return found && found->is_none() ? nullptr : found;
}
bool truth(const ir::Node& n, size_t position, std::string_view name) {
  const Argument* a = named(n, position, name);
  return a && a->as<bool>() && *a->as<bool>();
}

/// The last dimensions alone, in rows that a kernel would take: elsewhere torch's own operator goes over its memory fewer times.
std::optional<std::vector<int64_t>> row_dims(const Argument* a, const Shape& s) {
  const auto rank = static_cast<int64_t>(s.sizes.size());
  const auto found = dims_of(a, rank);
  if (!found || found->empty() || std::ranges::adjacent_find(*found) != found->end()) return std::nullopt;
  const std::vector<int64_t>& dims = *found;
  int64_t inside = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != rank - static_cast<int64_t>(dims.size() - i)) return std::nullopt;
    inside *= s.sizes[static_cast<size_t>(dims[i])];
  }
  if (inside < 2 || (s.numel() / inside < 4 && inside > 16384)) return std::nullopt;
  return dims;
}
int64_t count_of_row(const Shape& s, const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= s.sizes[static_cast<size_t>(d)];
  return n;
}
std::vector<int64_t> reduced_sizes(const Shape& s, const std::vector<int64_t>& dims, bool keep) {
  if (keep) return with_ones(s, dims);
  return {s.sizes.begin(), s.sizes.end() - static_cast<long>(dims.size())};
}

/// var, std and var_mean: the mean first, then squares of what is left.
bool variance(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || !all_plain(g, n)) return false;
  const Shape s = m.shape(*x);
  const auto dims = row_dims(named(n, 1, "dim"), s);
  if (!dims) return false;
  double correction = 1;
  if (const Argument* c = named(n, SIZE_MAX, "correction")) {
    if (c->as<int64_t>()) correction = static_cast<double>(*c->as<int64_t>());
    else if (c->as<double>()) correction = *c->as<double>();
    else return false;
  }
  const double freedom = static_cast<double>(count_of_row(s, *dims)) - correction;
  if (!(freedom > 0)) return false;   // torch warns
  const bool keep = truth(n, SIZE_MAX, "keepdim");
  const DType t = m.dtype(*x);
  const ValueId mean = m.make("aten.mean.dim", {ref(*x), list(*dims), true}, with_ones(s, *dims), t);
  const ValueId centred = m.make("aten.sub.Tensor", {ref(*x), ref(mean)}, s.sizes, t);
  const ValueId squares = m.make("aten.mul.Tensor", {ref(centred), ref(centred)}, s.sizes, t);
  const auto sizes = reduced_sizes(s, *dims, keep);
  const ValueId total = m.make("aten.sum.dim_IntList", {ref(squares), list(*dims), keep}, sizes, t);
  if (n.target == "aten.std.correction") {
    m.give(0, "aten.sqrt", {ref(m.make("aten.div.Scalar", {ref(total), freedom}, sizes, t))});
    return true;
  }
  m.give(0, "aten.div.Scalar", {ref(total), freedom});
  if (n.results.size() == 2) m.give(1, "aten.mean.dim", {ref(*x), list(*dims), keep});
  return true;
}

bool logsumexp(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || !all_plain(g, n) || m.dtype(*x) != m.dtype(n.results[0])) return false;
  const Shape s = m.shape(*x);
  const auto dims = row_dims(named(n, 1, "dim"), s);
  if (!dims) return false;
  const bool keep = truth(n, 2, "keepdim");
  const DType t = m.dtype(*x);
  const auto ones = with_ones(s, *dims), sizes = reduced_sizes(s, *dims, keep);
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueId top = m.make("aten.amax", {ref(*x), list(*dims), true}, ones, t);
  const ValueId size = m.make("aten.abs", {ref(top)}, ones, t);
  const ValueId is_infinite = m.make("aten.eq.Scalar", {ref(size), infinity}, ones, DType::boolean);
  const ValueId safe = m.make("aten.masked_fill.Scalar", {ref(top), ref(is_infinite), int64_t{0}}, ones, t);
  const ValueId below = m.make("aten.sub.Tensor", {ref(*x), ref(safe)}, s.sizes, t);
  const ValueId powers = m.make("aten.exp", {ref(below)}, s.sizes, t);
  const ValueId total = m.make("aten.sum.dim_IntList", {ref(powers), list(*dims), keep}, sizes, t);
  const ValueId log = m.make("aten.log", {ref(total)}, sizes, t);
  const ValueId shaped = keep ? safe : m.make("aten.view", {ref(safe), list(sizes)}, sizes, t);
  m.give(0, "aten.add.Tensor", {ref(log), ref(shaped)});
  return true;
}

/// argmax, argmin, and max and min of a dimension: the first place that has the extreme, or the first that is not a number.
bool place_of_extreme(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  const bool is_max = n.target == "aten.argmax" || n.target == "aten.max.dim", has_both = n.results.size() == 2;
  if (!x || !shape_of(g.value(*x).type) || m.shape(*x).numel() == 0) return false;
  const DType t = m.dtype(*x);
  if (t != DType::f32 && t != DType::f64 && t != DType::i64 && t != DType::i32) return false;
  const Shape s = m.shape(*x);
  const Argument* dim = named(n, 1, "dim");
  if (!dim || !dim->as<int64_t>()) return false;
  const auto dims = row_dims(dim, s);
  if (!dims) return false;
  const bool keep = truth(n, 2, "keepdim");
  const char* extreme = is_max ? "aten.amax" : "aten.amin";
  const int64_t count = s.sizes.back();
  const ValueId top = m.make(extreme, {ref(*x), list(*dims), true}, with_ones(s, *dims), t);
  const ValueId is_top = m.make("aten.eq.Tensor", {ref(*x), ref(top)}, s.sizes, DType::boolean);
  ValueId hit = is_top;
  if (ir::is_floating(t)) hit = m.make("aten.logical_or", {ref(is_top), ref(m.make("aten.isnan", {ref(*x)}, s.sizes, DType::boolean))}, s.sizes, DType::boolean);
  const ValueId places = m.make("aten.arange", {count}, {count}, DType::i64, {{"device", ir::Device{}}, {"pin_memory", false}});
  const ValueId none = m.make("aten.full", {list({1}), std::numeric_limits<int64_t>::max()}, {1}, DType::i64, {{"dtype", DType::i64}, {"device", ir::Device{}}});
  const ValueId candidates = m.make("aten.where.self", {ref(hit), ref(places), ref(none)}, s.sizes, DType::i64);
  if (has_both) m.give(0, extreme, {ref(*x), list(*dims), keep});
  m.give(has_both ? 1 : 0, "aten.amin", {ref(candidates), list(*dims), keep});
  return true;
}

/// A sum over a few slices in the middle (heads that share keys): additions of them, in order. Sums over the last or the first dimensions have loops of their own.
bool short_sum(ir::Graph& g, const ir::Node& n, Maker& m) {
  constexpr int64_t kMost = 8;
  const auto x = tensor(n, 0);
  const auto* given = n.args.size() > 1 ? n.args[1].as<ir::List>() : nullptr;
  if (!x || !given || given->items.size() != 1 || !given->items[0].as<int64_t>() || !all_plain(g, n) || m.dtype(*x) != m.dtype(n.results[0])) return false;
  const Shape s = m.shape(*x);
  const auto rank = static_cast<int64_t>(s.sizes.size());
  const int64_t d = *given->items[0].as<int64_t>() < 0 ? *given->items[0].as<int64_t>() + rank : *given->items[0].as<int64_t>();
  if (d < 0 || d >= rank) return false;
  const int64_t count = s.sizes[static_cast<size_t>(d)];
  int64_t before = 1, behind = 1;
  for (int64_t k = 0; k < rank; ++k)
    if (k != d) (k < d ? before : behind) *= s.sizes[static_cast<size_t>(k)];
  if (count < 2 || count > kMost || before == 1 || behind == 1) return false;
  const bool keep = truth(n, 2, "keepdim");
  std::vector<int64_t> sizes = s.sizes;
  std::vector<ir::Dim> strides = g.value(*x).type.tensor.strides;
  if (keep) {
    sizes[static_cast<size_t>(d)] = 1;
  } else {
    sizes.erase(sizes.begin() + d);
    strides.erase(strides.begin() + d);
  }
  const DType t = m.dtype(*x);
  const auto slice = [&](int64_t i) {
    return keep ? m.make("aten.slice.Tensor", {ref(*x), d, i, i + 1}, sizes, t, {}, &strides) : m.make("aten.select.int", {ref(*x), d, i}, sizes, t, {}, &strides);
  };
  ValueId total = slice(0);
  for (int64_t i = 1; i < count; ++i) {
    const ValueId next = slice(i);
    if (i + 1 == count) m.give(0, "aten.add.Tensor", {ref(total), ref(next)});
    else total = m.make("aten.add.Tensor", {ref(total), ref(next)}, sizes, t);
  }
  return true;
}

// --- losses: the pointwise part, then the mean or the sum

bool finish_loss(const ir::Node& n, Maker& m, size_t reduction_at, const char* last, std::vector<Argument> args, const std::vector<int64_t>& sizes, DType t) {
  const Argument* reduction = named(n, reduction_at, "reduction");
  const int64_t how = reduction && reduction->as<int64_t>() ? *reduction->as<int64_t>() : 1;
  if (how == 0) {
    m.give(0, last, std::move(args));
    return true;
  }
  const ValueId losses = m.make(last, std::move(args), sizes, t);
  m.give(0, how == 1 ? "aten.mean" : "aten.sum", {ref(losses)});
  return true;
}
/// Two tensors of one form and dtype.
bool is_pair(ir::Graph& g, const ir::Node& n, Maker& m, size_t first) {
  const auto x = tensor(n, first), y = tensor(n, first + 1);
  if (!x || !y || !is_plain(g, *x) || !is_plain(g, *y) || !is_plain(g, n.results[0])) return false;
  return m.dtype(*x) == m.dtype(*y) && m.dtype(*x) == m.dtype(n.results[0]) && m.shape(*x).sizes == m.shape(*y).sizes;
}

bool mse_loss(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (!is_pair(g, n, m, 0)) return false;
  const ValueId x = *tensor(n, 0), y = *tensor(n, 1);
  const Shape s = m.shape(x);
  const ValueId away = m.make("aten.sub.Tensor", {ref(x), ref(y)}, s.sizes, m.dtype(x));
  return finish_loss(n, m, 2, "aten.mul.Tensor", {ref(away), ref(away)}, s.sizes, m.dtype(x));
}

bool mse_loss_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto dy = tensor(n, 0);
  if (!dy || !is_plain(g, *dy) || !is_pair(g, n, m, 1) || n.args.size() < 4 || !n.args[3].as<int64_t>() || m.dtype(*dy) != m.dtype(n.results[0])) return false;
  const ValueId x = *tensor(n, 1), y = *tensor(n, 2);
  const Shape s = m.shape(x);
  const double factor = *n.args[3].as<int64_t>() == 1 ? 2.0 / static_cast<double>(s.numel()) : 2.0;
  const ValueId away = m.make("aten.sub.Tensor", {ref(x), ref(y)}, s.sizes, m.dtype(x));
  const ValueId scaled = m.make("aten.mul.Scalar", {ref(away), factor}, s.sizes, m.dtype(x));
  m.give(0, "aten.mul.Tensor", {ref(scaled), ref(*dy)});
  return true;
}

/// smooth_l1 and huber: a parabola near 0, straight lines beyond.
bool bent_loss(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (!is_pair(g, n, m, 0)) return false;
  const bool is_huber = n.target == "aten.huber_loss";
  const Argument* bend = named(n, 3, is_huber ? "delta" : "beta");
  const double b = bend && bend->as<double>() ? *bend->as<double>() : bend && bend->as<int64_t>() ? static_cast<double>(*bend->as<int64_t>()) : 1.0;
  if (!(b > 0)) return false;
  const ValueId x = *tensor(n, 0), y = *tensor(n, 1);
  const Shape s = m.shape(x);
  const DType t = m.dtype(x);
  const auto make = [&](const char* target, std::vector<Argument> args, DType dtype) { return m.make(target, std::move(args), s.sizes, dtype); };
  const ValueId z = make("aten.abs", {ref(make("aten.sub.Tensor", {ref(x), ref(y)}, t))}, t);
  ValueId near = make("aten.mul.Tensor", {ref(make("aten.mul.Scalar", {ref(z), 0.5}, t)), ref(z)}, t);
  ValueId far = make("aten.sub.Scalar", {ref(z), 0.5 * b}, t);
  if (is_huber) far = make("aten.mul.Scalar", {ref(far), b}, t);
  else near = make("aten.div.Scalar", {ref(near), b}, t);
  const ValueId is_near = make(is_huber ? "aten.le.Scalar" : "aten.lt.Scalar", {ref(z), b}, DType::boolean);
  return finish_loss(n, m, 2, "aten.where.self", {ref(is_near), ref(near), ref(far)}, s.sizes, t);
}

bool group_norm(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.args.size() != 8 || !n.kwargs.empty() || n.results.size() != 3 || !all_plain(g, n)) return false;
  const auto x = tensor(n, 0), w = tensor(n, 1), b = tensor(n, 2);
  const auto *groups = n.args[6].as<int64_t>();
  const auto* eps = n.args[7].as<double>();
  if (!x || !groups || !eps || (!w && !n.args[1].is_none()) || (!b && !n.args[2].is_none()) || !g.value(*x).type.tensor.is_contiguous() || !g.value(n.results[0]).type.tensor.is_contiguous()) return false;
  const Shape s = m.shape(*x);
  const DType t = m.dtype(*x);
  if (s.sizes.size() < 2 || *groups < 1 || s.sizes[1] % *groups != 0 || m.dtype(n.results[1]) != t || m.dtype(n.results[2]) != t) return false;
  for (const auto& v : {w, b})
    if (v && (m.dtype(*v) != t || m.shape(*v).sizes != std::vector<int64_t>{s.sizes[1]})) return false;
  const int64_t rows = s.sizes[0] * *groups, inside = s.numel() / rows;
  if (inside < 2 || (rows < 4 && inside > 16384)) return false;
  const std::vector<int64_t> grouped = {s.sizes[0], *groups, inside}, one_a_row = {s.sizes[0], *groups, 1}, kept = {s.sizes[0], *groups};
  const ValueId v = m.make("aten.view", {ref(*x), list(grouped)}, grouped, t);
  m.give(1, "aten.mean.dim", {ref(v), list({2}), false});
  const ValueId mean = m.make("aten.view", {ref(n.results[1]), list(one_a_row)}, one_a_row, t);
  const ValueId centred = m.make("aten.sub.Tensor", {ref(v), ref(mean)}, grouped, t);
  const ValueId squares = m.make("aten.mul.Tensor", {ref(centred), ref(centred)}, grouped, t);
  const ValueId spread = m.make("aten.mean.dim", {ref(squares), list({2}), false}, kept, t);
  const ValueId safe = m.make("aten.add.Scalar", {ref(spread), *eps}, kept, t);
  m.give(2, "aten.rsqrt", {ref(safe)});
  const ValueId rstd = m.make("aten.view", {ref(n.results[2]), list(one_a_row)}, one_a_row, t);
  const ValueId normed = m.make("aten.mul.Tensor", {ref(centred), ref(rstd)}, grouped, t);
  std::vector<int64_t> channels(s.sizes.size(), 1);
  channels[1] = s.sizes[1];
  const auto of_channel = [&](ValueId id) { return ref(m.make("aten.view", {ref(id), list(channels)}, channels, t)); };
  if (!w && !b) {
    m.give(0, "aten.clone", {ref(m.make("aten.view", {ref(normed), list(s.sizes)}, s.sizes, t))});
    return true;
  }
  ValueId y = m.make("aten.view", {ref(normed), list(s.sizes)}, s.sizes, t);
  if (w && b) y = m.make("aten.mul.Tensor", {ref(y), of_channel(*w)}, s.sizes, t);
  if (b) m.give(0, "aten.add.Tensor", {ref(y), of_channel(*b)});
  else m.give(0, "aten.mul.Tensor", {ref(y), of_channel(*w)});
  return true;
}

/// Two sums a channel and sample, of the gradient and of its product with what is away from the mean, in one walk; what a group has of both is made of these; then one pointwise pass.
bool group_norm_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.args.size() != 10 || !n.kwargs.empty() || n.results.size() != 3) return false;
  const auto dy = tensor(n, 0), x = tensor(n, 1), mean = tensor(n, 2), rstd = tensor(n, 3), w = tensor(n, 4);
  const auto* groups = n.args[8].as<int64_t>();
  const auto* mask = n.args[9].as<ir::List>();
  if (!dy || !x || !mean || !rstd || (!w && !n.args[4].is_none()) || !groups || *groups < 1 || !mask || mask->items.size() != 3 || !is_plain(g, *x)) return false;
  const DType t = m.dtype(*x);
  const Shape s = m.shape(*x);
  if (is_narrow(t) || s.sizes.size() < 2 || s.sizes[1] % *groups != 0) return false;
  const int64_t samples = s.sizes[0], channels = s.sizes[1], each = channels / *groups, inside = s.numel() / (samples * channels);
  if (inside < 2 || (samples * channels < 4 && inside > 16384)) return false;
  const auto is_good = [&](ValueId v, const std::vector<int64_t>& sizes) { return is_plain(g, v) && m.dtype(v) == t && g.value(v).type.tensor.is_contiguous() && m.shape(v).sizes == sizes; };
  const std::vector<int64_t> of_group = {samples, *groups}, of_channel = {channels};
  if (!is_good(*x, s.sizes) || !is_good(*dy, s.sizes) || !is_good(*mean, of_group) || !is_good(*rstd, of_group) || (w && !is_good(*w, of_channel))) return false;
  const auto wanted = [&](size_t i) { return mask->items[i].as<bool>() && *mask->items[i].as<bool>(); };
  for (size_t i = 0; i < 3; ++i)
    if (wanted(i) ? !is_good(n.results[i], i == 0 ? s.sizes : of_channel) : is_wanted(g, n.results[i])) return false;   // what is not asked for is none
  const std::vector<int64_t> split = {samples, *groups, each, inside}, rows = {samples, *groups, each}, flat = {samples, channels}, spread = {samples, *groups, 1}, wide = {samples, *groups, 1, 1}, by_channel = {1, *groups, each}, by_row = {1, *groups, each, 1};
  const auto view = [&](ValueId v, const std::vector<int64_t>& sizes) { return m.make("aten.view", {ref(v), list(sizes)}, sizes, t); };
  const auto make = [&](const char* target, ValueId a, ValueId b, const std::vector<int64_t>& sizes) { return m.make(target, {ref(a), ref(b)}, sizes, t); };
  const ValueId gradient = view(*dy, split), centre = view(*mean, wide), slope = view(*rstd, spread);
  const ValueId away = make("aten.sub.Tensor", view(*x, split), centre, split);
  const ValueId totals = m.make("aten.sum.dim_IntList", {ref(gradient), list({3})}, rows, t);
  const ValueId alongs = m.make("aten.sum.dim_IntList", {ref(make("aten.mul.Tensor", gradient, away, split)), list({3})}, rows, t);
  if (wanted(1)) m.give(1, "aten.sum.dim_IntList", {ref(view(make("aten.mul.Tensor", alongs, slope, rows), flat)), list({0})});
  if (wanted(2)) m.give(2, "aten.sum.dim_IntList", {ref(view(totals, flat)), list({0})});
  if (!wanted(0)) return true;
  const double count = static_cast<double>(each * inside);
  const auto in_group = [&](ValueId v) {   // the mean over a group, of what its channels weigh
    const ValueId weighed = w ? make("aten.mul.Tensor", v, view(*w, by_channel), rows) : v;
    return m.make("aten.div.Scalar", {ref(m.make("aten.sum.dim_IntList", {ref(weighed), list({2}), true}, spread, t)), count}, spread, t);
  };
  const ValueId base = in_group(totals), square = make("aten.mul.Tensor", slope, slope, spread), tilt = make("aten.mul.Tensor", in_group(alongs), square, spread);
  const ValueId weighed = w ? make("aten.mul.Tensor", gradient, view(*w, by_row), split) : gradient;
  const ValueId apart = make("aten.sub.Tensor", view(*x, split), centre, split);
  const ValueId rest = make("aten.sub.Tensor", make("aten.sub.Tensor", weighed, view(base, wide), split), make("aten.mul.Tensor", apart, view(tilt, wide), split), split);
  m.give(0, "aten.view", {ref(make("aten.mul.Tensor", rest, view(slope, wide), split)), list(s.sizes)});
  return true;
}

/// Lengths, sums of absolute values and largest ones, of rows.
bool vector_norm(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || !all_plain(g, n) || m.dtype(*x) != m.dtype(n.results[0]) || is_narrow(m.dtype(*x))) return false;
  const Shape s = m.shape(*x);
  const Argument* order = named(n, 1, "ord");
  const double p = !order ? 2 : order->as<double>() ? *order->as<double>() : order->as<int64_t>() ? static_cast<double>(*order->as<int64_t>()) : 0;
  const auto dims = row_dims(named(n, 2, "dim"), s);
  if (!dims || (p != 1 && p != 2 && !std::isinf(p))) return false;
  const bool keep = truth(n, 3, "keepdim");
  const DType t = m.dtype(*x);
  if (p == 2) {
    const ValueId squares = m.make("aten.mul.Tensor", {ref(*x), ref(*x)}, s.sizes, t);
    m.give(0, "aten.sqrt", {ref(m.make("aten.sum.dim_IntList", {ref(squares), list(*dims), keep}, reduced_sizes(s, *dims, keep), t))});
    return true;
  }
  m.give(0, p == 1 ? "aten.sum.dim_IntList" : p > 0 ? "aten.amax" : "aten.amin", {ref(m.make("aten.abs", {ref(*x)}, s.sizes, t)), list(*dims), keep});
  return true;
}

}  // namespace
}  // namespace reducing

std::vector<RewriteRow> reduction_rewrites() {
  using namespace reducing;
  return {
      {"var", "aten.var.correction", variance, true}, {"std", "aten.std.correction", variance, true}, {"var_mean", "aten.var_mean.correction", variance, true},
      {"logsumexp", "aten.logsumexp", logsumexp, true}, {"short_sum", "aten.sum.dim_IntList", short_sum, true},
      {"argmax", "aten.argmax", place_of_extreme, true}, {"argmin", "aten.argmin", place_of_extreme, true}, {"max_dim", "aten.max.dim", place_of_extreme, true}, {"min_dim", "aten.min.dim", place_of_extreme, true},
      {"mse_loss", "aten.mse_loss", mse_loss, true}, {"mse_loss_backward", "aten.mse_loss_backward", mse_loss_backward, true},
      {"smooth_l1_loss", "aten.smooth_l1_loss", bent_loss, true}, {"huber_loss", "aten.huber_loss", bent_loss, true},
      {"group_norm", "aten.native_group_norm", group_norm, true}, {"group_norm_backward", "aten.native_group_norm_backward", group_norm_backward, true},
      {"vector_norm", "aten.linalg_vector_norm", vector_norm, true},
  };
}

void split_long_sums(ir::Graph& g, const RewriteOptions& options, std::vector<Rewritten>& done) {
  constexpr int64_t kLeast = 16384, kLeastRow = 256, kMostRow = 4096, kMostRows = 16384;
  if (options.off.contains("long sum")) return;
  std::vector<ir::Node> nodes;
  for (ir::Node& n : g.body.nodes) {
    const auto x = n.target == "aten.sum" || n.target == "aten.mean" ? tensor(n, 0) : std::nullopt;
    const bool can = x && n.args.size() == 1 && n.kwargs.empty() && is_plain(g, *x) && is_plain(g, n.results[0]) && g.value(*x).type.tensor.dtype == g.value(n.results[0]).type.tensor.dtype && g.value(*x).type.tensor.is_contiguous() &&
                     g.value(*x).type.tensor.device.type == "cpu" && static_cast<int64_t>(done.size()) < options.fuel;
    const int64_t count = can ? shape_of(g.value(*x).type)->numel() : 0;
    int64_t row = std::min(kMostRow, count / 4);
    while (row >= kLeastRow && count % row != 0) --row;
    if (count <= kLeast || row < kLeastRow || count / row > kMostRows) { nodes.push_back(std::move(n)); continue; }
    Maker m(g, n);
    const DType t = m.dtype(*x);
    const std::vector<int64_t> rows = {count / row, row};
    const ValueId sums = m.make("aten.sum.dim_IntList", {ref(m.make("aten.view", {ref(*x), list(rows)}, rows, t)), list({1})}, {rows[0]}, t);
    if (n.target == "aten.sum") m.give(0, "aten.sum.dim_IntList", {ref(sums), list({0})});
    else m.give(0, "aten.div.Scalar", {ref(m.make("aten.sum.dim_IntList", {ref(sums), list({0})}, {}, t)), static_cast<double>(count)});
    done.push_back({"long sum", g.value(n.results[0]).name});
    for (ir::Node& made : m.nodes) nodes.push_back(std::move(made));
  }
  g.body.nodes = std::move(nodes);
}

}  // namespace cutaway::codegen
