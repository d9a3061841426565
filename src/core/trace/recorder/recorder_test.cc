#include "core/trace/recorder.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "core/trace/fake_tensor.h"

using namespace cutaway;
using trace::Where;
using Values = std::vector<c10::IValue>;

namespace {

at::Tensor fake(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) { return trace::make_fake(at::empty(sizes, at::TensorOptions().dtype(dtype).device(at::kMeta)), at::kCPU); }

ir::Graph recorded(const trace::Callable& f, Values inputs, Where where = Where::above_autograd, std::vector<at::Tensor>* constants = nullptr) {
  auto graph = trace::record(f, std::move(inputs), {.where = where}, constants);
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  const auto breaches = ir::verify(*graph);
  CHECK_MESSAGE(breaches.empty(), (breaches.empty() ? "" : breaches.front().text()), "\n", ir::print(*graph));
  return std::move(graph).value();
}
std::vector<std::string> targets(const ir::Graph& g) {
  std::vector<std::string> names;
  ir::for_each_node(g.body, [&](const ir::Node& n) { names.push_back(n.kind == ir::Node::Kind::scope ? "scope" : n.target); });
  return names;
}
using Names = std::vector<std::string>;

Values small_network(Values& in) {
  auto h = at::gelu(at::linear(in[0].toTensor(), in[1].toTensor(), in[2].toTensor()));
  h = at::layer_norm(h, {16}, in[3].toTensor(), in[4].toTensor());
  return {at::softmax(h, -1)};
}
Values small_inputs() { return {fake({4, 8}), fake({16, 8}), fake({16}), fake({16}), fake({16})}; }

}  // namespace

TEST_CASE("above autograd a small network is what its author wrote") {
  trace::FakeMode mode;
  const auto g = recorded(small_network, small_inputs());
  CHECK(targets(g) == Names{"aten.linear", "aten.gelu", "aten.layer_norm", "aten.softmax.int"});
  CHECK(g.inputs.size() == 5);
  const auto& norm = g.body.nodes[2];
  CHECK(norm.args.size() == 4);   // eps and cudnn_enable have their defaults
  const auto& y = g.value(norm.results[0]);
  CHECK(y.type.text() == "f32[4, 16]");
}

TEST_CASE("below autograd the same network is kernels") {
  trace::FakeMode mode;
  const auto g = recorded(small_network, small_inputs(), Where::below_autograd);
  CHECK(targets(g) == Names{"aten.t", "aten.addmm", "aten.gelu", "aten.native_layer_norm", "aten._softmax"});
  CHECK(g.body.nodes[3].results.size() == 3);
}

TEST_CASE("real tensors record as fake ones do, and are computed") {
  at::Tensor result;
  Values in = {at::randn({4, 8}), at::randn({16, 8}), at::randn({16}), at::ones({16}), at::zeros({16})};
  for (const auto where : {Where::above_autograd, Where::below_autograd}) {
    const auto g = recorded([&](Values& v) { auto r = small_network(v); result = r[0].toTensor(); return r; }, in, where);
    CHECK(targets(g).size() == (where == Where::above_autograd ? 4 : 5));
    CHECK(at::equal(result, small_network(in)[0].toTensor()));
  }
}

TEST_CASE("inference mode takes composite operators apart below autograd") {
  trace::FakeMode mode;
  c10::InferenceMode inference;
  const auto g = recorded(small_network, small_inputs(), Where::below_autograd);
  CHECK(targets(g) == Names{"aten.t", "aten.addmm", "aten.gelu", "aten.native_layer_norm", "aten._softmax"});
}

