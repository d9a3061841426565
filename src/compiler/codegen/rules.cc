#include "compiler/codegen/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace {

using base::Error;
using base::Result;
using ir::DType;

constexpr double kSqrtHalf = 0.70710678118654752440, kTwoOverSqrtPi = 1.12837916709551257390, kSqrtTwoOverPi = 0.79788456080286535588;

Error refusal(std::string what) { return Error{.what = std::move(what)}; }

/// Small integers would have to wrap at each step.
bool computes(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::bf16 || t == DType::f16 || t == DType::i32 || t == DType::i64; }
Result<Held> computing(const Lowering& l) {
  if (!computes(l.result())) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  return l.held();
}
Result<Held> floating(const Lowering& l) {
  if (!ir::is_floating(l.result()) || !computes(l.result())) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  return l.held();
}
const ir::Argument* self(const Lowering& l) { return l.argument(0, "self"); }
const ir::Argument* other(const Lowering& l) { return l.argument(1, "other"); }

template <Op op> Result<TermId> function(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  return l.terms.make(op, h, {x});
}

template <Op op> Result<TermId> arithmetic(Lowering& l) {   // also of integers
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  return l.terms.make(op, h, {x});
}

/// floor, ceil, …: integers are whole numbers already.
template <Op op> Result<TermId> to_whole(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  return is_float(h) ? l.terms.make(op, h, {x}) : x;
}

template <Op op> Result<TermId> binary(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(other(l), h));
  return l.terms.make(op, h, {x, y});
}

template <Op op> Result<TermId> float_binary(Lowering& l) {
  CUTAWAY_TRY(floating(l));
  return binary<op>(l);
}

/// ATen's CUDA kernels take numbers beside tensors in the precision that they compute in, its CPU kernels round some to the tensor's dtype first.
bool is_on_card(const Lowering& l) { return l.graph.value(l.node.results[0]).type.tensor.device.type == "cuda"; }
TermId as_number(Lowering& l, TermId t) { return is_on_card(l) ? t : l.terms.rounded(t, l.result()); }

/// x + alpha*y or x - alpha*y. ATen rounds once where alpha is not 1.
Result<TermId> scaled_by_alpha(Lowering& l, Held h, TermId x, TermId y, bool is_minus) {
  const ir::Argument* alpha = l.argument(2, "alpha");
  if (!alpha || (alpha->as<int64_t>() && *alpha->as<int64_t>() == 1)) return l.terms.make(is_minus ? Op::sub : Op::add, h, {x, y});
  CUTAWAY_TRY_ASSIGN(TermId a, l.value(alpha, h));
  if (is_float(h)) return l.terms.make(Op::fma, h, {y, as_number(l, is_minus ? l.terms.number(-l.terms[a].number, h) : a), x});
  return l.terms.make(is_minus ? Op::sub : Op::add, h, {x, l.terms.make(Op::mul, h, {y, a})});
}

template <Op op> Result<TermId> scaled(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(other(l), h));
  if (op == Op::sub) {   // here, unlike in additions, ATen rounds a number to half first
    x = as_number(l, x);
    y = as_number(l, y);
  }
  return scaled_by_alpha(l, h, x, y, op == Op::sub);
}

Result<TermId> rsub(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(other(l), h));
  return scaled_by_alpha(l, h, as_number(l, y), x, true);
}

Result<TermId> pow_scalar(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(double e, l.number(1, "exponent"));
  Terms& t = l.terms;
  const TermId one = t.number(1, h), square = t.make(Op::mul, h, {x, x});
  if (e == 1) return x;   // exactly the exponents for which ATen has its own forms
  if (e == 2) return square;
  if (e == 3) return t.make(Op::mul, h, {square, x});
  const bool is_narrow = l.result() == DType::f16 && !is_on_card(l);   // there ATen asks the library, which has another root of -infinity
  if (e == 0.5 && !is_narrow) return t.make(Op::sqrt, h, {x});
  if (e == -0.5 && !is_narrow) return t.make(Op::div, h, {one, t.make(Op::sqrt, h, {x})});
  if (e == -1) return t.make(Op::div, h, {one, x});
  if (e == -2) return t.make(Op::div, h, {one, square});
  return t.make(Op::pow, h, {x, t.rounded(t.number(e, h), l.result())});   // an exponent too small for half is 0
}

