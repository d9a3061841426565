#include "diagnosis/compare/same.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "core/base/json.h"
#include "diagnosis/compare/element_pass.h"
#include "diagnosis/compare/same_values.h"

using namespace cutaway::compare;

namespace {
at::Tensor seeded(at::IntArrayRef sizes, uint64_t seed = 1) {
  at::Generator g = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, g, at::kFloat);
}
}  // namespace

TEST_CASE("same: the outcomes, from best to worst") {
  const at::Tensor a = seeded({64, 33});
  Options o;
  CHECK(same_tensors(a, a.clone(), {}, o).outcome == Outcome::equal);

  at::Tensor neighbour = a.clone();
  neighbour[3][7] = std::nextafterf(a[3][7].item<float>(), 100.f);
  const Verdict last_bit = same_tensors(a, neighbour, {}, o);
  CHECK(last_bit.outcome == Outcome::last_bit);
  CHECK(last_bit.stats->unequal == 1);
  CHECK(last_bit.stats->worst_index == std::vector<int64_t>{3, 7});

  CHECK(same_tensors(a, a + 5e-5, {}, o).outcome == Outcome::within_tolerance);

  // The reference is 0.1 off, the result 0.05: nearer to fp64 although far from the reference.
  const at::Tensor exact = a.to(at::kDouble);
  const Verdict closer = same_tensors(a + 0.1, a + 0.05, exact, o);
  CHECK(closer.outcome == Outcome::closer_to_fp64);
  CHECK(closer.stats->rmse_reference == doctest::Approx(0.1).epsilon(1e-4));
  CHECK(closer.stats->rmse_result == doctest::Approx(0.05).epsilon(1e-4));
  CHECK(same_tensors(a + 0.1, a + 0.15, exact, o).outcome == Outcome::ill_conditioned);   // 1.5 times, and 2 is allowed

  const Verdict wrong = same_tensors(a, a + 0.15, exact, o, "out.logits");
  CHECK(wrong.outcome == Outcome::wrong);
  CHECK_FALSE(wrong);
  CHECK(wrong.path == "out.logits");
  CHECK(wrong.stats->not_close == a.numel());
}

TEST_CASE("same: a verdict prints as one block and as JSON") {
  const at::Tensor a = at::tensor({1.0f, 2.0f, 4.0f}), b = at::tensor({1.0f, 2.5f, 4.0f});
  const Verdict v = same_tensors(a, b, {}, {}, "out");
  CHECK(v.text() ==
        "wrong: out\n"
        "   because: 1 of 3 elements are off by more than 0.0001 + 0.0001 x |result|\n"
        "   tensor: float32 [3], 1 of 3 elements differ\n"
        "   worst: at [1] reference 2, result 2.5\n"
        "   largest difference: 0.5 absolute, 0.25 relative; cosine 0.995638");
  const cutaway::base::Json j = cutaway::base::Json::parse_or_null(v.to_json());
  CHECK(j.text_or("outcome") == "wrong");
  CHECK(!j.flag_or("same", true));
  CHECK(j.find("stats")->find("worst_index")->text() == "[1]");
  CHECK(j.find("stats")->text_or("rmse_result") == "nan");
}

TEST_CASE("same: strides, broadcast dimensions and views give what contiguous copies give") {
  const at::Tensor base = seeded({7, 5, 11, 3});
  const std::vector<at::Tensor> views = {base, base.permute({3, 1, 0, 2}), base.slice(2, 1, 11, 3), base.transpose(0, 2), base.select(1, 2),
                                         base.slice(0, 0, 7, 2).transpose(1, 3), seeded({1, 5}).expand({40, 5}), base.to(at::kComplexFloat).conj().slice(0, 1, 5),
                                         at::imag(base.to(at::kComplexFloat).conj())};
  for (const at::Tensor& view : views) {
    at::Tensor other = view.clone(at::MemoryFormat::Contiguous).resolve_conj().resolve_neg();
    CHECK(same_tensors(view, other, {}, {}).outcome == Outcome::equal);
    at::Tensor last = other.view({-1}).narrow(0, other.numel() - 1, 1);
    last.add_(3);
    const Verdict v = same_tensors(view, other, {}, {});
    CHECK(v.outcome == Outcome::wrong);
    CHECK(v.stats->unequal == 1);
    CHECK(v.stats->max_abs == doctest::Approx(3).epsilon(1e-5));
    std::vector<int64_t> corner;
    for (int64_t s : view.sizes()) corner.push_back(s - 1);
    CHECK(v.stats->worst_index == corner);
    const Verdict contiguous = same_tensors(view.contiguous(), other, {}, {});
    CHECK(contiguous.stats->max_rel == doctest::Approx(v.stats->max_rel));
    CHECK(contiguous.stats->cosine == doctest::Approx(v.stats->cosine));
  }
}

