#include "core/exec/forward_backward.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "core/ir/text.h"

namespace cutaway::exec {
namespace {

Program ready(std::string_view text) {
  auto graph = ir::parse(text);
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  auto program = Program::prepare(*graph);
  REQUIRE_MESSAGE(program.ok(), program.error().text());
  return std::move(program).value();
}

TEST_CASE("a loss of anything made of tensors") {
  const at::Tensor a = at::tensor({1.0f, 3.0f}), i = at::tensor({2, 4, 6});
  CHECK(reduce_to_scalar_loss({a})->item<double>() == 2);
  CHECK(reduce_to_scalar_loss({i})->item<double>() == 4);
  CHECK(reduce_to_scalar_loss({a, i})->item<double>() == 3);
  CHECK(reduce_to_scalar_loss({c10::ivalue::Tuple::create({a, i}), std::vector<at::Tensor>{i}})->item<double>() == 3.5);
  auto refused = reduce_to_scalar_loss({a, 3});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().what == "an output of kind Int cannot be reduced to a loss");
  CHECK_FALSE(reduce_to_scalar_loss({}).ok());
}

TEST_CASE("backward runs when an output requires it, and only then") {
  Program p = ready(R"(graph g(%x: f32[3], %w: f32[3] grad = param "w", %u: f32[3] grad = param "u", %n: int) {
    %y: f32[3] grad = aten.mul.Tensor(%x, %w)
    return (%y, %n, none)
  })");
  const at::Tensor x = at::tensor({1.0f, 2.0f, 3.0f}), w = at::ones({3}).requires_grad_(), u = at::ones({3}).requires_grad_();
  w.mutable_grad() = at::full({3}, 100.0f);
  const std::vector<c10::IValue> inputs{x, w, u, 5};
  const RunResults r = run_fwd_maybe_bwd(runnable(p), inputs);
  CHECK(r.ran_backward);
  REQUIRE(r.input_gradients.size() == 2);
  CHECK(r.input_gradients[0].allclose(x * cotangent(x, 0)));   // not on top of the gradient that was there
  CHECK(run_fwd_maybe_bwd(runnable(p), inputs, {.loss = Loss::mean}).input_gradients[0].allclose(x / 3));
  CHECK(r.input_gradients[1].equal(at::zeros({3})));    // none counts as zero
  CHECK(w.grad().equal(at::full({3}, 100.0f)));          // the caller's is untouched
  const auto collected = collect_results(r, inputs, p.graph().inputs);
  REQUIRE(collected.size() == 6);
  CHECK(collected[0].toTupleRef().elements().size() == 3);
  CHECK(collected[1].isNone());
  CHECK(collected[2].toTupleRef().elements().size() == 2);
  CHECK(collected[3].toTupleRef().elements().size() == 2);
  CHECK(collected[4].toTupleRef().elements().empty());
  CHECK(collected[5].toTupleRef().elements().empty());

  CHECK_FALSE(run_fwd_maybe_bwd(runnable(p), inputs, {.only_forward = true}).ran_backward);
  CHECK_FALSE(run_fwd_maybe_bwd(runnable(p), {x, x, x, 5}).ran_backward);
}

TEST_CASE("cotangents are fixed, never zero, of either sign, and the same numbers in every dtype") {
  const at::Tensor wide = cotangent(at::empty({40, 3}, at::kDouble), 1);
  CHECK(wide.ne(0).all().item<bool>());
  CHECK((wide.lt(0).any() & wide.gt(0).any()).item<bool>());
  CHECK(wide.abs().le(1.75).all().item<bool>());
  CHECK(wide.equal(cotangent(at::empty({40, 3}, at::kDouble), 1)));
  CHECK_FALSE(wide.equal(cotangent(at::empty({40, 3}, at::kDouble), 2)));
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const at::Tensor narrow = cotangent(at::empty({3, 40}, type).t(), 1);
    CHECK((narrow.scalar_type() == type));
    CHECK(narrow.to(at::kDouble).equal(wide));
  }
  CHECK(at::view_as_real(cotangent(at::empty({20}, at::kComplexFloat), 1)).abs().gt(0).all().item<bool>());
}

TEST_CASE("clones keep aliases, and mutation shows") {
  Program p = ready(R"(graph g(%x: f32[4], %v: f32[2]) {
    aten.add_.Scalar(%v, 1)
    return (%x)
  })");
  const at::Tensor x = at::zeros({4});
  const at::Tensor v = x.slice(0, 0, 2);
  const RunResults r = run_fwd_maybe_bwd(runnable(p), {x, v});
  CHECK(r.outputs[0].toTensor().equal(at::tensor({1.0f, 1.0f, 0.0f, 0.0f})));
  CHECK(r.inputs_after[0].equal(r.outputs[0].toTensor()));
  CHECK(x.equal(at::zeros({4})));
  run_fwd_maybe_bwd(runnable(p), {x, v}, {.disable_clone = true});
  CHECK(x.equal(at::tensor({1.0f, 1.0f, 0.0f, 0.0f})));
}

TEST_CASE("the same random numbers in every run, and the user's are untouched") {
  Program p = ready("graph g(%x: f32[8]) { %y: f32[8] = aten.rand_like(%x) return (%y) }");
  at::manual_seed(5);
  const at::Tensor expected = at::rand({3});
  at::manual_seed(5);
  const at::Tensor first = run_fwd_maybe_bwd(runnable(p), {at::zeros({8})}).outputs[0].toTensor();
  const at::Tensor second = run_fwd_maybe_bwd(runnable(p), {at::zeros({8})}).outputs[0].toTensor();
  CHECK(first.equal(second));
  CHECK_FALSE(first.equal(run_fwd_maybe_bwd(runnable(p), {at::zeros({8})}, {}, 7).outputs[0].toTensor()));
  Program bad = ready("graph g(%x: f32[8]) { %y: f32[8] = aten.mm(%x, %x) return (%y) }");
  CHECK_THROWS_AS(run_fwd_maybe_bwd(runnable(bad), {at::zeros({8})}), c10::Error);
  CHECK(at::rand({3}).equal(expected));
}

TEST_CASE("complex outputs and integers beside them") {
  Program p = ready(R"(graph g(%x: c64[2] grad) {
    %y: c64[2] grad = aten.mul.Tensor(%x, %x)
    %i: i64[2] = aten.arange(2)
    return (%y, %i)
  })");
  const at::Tensor x = at::randn({2}, at::kComplexFloat).requires_grad_();
  const RunResults r = run_fwd_maybe_bwd(runnable(p), {x});
  CHECK(r.ran_backward);
  CHECK(r.input_gradients[0].is_complex());
  CHECK(run_fwd_maybe_bwd(runnable(p), {x}, {.ignore_non_fp = true}).outputs.size() == 1);
}

}  // namespace
}  // namespace cutaway::exec