/// ATen converts both operands to the common dtype first: 300 beside bytes is 44.
bool is_narrowed(const Lowering& l, const ir::Argument* a, DType to) {
  if (!l.is_tensor(a)) return false;
  const DType from = l.graph.value(a->as<ir::ValueRef>()->id).type.tensor.dtype;
  return from != to && ir::is_floating(from) == ir::is_floating(to) && ir::dtype_bytes(from) > ir::dtype_bytes(to);
}
ir::Argument wrapped(const ir::Argument& a, DType to) {
  const auto* i = a.as<int64_t>();
  if (!i) return a;
  switch (to) {
    case DType::u8: return static_cast<int64_t>(static_cast<uint8_t>(*i));
    case DType::i8: return static_cast<int64_t>(static_cast<int8_t>(*i));
    case DType::i16: return static_cast<int64_t>(static_cast<int16_t>(*i));
    case DType::i32: return static_cast<int64_t>(static_cast<int32_t>(*i));
    default: return a;
  }
}

template <Op op> Result<TermId> comparison(Lowering& l) {
  const auto type = l.promoted({self(l), other(l)});
  if (!type) return refusal("comparisons of these dtypes");
  const Held h = *held_for(*type);
  for (const ir::Argument* a : {self(l), other(l)})
    if (ir::dtype_bytes(*type) < 4 && !ir::is_floating(*type) && is_narrowed(l, a, *type)) return refusal("a wider number beside narrow integers");
  const ir::Argument left = wrapped(*self(l), *type), right = wrapped(*other(l), *type);
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(&left, h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(&right, h));
  if (h == Held::mask) return refusal("comparisons of booleans");
  return l.terms.make(op, Held::mask, {l.terms.rounded(x, *type), l.terms.rounded(y, *type)});
}

template <Op op> Result<TermId> logical(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), Held::mask));
  if (op == Op::logical_not) return l.terms.make(op, Held::mask, {x});
  const auto type = l.promoted({self(l), other(l)});
  if (!type || is_narrowed(l, self(l), *type) || is_narrowed(l, other(l), *type)) return refusal("a wider number beside narrow ones");
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(other(l), Held::mask));
  return l.terms.make(op, Held::mask, {x, y});
}

template <Op of_bits, Op of_truth> Result<TermId> bitwise(Lowering& l) {
  if (l.result() == DType::boolean) return logical<of_truth>(l);
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  if (!is_integer(h)) return refusal("bits of a float");
  if (of_bits == Op::bit_not) return arithmetic<Op::bit_not>(l);
  return binary<of_bits>(l);
}

Result<TermId> is_nan(Lowering& l) {
  if (!l.is_tensor(self(l))) return refusal("an argument that is not a tensor");
  const Held h = *held_for(l.graph.value(self(l)->as<ir::ValueRef>()->id).type.tensor.dtype);
  if (!is_float(h)) return l.terms.truth(false);
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  return l.terms.make(Op::is_nan, Held::mask, {x});
}

Result<TermId> copy(Lowering& l) {
  if (!computes(l.result()) && l.result() != DType::boolean) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  const ir::Argument* x = self(l);
  if (!l.is_tensor(x)) return refusal("an argument that is not a tensor");   // lift_fresh_copy of a constant
  if (l.graph.value(l.node.results[0]).type.tensor.device != l.graph.value(x->as<ir::ValueRef>()->id).type.tensor.device) return refusal("a copy to another device");
  const DType from = l.graph.value(x->as<ir::ValueRef>()->id).type.tensor.dtype;
  if (ir::is_floating(from) && is_integer(l.held())) return refusal("a cast of floats to integers");   // beyond the integer's range each machine does as it likes
  return l.value(x, l.held());
}

