// Rules of pooling and interpolation: the few elements under a window, each a load at its own distance, masked where the window hangs over the edge.
#include <limits>

#include "compiler/codegen/rules.h"
#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace pooling {   // its helpers have names that other files of the folder use too
namespace {

using base::Error;
using base::Result;
using ir::DType;

Error refusal(std::string what) { return Error{.what = std::move(what)}; }

/// Two numbers; one stands for both, none for the others.
Result<std::vector<int64_t>> pair(const Lowering& l, size_t position, std::string_view name, const std::vector<int64_t>& otherwise) {
  const ir::Argument* a = l.argument(position, name);
  if (!a) return otherwise;
  std::vector<int64_t> numbers;
  if (const auto* list = a->as<ir::List>()) {
    for (const ir::Argument& x : list->items) {
      if (!x.as<int64_t>()) return refusal("sizes that are not numbers");
      numbers.push_back(*x.as<int64_t>());
    }
  } else {
    return refusal("sizes that are no list");
  }
  if (numbers.empty()) return otherwise;
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  if (numbers.size() != 2) return refusal("sizes of another form");
  return numbers;
}
bool is_true(const Lowering& l, size_t position, std::string_view name, bool otherwise) {
  const ir::Argument* a = l.argument(position, name);
  return a ? a->as<bool>() && *a->as<bool>() : otherwise;
}

/// Windows over the last two dimensions of [.., C, H, W].
struct Windows {
  ir::ValueId source = ir::kNoValue;
  Shape in, out;
  std::vector<int64_t> size, step, pad, apart;
};
Result<Windows> windows(const Lowering& l, bool has_dilation) {
  const ir::Argument* x = l.argument(0, "self");
  if (!l.is_tensor(x)) return refusal("an argument that is not a tensor");
  Windows w;
  w.source = x->as<ir::ValueRef>()->id;
  w.in = *shape_of(l.graph.value(w.source).type);
  w.out = *shape_of(l.graph.value(l.node.results[0]).type);
  const bool is_card = l.graph.value(l.node.results[0]).type.tensor.device.type == "cuda", is_narrow = l.result() == DType::bf16 || l.result() == DType::f16;
  const DType t = l.graph.value(w.source).type.tensor.dtype;
  if (t != DType::f32 && t != DType::f64 && !(is_card && is_narrow)) return refusal("values of dtype " + std::string(ir::dtype_name(t)));
  if (w.in.sizes.size() < 3 || w.in.sizes.size() > 4 || w.out.sizes.size() != w.in.sizes.size() || w.in.numel() == 0) return refusal("dimensions of another number");
  if (!is_card && !l.graph.value(l.node.results[0]).type.tensor.is_contiguous()) return refusal("a result whose channels are not planes");
  CUTAWAY_TRY_ASSIGN(w.size, pair(l, 1, "kernel_size", {}));
  if (w.size.empty()) return refusal("no window");
  CUTAWAY_TRY_ASSIGN(w.step, pair(l, 2, "stride", w.size));
  CUTAWAY_TRY_ASSIGN(w.pad, pair(l, 3, "padding", {0, 0}));
  w.apart = {1, 1};
  if (has_dilation) {
    CUTAWAY_TRY_ASSIGN(w.apart, pair(l, 4, "dilation", {1, 1}));
  }
  if (w.size[0] * w.size[1] > kMostOfWindow) return refusal("a window of many elements");
  return w;
}

/// A mask: element `i` of a window lies inside, in one of the two dimensions. Always true where it does for every window.
TermId is_inside(Lowering& l, const Windows& w, size_t d, int64_t i) {
  const size_t dim = w.in.sizes.size() - 2 + d;
  const int64_t first = i * w.apart[d] - w.pad[d], last = (w.out.sizes[dim] - 1) * w.step[d] + first;
  Terms& t = l.terms;
  if (first >= 0 && last < w.in.sizes[dim]) return t.truth(true);
  std::vector<int64_t> strides(w.in.sizes.size(), 0);
  strides[dim] = w.step[d];
  const TermId at = l.reads.position(strides);
  const TermId low = t.make(Op::ge, Held::mask, {at, t.integer(-first, Held::i64)}), high = t.make(Op::lt, Held::mask, {at, t.integer(w.in.sizes[dim] - first, Held::i64)});
  return first >= 0 ? high : last < w.in.sizes[dim] ? low : t.make(Op::logical_and, Held::mask, {low, high});
}

struct Element { TermId value, mask; };
Element element(Lowering& l, const Windows& w, int64_t i, int64_t j, Held h) {
  const size_t rank = w.in.sizes.size();
  std::vector<int64_t> strides = w.in.strides;
  strides[rank - 2] *= w.step[0];
  strides[rank - 1] *= w.step[1];
  const int64_t offset = (i * w.apart[0] - w.pad[0]) * w.in.strides[rank - 2] + (j * w.apart[1] - w.pad[1]) * w.in.strides[rank - 1];
  const TermId rows = is_inside(l, w, 0, i), columns = is_inside(l, w, 1, j);
  const auto is_constant = [&](TermId m) { return l.terms[m].op == Op::constant; };
  const TermId mask = is_constant(rows) ? columns : is_constant(columns) ? rows : l.terms.make(Op::logical_and, Held::mask, {rows, columns});
  return {l.terms.cast(l.reads.strided(w.source, strides, offset, mask), h), mask};
}

/// The largest; what is not a number stays.
Result<TermId> max_pool(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Windows w, windows(l, true));
  const Held h = l.held();
  std::optional<TermId> best;
  for (int64_t i = 0; i < w.size[0]; ++i)
    for (int64_t j = 0; j < w.size[1]; ++j) {
      const Element e = element(l, w, i, j, h);
      const TermId x = l.terms[e.mask].op == Op::constant ? e.value : l.terms.make(Op::select, h, {e.mask, e.value, l.terms.number(-std::numeric_limits<double>::infinity(), h)});
      best = best ? l.terms.make(Op::maximum, h, {x, *best}) : x;
    }
  return *best;
}