TEST_CASE("same: numbers do not depend on the number of threads") {
  const at::Tensor a = seeded({3, 700001}), b = a + 1e-3 * seeded({3, 700001}, 2), f = a.to(at::kDouble);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const std::string one = same_tensors(a, b, f, {}).to_json();
  at::set_num_threads(4);
  const std::string four = same_tensors(a, b, f, {}).to_json();
  at::set_num_threads(before);
  CHECK(one == four);
}

TEST_CASE("same: statistics of one pass are those of separate ATen operators") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor a = seeded({3000}).to(dtype), b = (seeded({3000}) + 0.1 * seeded({3000}, 3)).to(dtype), f = seeded({3000}).to(at::kDouble) + 1e-3;
    const TensorStats s = *same_tensors(a, b, f, {}).stats;
    const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
    const double rounding = dtype == at::kBFloat16 ? 1e-2 : dtype == at::kHalf ? 1e-3 : 1e-6;   // max_abs is rounded to the dtype
    CHECK(s.max_abs == doctest::Approx((x - y).abs().max().item<double>()).epsilon(rounding));
    CHECK(s.max_rel == doctest::Approx(((x - y) / x).abs().nan_to_num(0, 0, 0).max().item<double>()).epsilon(rounding));
    CHECK(s.rmse_result == doctest::Approx((f - y).square().mean().sqrt().item<double>()).epsilon(1e-12));
    CHECK(s.rmse_reference == doctest::Approx((f - x).square().mean().sqrt().item<double>()).epsilon(1e-12));
    CHECK(s.cosine == doctest::Approx((x.dot(y) / (x.norm() * y.norm())).item<double>()).epsilon(1e-5));
    CHECK(s.unequal == (a != b).sum().item<int64_t>());
    CHECK(s.not_close == at::isclose(a, b, 1e-4, 1e-4).logical_not().sum().item<int64_t>());
  }
}

TEST_CASE("same: isclose is rounded as torch rounds it, next to its limit") {
  // b = a + a step around the limit: the answers differ between neighbours, so any other rounding would show.
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kComplexFloat, at::kComplexHalf}) {
    for (const double tol : {1e-4, 1e-3, 2e-2, 0.3}) {
      const at::Tensor a = seeded({4000}).to(dtype), step = (tol + tol * a.abs().to(at::kDouble)) * (1 + 4e-3 * seeded({4000}, 5).to(at::kDouble));
      const at::Tensor b = (a.to(at::isComplexType(dtype) ? at::kComplexDouble : at::kDouble) + step).to(dtype);
      const at::Tensor close = at::isclose(a, b, tol, tol);
      Options o;
      o.tol = tol;
      CHECK(same_tensors(a, b, {}, o).stats.value_or(TensorStats()).not_close == close.logical_not().sum().item<int64_t>());
    }
  }
}