Result<TermId> where(Lowering& l) {
  if (!computes(l.result()) && l.result() != DType::boolean) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  const Held h = l.held();
  CUTAWAY_TRY_ASSIGN(TermId c, l.value(l.argument(0, "condition"), Held::mask));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(2, "other"), h));
  return l.terms.make(Op::select, h, {c, x, y});
}

Result<TermId> masked_fill(Lowering& l) {
  if (!computes(l.result()) && l.result() != DType::boolean) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  const Held h = l.held();
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(TermId c, l.value(l.argument(1, "mask"), Held::mask));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(2, "value"), h));
  return l.terms.make(Op::select, h, {c, l.terms.rounded(y, l.result()), x});
}

Result<TermId> clamp(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  const ir::Argument* low = l.node.target.starts_with("aten.clamp_max") ? nullptr : l.argument(1, "min");
  const ir::Argument* high = l.node.target.starts_with("aten.clamp_max") ? l.argument(1, "max") : l.node.target.starts_with("aten.clamp_min") ? nullptr : l.argument(2, "max");
  for (const ir::Argument* bound : {low, high})   // a bound that is NaN makes everything NaN in ATen
    if (bound && bound->as<double>() && std::isnan(*bound->as<double>())) return refusal("a bound that is not a number");
  if (low) {
    CUTAWAY_TRY_ASSIGN(TermId b, l.value(low, h));
    x = l.terms.make(Op::maximum, h, {b, x});   // -0.0 beside a bound of 0 stays, as in ATen
  }
  if (high) {
    CUTAWAY_TRY_ASSIGN(TermId b, l.value(high, h));
    x = l.terms.make(Op::minimum, h, {b, x});
  }
  return x;
}

Result<TermId> hardtanh(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(double low, l.number(1, "min_val", -1));
  CUTAWAY_TRY_ASSIGN(double high, l.number(2, "max_val", 1));
  if (std::isnan(low) || std::isnan(high)) return refusal("a bound that is not a number");
  return l.terms.make(Op::minimum, h, {l.terms.number(high, h), l.terms.make(Op::maximum, h, {l.terms.number(low, h), x})});
}

Result<TermId> relu(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  return l.terms.make(Op::maximum, h, {l.terms.integer(0, h), x});   // -0.0 stays, as in ATen
}

Result<TermId> leaky_relu(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(double slope, l.number(1, "negative_slope", 0.01));
  Terms& t = l.terms;
  return t.make(Op::select, h, {t.make(Op::gt, Held::mask, {x, t.number(0, h)}), x, t.make(Op::mul, h, {x, t.number(slope, h)})});
}

Result<TermId> silu(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  Terms& t = l.terms;
  const TermId one = t.number(1, h);
  return t.make(Op::div, h, {x, t.make(Op::add, h, {one, t.make(Op::exp, h, {t.make(Op::neg, h, {x})})})});
}

bool is_tanh_form(const Lowering& l, size_t position) {
  const ir::Argument* form = l.argument(position, "approximate");
  return form && form->as<std::string>() && *form->as<std::string>() == "tanh";
}

/// sqrt(2/pi) * (x + 0.044715 x^3)
TermId gelu_inner(Terms& t, Held h, TermId x) {
  const TermId cube = t.make(Op::mul, h, {t.make(Op::mul, h, {x, x}), x});
  return t.make(Op::mul, h, {t.number(kSqrtTwoOverPi, h), t.make(Op::add, h, {x, t.make(Op::mul, h, {t.number(0.044715, h), cube})})});
}