/// Where the largest lies in its plane: the first of equal ones that lie inside, the last that is not a number. Steps from the window's corner are chosen, which need few bits.
Result<TermId> max_pool_places(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Windows w, windows(l, true));
  const Held h = *held_for(l.graph.value(w.source).type.tensor.dtype);
  Terms& t = l.terms;
  const auto both = [&](Op op, TermId a, TermId b) { return t.make(op, Held::mask, {a, b}); };
  const size_t rank = w.in.sizes.size();
  const int64_t width = w.in.sizes[rank - 1];
  TermId best = t.number(-std::numeric_limits<double>::infinity(), h), place = t.integer(0, Held::i32);
  TermId seen = t.truth(false);   // whether an element inside came before
  bool is_first = true, is_seen = false;
  for (int64_t i = 0; i < w.size[0]; ++i)
    for (int64_t j = 0; j < w.size[1]; ++j) {
      const Element e = element(l, w, i, j, h);
      const bool is_always = t[e.mask].op == Op::constant;
      const TermId x = is_always ? e.value : t.make(Op::select, h, {e.mask, e.value, t.number(-std::numeric_limits<double>::infinity(), h)});
      const TermId here = t.integer(i * w.apart[0] * width + j * w.apart[1], Held::i32);
      if (is_first) {
        place = here;
        best = x;
        seen = e.mask;
        is_seen = is_always;
      } else {
        TermId is_new = both(Op::logical_or, both(Op::gt, x, best), t.make(Op::is_nan, Held::mask, {x}));
        if (!is_seen) is_new = both(Op::logical_or, is_new, t.make(Op::logical_not, Held::mask, {seen}));
        if (!is_always) is_new = both(Op::logical_and, is_new, e.mask);
        place = t.make(Op::select, Held::i32, {is_new, here, place});
        best = t.make(Op::maximum, h, {x, best});
        is_seen = is_seen || is_always;
        if (!is_seen) seen = both(Op::logical_or, seen, e.mask);
      }
      is_first = false;
    }
  std::vector<int64_t> corner(rank, 0);
  corner[rank - 2] = w.step[0] * width;
  corner[rank - 1] = w.step[1];
  const TermId from = t.make(Op::sub, Held::i64, {l.reads.position(corner), t.integer(w.pad[0] * width + w.pad[1], Held::i64)});
  return t.make(Op::add, Held::i64, {from, t.cast(place, Held::i64)});
}

