// Rules of losses and activations: pointwise but for the class that a target names, which is read at its place.
#include <cmath>
#include <limits>

#include "compiler/codegen/rules.h"
#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace losing {   // its helpers have names that other files of the folder use too
namespace {

using base::Error;
using base::Result;
using ir::DType;

Error refusal(std::string what) { return Error{.what = std::move(what)}; }

Result<Held> floating(const Lowering& l) {
  switch (l.result()) {
    case DType::f32: case DType::f64: case DType::bf16: case DType::f16: return l.held();
    default: return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  }
}
Shape shape(const Lowering& l, ir::ValueId id) { return *shape_of(l.graph.value(id).type); }
Result<ir::ValueId> tensor(const Lowering& l, size_t position, std::string_view name) {
  const ir::Argument* a = l.argument(position, name);
  if (!l.is_tensor(a)) return refusal("an argument that is not a tensor");
  return a->as<ir::ValueRef>()->id;
}
Result<int64_t> integer(const Lowering& l, size_t position, std::string_view name, int64_t otherwise) {
  const ir::Argument* a = l.argument(position, name);
  if (!a) return otherwise;
  if (!a->as<int64_t>()) return refusal("the argument " + std::string(name) + " is not a number");
  return *a->as<int64_t>();
}

/// Shorter words for steps of one form.
struct Steps {
  Terms& t;
  Held h;
  TermId number(double x) const { return t.number(x, h); }
  TermId make(Op op, TermId a) const { return t.make(op, h, {a}); }
  TermId make(Op op, TermId a, TermId b) const { return t.make(op, h, {a, b}); }
  TermId is(Op op, TermId a, TermId b) const { return t.make(op, Held::mask, {a, b}); }
  TermId choose(TermId mask, TermId a, TermId b) const { return t.make(Op::select, h, {mask, a, b}); }
  TermId add(TermId a, TermId b) const { return make(Op::add, a, b); }
  TermId sub(TermId a, TermId b) const { return make(Op::sub, a, b); }
  TermId mul(TermId a, TermId b) const { return make(Op::mul, a, b); }
  TermId div(TermId a, TermId b) const { return make(Op::div, a, b); }
};

// --- the class that a target names

/// A target's class, checked, and where it is one that does not count.
struct Class { TermId index, is_ignored; };
Result<Class> class_of(Lowering& l, ir::ValueId target, const std::vector<int64_t>& strides, int64_t classes, int64_t ignored) {
  if (l.graph.value(target).type.tensor.dtype != DType::i64) return refusal("targets that are not i64");
  const TermId t = l.reads.strided(target, strides, 0, std::nullopt);
  const TermId is_ignored = l.terms.make(Op::eq, Held::mask, {t, l.terms.integer(ignored, Held::i64)});
  const TermId safe = l.terms.make(Op::select, Held::i64, {is_ignored, l.terms.integer(0, Held::i64), t});
  return Class{l.terms.index(safe, classes, false), is_ignored};
}
Result<std::optional<TermId>> weight_of(Lowering& l, size_t position, TermId index, int64_t classes, size_t rank, Held h) {
  const ir::Argument* a = l.argument(position, "weight");
  if (!a) return std::optional<TermId>();
  CUTAWAY_TRY_ASSIGN(ir::ValueId w, tensor(l, position, "weight"));
  const Shape s = shape(l, w);
  if (s.sizes != std::vector<int64_t>{classes} || l.graph.value(w).type.tensor.dtype != l.result()) return refusal("weights of another form");
  const TermId far = l.terms.make(Op::mul, Held::i64, {index, l.terms.integer(s.strides[0], Held::i64)});
  return std::optional<TermId>(l.terms.cast(l.reads.further(w, std::vector<int64_t>(rank, 0), far), h));
}

/// One loss a target: of scores [N, C, …] the negative one of the target's class. Means and sums of them are made of this by a rewrite.
Result<TermId> nll_loss(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId scores, tensor(l, 0, "self"));
  CUTAWAY_TRY_ASSIGN(ir::ValueId target, tensor(l, 1, "target"));
  CUTAWAY_TRY_ASSIGN(int64_t reduction, integer(l, 3, "reduction", 1));
  CUTAWAY_TRY_ASSIGN(int64_t ignored, integer(l, 4, "ignore_index", -100));
  const Shape s = shape(l, scores), t = shape(l, target);
  if (reduction != 0 || s.sizes.size() < 2 || t.sizes.size() + 1 != s.sizes.size() || s.numel() == 0) return refusal("a loss of another form");
  std::vector<int64_t> along = s.strides;
  along.erase(along.begin() + 1);
  CUTAWAY_TRY_ASSIGN(Class c, class_of(l, target, t.strides, s.sizes[1], ignored));
  const TermId far = l.terms.make(Op::mul, Held::i64, {c.index, l.terms.integer(s.strides[1], Held::i64)});
  TermId loss = l.terms.make(Op::neg, h, {l.terms.cast(l.reads.further(scores, along, far), h)});
  CUTAWAY_TRY_ASSIGN(std::optional<TermId> w, weight_of(l, 2, c.index, s.sizes[1], t.sizes.size(), h));
  if (w) loss = l.terms.make(Op::mul, h, {loss, *w});
  return l.terms.make(Op::select, h, {c.is_ignored, l.terms.integer(0, h), loss});
}

