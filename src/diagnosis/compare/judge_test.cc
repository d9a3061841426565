#include "diagnosis/compare/judge.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "core/tensor/make.h"

using namespace cutaway;
using namespace cutaway::compare;

namespace {

exec::Program ready(std::string_view text) {
  auto graph = ir::parse(text);
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  auto program = exec::Program::prepare(*graph);
  REQUIRE_MESSAGE(program.ok(), program.error().text());
  return std::move(program).value();
}

using Values = std::vector<c10::IValue>;

/// What becomes of a run of `text` when `change` is done to it.
Verdict judged(std::string_view text, const Values& inputs, const exec::Runnable& compiled, JudgeRules rules = {}) {
  const exec::Program program = ready(text);
  const exec::Program wide = [&] {
    auto p = exec::Program::prepare(tensor::cast_to_fp64(program.graph()));
    REQUIRE(p.ok());
    return std::move(*p);
  }();
  const Judge judge([&](const Values& in) { return exec::run_fwd_maybe_bwd(exec::runnable(program), in); }, inputs,
                    [&] { return exec::run_fwd_maybe_bwd(exec::runnable(wide), tensor::cast_to_fp64(inputs)); }, rules);
  CHECK(judge.repeat_eager().outcome == Outcome::equal);
  return judge.judge(exec::run_fwd_maybe_bwd(compiled, inputs));
}

constexpr std::string_view kSine = "graph g(%x: f32[4, 3]) { %y: f32[4, 3] = aten.sin(%x) return (%y) }";
at::Tensor some() { return at::arange(12, at::kFloat).view({4, 3}) / 7; }

}  // namespace

TEST_CASE("judge: what a user sees of a run, each by its own name") {
  const auto aspect = [&](const exec::Runnable& f) { const Verdict v = judged(kSine, {some()}, f); return is_same(v.outcome) ? std::string("same") : std::string(aspect_name(v.aspect)); };
  const auto sine = [](Values& in) { return in[0].toTensor().sin(); };
  CHECK(aspect([&](Values& in) { return Values{sine(in)}; }) == "same");
  CHECK(aspect([&](Values& in) { return Values{sine(in) * 2}; }) == "values");
  CHECK(aspect([&](Values& in) { return Values{sine(in), 1}; }) == "structure");
  CHECK(aspect([&](Values& in) { return Values{sine(in).to(at::kDouble)}; }) == "dtype");
  CHECK(aspect([&](Values& in) { return Values{sine(in).view({3, 4})}; }) == "shape");
  CHECK(aspect([&](Values& in) { return Values{sine(in).t().contiguous().t()}; }) == "strides");
  CHECK(aspect([&](Values& in) { const at::Tensor y = sine(in); in[0].toTensor().mul_(2); return Values{y}; }) == "inputs");
  CHECK(aspect([&](Values& in) { const at::Tensor x = in[0].toTensor(); const at::Tensor y = sine(in), before = x.clone(); x.copy_(y); return Values{x}; }) == "inputs");
  CHECK(judged("graph g(%x: f32[4, 3]) { %y: f32[12] = aten.view(%x, [12]) return (%y) }", {some()}, [](Values& in) { return Values{in[0].toTensor().clone().view({12})}; }).aspect == Aspect::aliasing);
  CHECK(judged("graph g(%x: f32[4, 3]) { %y: f32[4, 3] = aten.sin(%x) %z: f32[12] = aten.view(%y, [12]) return (%y, %z) }", {some()},
               [&](Values& in) { return Values{sine(in), sine(in).view({12})}; }).aspect == Aspect::aliasing);
  JudgeRules inner;
  inner.sees_layout = false;
  CHECK(is_same(judged(kSine, {some()}, [&](Values& in) { return Values{sine(in).t().contiguous().t()}; }, inner).outcome));
}

