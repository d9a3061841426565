#include "diagnosis/compare/same.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <thread>

#include "diagnosis/compare/element_pass.h"
#include "diagnosis/compare/wording.h"

namespace cutaway::compare {
namespace {

std::optional<Format> format_of(at::ScalarType type) {
  switch (type) {
    case at::kBool: return Format::boolean;
    case at::kByte: return Format::u8;
    case at::kChar: return Format::i8;
    case at::kShort: return Format::i16;
    case at::kInt: return Format::i32;
    case at::kLong: return Format::i64;
    case at::kUInt16: return Format::u16;
    case at::kUInt32: return Format::u32;
    case at::kUInt64: return Format::u64;
    case at::kHalf: return Format::f16;
    case at::kBFloat16: return Format::bf16;
    case at::kFloat: return Format::f32;
    case at::kDouble: return Format::f64;
    case at::kFloat8_e5m2: return Format::f8e5m2;
    case at::kFloat8_e4m3fn: return Format::f8e4m3fn;
    case at::kFloat8_e5m2fnuz: return Format::f8e5m2fnuz;
    case at::kFloat8_e4m3fnuz: return Format::f8e4m3fnuz;
    case at::ScalarType::Float8_e8m0fnu: return Format::f8e8m0fnu;
    case at::kComplexHalf: return Format::c32;
    case at::kComplexFloat: return Format::c64;
    case at::kComplexDouble: return Format::c128;
    default: return std::nullopt;
  }
}

std::string dtype_text(at::ScalarType type) {   // as torch's users know it
  switch (type) {
    case at::kHalf: return "float16";
    case at::kFloat: return "float32";
    case at::kDouble: return "float64";
    case at::kBFloat16: return "bfloat16";
    case at::kByte: return "uint8";
    case at::kChar: return "int8";
    case at::kShort: return "int16";
    case at::kInt: return "int32";
    case at::kLong: return "int64";
    case at::kComplexHalf: return "complex32";
    case at::kComplexFloat: return "complex64";
    case at::kComplexDouble: return "complex128";
    default: {
      std::string name = c10::toString(type);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return name;
    }
  }
}

/// Why a tensor has no numbers to compare; empty if it has.
std::string why_not_comparable(const at::Tensor& t) {
  if (t.is_nested()) return "nested tensors are not supported";
  if (t.is_quantized()) return "quantized tensors are not supported";
  if (t.is_meta() || t.key_set().has(c10::DispatchKey::Fake)) return "a fake or meta tensor has no data";
  if (!format_of(t.scalar_type())) return "dtype " + dtype_text(t.scalar_type()) + " is not supported";
  if (t.layout() != at::kStrided) return {};
  if (!t.has_storage()) return "it has no storage of its own (a wrapper around other tensors)";
  if (t.storage().device_type() == at::kMeta) return "a fake or meta tensor has no data";
  if (t.numel() > 0 && !t._is_zerotensor() && !t.storage().unsafeGetStorageImpl()->data()) return "its storage has no data";
  return {};
}

/// The numbers in strided host memory. Copies only from other layouts and other devices.
at::Tensor in_memory(const at::Tensor& t) {
  at::Tensor out = t.detach();
  if (out.layout() != at::kStrided) out = out.to_dense();
  if (out._is_zerotensor()) out = at::zeros(out.sizes(), out.options());
  return out.device().is_cpu() ? out : out.cpu();
}

Operand operand(const at::Tensor& t, at::IntArrayRef sizes, Format as) {
  const at::Tensor view = t.expand(sizes);
  Operand o;
  o.data = static_cast<const char*>(view.const_data_ptr());
  o.stored = *format_of(t.scalar_type());
  o.as = as;
  o.conjugated = view.is_conj();
  o.negated = view.is_neg();
  for (int64_t s : view.strides()) o.strides.push_back(s * static_cast<int64_t>(t.element_size()));
  return o;
}

/// What a pass found, with what is needed to name its worst element.
struct Passed {
  Layout layout;
  Totals totals;
  Operand a, b;
};

/// Fixed blocks, summed in their order: the numbers do not depend on how many threads there are.
/// Threads of our own rather than at::parallel_for: that one is OpenMP, which hangs in a process forked from one that used it,
/// and comparisons run in forked workers.
Passed run_pass(const at::Tensor& a, const at::Tensor& b, const at::Tensor& f, Format as, at::IntArrayRef sizes, const Closeness& closeness) {
  Passed p;
  p.a = operand(a, sizes, as);
  p.b = operand(b, sizes, as);
  Operand fp64;
  std::vector<Operand*> operands = {&p.a, &p.b};
  if (f.defined()) {
    fp64 = operand(f, sizes, *format_of(f.scalar_type()));
    operands.push_back(&fp64);
  }
  p.layout = plan_layout(sizes.vec(), operands);
  constexpr int64_t block = 1 << 18;
  const int64_t blocks = (p.layout.elements + block - 1) / block;
  if (p.layout.elements == 0) return p;
  std::vector<Totals> sums(blocks);
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < blocks;)
      sums[i] = pass_over(p.layout, p.a, p.b, fp64, closeness, i * block, std::min(p.layout.elements, (i + 1) * block));
  };
  std::vector<std::thread> others;
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), blocks / 2);
  for (int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  p.totals = sums[0];
  for (int64_t i = 1; i < blocks; ++i) p.totals.add(sums[i]);
  return p;
}