/// Zeros, and the gradient where the class is the target's.
Result<TermId> nll_loss_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId gradient, tensor(l, 0, "grad_output"));
  CUTAWAY_TRY_ASSIGN(ir::ValueId target, tensor(l, 2, "target"));
  CUTAWAY_TRY_ASSIGN(int64_t reduction, integer(l, 4, "reduction", 1));
  CUTAWAY_TRY_ASSIGN(int64_t ignored, integer(l, 5, "ignore_index", -100));
  const Shape out = shape(l, l.node.results[0]), t = shape(l, target);
  const size_t rank = out.sizes.size();
  if (rank < 2 || t.sizes.size() + 1 != rank) return refusal("a loss of another form");
  if (!l.graph.value(l.node.results[0]).type.tensor.is_contiguous()) return refusal("a layout for which torch raises");
  const auto along = [&](const Shape& s) {
    std::vector<int64_t> strides = s.strides;
    strides.insert(strides.begin() + 1, 0);
    return strides;
  };
  CUTAWAY_TRY_ASSIGN(Class c, class_of(l, target, along(t), out.sizes[1], ignored));
  std::vector<int64_t> by_class(rank, 0);
  by_class[1] = 1;
  const TermId is_class = l.terms.make(Op::eq, Held::mask, {l.reads.position(by_class), c.index});
  const TermId counts = l.terms.make(Op::logical_and, Held::mask, {is_class, l.terms.make(Op::logical_not, Held::mask, {c.is_ignored})});
  const Shape g = shape(l, gradient);
  TermId slope = 0;
  if (reduction == 0) {
    if (g.sizes != t.sizes) return refusal("a gradient of another form");
    slope = l.terms.cast(l.reads.strided(gradient, along(g), 0, std::nullopt), h);
  } else {
    CUTAWAY_TRY_ASSIGN(slope, l.value(l.argument(0, "grad_output"), h));
  }
  if (reduction == 1) {
    CUTAWAY_TRY_ASSIGN(TermId total, l.value(l.argument(6, "total_weight"), h));
    slope = l.terms.make(Op::div, h, {slope, total});
  }
  slope = l.terms.make(Op::neg, h, {slope});
  CUTAWAY_TRY_ASSIGN(std::optional<TermId> w, weight_of(l, 3, c.index, out.sizes[1], rank, h));
  if (w) slope = l.terms.make(Op::mul, h, {slope, *w});
  return l.terms.make(Op::select, h, {counts, slope, l.terms.integer(0, h)});
}