TEST_CASE("same: NaN and infinities") {
  const float nan = NAN, inf = INFINITY;
  Options o;
  const at::Tensor a = at::tensor({1.f, nan, inf, -inf, nan}), b = at::tensor({1.f, nan, inf, -inf, 2.f});
  const Verdict v = same_tensors(a, b, {}, o);
  CHECK(v.outcome == Outcome::wrong);
  CHECK(v.stats->nan_reference == 2);
  CHECK(v.stats->nan_result == 1);
  CHECK(v.stats->inf_reference == 2);
  CHECK(v.stats->not_close == 2);
  o.equal_nan = true;
  const Verdict w = same_tensors(a, b, {}, o);
  CHECK(w.stats->not_close == 1);
  CHECK(w.stats->worst_index == std::vector<int64_t>{4});
  CHECK(same_tensors(a, a.clone(), {}, o).outcome == Outcome::equal);
  // NaN in the reference alone passes when the result is near fp64.
  o.equal_nan = false;
  CHECK(same_tensors(at::tensor({1.f, nan}), at::tensor({1.f, 2.f}), at::tensor({1.0, 2.01}), o).outcome == Outcome::closer_to_fp64);
  CHECK(same_tensors(at::tensor({1.f, nan}), at::tensor({1.f, 2.f}), at::tensor({1.0, 3.0}), o).outcome == Outcome::wrong);
  CHECK(same_tensors(at::tensor({inf}), at::tensor({-inf}), {}, o).outcome == Outcome::wrong);
}

TEST_CASE("same: dtypes, shapes, layouts and what is refused") {
  Options o;
  const at::Tensor a = seeded({4});
  CHECK(same_tensors(a, a.to(at::kHalf), {}, o).reason == "another dtype: the reference is float32, the result float16");
  o.exact_dtype = false;
  CHECK(same_tensors(a, a.to(at::kHalf), {}, o).outcome == Outcome::equal);
  CHECK(same_tensors(a.to(at::kLong), a.to(at::kLong).to(at::kFloat), {}, o).outcome == Outcome::equal);
  o.exact_dtype = true;
  CHECK(same_tensors(a, seeded({3}), {}, o).reason == "another shape: the reference is [4], the result [3]");
  const at::Tensor ones = at::ones({3});
  CHECK(same_tensors(ones, at::ones({1}), {}, o).outcome == Outcome::within_tolerance);   // broadcast, as torch does
  o.exact_shape = true;
  CHECK(same_tensors(ones, at::ones({1}), {}, o).outcome == Outcome::wrong);
  o.exact_shape = false;
  CHECK(same_tensors(a.to_sparse(), a.to_sparse(), {}, o).outcome == Outcome::equal);
  CHECK(same_tensors(a.to_sparse(), a, {}, o).outcome == Outcome::wrong);
  CHECK(same_tensors(at::empty({0, 3}), at::empty({0, 3}), {}, o).outcome == Outcome::equal);
  CHECK(same_tensors(a, at::empty({4}, at::kMeta), {}, o).outcome == Outcome::refused);
  CHECK(same_tensors(at::quantize_per_tensor(a, 0.1, 0, at::kQInt8), a, {}, o).reason == "the reference cannot be compared: quantized tensors are not supported");
  o.tol = -1;
  CHECK(same_tensors(a, a, {}, o).outcome == Outcome::refused);
}

TEST_CASE("same: every dtype finds one changed element") {
  for (const at::ScalarType dtype : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kUInt16, at::kUInt32, at::kUInt64, at::kHalf, at::kBFloat16,
                                     at::kFloat, at::kDouble, at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kFloat8_e5m2fnuz, at::kFloat8_e4m3fnuz, at::kComplexHalf, at::kComplexFloat, at::kComplexDouble}) {
    CAPTURE(c10::toString(dtype));
    const at::Tensor a = at::zeros({3000}).to(dtype);
    at::Tensor changed = at::zeros({3000});
    changed[2049] = 1;
    const at::Tensor b = changed.to(dtype);
    CHECK(same_tensors(a, a.clone(), {}, {}).outcome == Outcome::equal);
    const Verdict v = same_tensors(a, b, {}, {});
    CHECK(v.outcome == Outcome::wrong);
    CHECK(v.stats->unequal == 1);
    CHECK(v.stats->worst_index == std::vector<int64_t>{2049});
    CHECK(v.stats->worst_result == 1);
  }
}

