// Rewrites of pooling and of copies that enlarge: windows become rules that read them, places become additions at them, repetition becomes a view.
#include <algorithm>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/maker.h"
#include "compiler/codegen/rules.h"

namespace cutaway::codegen {
namespace pools {   // its helpers have names that other files of the folder use too
namespace {

bool is_contiguous(const ir::Graph& g, ValueId id) { return g.value(id).type.tensor.is_contiguous(); }
std::optional<std::vector<int64_t>> numbers(const Argument& a) {
  const auto* list = a.as<ir::List>();
  if (!list) return std::nullopt;
  std::vector<int64_t> found;
  for (const Argument& x : list->items) {
    if (!x.as<int64_t>()) return std::nullopt;
    found.push_back(*x.as<int64_t>());
  }
  return found;
}

/// Where nobody asks for the places of the largest (no gradient is wanted) they are not found. Else by an operator of their own, whose loop is the same as that of the values.
bool max_pool(ir::Graph& g, const ir::Node& n, Maker& m) {
  if (n.results.size() != 2 || !n.kwargs.empty() || n.args.size() < 2 || !shape_of(g.value(n.results[0]).type)) return false;
  const bool has_places = is_wanted(g, n.results[1]);
  if (has_places) {
    const auto x = tensor(n, 0);
    const auto window = numbers(n.args[1]);
    const DType t = m.dtype(n.results[0]);
    if (!x || !window || window->empty() || window->front() * window->back() > kMostOfWindow || m.device().type != "cpu" || (t != DType::f32 && t != DType::f64) || !is_contiguous(g, n.results[0]) || !is_contiguous(g, n.results[1])) return false;
    const Shape s = m.shape(*x);
    if (s.sizes.size() < 3 || s.numel() == 0) return false;
  }
  m.give(0, "aten.max_pool2d", n.args);
  if (has_places) m.give(1, "cutaway.max_pool2d_places", n.args);
  return true;
}

/// Each gradient is added at its place of the plane: eager's own order. Places are found by eager or by us, and lie inside.
bool max_pool_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const size_t inside = n.target == "aten.max_pool3d_with_indices_backward" ? 3 : 2;
  if (!n.kwargs.empty() || n.args.size() < 3 || n.results.size() != 1) return false;
  const auto dy = tensor(n, 0), places = tensor(n, n.args.size() - 1);
  if (!dy || !places || !is_plain(g, *dy) || !is_plain(g, n.results[0]) || m.dtype(*dy) != m.dtype(n.results[0]) || !is_contiguous(g, n.results[0]) || !is_contiguous(g, *dy)) return false;
  if (!shape_of(g.value(*places).type) || m.dtype(*places) != DType::i64 || !is_contiguous(g, *places) || m.shape(*places).sizes != m.shape(*dy).sizes) return false;
  const Shape in = m.shape(n.results[0]), out = m.shape(*dy);
  const size_t rank = in.sizes.size();
  if (rank < inside || out.sizes.size() != rank) return false;
  int64_t planes = 1, elements = 1, windows = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (d + inside < rank) planes *= in.sizes[d];
    else elements *= in.sizes[d], windows *= out.sizes[d];
  }
  if (planes * windows != out.numel()) return false;
  const DType t = m.dtype(*dy);
  const std::vector<int64_t> flat = {planes, elements}, flat_out = {planes, windows};
  const ValueId zeros = m.make("aten.full", {list(flat), int64_t{0}}, flat, t, {{"dtype", t}, {"device", m.device()}});
  const ValueId at = m.make("aten.view", {ref(*places), list(flat_out)}, flat_out, DType::i64), from = m.make("aten.view", {ref(*dy), list(flat_out)}, flat_out, t);
  m.give(0, "aten.view", {ref(m.make("aten.scatter_add", {ref(zeros), int64_t{1}, ref(at), ref(from)}, flat, t)), list(in.sizes)});
  return true;
}

/// [N, C, H, W], each element `down` times below itself and `right` times beside itself, as [N, C, H, down, W, right]: a view.
struct Repeated { ValueId value; std::vector<int64_t> sizes; };
Repeated repeated(ir::Graph& g, Maker& m, ValueId x, int64_t down, int64_t right) {
  const Shape s = m.shape(x);
  const DType t = m.dtype(x);
  const std::vector<ir::Dim> from = g.value(x).type.tensor.strides;
  std::vector<int64_t> sizes = {s.sizes[0], s.sizes[1], s.sizes[2], 1, s.sizes[3]};
  std::vector<ir::Dim> strides = {from[0], from[1], from[2], ir::Dim(s.sizes[3] * *from[3].number()), from[3]};
  ValueId v = m.make("aten.unsqueeze", {ref(x), int64_t{3}}, sizes, t, {}, &strides);
  sizes.push_back(1);
  strides.emplace_back(1);
  v = m.make("aten.unsqueeze", {ref(v), int64_t{5}}, sizes, t, {}, &strides);
  sizes[3] = down;
  sizes[5] = right;
  if (down > 1) strides[3] = ir::Dim(0);
  if (right > 1) strides[5] = ir::Dim(0);
  return {m.make("aten.expand", {ref(v), list(sizes)}, sizes, t, {}, &strides), sizes};
}
/// The factors by which a plane of `large` is larger than one of `small`.
struct Factors { int64_t down, right; };
std::optional<Factors> whole_factors(const Shape& small, const Shape& large) {
  constexpr int64_t kMost = 16;
  if (small.sizes.size() != 4 || large.sizes.size() != 4 || small.numel() == 0 || large.numel() == 0 || small.sizes[0] != large.sizes[0] || small.sizes[1] != large.sizes[1]) return std::nullopt;
  const Factors f{large.sizes[2] / small.sizes[2], large.sizes[3] / small.sizes[3]};
  if (f.down * small.sizes[2] != large.sizes[2] || f.right * small.sizes[3] != large.sizes[3] || f.down < 1 || f.right < 1 || f.down > kMost || f.right > kMost) return std::nullopt;
  return f;
}

/// To s times as many rows and columns: each element is repeated. Other factors ask for places that are worked out (rules_pooling.cc).
bool upsample_nearest(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || n.args.size() < 2 || !shape_of(g.value(*x).type) || !shape_of(g.value(n.results[0]).type) || !is_contiguous(g, n.results[0])) return false;
  const Shape out = m.shape(n.results[0]);
  const DType t = m.dtype(*x);
  const auto by = whole_factors(m.shape(*x), out);
  if (!by || (t != DType::f32 && t != DType::f64)) return false;
  for (size_t i = 2; i < n.args.size() && i < 4; ++i)   // factors that are given decide, and may be others than the sizes say
    if (!n.args[i].is_none() && !(n.args[i].as<double>() && *n.args[i].as<double>() == static_cast<double>(i == 2 ? by->down : by->right))) return false;
  const Repeated v = repeated(g, m, *x, by->down, by->right);
  const ValueId copy = m.make("aten.clone", {ref(v.value)}, v.sizes, t, {{"memory_format", ir::MemoryFormat::contiguous_format}});
  m.give(0, "aten.view", {ref(copy), list(out.sizes)});
  return true;
}