// --- pointwise losses

/// What follows counts only where the mask holds everywhere: elsewhere the kernel tells, and the operators raise.
TermId checked(Lowering& l, TermId mask, TermId x, Held h) {
  Terms& t = l.terms;
  const TermId place = t.index(t.make(Op::select, Held::i64, {mask, t.integer(0, Held::i64), t.integer(1, Held::i64)}), 1, false);
  return t.make(Op::select, h, {t.make(Op::eq, Held::mask, {place, t.integer(0, Held::i64)}), x, t.number(NAN, h)});
}

Result<TermId> binary_cross_entropy(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(int64_t reduction, integer(l, 3, "reduction", 1));
  if (reduction != 0) return refusal("a loss of another form");
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(1, "target"), h));
  const Steps s{l.terms, h};
  const TermId one = s.number(1), floor = s.number(-100);
  x = checked(l, l.terms.make(Op::logical_and, Held::mask, {s.is(Op::ge, x, s.number(0)), s.is(Op::le, x, one)}), x, h);
  const TermId no = s.make(Op::maximum, s.make(Op::log1p, s.make(Op::neg, x)), floor), yes = s.make(Op::maximum, s.make(Op::log, x), floor);
  TermId loss = s.sub(s.mul(s.sub(y, one), no), s.mul(y, yes));
  if (const ir::Argument* w = l.argument(2, "weight")) {
    CUTAWAY_TRY_ASSIGN(TermId weight, l.value(w, h));
    loss = s.mul(loss, weight);
  }
  return loss;
}

/// 1, or one over the number of elements where the loss is their mean.
Result<TermId> share(Lowering& l, size_t position, Held h) {
  CUTAWAY_TRY_ASSIGN(int64_t reduction, integer(l, position, "reduction", 1));
  const double n = static_cast<double>(shape(l, l.node.results[0]).numel());
  return reduction == 1 ? l.terms.size(1 / n, h) : l.terms.number(1, h);
}

Result<TermId> binary_cross_entropy_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(2, "target"), h));
  CUTAWAY_TRY_ASSIGN(int64_t reduction, integer(l, 4, "reduction", 1));
  const Steps s{l.terms, h};
  const TermId spread = s.make(Op::maximum, s.mul(s.sub(s.number(1), x), x), s.number(1e-12));
  TermId slope = s.div(s.mul(g, s.sub(x, y)), spread);
  if (const ir::Argument* w = l.argument(3, "weight")) {
    CUTAWAY_TRY_ASSIGN(TermId weight, l.value(w, h));
    slope = s.mul(slope, weight);
  }
  if (reduction != 1) return slope;
  return s.div(slope, l.terms.size(static_cast<double>(shape(l, l.node.results[0]).numel()), h));
}

/// smooth_l1 and huber.
template <bool is_huber> Result<TermId> bent_loss_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(2, "target"), h));
  CUTAWAY_TRY_ASSIGN(TermId norm, share(l, 3, h));
  CUTAWAY_TRY_ASSIGN(double bend, l.number(4, is_huber ? "delta" : "beta"));
  const Steps s{l.terms, h};
  const TermId away = s.sub(x, y), b = s.number(bend);
  TermId far = s.mul(norm, g), near = s.mul(s.mul(norm, away), g);
  if (is_huber) far = s.mul(far, b);
  else near = s.div(near, b);
  const TermId below = s.is(Op::le, away, s.number(-bend)), above = s.is(Op::ge, away, b);
  return s.choose(below, s.make(Op::neg, far), s.choose(above, far, near));
}

Result<TermId> xlogy(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(1, "other"), h));
  const Steps s{l.terms, h};
  const TermId product = s.choose(s.is(Op::eq, x, s.number(0)), s.number(0), s.mul(x, s.make(Op::log, y)));
  return s.choose(l.terms.make(Op::is_nan, Held::mask, {y}), s.number(NAN), product);
}