Result<TermId> gelu(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  Terms& t = l.terms;
  const TermId half = t.number(0.5, h), one = t.number(1, h);
  const TermId twice = is_tanh_form(l, 1) ? t.make(Op::add, h, {one, t.make(Op::tanh, h, {gelu_inner(t, h, x)})}) : t.make(Op::erf_plus_one, h, {t.make(Op::mul, h, {x, t.number(kSqrtHalf, h)})});
  return t.make(Op::mul, h, {t.make(Op::mul, h, {half, x}), twice});
}

Result<TermId> gelu_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  Terms& t = l.terms;
  const auto mul = [&](TermId a, TermId b) { return t.make(Op::mul, h, {a, b}); };
  const auto add = [&](TermId a, TermId b) { return t.make(Op::add, h, {a, b}); };
  const TermId half = t.number(0.5, h), one = t.number(1, h);
  if (is_tanh_form(l, 2)) {
    const TermId y = t.make(Op::tanh, h, {gelu_inner(t, h, x)});
    const TermId left = mul(half, add(one, y));
    const TermId slope = mul(t.number(kSqrtTwoOverPi, h), add(one, mul(t.number(3 * 0.044715, h), mul(x, x))));
    const TermId right = mul(mul(mul(half, x), t.make(Op::sub, h, {one, mul(y, y)})), slope);
    return mul(g, add(left, right));
  }
  const TermId cdf = mul(half, t.make(Op::erf_plus_one, h, {mul(x, t.number(kSqrtHalf, h))}));
  const TermId pdf = mul(t.make(Op::exp, h, {mul(t.number(-0.5, h), mul(x, x))}), t.number(kTwoOverSqrtPi * kSqrtHalf * 0.5, h));
  return mul(g, add(cdf, mul(x, pdf)));
}

Result<TermId> tanh_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(1, "output"), h));
  Terms& t = l.terms;
  return t.make(Op::mul, h, {g, t.make(Op::sub, h, {t.number(1, h), t.make(Op::mul, h, {y, y})})});
}

Result<TermId> sigmoid_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId y, l.value(l.argument(1, "output"), h));
  Terms& t = l.terms;
  return t.make(Op::mul, h, {t.make(Op::mul, h, {g, t.make(Op::sub, h, {t.number(1, h), y})}), y});
}

Result<TermId> silu_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  Terms& t = l.terms;
  const TermId one = t.number(1, h), s = t.make(Op::sigmoid, h, {x});
  const TermId inside = t.make(Op::add, h, {one, t.make(Op::mul, h, {x, t.make(Op::sub, h, {one, s})})});
  return t.make(Op::mul, h, {t.make(Op::mul, h, {g, s}), inside});
}

Result<TermId> threshold_backward(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  CUTAWAY_TRY_ASSIGN(TermId g, l.value(l.argument(0, "grad_output"), h));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(l.argument(1, "self"), h));
  CUTAWAY_TRY_ASSIGN(TermId bound, l.value(l.argument(2, "threshold"), h));
  Terms& t = l.terms;
  return t.make(Op::select, h, {t.make(Op::le, Held::mask, {x, bound}), t.integer(0, h), g});
}

/// self + value * a op b
template <Op op> Result<TermId> add_of_product(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, floating(l));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  CUTAWAY_TRY_ASSIGN(TermId a, l.value(l.argument(1, "tensor1"), h));
  CUTAWAY_TRY_ASSIGN(TermId b, l.value(l.argument(2, "tensor2"), h));
  CUTAWAY_TRY_ASSIGN(double value, l.number(3, "value", 1));
  Terms& t = l.terms;
  if (op == Op::div && is_on_card(l)) return t.make(Op::add, h, {x, t.make(Op::mul, h, {t.number(value, h), t.make(Op::div, h, {a, b})})});   // another order there
  const TermId left = t.make(Op::mul, h, {t.number(value, h), a});
  return op == Op::mul ? t.make(Op::fma, h, {left, b, x}) : t.make(Op::add, h, {x, t.make(op, h, {left, b})});
}