TensorStats stats_of(const Passed& p, const at::Tensor& result) {
  const Totals& t = p.totals;
  TensorStats s;
  s.dtype = dtype_text(result.scalar_type());
  s.sizes = result.sizes().vec();
  s.elements = p.layout.elements;
  s.unequal = t.unequal;
  s.not_close = t.not_close;
  s.max_abs = t.max_abs;
  s.max_rel = t.max_rel;
  s.rmse_result = s.rmse_reference = NAN;
  s.nan_reference = t.nan_a;
  s.nan_result = t.nan_b;
  s.inf_reference = t.inf_a;
  s.inf_result = t.inf_b;
  s.other_specials = t.specials.closer + t.specials.astray + t.specials.wrong;
  s.cosine = t.unequal == 0 && t.nan_a == 0 && t.inf_a == 0 ? 1 : t.aa == 0 || t.bb == 0 ? 0 : t.ab / (std::sqrt(t.aa) * std::sqrt(t.bb));
  if (t.worst >= 0) {
    s.worst_index = p.layout.index_of(t.worst);
    s.worst_reference = value_at(p.layout, p.a, t.worst);
    s.worst_result = value_at(p.layout, p.b, t.worst);
  }
  return s;
}

std::string limit_text(double tol) { return number_text(tol) + " + " + number_text(tol) + " x |result|"; }

/// One comparison of two tensors: the rules in order, each in a function of its own.
class Comparison {
 public:
  Comparison(const at::Tensor& reference, const at::Tensor& result, const at::Tensor& fp64, const Options& options, std::string path)
      : reference_(reference), result_(result), fp64_(fp64), options_(options) {
    verdict_.path = std::move(path);
  }