TEST_CASE("a joint graph of forward and backward is functional") {
  namespace F = at::functionalization::impl;
  trace::FakeMode mode;
  auto x = fake({4, 8}), w = fake({16, 8}), b = fake({16});
  const auto g = recorded(
      [&](Values& in) {
        c10::impl::IncludeDispatchKeyGuard functionalize(c10::DispatchKey::Functionalize);
        F::FunctionalizationReapplyViewsGuard views(true);
        auto fx = F::to_functional_tensor(in[0].toTensor()), fw = F::to_functional_tensor(in[1].toTensor()), fb = F::to_functional_tensor(in[2].toTensor());
        fw.requires_grad_(true);
        fb.requires_grad_(true);
        auto h = at::linear(fx, fw, fb);
        h.view({-1}).mul_(2);
        auto y = at::layer_norm(at::softmax(at::gelu(h), -1), {16});
        auto grads = torch::autograd::grad({y.pow(2).mean()}, {fw, fb});
        Values out;
        for (auto& t : grads) {
          F::sync(t);
          out.emplace_back(F::from_functional_tensor(t));
        }
        return out;
      },
      {x, w, b}, Where::below_autograd);
  CHECK(g.inputs.size() == 3);
  CHECK(g.body.outputs.size() == 2);
  for (const auto& t : targets(g)) {
    CHECK_MESSAGE(t.find("_.") == std::string::npos, t);
    CHECK_MESSAGE(t.back() != '_', t);
  }
  CHECK(targets(g).size() > 20);
}

TEST_CASE("without functionalization a saved result is the value that was saved") {
  trace::FakeMode mode;
  auto w = fake({8}).set_requires_grad(true);
  const auto g = recorded([](Values& in) { return Values{torch::autograd::grad({in[0].toTensor().tanh().sum()}, {in[0].toTensor()})[0]}; }, {w}, Where::below_autograd);
  CHECK(g.inputs.size() == 1);   // the saved result of tanh is another TensorImpl; it must not become a constant
  const auto names = targets(g);
  CHECK(std::find(names.begin(), names.end(), "aten.tanh_backward") != names.end());
}

TEST_CASE("in-place operators give a new value for the same tensor") {
  trace::FakeMode mode;
  auto x = fake({4});
  const auto g = recorded([](Values& in) {
    auto t = in[0].toTensor();
    auto v = t.view({2, 2});
    t.add_(1);
    return Values{t, v};
  }, {x});
  REQUIRE(targets(g) == Names{"aten.view", "aten.add_.Scalar"});
  CHECK(*g.body.outputs[0].as<ir::ValueRef>() == ir::ValueRef{g.body.nodes[1].results[0]});
  CHECK(*g.body.outputs[1].as<ir::ValueRef>() == ir::ValueRef{g.body.nodes[0].results[0]});
}

TEST_CASE("constants, lists, optional tensors, dtypes and keyword arguments") {
  trace::FakeMode mode;
  auto x = fake({4, 4});
  auto index = at::Tensor(fake({2}, at::kLong));
  const auto constant = [] { c10::impl::ExcludeDispatchKeyGuard real(c10::DispatchKey::Fake); return at::ones({4}); }();
  std::vector<at::Tensor> constants;
  const auto g = recorded([&](Values& in) {
    auto t = in[0].toTensor();
    auto parts = at::split(at::cat({t, t + constant}, 1), 4, 1);
    auto picked = at::index(parts[1], {std::nullopt, index});
    return Values{at::zeros({2}, at::TensorOptions().dtype(at::kBFloat16)), picked.to(at::kDouble), at::add(t, t, 0.5), parts};
  }, {x}, Where::above_autograd, &constants);
  CHECK(constants.size() == 2);
  CHECK(constants[0].is_same(constant));
  CHECK(g.inputs.size() == 3);
  CHECK(g.inputs[1].kind == ir::InputKind::constant);
  const auto text = ir::print(g);
  INFO(text);
  CHECK(text.find("aten.cat([%arg0, %add], 1)") != std::string::npos);
  CHECK(text.find("[none, %constant1]") != std::string::npos);
  CHECK(text.find("dtype=bf16") != std::string::npos);
  CHECK(text.find("alpha=0.5") != std::string::npos);
  auto back = ir::parse(text);
  REQUIRE(back.ok());
  CHECK(ir::identical(g, *back));
}

