#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "compiler/aot/function.h"
#include "compiler/aot/min_cut.h"
#include "compiler/aot/specialize.h"
#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "core/trace/recorder.h"

using namespace cutaway;
using Values = std::vector<c10::IValue>;

namespace {

ir::Graph captured(const trace::Callable& f, const Values& inputs) {
  auto graph = trace::record(f, inputs, {.graph_name = "program"});
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  return std::move(graph).value();
}
std::shared_ptr<aot::Function> made(const ir::Graph& graph, const Values& inputs, aot::FunctionOptions options = {}) {
  auto f = aot::Function::make(graph, inputs, std::move(options));
  REQUIRE_MESSAGE(f.ok(), (f.ok() ? "" : f.error().text()));
  for (const ir::Graph* g : {&(*f)->joint().graph, &(*f)->graphs().forward, &(*f)->graphs().backward}) {
    const auto breaches = ir::verify(*g, {.schemas = &exec::dispatcher_schemas()});
    CHECK_MESSAGE(breaches.empty(), (breaches.empty() ? "" : breaches.front().text()), "\n", ir::print(*g));
  }
  return *f;
}
Values run(const aot::Function& f, Values inputs) { return f.run(inputs); }
size_t count(const ir::Graph& g, const std::string& target) {
  return static_cast<size_t>(std::count_if(g.body.nodes.begin(), g.body.nodes.end(), [&](const ir::Node& n) { return n.target == target; }));
}
at::Tensor weight() { return at::randn({8, 8}).requires_grad_(); }

}  // namespace

TEST_CASE("a network gives eager's output and gradients, without Python") {
  auto w = weight(), v = w.detach().clone().requires_grad_();
  const auto x = at::randn({4, 8});
  auto program = [](Values& in) -> Values { return {at::softmax(at::gelu(at::mm(in[0].toTensor(), in[1].toTensor())), -1).pow(2).mean()}; };
  const auto f = made(captured(program, {x, w}), {x, w});
  CHECK(f->joint().has_backward);
  CHECK_FALSE(f->has_compiled_backward());
  const auto out = run(*f, {x, w}).front().toTensor();
  Values eager{x, v};
  const auto expected = program(eager).front().toTensor();
  CHECK(at::equal(out, expected));
  CHECK(out.grad_fn()->name() == "AotBackward");
  CHECK_FALSE(f->has_compiled_backward());   // only a backward run asks for it
  out.backward();
  expected.backward();
  CHECK(f->has_compiled_backward());
  CHECK(at::allclose(w.grad(), v.grad()));
  CHECK(f->graphs().forward.name.starts_with("model__forward_"));
  CHECK(f->graphs().backward.name.starts_with("model__backward_"));
}

TEST_CASE("what is saved is freed by backward, kept by retain_graph, and second derivatives run the operators again") {
  auto w = weight();
  const auto f = made(captured([](Values& in) -> Values { return {in[0].toTensor().sin().exp().sum()}; }, {w}), {w});
  const auto once = run(*f, {w}).front().toTensor();
  once.backward({}, /*retain_graph=*/true);
  once.backward();
  CHECK_THROWS_WITH(once.backward(), doctest::Contains("second time"));
  const auto out = run(*f, {w}).front().toTensor();
  const auto gradient = torch::autograd::grad({out}, {w}, {}, true, /*create_graph=*/true).front();
  CHECK(gradient.requires_grad());
  auto v = w.detach().clone().requires_grad_();
  const auto expected = torch::autograd::grad({v.sin().exp().sum()}, {v}, {}, true, /*create_graph=*/true).front();
  CHECK(at::allclose(torch::autograd::grad({gradient.sum()}, {w}).front(), torch::autograd::grad({expected.sum()}, {v}).front()));
}

TEST_CASE("writes to what was saved are noticed, through views too") {
  auto w = weight();
  const auto f = made(captured([](Values& in) -> Values { auto y = in[0].toTensor().exp(); return {y.view({-1}), y.sum()}; }, {w}), {w}, {.partition = aot::Partition::save_all});
  auto outputs = run(*f, {w});
  {
    const at::NoGradGuard no_grad;
    outputs[0].toTensor().add_(1);
  }
  CHECK_THROWS_WITH(outputs[1].toTensor().backward(), doctest::Contains("modified by an inplace operation"));
}

TEST_CASE("inputs are written back, also under no_grad and with gradients") {
  auto w = weight();
  auto program = [](Values& in) -> Values {
    auto buffer = in[0].toTensor();
    { const at::NoGradGuard quiet; buffer.mul_(0.5).add_(in[1].toTensor().sum(0)); }
    return {(buffer * in[1].toTensor()).sum()};
  };
  auto x = at::ones({8}), y = at::ones({8});
  const auto f = made(captured(program, {x.clone(), w}), {x, w});
  CHECK(f->joint().primals[0].writes_data);
  CHECK(f->joint().primals[0].writes_under_no_grad);
  const auto out = run(*f, {x, w}).front().toTensor();
  Values eager{y, w};
  const auto expected = program(eager).front().toTensor();
  CHECK(at::equal(x, y));
  CHECK(at::equal(out, expected));
  CHECK(at::allclose(torch::autograd::grad({out}, {w}).front(), torch::autograd::grad({expected}, {w}).front()));
  auto into = at::zeros({8, 8});
  const auto g = made(captured([](Values& in) -> Values { in[0].toTensor().copy_(in[1].toTensor() * 3); return {}; }, {into.clone(), w}), {into, w});
  run(*g, {into, w});
  CHECK(into.requires_grad());
  CHECK(at::allclose(torch::autograd::grad({into.sum()}, {w}).front(), at::full({8, 8}, 3.0)));
}