  Verdict run() {
    if (!(options_.tol >= 0)) return end(Outcome::refused, "the tolerance is " + number_text(options_.tol) + ", which is not a number of at least 0");
    if (!fp64_.defined()) fp64_ = reference_;
    const std::pair<const at::Tensor*, const char*> sides[] = {{&reference_, "the reference"}, {&result_, "the result"}, {&fp64_, "the fp64 reference"}};
    for (const auto& [tensor, side] : sides) {
      if (!tensor->defined()) return end(Outcome::refused, std::string(side) + " is an undefined tensor");
      if (const std::string why = why_not_comparable(*tensor); !why.empty()) return end(Outcome::refused, std::string(side) + " cannot be compared: " + why);
    }
    if (reference_.layout() != result_.layout() && (reference_.layout() != at::kStrided || result_.layout() != at::kStrided))
      return differ(Aspect::layout, std::string("another layout: the reference is ") + layout_text(reference_) + ", the result " + layout_text(result_));
    if (reference_.device() != result_.device())
      return differ(Aspect::device, "another device: the reference is on " + reference_.device().str() + ", the result on " + result_.device().str());
    if (options_.exact_dtype && reference_.scalar_type() != result_.scalar_type())
      return differ(Aspect::dtype, "another dtype: the reference is " + dtype_text(reference_.scalar_type()) + ", the result " + dtype_text(result_.scalar_type()));
    if ((options_.exact_shape || is_ours()) && reference_.sizes() != result_.sizes()) return differ(Aspect::shape, shapes_text());

    at::NoGradGuard no_grad;
    const bool fp64_is_reference = fp64_.is_same(reference_);
    reference_ = in_memory(reference_);
    result_ = in_memory(result_);
    fp64_ = fp64_is_reference ? reference_ : in_memory(fp64_);
    if (is_ours()) {
      // One of another shape or kind is no reference for these numbers.
      const bool is_of_use = !fp64_is_reference && fp64_.sizes() == result_.sizes() && fp64_.is_complex() == result_.is_complex();
      if (!is_of_use) fp64_ = at::Tensor();
      return c10::isIntegralType(reference_.scalar_type(), /*includeBool=*/true) ? compare_integers() : compare_finite_rest();
    }
    if (options_.exact_dtype && reference_.scalar_type() == at::kBool) return compare_masks();
    return options_.cos_similarity ? compare_directions() : compare_numbers();
  }