/// Over the last dimension; the fuser asks whether it is. ATen keeps what it has so far in a wider type, which the term's `memory` names.
template <Op op> Result<TermId> scan(Lowering& l) {
  CUTAWAY_TRY_ASSIGN(Held h, computing(l));
  if (!l.is_tensor(self(l))) return refusal("an argument that is not a tensor");
  const DType from = l.graph.value(self(l)->as<ir::ValueRef>()->id).type.tensor.dtype;
  if (ir::is_floating(from) && is_integer(h)) return refusal("a cast of floats to integers");
  if (op == Op::scan_logsumexp && l.result() != DType::f32 && l.result() != DType::f64) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(self(l), h));
  return l.terms.scan(op, l.terms.rounded(x, l.result()), l.result());
}

/// A value that no tensor is read for.
Result<TermId> filled(Lowering& l, const ir::Argument* value) {
  if (!computes(l.result()) && l.result() != DType::boolean) return refusal("results of dtype " + std::string(ir::dtype_name(l.result())));
  CUTAWAY_TRY_ASSIGN(TermId x, l.value(value, l.held()));
  if (l.terms[x].op != Op::constant) return refusal("a filling that is not a number");
  return x;
}
Result<TermId> full(Lowering& l) { return filled(l, l.argument(1, "fill_value")); }
Result<TermId> scalar_tensor(Lowering& l) { return filled(l, l.argument(0, "s")); }
Result<TermId> zeros(Lowering& l) {
  const ir::Argument zero(int64_t{0});
  return filled(l, &zero);
}
Result<TermId> ones(Lowering& l) {
  const ir::Argument one(int64_t{1});
  return filled(l, &one);
}