/// Windows that lie side by side and cover all: each element has its window's gradient, divided by the number of elements.
bool avg_pool_backward(ir::Graph& g, const ir::Node& n, Maker& m) {
  const bool is_adaptive = n.target == "aten._adaptive_avg_pool2d_backward";
  const auto dy = tensor(n, 0);
  if (!dy || !n.kwargs.empty() || n.results.size() != 1 || !is_plain(g, *dy) || is_narrow(m.dtype(*dy)) || !is_plain(g, n.results[0]) || m.dtype(*dy) != m.dtype(n.results[0]) || !is_contiguous(g, n.results[0])) return false;
  const Shape in = m.shape(n.results[0]);
  const auto by = whole_factors(m.shape(*dy), in);
  if (!by) return false;
  int64_t count = by->down * by->right;
  if (!is_adaptive) {
    if (n.args.size() < 6) return false;
    const auto window = numbers(n.args[2]), step = numbers(n.args[3]), pad = numbers(n.args[4]);
    if (!window || !step || !pad || window->empty() || window->front() != by->down || window->back() != by->right) return false;
    if ((!step->empty() && *step != *window) || std::ranges::any_of(*pad, [](int64_t p) { return p != 0; })) return false;
    if (n.args.size() > 7 && !n.args[7].is_none()) {
      if (!n.args[7].as<int64_t>()) return false;
      count = *n.args[7].as<int64_t>();
    }
  }
  const Repeated v = repeated(g, m, *dy, by->down, by->right);
  m.give(0, "aten.view", {ref(m.make("aten.div.Scalar", {ref(v.value), count}, v.sizes, m.dtype(*dy))), list(in.sizes)});
  return true;
}

/// Windows of one size side by side: an average pool.
bool adaptive_avg_pool(ir::Graph& g, const ir::Node& n, Maker& m) {
  const auto x = tensor(n, 0);
  if (!x || n.args.size() != 2 || !n.kwargs.empty() || !is_plain(g, *x) || is_narrow(m.dtype(*x)) || !is_plain(g, n.results[0]) || !is_contiguous(g, n.results[0])) return false;
  const auto by = whole_factors(m.shape(n.results[0]), m.shape(*x));
  if (!by || by->down * by->right > kMostOfWindow) return false;
  m.give(0, "aten.avg_pool2d", {ref(*x), list({by->down, by->right})});
  return true;
}

}  // namespace
}  // namespace pools

std::vector<RewriteRow> pooling_rewrites() {
  using namespace pools;
  return {
      {"max_pool2d", "aten.max_pool2d_with_indices", max_pool}, {"max_pool2d_backward", "aten.max_pool2d_with_indices_backward", max_pool_backward, true},
      {"adaptive_max_pool2d_backward", "aten.adaptive_max_pool2d_backward", max_pool_backward, true}, {"max_pool3d_backward", "aten.max_pool3d_with_indices_backward", max_pool_backward, true},
      {"upsample_nearest2d", "aten.upsample_nearest2d", upsample_nearest, true},
      {"avg_pool2d_backward", "aten.avg_pool2d_backward", avg_pool_backward, true}, {"adaptive_avg_pool2d", "aten._adaptive_avg_pool2d", adaptive_avg_pool, true},
      {"adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool2d_backward", avg_pool_backward, true},
  };
}

}  // namespace cutaway::codegen
