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

constexpr int64_t kMostElements = 16;   ///< of a window: each is a load of its own

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
  if (l.result() != DType::f32 && l.result() != DType::f64 && !(is_card && is_narrow)) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
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
  if (w.size[0] * w.size[1] > kMostElements) return refusal("a window of many elements");
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
Element element(Lowering& l, const Windows& w, int64_t i, int64_t j) {
  const size_t rank = w.in.sizes.size();
  std::vector<int64_t> strides = w.in.strides;
  strides[rank - 2] *= w.step[0];
  strides[rank - 1] *= w.step[1];
  const int64_t offset = (i * w.apart[0] - w.pad[0]) * w.in.strides[rank - 2] + (j * w.apart[1] - w.pad[1]) * w.in.strides[rank - 1];
  const TermId rows = is_inside(l, w, 0, i), columns = is_inside(l, w, 1, j);
  const auto is_constant = [&](TermId m) { return l.terms[m].op == Op::constant; };
  const TermId mask = is_constant(rows) ? columns : is_constant(columns) ? rows : l.terms.make(Op::logical_and, Held::mask, {rows, columns});
  return {l.terms.cast(l.reads.strided(w.source, strides, offset, mask), l.held()), mask};
}

/// The largest; what is not a number stays.
Result<TermId> max_pool(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Windows w, windows(l, true));
  const Held h = l.held();
  std::optional<TermId> best;
  for (int64_t i = 0; i < w.size[0]; ++i)
    for (int64_t j = 0; j < w.size[1]; ++j) {
      const Element e = element(l, w, i, j);
      const TermId x = l.terms[e.mask].op == Op::constant ? e.value : l.terms.make(Op::select, h, {e.mask, e.value, l.terms.number(-std::numeric_limits<double>::infinity(), h)});
      best = best ? l.terms.make(Op::maximum, h, {x, *best}) : x;
    }
  return *best;
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
      const Element e = element(l, w, i, j);
      const TermId one = t.make(Op::select, h, {e.mask, t.number(1, h), t.number(0, h)});
      sum = sum ? t.make(Op::add, h, {*sum, e.value}) : e.value;
      count = count ? t.make(Op::add, h, {*count, one}) : one;
    }
  const TermId by = divisor ? t.integer(*divisor->as<int64_t>(), h) : counts_all ? t.integer(w.size[0] * w.size[1], h) : *count;
  return t.make(Op::div, h, {*sum, by});
}

}  // namespace
}  // namespace pooling

std::vector<RuleRow> pooling_rules() {
  using namespace pooling;
  return {{"aten.max_pool2d", max_pool, true}, {"aten.avg_pool2d", avg_pool, true}};
}

}  // namespace cutaway::codegen