TEST_CASE("outputs that alias inputs or one another are views that autograd knows") {
  auto w = weight();
  const auto f = made(captured([](Values& in) -> Values {
    auto x = in[0].toTensor(), y = x.sin();
    return {x, x.t(), y, y.view({-1}), y};
  }, {w}), {w});
  const auto out = run(*f, {w});
  CHECK(out[0].toTensor().is_same(w));
  CHECK(out[1].toTensor().storage().is_alias_of(w.storage()));
  CHECK(out[1].toTensor().is_view());
  CHECK(out[3].toTensor().storage().is_alias_of(out[2].toTensor().storage()));
  CHECK(out[4].toTensor().is_same(out[2].toTensor()));
  out[3].toTensor().mul_(2);   // reaches the gradient of the other one
  CHECK(at::allclose(torch::autograd::grad({out[2].toTensor().sum()}, {w}).front(), 2 * w.cos()));
}

TEST_CASE("inputs that share a storage, one of them written: one base, or refused") {
  const auto storage = at::arange(8.0f);
  auto a = storage.view({2, 4}), b = storage.slice(0, 2, 6);
  auto program = [](Values& in) -> Values { in[0].toTensor().mul_(2); return {in[1].toTensor() + 1}; };
  const auto graph = captured(program, {at::ones({2, 4}), at::ones({4})});
  const auto f = made(graph, {a, b});
  CHECK(f->joint().primals.size() == 1);
  const auto out = run(*f, {a, b}).front().toTensor();
  CHECK(at::equal(storage, 2 * at::arange(8.0f)));
  CHECK(at::equal(out, 2 * at::arange(2.0f, 6.0f) + 1));
  CHECK_THROWS_WITH(run(*f, {at::ones({2, 4}), at::ones({8}).slice(0, 2, 6)}), doctest::Contains("shares its storage"));
  CHECK_THROWS_WITH(run(*f, {a, storage.slice(0, 1, 5)}), doctest::Contains("begins at element 1 of its storage"));
  const auto apart = made(graph, {at::ones({2, 4}), at::ones({4})});
  CHECK_THROWS_WITH(run(*apart, {a, storage.slice(0, 0, 4)}), doctest::Contains("shares its storage"));
  auto leaf = at::arange(8.0f).requires_grad_();
  auto x = leaf * 1;
  auto refused = aot::Function::make(graph, {x.view({2, 4}), x.slice(0, 2, 6)});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().what.find("share a storage") != std::string::npos);
}

TEST_CASE("min-cut saves fewer bytes than saving all, and never makes a random number twice") {
  auto w = weight();
  const auto graph = captured([](Values& in) -> Values {
    auto h = at::gelu(at::mm(in[0].toTensor(), in[0].toTensor()));
    return {at::mm(at::dropout(h, 0.5, true), in[0].toTensor()).sum()};
  }, {w});
  const auto cut = made(graph, {w}), all = made(graph, {w}, {.partition = aot::Partition::save_all});
  CHECK(cut->graphs().saved_bytes < all->graphs().saved_bytes);
  CHECK(cut->graphs().recomputed > 0);
  CHECK(count(cut->graphs().forward, "aten.bernoulli.p") == 1);
  CHECK(count(cut->graphs().backward, "aten.bernoulli.p") == 0);
  at::manual_seed(3);
  const auto one = torch::autograd::grad({run(*cut, {w}).front().toTensor()}, {w}).front();
  at::manual_seed(3);
  const auto two = torch::autograd::grad({run(*all, {w}).front().toTensor()}, {w}).front();
  CHECK(at::allclose(one, two));
}

TEST_CASE("inputs of another kind are refused, and a Specialized makes a function for them") {
  auto w = weight();
  const auto graph = captured([](Values& in) -> Values { return {at::mm(in[0].toTensor(), in[1].toTensor()).relu()}; }, {at::ones({2, 8}), w});
  const auto f = made(graph, {at::ones({2, 8}), w});
  CHECK_THROWS_WITH(run(*f, {at::ones({3, 8}), w}), doctest::Contains("f32[3, 8], and the graph was recorded for f32[2, 8]"));
  aot::Specialized any(graph, {});
  for (const int64_t n : {2, 3, 2}) {
    Values in{at::ones({n, 8}), w};
    CHECK(any.run(in).front().toTensor().size(0) == n);
  }
  CHECK(any.functions().size() == 2);
  const at::NoGradGuard quiet;
  Values in{at::ones({2, 8}), w};
  CHECK_FALSE(any.run(in).front().toTensor().requires_grad());
  CHECK(any.functions().size() == 2);
}

TEST_CASE("the cut nearest to the sink is found") {
  aot::MinCut network(6);   // 0 -> 1 -> 2 -> 5 and 0 -> 3 -> 4 -> 5; both edges into 5 and the edge 0 -> 1 are cheap
  network.add_edge(0, 1, 3);
  network.add_edge(1, 2, aot::MinCut::kUnbounded);
  network.add_edge(2, 5, 3);
  network.add_edge(0, 3, aot::MinCut::kUnbounded);
  network.add_edge(3, 4, 2);
  network.add_edge(4, 5, 7);
  CHECK(network.solve(0, 5) == 5);
  CHECK(network.sink_side() == std::vector<bool>{false, false, false, false, true, true});
}