TEST_CASE("same_values: nested values, with paths") {
  const at::Tensor a = seeded({2, 2});
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("x", a);
  const std::vector<c10::IValue> reference = {a, c10::IValue(std::vector<at::Tensor>{a, a}), 3, "word", 2.5, c10::IValue(), dict, c10::ivalue::Tuple::create({a, 1})};
  std::vector<c10::IValue> result = reference;
  CHECK(same_values(reference, result, {}, {}).outcome == Outcome::equal);
  CHECK(same_values(reference, result, {}, {}).leaves == 10);
  result[1] = std::vector<at::Tensor>{a, a + 1};
  const Verdict v = same_values(reference, result, {}, {});
  CHECK(v.outcome == Outcome::wrong);
  CHECK(v.path == "out[1][1]");
  CHECK(v.parts.size() == 1);
  result[1] = 7;
  CHECK(same_values(reference, result, {}, {}).reason.find("another type") == 0);
  result = reference;
  c10::Dict<std::string, at::Tensor> other;
  other.insert("y", a);
  result[6] = other;
  CHECK(same_values(reference, result, {}, {}).reason == "the result lacks the keys x");
  result = reference;
  result[2] = 4;
  Options o;
  o.ignore_non_fp = true;
  CHECK(same_values(reference, result, {}, {}).outcome == Outcome::wrong);
  CHECK(same_values(reference, result, {}, o).outcome == Outcome::ignored);
  result.pop_back();
  CHECK(same_values(reference, result, {}, {}).reason == "another length: the reference has 8 parts, the result 7");
}

namespace {
Options ours() {
  Options o;
  o.rules = Rules::cutaway;
  o.tol = 1e-3;
  return o;
}
}  // namespace

TEST_CASE("our rules: NaN and infinities by place and sign, errors over the finite rest") {
  const float nan = NAN, inf = INFINITY;
  const at::Tensor a = at::tensor({inf, 1.f, 2.f, nan, -inf}), f = a.to(at::kDouble);
  CHECK(same_tensors(a, a.clone(), f, ours()).outcome == Outcome::equal);
  CHECK(same_tensors(a, a.clone(), {}, ours()).outcome == Outcome::equal);
  const auto outcome = [&](std::vector<float> b, const at::Tensor& exact) { return same_tensors(a, at::tensor(b), exact, ours()).outcome; };
  CHECK(outcome({inf, 500.f, -3.f, nan, -inf}, f) == Outcome::wrong);        // torch: RMSE is NaN on both sides, which passes
  CHECK(outcome({inf, 1.f, nan, nan, -inf}, f) == Outcome::wrong);
  CHECK(outcome({-inf, 1.f, 2.f, nan, -inf}, f) == Outcome::wrong);
  CHECK(outcome({inf, 1.f, 2.f, 0.f, -inf}, f) == Outcome::wrong);
  CHECK(outcome({inf, 1.f, 2.f, nan, 1e30f}, f) == Outcome::wrong);
  CHECK(outcome({inf, 1.f, 2.f, nan, 1e30f}, {}) == Outcome::wrong);
  CHECK(outcome({inf, 1.0001f, 2.f, nan, -inf}, f) == Outcome::within_tolerance);
  const Verdict v = same_tensors(a, at::tensor({inf, 1.f, nan, nan, -inf}), f, ours());
  CHECK(v.stats->worst_index == std::vector<int64_t>{2});
  CHECK(v.stats->other_specials == 1);
  CHECK(v.stats->rmse_result == 0);   // of the finite rest
  CHECK(v.reason == "NaN and infinities differ in 1 places: the reference has 1 NaN and 2 infinite, the result 2 NaN and 2 infinite; in 1 of them fp64 is as the reference");
}

TEST_CASE("our rules: an eager that is not finite where fp64 is") {
  const float inf = INFINITY;
  const at::Tensor a = at::tensor({inf, 1.f}), f = at::tensor({3.0, 1.0});
  CHECK(same_tensors(a, at::tensor({3.01f, 1.f}), f, ours()).outcome == Outcome::closer_to_fp64);
  CHECK(same_tensors(a, at::tensor({7.f, 1.f}), f, ours()).outcome == Outcome::ill_conditioned);
  CHECK(same_tensors(a, at::tensor({7.f, 2.f}), f, ours()).outcome == Outcome::wrong);   // the finite rest is not excused
  CHECK(same_tensors(at::tensor({3.f, 1.f}), a, f, ours()).outcome == Outcome::wrong);
  // What f32 cannot hold is infinite at double precision too.
  CHECK(same_tensors(a, at::tensor({7.f, 1.f}), at::tensor({1e100, 1.0}), ours()).outcome == Outcome::wrong);
  CHECK(same_tensors(at::tensor({5.f, 1.f}), at::tensor({5.f, 3.f}), at::tensor({1e100, 1.0}), ours()).outcome == Outcome::wrong);   // and hides nothing
}