const std::vector<RuleRow> kRules = [] {
  std::vector<RuleRow> rows = {
      {"aten.neg", arithmetic<Op::neg>}, {"aten.abs", arithmetic<Op::abs>}, {"aten.sgn", arithmetic<Op::sign>}, {"aten.sign", arithmetic<Op::sign>},
      {"aten.reciprocal", function<Op::reciprocal>}, {"aten.sqrt", function<Op::sqrt>}, {"aten.rsqrt", function<Op::rsqrt>},
      {"aten.exp", function<Op::exp>}, {"aten.exp2", function<Op::exp2>}, {"aten.expm1", function<Op::expm1>}, {"aten.log", function<Op::log>}, {"aten.log2", function<Op::log2>}, {"aten.log10", function<Op::log10>}, {"aten.log1p", function<Op::log1p>},
      {"aten.sin", function<Op::sin>}, {"aten.cos", function<Op::cos>}, {"aten.tan", function<Op::tan>}, {"aten.asin", function<Op::asin>}, {"aten.acos", function<Op::acos>}, {"aten.atan", function<Op::atan>},
      {"aten.sinh", function<Op::sinh>}, {"aten.cosh", function<Op::cosh>}, {"aten.asinh", function<Op::asinh>}, {"aten.acosh", function<Op::acosh>}, {"aten.atanh", function<Op::atanh>}, {"aten.tanh", function<Op::tanh>},
      {"aten.erf", function<Op::erf>}, {"aten.erfc", function<Op::erfc>}, {"aten.sigmoid", function<Op::sigmoid>},
      {"aten.floor", to_whole<Op::floor>}, {"aten.ceil", to_whole<Op::ceil>}, {"aten.round", to_whole<Op::round>}, {"aten.trunc", to_whole<Op::trunc>},
      {"aten.add.Tensor", scaled<Op::add>}, {"aten.add.Scalar", scaled<Op::add>}, {"aten.sub.Tensor", scaled<Op::sub>}, {"aten.sub.Scalar", scaled<Op::sub>}, {"aten.rsub.Tensor", rsub}, {"aten.rsub.Scalar", rsub},
      {"aten.mul.Tensor", binary<Op::mul>}, {"aten.mul.Scalar", binary<Op::mul>}, {"aten.div.Tensor", float_binary<Op::div>}, {"aten.div.Scalar", float_binary<Op::div>},
      {"aten.pow.Tensor_Scalar", pow_scalar},
      {"aten.maximum", binary<Op::maximum>}, {"aten.minimum", binary<Op::minimum>}, {"aten.fmax", binary<Op::fmax>}, {"aten.fmin", binary<Op::fmin>}, {"aten.atan2", float_binary<Op::atan2>},
      {"aten.eq.Tensor", comparison<Op::eq>}, {"aten.eq.Scalar", comparison<Op::eq>}, {"aten.ne.Tensor", comparison<Op::ne>}, {"aten.ne.Scalar", comparison<Op::ne>},
      {"aten.lt.Tensor", comparison<Op::lt>}, {"aten.lt.Scalar", comparison<Op::lt>}, {"aten.le.Tensor", comparison<Op::le>}, {"aten.le.Scalar", comparison<Op::le>},
      {"aten.gt.Tensor", comparison<Op::gt>}, {"aten.gt.Scalar", comparison<Op::gt>}, {"aten.ge.Tensor", comparison<Op::ge>}, {"aten.ge.Scalar", comparison<Op::ge>},
      {"aten.isnan", is_nan},
      {"aten.logical_and", logical<Op::logical_and>}, {"aten.logical_or", logical<Op::logical_or>}, {"aten.logical_xor", logical<Op::logical_xor>}, {"aten.logical_not", logical<Op::logical_not>},
      {"aten.bitwise_and.Tensor", bitwise<Op::bit_and, Op::logical_and>}, {"aten.bitwise_or.Tensor", bitwise<Op::bit_or, Op::logical_or>}, {"aten.bitwise_xor.Tensor", bitwise<Op::bit_xor, Op::logical_xor>}, {"aten.bitwise_not", bitwise<Op::bit_not, Op::logical_not>},
      {"aten.bitwise_and.Scalar", bitwise<Op::bit_and, Op::logical_and>}, {"aten.bitwise_or.Scalar", bitwise<Op::bit_or, Op::logical_or>},
      {"aten._to_copy", copy}, {"aten.clone", copy},
      {"aten.where.self", where}, {"aten.masked_fill.Scalar", masked_fill}, {"aten.masked_fill.Tensor", masked_fill},
      {"aten.clamp", clamp}, {"aten.clamp_min", clamp}, {"aten.clamp_max", clamp},
      {"aten.relu", relu}, {"aten.leaky_relu", leaky_relu}, {"aten.silu", silu}, {"aten.gelu", gelu},
      {"aten.gelu_backward", gelu_backward}, {"aten.tanh_backward", tanh_backward}, {"aten.sigmoid_backward", sigmoid_backward}, {"aten.silu_backward", silu_backward}, {"aten.threshold_backward", threshold_backward},
      {"aten.addcmul", add_of_product<Op::mul>}, {"aten.addcdiv", add_of_product<Op::div>},
      {"aten.cumsum", scan<Op::scan_sum>, false, false, true}, {"aten.cumprod", scan<Op::scan_prod>, false, false, true}, {"aten.logcumsumexp", scan<Op::scan_logsumexp>, false, false, true},
      {"aten.clamp.Tensor", clamp}, {"aten.clamp_min.Tensor", clamp}, {"aten.clamp_max.Tensor", clamp}, {"aten.hardtanh", hardtanh},
      {"aten.full", full}, {"aten.full_like", full}, {"aten.scalar_tensor", scalar_tensor}, {"aten.zeros", zeros}, {"aten.zeros_like", zeros}, {"aten.new_zeros", zeros}, {"aten.ones", ones}, {"aten.ones_like", ones}, {"aten.new_ones", ones},
  };
  for (RuleRow& r : indexing_rules()) rows.push_back(r);
  for (RuleRow& r : loss_rules()) rows.push_back(r);
  for (RuleRow& r : pooling_rules()) rows.push_back(r);
  std::ranges::sort(rows, {}, &RuleRow::target);
  return rows;
}();

}  // namespace