/// The mean, over the whole window or over what lies inside.
Result<TermId> avg_pool(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Windows w, windows(l, false));
  const Held h = l.held();
  Terms& t = l.terms;
  if (is_true(l, 4, "ceil_mode", false)) return refusal("windows that begin beyond the edge");
  const ir::Argument* divisor = l.argument(6, "divisor_override");
  if (divisor && !divisor->as<int64_t>()) return refusal("a divisor that is not a number");
  const bool counts_all = is_true(l, 5, "count_include_pad", true) || (w.pad[0] == 0 && w.pad[1] == 0);
  std::optional<TermId> sum, count;
  for (int64_t i = 0; i < w.size[0]; ++i)
    for (int64_t j = 0; j < w.size[1]; ++j) {
      const Element e = element(l, w, i, j, h);
      const TermId one = t.make(Op::select, h, {e.mask, t.number(1, h), t.number(0, h)});
      sum = sum ? t.make(Op::add, h, {*sum, e.value}) : e.value;
      count = count ? t.make(Op::add, h, {*count, one}) : one;
    }
  const TermId by = divisor ? t.integer(*divisor->as<int64_t>(), h) : counts_all ? t.integer(w.size[0] * w.size[1], h) : *count;
  return t.make(Op::div, h, {*sum, by});
}

/// Windows that go on by one element: an element has a share of each window that it lies in, the first one first, as eager adds them.
Result<TermId> avg_pool_backward(Lowering& l) {
  const ir::Argument *dy = l.argument(0, "grad_output"), *divisor = l.argument(7, "divisor_override");
  if (!l.is_tensor(dy)) return refusal("an argument that is not a tensor");
  const ir::ValueId source = dy->as<ir::ValueRef>()->id;
  const Shape from = *shape_of(l.graph.value(source).type), to = *shape_of(l.graph.value(l.node.results[0]).type);
  const size_t rank = to.sizes.size();
  if (l.result() != DType::f32 && l.result() != DType::f64) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  if (rank < 3 || from.sizes.size() != rank || from.numel() == 0 || !l.graph.value(l.node.results[0]).type.tensor.is_contiguous()) return refusal("dimensions of another number");
  CUTAWAY_TRY_ASSIGN(std::vector<int64_t> size, pair(l, 2, "kernel_size", {}));
  if (size.empty()) return refusal("no window");
  CUTAWAY_TRY_ASSIGN(std::vector<int64_t> step, pair(l, 3, "stride", size));
  CUTAWAY_TRY_ASSIGN(std::vector<int64_t> pad, pair(l, 4, "padding", {0, 0}));
  if (step != std::vector<int64_t>{1, 1}) return refusal("windows that leap: torch's loop over them has fewer steps");
  if (size[0] * size[1] > kMostOfWindow || is_true(l, 5, "ceil_mode", false)) return refusal("a window of many elements");
  if (divisor && !divisor->as<int64_t>()) return refusal("a divisor that is not a number");
  const bool counts_all = is_true(l, 6, "count_include_pad", true) || (pad[0] == 0 && pad[1] == 0);
  const Held h = l.held();
  Terms& t = l.terms;
  // Of window o = element + pad - i: whether there is one, and how many elements of it lie inside.
  const auto window = [&](size_t d, int64_t i) {
    const size_t dim = rank - 2 + d;
    const int64_t by = pad[d] - i;
    std::vector<int64_t> strides(rank, 0);
    strides[dim] = 1;
    const TermId at = t.make(Op::add, Held::i64, {l.reads.position(strides), t.integer(by, Held::i64)});
    const TermId low = t.make(Op::ge, Held::mask, {at, t.integer(0, Held::i64)}), high = t.make(Op::lt, Held::mask, {at, t.integer(from.sizes[dim], Held::i64)});
    const TermId first = t.make(Op::maximum, Held::i64, {t.make(Op::sub, Held::i64, {at, t.integer(pad[d], Held::i64)}), t.integer(0, Held::i64)});
    const TermId past = t.make(Op::minimum, Held::i64, {t.make(Op::add, Held::i64, {at, t.integer(size[d] - pad[d], Held::i64)}), t.integer(to.sizes[dim], Held::i64)});
    return std::pair(t.make(Op::logical_and, Held::mask, {low, high}), t.make(Op::sub, Held::i64, {past, first}));
  };
  std::optional<TermId> sum;
  for (int64_t i = size[0]; i-- > 0;)
    for (int64_t j = size[1]; j-- > 0;) {
      const auto [is_row, rows] = window(0, i);
      const auto [is_column, columns] = window(1, j);
      const TermId mask = t.make(Op::logical_and, Held::mask, {is_row, is_column});
      const int64_t offset = (pad[0] - i) * from.strides[rank - 2] + (pad[1] - j) * from.strides[rank - 1];
      const TermId g = t.cast(l.reads.strided(source, from.strides, offset, mask), h);
      const TermId by = divisor ? t.integer(*divisor->as<int64_t>(), h) : counts_all ? t.integer(size[0] * size[1], h) : t.cast(t.make(Op::mul, Held::i64, {rows, columns}), h);
      const TermId share = t.make(Op::select, h, {mask, t.make(Op::div, h, {g, by}), t.number(0, h)});
      sum = sum ? t.make(Op::add, h, {*sum, share}) : share;
    }
  return *sum;
}