TEST_CASE("grad mode and autocast make scopes, and what is used after them leaves them") {
  trace::FakeMode mode;
  auto x = fake({4, 4}).set_requires_grad(true);
  const auto g = recorded([](Values& in) {
    auto t = in[0].toTensor();
    at::Tensor a, b;
    {
      at::NoGradGuard off;
      a = t.sin();
      b = a.cos();
    }
    at::autocast::set_autocast_enabled(at::kCPU, true);
    auto c = at::mm(b, t);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    return Values{c + b};
  }, {x});
  CHECK(targets(g) == Names{"scope", "aten.sin", "aten.cos", "scope", "aten.mm", "aten.add.Tensor"});
  const auto& first = g.body.nodes[0];
  CHECK(first.state.grad_enabled == false);
  CHECK(first.results.size() == 1);   // b; a is used inside alone
  CHECK_FALSE(g.value(first.results[0]).type.tensor.requires_grad);
  const auto& second = g.body.nodes[1];
  REQUIRE(second.state.autocast.size() == 1);
  CHECK(second.state.autocast[0].enabled);
  CHECK(g.value(second.results[0]).type.tensor.dtype == ir::DType::bf16);
}

TEST_CASE("a captured call holds its operators") {
  trace::FakeMode mode;
  auto x = fake({4, 4});
  trace::Recorder recorder({x}, {});
  auto arg = recorder.argument(x);
  recorder.begin_call("torch.nn.functional.silu", {arg}, {}, {"model.py", 3, "f", ""});
  at::Tensor inner = at::sigmoid(x);
  at::Tensor y = x * inner;
  recorder.end_call({y}, {ir::Node::kSingle});
  at::Tensor z = y + 1;
  auto g = recorder.finish({z});
  REQUIRE(g.ok());
  CHECK(ir::verify(*g).empty());
  REQUIRE(g->body.nodes.size() == 2);
  CHECK(g->body.nodes[0].kind == ir::Node::Kind::call);
  CHECK(g->body.nodes[0].regions[0].nodes.size() == 2);
  CHECK(ir::count_ops(*g) == 3);
  CHECK(ir::count_nodes(*g) == 2);
}

TEST_CASE("a tensor that leaves a captured call unseen makes the graph unusable, in words") {
  trace::FakeMode mode;
  auto x = fake({4});
  trace::Recorder recorder({x}, {});
  recorder.begin_call("f", {}, {}, {});
  at::Tensor inner = x.sin();
  recorder.end_call({}, {});
  at::Tensor y = inner + 1;
  auto g = recorder.finish({y});
  REQUIRE_FALSE(g.ok());
  CHECK(g.error().text() == "graph: a tensor made inside the captured call f is used outside of it, and is not among its results");
}

TEST_CASE("the value of a tensor that depends on inputs is refused, that of a constant is not") {
  auto x = at::ones({1});
  CHECK_THROWS_AS((void)trace::record([](Values& in) { return Values{in[0].toTensor() * in[0].toTensor().sum().item()}; }, {x}, {}), trace::DataDependentError);
  auto g = recorded([](Values& in) { return Values{in[0].toTensor() * at::ones({}).item()}; }, {x});
  CHECK(targets(g).back() == "aten.mul.Scalar");
}

TEST_CASE("backward inside a recording above autograd is refused") {
  auto x = at::ones({1}).set_requires_grad(true);
  CHECK_THROWS_WITH_AS((void)trace::record([](Values& in) { return Values{torch::autograd::grad({in[0].toTensor().sum()}, {in[0].toTensor()})[0]}; }, {x}, {}),
                       doctest::Contains("backward inside a recording above autograd is refused"), c10::NotImplementedError);
}

TEST_CASE("x.data is derived from x") {
  trace::FakeMode mode;
  auto x = fake({4}).set_requires_grad(true);
  const auto g = recorded([](Values& in) { return Values{in[0].toTensor().variable_data() + 1}; }, {x});
  CHECK(targets(g) == Names{"aten.detach", "aten.add.Scalar"});
}