const ir::Argument* Lowering::argument(size_t position, std::string_view name) const {
  const ir::Argument* found = position < node.args.size() ? &node.args[position] : nullptr;
  for (const auto& [key, a] : node.kwargs)
    if (key == name) found = &a;
  return found && found->is_none() ? nullptr : found;
}

bool Lowering::is_of_sizes(const ir::Argument* a) const {
  if (!symbolic) return false;
  const auto is_literal = [](const ir::Argument& x) { return x.as<int64_t>() || x.as<double>() || x.as<bool>(); };
  for (size_t i = 0; i < node.args.size() && i < symbolic->args.size(); ++i)
    if (&node.args[i] == a) return !is_literal(symbolic->args[i]);
  for (size_t i = 0; i < node.kwargs.size() && i < symbolic->kwargs.size(); ++i)
    if (&node.kwargs[i].second == a) return node.kwargs[i].first == symbolic->kwargs[i].first && !is_literal(symbolic->kwargs[i].second);
  return false;
}

bool Lowering::is_tensor(const ir::Argument* a) const { return a && a->as<ir::ValueRef>() && graph.value(a->as<ir::ValueRef>()->id).type.is_tensor(); }

Result<TermId> Lowering::value(const ir::Argument* a, Held held) {
  if (!a) return refusal("a missing argument");
  if (const auto* b = a->as<bool>()) return terms.integer(*b, held);
  if (const auto* i = a->as<int64_t>()) return is_of_sizes(a) ? terms.size(*i, held) : terms.integer(*i, held);
  if (const auto* d = a->as<double>()) {
    if (is_integer(held)) return refusal("a float beside integers");
    if (held != Held::mask && is_of_sizes(a)) return terms.size(*d, held);
    return held == Held::mask ? terms.truth(*d != 0) : terms.number(*d, held);
  }
  if (!is_tensor(a)) return refusal("an argument that is neither a tensor nor a number");
  const ir::ValueId id = a->as<ir::ValueRef>()->id;
  const TermId x = terms.cast(reads.element(id), held);
  const ir::TensorType& type = graph.value(id).type.tensor;
  return is_float(held) && !ir::is_floating(type.dtype) && !type.sizes.empty() ? terms.rounded(x, result()) : x;   // 70000 beside halves is infinite
}

Result<double> Lowering::number(size_t position, std::string_view name, std::optional<double> otherwise) const {
  const ir::Argument* a = argument(position, name);
  if (a && a->as<double>()) return *a->as<double>();
  if (a && a->as<int64_t>()) return static_cast<double>(*a->as<int64_t>());
  if (!a && otherwise) return *otherwise;
  return refusal("the argument " + std::string(name) + " is not a number");
}

std::optional<DType> Lowering::promoted(const std::vector<const ir::Argument*>& operands) const {
  // torch's three kinds: a tensor with dimensions beats one without, which beats a number, unless the latter's category is higher.
  const auto category = [](DType t) { return ir::is_floating(t) ? 2 : ir::is_integral(t) ? 1 : 0; };
  std::optional<DType> by_kind[3];
  const auto join = [&](std::optional<DType>& into, DType t) {
    static constexpr DType kOrder[] = {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};
    if (!into || *into == t) { into = t; return; }
    const auto rank = [](DType x) { return std::find(std::begin(kOrder), std::end(kOrder), x) - std::begin(kOrder); };
    if ((*into == DType::f16 && t == DType::bf16) || (*into == DType::bf16 && t == DType::f16)) { into = DType::f32; return; }
    if ((*into == DType::u8 && t == DType::i8) || (*into == DType::i8 && t == DType::u8)) { into = DType::i16; return; }
    if (rank(t) > rank(*into)) into = t;
  };
  for (const ir::Argument* a : operands) {
    if (!a) return std::nullopt;
    if (is_tensor(a)) {
      const ir::TensorType& t = graph.value(a->as<ir::ValueRef>()->id).type.tensor;
      if (!held_for(t.dtype)) return std::nullopt;
      join(by_kind[t.sizes.empty() ? 1 : 0], t.dtype);
    } else if (a->as<bool>()) join(by_kind[2], DType::boolean);
    else if (a->as<int64_t>()) join(by_kind[2], DType::i64);
    else if (a->as<double>()) join(by_kind[2], DType::f32);
    else return std::nullopt;
  }
  std::optional<DType> result;
  for (const auto& kind : by_kind)
    if (kind && (!result || category(*kind) > category(*result))) result = kind;
  return result;
}