TEST_CASE("judge: gradients show behind a softmax, and where none is wanted") {
  constexpr std::string_view kSoftmax = "graph g(%x: f32[4, 3] grad) { %y: f32[4, 3] grad = aten.tanh(%x) %z: f32[4, 3] grad = aten._softmax(%y, 1, false) return (%z) }";
  const at::Tensor x = some().requires_grad_();
  // The right value with the gradient of another function: tanh(x) from sin(x).
  const exec::Runnable wrong = [](Values& in) {
    const at::Tensor x = in[0].toTensor();
    const at::Tensor y = x.sin() + (x.tanh() - x.sin()).detach();
    return Values{at::_softmax(y, 1, false)};
  };
  const Verdict v = judged(kSoftmax, {x}, wrong);
  CHECK(v.outcome == Outcome::wrong);
  CHECK(v.aspect == Aspect::gradients);
  CHECK(v.path == "gradient of input 0");
  CHECK(is_same(judged(kSoftmax, {x}, [](Values& in) { return Values{at::_softmax(in[0].toTensor().tanh(), 1, false)}; }).outcome));
  // With nothing to differentiate the gradient is zero on one side.
  CHECK_FALSE(is_same(judged(kSoftmax, {x}, [](Values& in) { return Values{at::_softmax(in[0].toTensor().detach().tanh(), 1, false)}; }).outcome));
}

TEST_CASE("judge: a result that is no further from eager than eager from itself") {
  // sin of 1e6 x: the last bit of x moves the argument by 0.06.
  constexpr std::string_view kSteep = "graph g(%x: f32[200]) { %s: f32[200] = aten.mul.Scalar(%x, 1000000.0) %y: f32[200] = aten.sin(%s) return (%y) }";
  const at::Tensor x = at::linspace(0.3, 0.9, 200);
  const Verdict v = judged(kSteep, {x}, [](Values& in) { return Values{(in[0].toTensor().to(at::kDouble) * 1.00000003).mul(1e6).sin().to(at::kFloat)}; });
  CHECK(v.outcome == Outcome::ill_conditioned);
  // One that is, is wrong.
  CHECK(judged(kSteep, {x}, [](Values& in) { return Values{(in[0].toTensor() * 1e6).sin() + 3}; }).outcome == Outcome::wrong);
  // Numbers with few digits were chosen: they do not move, and neither does what follows from them.
  constexpr std::string_view kFloor = "graph g(%x: f32[6]) { %y: f32[6] = aten.floor(%x) return (%y) }";
  CHECK(judged(kFloor, {at::arange(6, at::kFloat)}, [](Values& in) { return Values{in[0].toTensor() - 1}; }).outcome == Outcome::wrong);
  // Equal numbers stay equal.
  constexpr std::string_view kEqual = "graph g(%x: f32[6], %y: f32[6]) { %z: bool[6] = aten.eq.Tensor(%x, %y) return (%z) }";
  const at::Tensor a = at::linspace(0.1, 0.9, 6);
  CHECK(judged(kEqual, {a, a.clone()}, [](Values& in) { return Values{at::zeros({6}, at::kBool)}; }).outcome == Outcome::wrong);
}

TEST_CASE("nudge: neighbours, by the number itself; what was chosen stays") {
  const at::Tensor x = at::tensor({0.1f, 0.1f, -0.3f, 0.f, 1.f, 0.5f, INFINITY, NAN, 3e38f}), view = x.slice(0, 0, 2);
  const auto moved = tensor::nudge_last_bits({x, view, at::arange(3)}, 1);
  const at::Tensor y = moved[0].toTensor();
  const auto bits = [](const at::Tensor& t) { return t.view(at::kInt).to(at::kLong); };
  CHECK((bits(y) - bits(x)).abs().equal(at::tensor({1, 1, 1, 0, 0, 0, 0, 0, 1})));
  CHECK(y[0].equal(y[1]));
  CHECK(moved[1].toTensor().equal(y.slice(0, 0, 2)));
  CHECK(moved[1].toTensor().storage().data() == y.storage().data());
  CHECK(moved[2].toTensor().equal(at::arange(3)));
  CHECK(x[0].item<float>() == 0.1f);
}