 private:
  static std::string layout_text(const at::Tensor& t) { std::ostringstream s; s << t.layout(); return s.str(); }
  std::string shapes_text() const {
    return "another shape: the reference is " + index_text(reference_.sizes().vec()) + ", the result " + index_text(result_.sizes().vec());
  }
  bool is_ours() const { return options_.rules == Rules::cutaway; }
  Verdict differ(Aspect aspect, std::string reason) {
    verdict_.aspect = aspect;
    return end(Outcome::wrong, std::move(reason));
  }
  Verdict end(Outcome outcome, std::string reason) {
    verdict_.outcome = outcome;
    verdict_.reason = std::move(reason);
    if (is_same(outcome) && reference_.sizes() != result_.sizes()) {   // never "equal": the caller must be able to see it
      if (outcome < Outcome::within_tolerance) verdict_.outcome = Outcome::within_tolerance;
      verdict_.reason = shapes_text() + ", compared by broadcasting; " + verdict_.reason;
    }
    return std::move(verdict_);
  }
  Closeness closeness(double tol, bool equal_nan) const { return {tol, equal_nan, c10::get_default_dtype_as_scalartype() == at::kDouble, is_ours() || finite_first_}; }
  bool common_shape(const at::Tensor& x, const at::Tensor& y, std::vector<int64_t>& sizes) const {
    sizes = x.sizes().vec();
    if (x.sizes() == y.sizes()) return true;
    try {
      sizes = at::infer_size(x.sizes(), y.sizes());
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }
  std::string outside_text(const Totals& t) const {
    return count_text(t.not_close) + " of " + count_text(t.elements) + " elements are off by more than " + limit_text(options_.tol);
  }

  // --- our rules ---

  /// Integers and truth values have no rounding. They may follow from numbers that have: where fp64 differs from the reference, the reference proves nothing.
  Verdict compare_integers() {
    const Passed p = run_pass(reference_, result_, {}, *format_of(result_.scalar_type()), result_.sizes(), closeness(0, true));
    verdict_.stats = stats_of(p, result_);
    const Totals& t = p.totals;
    if (t.unequal == 0) return end(Outcome::equal, "all elements are equal");
    const std::string differ = count_text(t.unequal) + " of " + count_text(t.elements) + (reference_.scalar_type() == at::kBool ? " truth values differ" : " integers differ");
    if (options_.ignore_non_fp) return end(Outcome::ignored, differ + ", and values that are not floating point are ignored");
    if (!fp64_.defined() || fp64_.scalar_type() != result_.scalar_type()) return end(Outcome::wrong, differ);
    const auto plain = [](const at::Tensor& t) { return t.to(at::kLong); };   // not every operator knows the unsigned dtypes; 64 bits stay 64 bits
    const at::Tensor a = plain(reference_), b = plain(result_), f = plain(fp64_), unequal = a != b;
    const int64_t as_reference = unequal.logical_and(f == a).sum().item<int64_t>(), as_result = unequal.logical_and(f == b).sum().item<int64_t>();
    if (as_reference > 0) return end(Outcome::wrong, differ + "; in " + count_text(as_reference) + " of those fp64 is as the reference");
    if (as_result == t.unequal) return end(Outcome::closer_to_fp64, differ + ", and in all of those fp64 is as the result");
    return end(Outcome::ill_conditioned, differ + "; in none of those fp64 is as the reference, and in " + count_text(as_result) + " as the result");
  }

  static std::string specials_text(const Totals& t) {
    const auto of = [](int64_t nan, int64_t inf) { return count_text(nan) + " NaN and " + count_text(inf) + " infinite"; };
    return "NaN and infinities differ in " + count_text(t.specials.wrong + t.specials.closer + t.specials.astray) + " places: the reference has " + of(t.nan_a, t.inf_a) + ", the result " + of(t.nan_b, t.inf_b);
  }

  Verdict compare_finite_rest() {
    const Format as = *format_of(result_.scalar_type());
    const bool measured = fp64_.defined() && (fp64_.scalar_type() == at::kDouble || fp64_.scalar_type() == at::kComplexDouble);
    const Passed p = run_pass(reference_, result_, measured ? fp64_ : at::Tensor(), as, result_.sizes(), closeness(options_.tol, true));
    verdict_.stats = stats_of(p, result_);
    const Totals& t = p.totals;
    const double finite = static_cast<double>(t.elements) - static_cast<double>(t.specials.taken_out) / (is_complex(as) ? 2 : 1);
    const auto mean = [&](double squares) { return finite > 0 ? std::sqrt(squares / finite) : 0; };
    if (measured) {
      verdict_.stats->rmse_reference = mean(t.error_a);
      verdict_.stats->rmse_result = mean(t.error_b);
    }
    if (t.specials.wrong > 0) {
      const std::string not_of_fp64 = !measured ? "" : "; in " + count_text(t.specials.wrong) + " of them fp64 is as the reference";
      return end(Outcome::wrong, specials_text(t) + not_of_fp64);
    }
    if (t.not_close > 0) {
      Verdict v = measured ? judge_by_fp64(t, mean(t.ff)) : end(Outcome::wrong, outside_text(t));
      if (!is_same(v.outcome) || t.specials.closer + t.specials.astray == 0) return v;
      verdict_ = std::move(v);
      return end(t.specials.astray ? Outcome::ill_conditioned : std::max(verdict_.outcome, Outcome::closer_to_fp64), verdict_.reason + "; " + specials_text(t));
    }
    if (t.specials.astray > 0) return end(Outcome::ill_conditioned, specials_text(t) + "; in " + count_text(t.specials.astray) + " of them fp64 is as neither");
    if (t.specials.closer > 0) return end(Outcome::closer_to_fp64, specials_text(t) + "; in all of them fp64 is as the result");
    return end_close(t);
  }

  /// Outside the tolerance: is the result as near to fp64 as the reference is, on the whole and in its worst element?
  Verdict judge_by_fp64(const Totals& t, double size) {
    constexpr double kFar = 0.1, kFarFactor = 10, kWorstFactor = 10;
    const double reference_error = verdict_.stats->rmse_reference, result_error = verdict_.stats->rmse_result;
    const bool is_far = reference_error >= kFar * size && reference_error > 0;
    const double factor = is_far ? std::max(kFarFactor, multiplier(reference_)) : multiplier(reference_);
    const double limit = factor * reference_error + options_.tol / 10.0;
    const std::string numbers = "RMSE to fp64 is " + number_text(result_error) + " for the result and " + number_text(reference_error) + " for the reference";
    if (!(result_error <= limit)) return end(Outcome::wrong, outside_text(t) + "; " + numbers + ", and the limit is " + number_text(factor) + " x + " + number_text(options_.tol / 10.0));
    // A mean over many elements hides one.
    const double worst_reference = largest_error(reference_), worst_result = largest_error(result_);
    if (!(worst_result <= kWorstFactor * worst_reference))
      return end(Outcome::wrong, outside_text(t) + "; the largest error to fp64 is " + number_text(worst_result) + " for the result and " + number_text(worst_reference) + " for the reference, and the limit is " +
                                     number_text(kWorstFactor) + " x");
    if (result_error <= reference_error) return end(Outcome::closer_to_fp64, numbers);
    if (result_error <= options_.tol / 10.0) return end(Outcome::within_tolerance, numbers + ", and " + number_text(options_.tol / 10.0) + " is allowed");
    return end(Outcome::ill_conditioned, numbers + ", up to " + number_text(factor) + " times of which is allowed" + (is_far ? ", for the reference itself is far from fp64" : ""));
  }

  /// Over the elements that are finite on all three sides.
  double largest_error(const at::Tensor& x) const {
    const auto wide = [&](const at::Tensor& t) { return t.to(t.is_complex() ? at::kComplexDouble : at::kDouble); };
    const at::Tensor a = wide(reference_), b = wide(result_);
    const at::Tensor finite = at::isfinite(a).logical_and_(at::isfinite(b)).logical_and_(at::isfinite(fp64_));
    const at::Tensor errors = (wide(x) - fp64_).abs().masked_fill_(finite.logical_not_(), 0);
    return errors.numel() ? errors.max().item<double>() : 0;
  }

  // --- torch's rules ---

  Verdict compare_masks() {
    std::vector<int64_t> sizes;
    if (!common_shape(reference_, result_, sizes)) return options_.ignore_non_fp ? end(Outcome::ignored, shapes_text()) : end(Outcome::wrong, shapes_text());
    const Passed p = run_pass(reference_, result_, {}, Format::boolean, sizes, closeness(options_.tol, options_.equal_nan));
    verdict_.stats = stats_of(p, result_);
    const Totals& t = p.totals;
    if (t.unequal == 0) return end(Outcome::equal, "all elements are equal");
    const std::string differ = count_text(t.unequal) + " of " + count_text(t.elements) + " truth values differ";
    if (options_.ignore_non_fp) return end(Outcome::ignored, differ + ", and values that are not floating point are ignored");
    if (options_.use_iou_for_bool) {
      // For zeros and ones the sums of products are counts. In f32, as torch divides them.
      const float both = static_cast<float>(t.ab), either = static_cast<float>(t.aa + t.bb - t.ab);
      const double overlap = either == 0 ? 1 : both / either;
      const std::string says = "the masks overlap by " + number_text(overlap) + " (intersection over union), and " + number_text(options_.iou_threshold) + " is asked for";
      return end(overlap < options_.iou_threshold ? Outcome::wrong : Outcome::within_tolerance, says);
    }
    if (t.not_close == 0) return end(Outcome::within_tolerance, differ + ", which a tolerance of " + number_text(options_.tol) + " allows");
    return end(Outcome::wrong, differ);
  }

  Verdict compare_directions() {
    // Flat and in f32, whatever they were; of complex numbers torch keeps the real part.
    const auto flat = [](const at::Tensor& t) { return (t.is_complex() ? at::real(t) : t); };
    at::Tensor a = flat(reference_), b = flat(result_);
    std::vector<int64_t> sizes;
    if (a.sizes() != b.sizes()) {
      a = a.reshape({-1});
      b = b.reshape({-1});
    }
    if (!common_shape(a, b, sizes)) return end(Outcome::wrong, shapes_text());
    const Passed p = run_pass(a, b, {}, Format::f32, sizes, closeness(options_.tol, true));
    verdict_.stats = stats_of(p, result_);
    const Totals& t = p.totals;
    if (t.not_close == 0) return end_close(t);
    const auto norm = [](double squares) {   // torch's norm is in f32: it overflows, and it is at least eps
      return std::isnan(squares) ? NAN : std::fmax(squares > FLT_MAX ? INFINITY : std::sqrt(squares), 1e-6);
    };
    const double score = t.ab / norm(t.aa) / norm(t.bb);
    return end(score >= 0.99 ? Outcome::within_tolerance : Outcome::wrong, "the cosine similarity is " + number_text(score) + ", and 0.99 is asked for");
  }

  /// Everything passed isclose.
  Verdict end_close(const Totals& t) {
    if (t.unequal == 0) return end(Outcome::equal, "all elements are equal");
    if (!t.beyond_last_bit) return end(Outcome::last_bit, count_text(t.unequal) + " of " + count_text(t.elements) + " elements are the neighbouring number");
    return end(Outcome::within_tolerance, "every element is within " + limit_text(options_.tol));
  }

  Verdict compare_numbers() {
    const Format as = *format_of(result_.scalar_type());
    at::Tensor a = reference_;
    if (!can_read_as(*format_of(a.scalar_type()), as)) {
      // To integers and complex numbers torch converts: what becomes of 1e30 or NaN as an integer is its choice, not ours.
      if (a.is_complex() && !result_.is_complex()) a = at::real(a);
      a = a.to(result_.scalar_type());
    }
    std::vector<int64_t> sizes;
    if (!common_shape(a, result_, sizes)) return end(Outcome::wrong, shapes_text());
    const bool has_fp64 = fp64_.scalar_type() == at::kDouble;
    const bool has_complex_fp64 = fp64_.scalar_type() == at::kComplexDouble && result_.is_complex() && !fp64_.is_same(reference_);
    const bool together = a.sizes() == result_.sizes() && fp64_.sizes() == a.sizes();
    const bool measured = has_fp64 || has_complex_fp64;
    const Passed p = run_pass(a, result_, measured && together ? fp64_ : at::Tensor(), as, sizes, closeness(options_.tol, options_.equal_nan));
    verdict_.stats = stats_of(p, result_);
    const Totals& t = p.totals;
    int64_t nan_fp64 = t.nan_f;
    if (measured && together) {
      verdict_.stats->rmse_reference = std::sqrt(t.error_a / static_cast<double>(t.elements));
      verdict_.stats->rmse_result = std::sqrt(t.error_b / static_cast<double>(t.elements));
    }
    if (t.not_close == 0) return end_close(t);
    if (has_fp64) {
      if (!together) {   // shapes that broadcast: each side against fp64 on its own
        std::vector<int64_t> of_a, of_b;
        if (!common_shape(fp64_, a, of_a) || !common_shape(fp64_, result_, of_b))
          return end(Outcome::refused, "the fp64 reference is " + index_text(fp64_.sizes().vec()) + ", and " + shapes_text());
        verdict_.stats->rmse_reference = error_to_fp64(a, as, of_a, nan_fp64);
        verdict_.stats->rmse_result = error_to_fp64(result_, as, of_b, nan_fp64);
      }
      return compare_to_fp64(a, t, nan_fp64);
    }
    if (options_.ignore_non_fp) return end(Outcome::ignored, outside_text(t) + ", and there is no fp64 reference: ignored with what is not floating point");
    return end(Outcome::wrong, outside_text(t));
  }

  double error_to_fp64(const at::Tensor& x, Format as, const std::vector<int64_t>& sizes, int64_t& nan_fp64) {
    const Passed p = run_pass(x, x, fp64_, as, sizes, closeness(0, true));
    nan_fp64 = p.totals.nan_f;
    return std::sqrt(p.totals.error_a / static_cast<double>(p.layout.elements));
  }

  /// By torch's rules a reference that is infinitely far from fp64, or as far as NaN, lets everything pass.
  Verdict compare_to_fp64(const at::Tensor& a, const Totals& t, int64_t nan_fp64) {
    const bool proves_nothing = !std::isfinite(verdict_.stats->rmse_reference);
    Verdict v = compare_to_fp64_as_torch(a, t, nan_fp64);
    const bool has_rest = reference_.sizes() == result_.sizes() && fp64_.sizes() == result_.sizes() && reference_.scalar_type() == result_.scalar_type() && fp64_.is_complex() == result_.is_complex();
    if (options_.rules != Rules::common || !proves_nothing || !is_same(v.outcome) || !has_rest || !c10::isFloatingType(result_.scalar_type())) return v;
    verdict_ = std::move(v);
    finite_first_ = true;
    return compare_finite_rest();
  }

  /// Outside the tolerance: is the result as near to fp64 as the reference is?
  Verdict compare_to_fp64_as_torch(const at::Tensor& a, const Totals& t, int64_t nan_fp64) {
    const double reference_error = verdict_.stats->rmse_reference, result_error = verdict_.stats->rmse_result;
    if (nan_fp64 == 0 && t.nan_b == 0 && t.nan_a > 0) {
      // The result is a number where the reference is NaN: better than the reference if it is near fp64.
      constexpr double loose = 4e-2;
      at::Tensor f = fp64_;
      const Format as = *format_of(result_.scalar_type());
      if (!can_read_as(Format::f64, as)) f = f.to(result_.scalar_type());
      std::vector<int64_t> sizes;
      if (common_shape(f, result_, sizes) && run_pass(f, result_, {}, as, sizes, closeness(loose, options_.equal_nan)).totals.not_close == 0)
        return end(Outcome::closer_to_fp64, "the reference is NaN in " + count_text(t.nan_a) + " elements where fp64 and the result are not; the result is within " + number_text(loose) + " of fp64");
    }
    const double factor = multiplier(a);
    const double limit = factor * reference_error + options_.tol / 10.0;
    const std::string numbers = "RMSE to fp64 is " + number_text(result_error) + " for the result and " + number_text(reference_error) + " for the reference";
    if (result_error <= limit) {
      if (result_error <= reference_error) return end(Outcome::closer_to_fp64, numbers);
      if (result_error <= options_.tol / 10.0) return end(Outcome::within_tolerance, numbers + ", and " + number_text(options_.tol / 10.0) + " is allowed");
      return end(Outcome::ill_conditioned, numbers + ", up to " + number_text(factor) + " times of which is allowed");
    }
    if (options_.equal_nan && std::isnan(reference_error) && std::isnan(result_error))
      return end(Outcome::ill_conditioned, "RMSE to fp64 is NaN for both the result and the reference");
    return end(Outcome::wrong, outside_text(t) + "; " + numbers + ", and the limit is " + number_text(factor) + " x + " + number_text(options_.tol / 10.0));
  }

  double multiplier(const at::Tensor& a) const {
    if (options_.force_max_multiplier) return 10;
    const int64_t n = fp64_.numel();
    if (options_.use_larger_multiplier_for_smaller_tensor && n <= 10) return 10;
    if (options_.use_larger_multiplier_for_smaller_tensor && n <= 500) return 8;
    // Few elements: noise dominates. 1x1 images and large tolerances: known to be noisy.
    if (n < 1000 || (a.dim() == 4 && a.size(2) == 1 && a.size(3) == 1) || options_.tol >= 2e-2) return 3;
    return result_.scalar_type() == at::kHalf || result_.scalar_type() == at::kBFloat16 ? 3 : 2;
  }

  at::Tensor reference_, result_, fp64_;
  const Options& options_;
  Verdict verdict_;
  bool finite_first_ = false;   // common rules, where the reference proves nothing as a whole
};

}  // namespace

Verdict same_tensors(const at::Tensor& reference, const at::Tensor& result, const at::Tensor& fp64_reference, const Options& options, std::string path) {
  try {
    return Comparison(reference, result, fp64_reference, options, path).run();
  } catch (const c10::Error& e) {   // tensors of other libraries may refuse anything
    Verdict v;
    v.outcome = Outcome::refused;
    v.path = std::move(path);
    v.reason = std::string("torch refused to read the tensors: ") + e.what_without_backtrace();
    return v;
  }
}

}  // namespace cutaway::compare