const RuleRow* find_rule(std::string_view target) {
  const auto it = std::ranges::lower_bound(kRules, target, {}, &RuleRow::target);
  return it != kRules.end() && it->target == target ? &*it : nullptr;
}
const std::vector<RuleRow>& all_rules() { return kRules; }

namespace {
/// Which reduction, and whether it is divided by the number of elements.
const std::map<std::string_view, std::pair<Op, bool>> kReductions = {
      {"aten.sum", {Op::sum, false}}, {"aten.sum.dim_IntList", {Op::sum, false}}, {"aten.mean", {Op::sum, true}}, {"aten.mean.dim", {Op::sum, true}},
      {"aten.prod", {Op::prod, false}}, {"aten.prod.dim_int", {Op::prod, false}}, {"aten.amax", {Op::max, false}}, {"aten.amin", {Op::min, false}}, {"aten.max", {Op::max, false}}, {"aten.min", {Op::min, false}},
      {"aten.any", {Op::any, false}}, {"aten.any.dim", {Op::any, false}}, {"aten.any.dims", {Op::any, false}}, {"aten.all", {Op::all, false}}, {"aten.all.dim", {Op::all, false}}, {"aten.all.dims", {Op::all, false}}};
}  // namespace

std::vector<std::string_view> all_reductions() {
  std::vector<std::string_view> all;
  for (const auto& [target, row] : kReductions) all.push_back(target);
  return all;
}

std::optional<Reduction> reduction_of(const ir::Graph& graph, const ir::Node& node) {
  const auto row = kReductions.find(node.target);
  if (row == kReductions.end() || node.results.size() != 1 || node.args.empty() || !node.args[0].as<ir::ValueRef>()) return std::nullopt;
  const ir::Type& operand = graph.value(node.args[0].as<ir::ValueRef>()->id).type;
  const ir::Type& result = graph.value(node.results[0]).type;
  if (!operand.is_tensor() || !result.is_tensor()) return std::nullopt;
  if (!computes(result.tensor.dtype) && result.tensor.dtype != DType::boolean) return std::nullopt;
  if (!held_for(operand.tensor.dtype)) return std::nullopt;
  auto [op, is_mean] = row->second;
  if (result.tensor.dtype == DType::boolean) op = op == Op::max ? Op::any : op == Op::min ? Op::all : op;   // the largest of truths
  if (ir::is_floating(operand.tensor.dtype) && ir::is_integral(result.tensor.dtype)) return std::nullopt;    // a cast that each machine does as it likes
  const bool has_dims = node.target != "aten.sum" && node.target != "aten.prod" && node.target != "aten.mean" && node.target != "aten.max" && node.target != "aten.min" && node.target != "aten.any" && node.target != "aten.all";
  const ir::Argument* dims = has_dims && node.args.size() > 1 && !node.args[1].is_none() ? &node.args[1] : nullptr;
  for (const auto& [key, a] : node.kwargs)
    if (key == "dim") dims = &a;
  auto found = dims_of(dims, static_cast<int64_t>(operand.tensor.sizes.size()));
  if (!found || operand.tensor.sizes.empty()) return std::nullopt;
  return Reduction{std::move(*found), op, is_mean};
}

}  // namespace cutaway::codegen