/// Between two values: the nearer end is where it starts from, and it rounds once, as in ATen.
Result<TermId> lerp(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(1, "end"), h));
  CUTAWAY_TRY_ASSIGN(TermId w, l.value(l.argument(2, "weight"), h));
  const Steps s{l.terms, h};
  const TermId is_far = s.is(Op::ge, s.make(Op::abs, w), s.number(0.5));
  return l.terms.make(Op::fma, h, {s.choose(is_far, s.sub(w, s.number(1)), w), s.sub(y, x), s.choose(is_far, y, x)});
}

// --- activations

Result<TermId> elu(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(double alpha, l.number(1, "alpha", 1));
  CUTAWAY_TRY_ASSIGN(double scale, l.number(2, "scale", 1));
  CUTAWAY_TRY_ASSIGN(double inside, l.number(3, "input_scale", 1));
  const Steps s{l.terms, h};
  const TermId low = s.mul(s.make(Op::expm1, s.mul(x, s.number(inside))), s.number(alpha * scale));
  return s.choose(s.is(Op::gt, x, s.number(0)), s.mul(x, s.number(scale)), low);
}

Result<TermId> elu_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(double alpha, l.number(1, "alpha"));
  CUTAWAY_TRY_ASSIGN(double scale, l.number(2, "scale"));
  CUTAWAY_TRY_ASSIGN(double inside, l.number(3, "input_scale"));
  const ir::Argument* is_result = l.argument(4, "is_result");
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(5, "self_or_result"), h));
  if (!is_result || !is_result->as<bool>()) return refusal("an argument of another kind");
  const Steps s{l.terms, h};
  const TermId deep = s.number(alpha * scale);
  const TermId slope = *is_result->as<bool>() ? s.mul(s.mul(g, s.number(inside)), s.add(x, deep))
                                              : s.mul(s.mul(s.mul(g, s.number(inside)), deep), s.make(Op::exp, s.mul(x, s.number(inside))));
  return s.choose(s.is(Op::gt, x, s.number(0)), s.mul(g, s.number(scale)), slope);   // of what is not a number as ATen's vectors; its last few elements are otherwise
}

Result<TermId> softplus(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(double beta, l.number(1, "beta", 1));
  CUTAWAY_TRY_ASSIGN(double threshold, l.number(2, "threshold", 20));
  const Steps s{l.terms, h};
  const TermId scaled = s.mul(x, s.number(beta));
  return s.choose(s.is(Op::gt, scaled, s.number(threshold)), x, s.div(s.make(Op::log1p, s.make(Op::exp, scaled)), s.number(beta)));
}

Result<TermId> softplus_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(double beta, l.number(2, "beta"));
  CUTAWAY_TRY_ASSIGN(double threshold, l.number(3, "threshold"));
  const Steps s{l.terms, h};
  const TermId scaled = s.mul(x, s.number(beta)), z = s.make(Op::exp, scaled);
  return s.choose(s.is(Op::gt, scaled, s.number(threshold)), g, s.div(s.mul(g, z), s.add(z, s.number(1))));
}

Result<TermId> hardtanh_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(double low, l.number(2, "min_val"));
  CUTAWAY_TRY_ASSIGN(double high, l.number(3, "max_val"));
  const Steps s{l.terms, h};
  return s.choose(l.terms.make(Op::logical_and, Held::mask, {s.is(Op::gt, x, s.number(low)), s.is(Op::lt, x, s.number(high))}), g, s.number(0));   // not a number: as ATen's vectors
}

TermId six_at_most(const Steps& s, TermId x) { return s.make(Op::minimum, s.make(Op::maximum, s.add(x, s.number(3)), s.number(0)), s.number(6)); }
Result<TermId> hardsigmoid(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  const Steps s{l.terms, h};
  return s.div(six_at_most(s, x), s.number(6));
}
Result<TermId> hardsigmoid_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  const Steps s{l.terms, h};
  const TermId inside = l.terms.make(Op::logical_and, Held::mask, {s.is(Op::gt, x, s.number(-3)), s.is(Op::lt, x, s.number(3))});
  return s.choose(inside, s.mul(g, s.number(1.0f / 6.0f)), s.number(0));
}
Result<TermId> hardswish(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  const Steps s{l.terms, h};
  return s.div(s.mul(x, six_at_most(s, x)), s.number(6));
}