/// Of whole factors: the sum of an element's copies, in order.
Result<TermId> nearest_backward(Lowering& l) {
  const ir::Argument* dy = l.argument(0, "grad_output");
  if (!l.is_tensor(dy)) return refusal("an argument that is not a tensor");
  const ir::ValueId source = dy->as<ir::ValueRef>()->id;
  const Shape from = *shape_of(l.graph.value(source).type), to = *shape_of(l.graph.value(l.node.results[0]).type);
  if (l.result() != DType::f32 && l.result() != DType::f64) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  if (to.sizes.size() != 4 || from.sizes.size() != 4 || to.numel() == 0 || !l.graph.value(l.node.results[0]).type.tensor.is_contiguous()) return refusal("dimensions of another number");
  const int64_t by[2] = {from.sizes[2] / to.sizes[2], from.sizes[3] / to.sizes[3]};
  for (size_t d = 0; d < 2; ++d) {
    if (by[d] < 1 || by[d] * to.sizes[2 + d] != from.sizes[2 + d]) return refusal("factors that are not whole");
    if (const ir::Argument* given = l.argument(3 + d, d == 0 ? "scales_h" : "scales_w"); given && !(given->as<double>() && *given->as<double>() == static_cast<double>(by[d]))) return refusal("a factor that the sizes do not have");
  }
  if (by[0] * by[1] > kMostOfWindow) return refusal("a window of many elements");
  std::vector<int64_t> strides = from.strides;
  strides[2] *= by[0];
  strides[3] *= by[1];
  std::optional<TermId> sum;
  for (int64_t i = 0; i < by[0]; ++i)
    for (int64_t j = 0; j < by[1]; ++j) {
      const TermId g = l.terms.cast(l.reads.strided(source, strides, i * from.strides[2] + j * from.strides[3], std::nullopt), l.held());
      sum = sum ? l.terms.make(Op::add, l.held(), {*sum, g}) : g;
    }
  return *sum;
}

}  // namespace
}  // namespace pooling

std::vector<RuleRow> pooling_rules() {
  using namespace pooling;
  return {{"aten.max_pool2d", max_pool, true}, {"cutaway.max_pool2d_places", max_pool_places, true}, {"aten.avg_pool2d", avg_pool, true}, {"aten.avg_pool2d_backward", avg_pool_backward, true}, {"aten.upsample_nearest2d_backward", nearest_backward, true}};
}

}  // namespace cutaway::codegen