TEST_CASE("our rules: specials anywhere, in every floating dtype, on both sides of a tile") {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble}) {
    CAPTURE(c10::toString(dtype));
    const at::Tensor exact = seeded({5000}).to(at::isComplexType(dtype) ? at::kComplexDouble : at::kDouble);
    at::Tensor a = exact.to(dtype);
    a[1023] = INFINITY;
    a[4096] = NAN;
    at::Tensor f = exact.clone();
    f[1023] = INFINITY;
    f[4096] = NAN;
    CHECK(is_same(same_tensors(a, a.clone(), f, ours()).outcome));
    at::Tensor b = a.clone();
    b[3000] += 4;
    const Verdict v = same_tensors(a, b, f, ours());
    CHECK(v.outcome == Outcome::wrong);
    CHECK(v.stats->worst_index == std::vector<int64_t>{3000});
    CHECK(v.stats->rmse_result == doctest::Approx(4 / std::sqrt(4998.0)).epsilon(0.01));
    b = a.clone();
    b[4096] = 1;
    CHECK(same_tensors(a, b, f, ours()).outcome == Outcome::wrong);
  }
  // A complex number is compared part by part.
  const at::Tensor x = at::complex(at::tensor({INFINITY, 1.f}), at::tensor({2.f, 3.f})), y = at::complex(at::tensor({INFINITY, 1.f}), at::tensor({9.f, 3.f}));
  CHECK(same_tensors(x, y, {}, ours()).outcome == Outcome::wrong);
}

TEST_CASE("our rules: one element that is far off is not hidden by a mean") {
  at::Tensor a = seeded({1 << 20}), b = a.clone();
  b[77] += 0.05;
  const at::Tensor f = a.to(at::kDouble);
  Options torch;
  torch.tol = 1e-3;
  CHECK(same_tensors(a, b, f, torch).outcome == Outcome::within_tolerance);
  const Verdict v = same_tensors(a, b, f, ours());
  CHECK(v.outcome == Outcome::wrong);
  CHECK(v.reason.find("the largest error to fp64 is 0.05") != std::string::npos);
  // Of half precision a neighbour is further away than the tolerance, and right.
  const at::Tensor h = a.to(at::kBFloat16);
  CHECK(is_same(same_tensors(h, (a * 1.0009).to(at::kBFloat16), f, ours()).outcome));
}

TEST_CASE("our rules: integers are equal, unless fp64 has them as the result") {
  const at::Tensor a = at::tensor({1, 2, 3}), b = at::tensor({1, 2, 4});
  CHECK(same_tensors(a, b, {}, ours()).outcome == Outcome::wrong);
  CHECK(same_tensors(a, b, a, ours()).outcome == Outcome::wrong);
  CHECK(same_tensors(a, b, b.clone(), ours()).outcome == Outcome::closer_to_fp64);
  CHECK(same_tensors(a, b, at::tensor({1, 2, 7}), ours()).outcome == Outcome::ill_conditioned);
  CHECK(same_tensors(at::full({3}, 100000), at::full({3}, 100001), {}, ours()).outcome == Outcome::wrong);   // no tolerance
  CHECK(same_tensors(a > 2, b > 3, {}, ours()).outcome == Outcome::equal);
  CHECK(same_tensors(a > 2, b > 2, {}, ours()).outcome == Outcome::equal);
  CHECK(same_tensors(a > 2, b > 1, {}, ours()).reason == "1 of 3 truth values differ");
  CHECK(same_tensors(at::ones({2}), at::ones({1}), {}, ours()).aspect == Aspect::shape);
  CHECK(same_tensors(at::ones({2}), at::ones({2}, at::kHalf), {}, ours()).aspect == Aspect::dtype);
}