Result<TermId> mish(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  const Steps s{l.terms, h};
  return s.mul(x, s.make(Op::tanh, s.make(Op::log1p, s.make(Op::exp, x))));
}

Result<TermId> hardswish_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  const Steps s{l.terms, h};
  const TermId slope = s.mul(g, s.add(s.div(x, s.number(3)), s.number(0.5)));
  return s.choose(s.is(Op::le, x, s.number(-3)), s.number(0), s.choose(s.is(Op::ge, x, s.number(3)), g, slope));   // of what is not a number as ATen's vectors
}

Result<TermId> mish_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  const Steps s{l.terms, h};
  const TermId bend = s.make(Op::tanh, s.make(Op::log1p, s.make(Op::exp, x))), slope = s.mul(s.mul(x, s.make(Op::sigmoid, x)), s.sub(s.number(1), s.mul(bend, bend)));
  return s.mul(g, s.add(bend, slope));
}

Result<TermId> prelu(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId w, l.value(l.argument(1, "weight"), h));
  const Steps s{l.terms, h};
  return s.choose(s.is(Op::gt, x, s.number(0)), x, s.mul(w, x));
}

/// Both halves of a gradient: of what was passed on, and of the gate.
Result<TermId> glu_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(ir::ValueId gradient, tensor(l, 0, "grad_output"));
  CUTAWAY_TRY_ASSIGN(ir::ValueId self, tensor(l, 1, "self"));
  CUTAWAY_TRY_ASSIGN(int64_t dim, integer(l, 2, "dim", -1));
  const Shape in = shape(l, self), of = shape(l, gradient);
  const auto d = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(in.sizes.size()) : dim);
  if (d >= in.sizes.size() || of.sizes.size() != in.sizes.size() || of.sizes[d] * 2 != in.sizes[d] || of.numel() == 0) return refusal("halves of another form");
  const int64_t half = of.sizes[d];
  const Steps s{l.terms, h};
  const TermId is_first = l.reads.is_within(d, 0, half, half), is_second = l.reads.is_within(d, half, 2 * half, half);
  const auto read = [&](ir::ValueId id, const Shape& at, int64_t by, TermId mask) { return l.terms.cast(l.reads.strided(id, at.strides, by * at.strides[d], mask), h); };
  const TermId gate = s.make(Op::sigmoid, s.choose(is_first, read(self, in, half, is_first), read(self, in, 0, is_second)));
  const TermId g = s.choose(is_first, read(gradient, of, 0, is_first), read(gradient, of, -half, is_second));
  const TermId passed = s.mul(gate, g), of_gate = s.mul(s.mul(s.mul(s.sub(s.number(1), gate), gate), g), read(self, in, -half, is_second));
  return s.choose(is_first, passed, of_gate);
}

Result<TermId> nan_to_num(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  const double most = l.result() == DType::f64 ? std::numeric_limits<double>::max() : l.result() == DType::f16 ? 65504.0 : l.result() == DType::bf16 ? 0x1.fep127 : static_cast<double>(std::numeric_limits<float>::max());
  CUTAWAY_TRY_ASSIGN(double none, l.number(1, "nan", 0));
  CUTAWAY_TRY_ASSIGN(double above, l.number(2, "posinf", most));
  CUTAWAY_TRY_ASSIGN(double below, l.number(3, "neginf", -most));
  const Steps s{l.terms, h};
  const auto number = [&](double v) { return l.terms.rounded(s.number(v), l.result()); };
  const TermId finite = s.choose(s.is(Op::eq, x, s.number(INFINITY)), number(above), s.choose(s.is(Op::eq, x, s.number(-INFINITY)), number(below), x));
  return s.choose(l.terms.make(Op::is_nan, Held::mask, {x}), number(none), finite);
}

Result<TermId> log_add_exp(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(0, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(1, "other"), h));
  const Steps s{l.terms, h};
  const TermId away = s.make(Op::abs, s.sub(x, y)), sum = s.add(s.make(Op::maximum, x, y), s.make(Op::log1p, s.make(Op::exp, s.make(Op::neg, away))));
  const TermId is_infinite = s.is(Op::eq, s.make(Op::abs, x), s.number(INFINITY));
  return s.choose(l.terms.make(Op::logical_and, Held::mask, {is_infinite, s.is(Op::eq, x, y)}), x, sum);
}

Result<TermId> log_sigmoid_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  const Steps s{l.terms, h};
  const TermId one = s.number(1), z = s.make(Op::exp, s.make(Op::neg, s.make(Op::abs, x))), is_negative = s.is(Op::lt, x, s.number(0));
  const TermId part = s.mul(s.choose(is_negative, one, s.number(-1)), s.div(z, s.add(one, z)));
  return s.mul(s.sub(s.choose(is_negative, one, s.number(0)), part), g);
}

Result<TermId> leaky_relu_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(double slope, l.number(2, "negative_slope"));
  const Steps s{l.terms, h};
  return s.choose(s.is(Op::gt, x, s.number(0)), g, s.mul(g, s.number(slope)));
}

Result<TermId> is_infinite(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(ir::ValueId x, tensor(l, 0, "self"));
  const Held h = *held_for(l.graph.value(x).type.tensor.dtype);
  if (!is_float(h)) return l.terms.truth(false);
  CUTAWAY_TRY_ASSIGN(TermId v, l.value(l.argument(0, "self"), h));
  return l.terms.make(Op::eq, Held::mask, {l.terms.make(Op::abs, h, {v}), l.terms.number(INFINITY, h)});
}

}  // namespace
}  // namespace losing

std::vector<RuleRow> loss_rules() {
  using namespace losing;
  return {
      {"aten.nll_loss", nll_loss, true, true}, {"aten.nll_loss2d", nll_loss, true, true}, {"aten.nll_loss_backward", nll_loss_backward, true, true}, {"aten.nll_loss2d_backward", nll_loss_backward, true, true},
      {"aten.binary_cross_entropy", binary_cross_entropy, true, true}, {"aten.binary_cross_entropy_backward", binary_cross_entropy_backward},
      {"aten.smooth_l1_loss_backward", bent_loss_backward<false>}, {"aten.huber_loss_backward", bent_loss_backward<true>},
      {"aten.xlogy.Tensor", xlogy}, {"aten.xlogy.Scalar_Self", xlogy}, {"aten.xlogy.Scalar_Other", xlogy}, {"aten.lerp.Scalar", lerp}, {"aten.lerp.Tensor", lerp},
      {"aten.elu", elu}, {"aten.elu_backward", elu_backward}, {"aten.softplus", softplus}, {"aten.softplus_backward", softplus_backward}, {"aten.hardtanh_backward", hardtanh_backward},
      {"aten.hardsigmoid", hardsigmoid}, {"aten.hardsigmoid_backward", hardsigmoid_backward}, {"aten.hardswish", hardswish}, {"aten.hardswish_backward", hardswish_backward}, {"aten.mish", mish}, {"aten.mish_backward", mish_backward},
      {"aten._prelu_kernel", prelu}, {"aten.glu_backward", glu_backward, true}, {"aten.nan_to_num", nan_to_num}, {"aten.logaddexp", log_add_exp},
      {"aten.log_sigmoid_backward", log_sigmoid_backward}, {"aten.leaky_relu_backward", leaky_relu_backward}, {"aten.isinf", is_infinite},
  };
}

}  // namespace cutaway::codegen
