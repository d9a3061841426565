// Graphs with symbolic sizes: recorded at a few sizes, run at others, against recordings and runs at those.
#include "core/trace/symbolic.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/exec/interpreter.h"
#include "core/exec/size_guards.h"
#include "core/ir/text.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"

using namespace cutaway;
using Values = std::vector<c10::IValue>;
using Numbers = std::vector<int64_t>;
using Tensors = std::vector<at::Tensor>;

namespace {

at::Tensor fake(at::IntArrayRef sizes) { return trace::make_fake(at::empty(sizes, at::TensorOptions().device(at::kMeta)), at::kCPU); }

/// A program over inputs whose sizes follow from the symbols.
struct Program {
  std::function<std::vector<Numbers>(const Numbers&)> sizes;
  std::function<Tensors(const Tensors&)> body;
  trace::Where where = trace::Where::above_autograd;
  std::shared_ptr<trace::ConstantNumbers> numbers = std::make_shared<trace::ConstantNumbers>();

  base::Result<symbolic::Recording> operator()(const Numbers& values) const {
    const trace::FakeMode mode;
    Values inputs;
    for (const auto& s : sizes(values)) inputs.emplace_back(fake(s));
    symbolic::Recording r;
    Tensors constants;
    auto graph = trace::record(
        [&](Values& in) {
          Tensors tensors;
          for (const auto& v : in) tensors.push_back(v.toTensor());
          Values out;
          for (auto& t : body(tensors)) out.emplace_back(t);
          return out;
        },
        inputs, {.where = where}, &constants);
    if (!graph.ok()) return graph.error();
    r.constants = numbers->of(constants);
    r.graph = std::move(graph).value();
    return r;
  }
};

std::vector<std::string> texts(const std::vector<symbolic::Guard>& guards) {
  std::vector<std::string> t;
  for (const auto& g : guards) t.push_back(g.text());
  return t;
}
using Texts = std::vector<std::string>;

symbolic::SymbolicGraph symbolic_graph(const Program& p, Numbers hints) {
  std::vector<symbolic::Symbol> symbols;
  for (size_t i = 0; i < hints.size(); ++i) symbols.push_back({"s" + std::to_string(i), hints[i]});
  auto g = trace::record_symbolic(p, std::move(symbols));
  REQUIRE_MESSAGE(g.ok(), (g.ok() ? "" : g.error().text()));
  return std::move(g).value();
}

/// The graph at these sizes is the recording at these sizes, it runs there, and its text reads back.
void check_at(const Program& p, const symbolic::SymbolicGraph& g, const Numbers& values) {
  symbolic::SymbolValues named;
  for (size_t i = 0; i < values.size(); ++i) named.set("s" + std::to_string(i), values[i]);
  auto recorded = p(values);
  REQUIRE(recorded.ok());
  const auto at = symbolic::at_sizes(g.graph, named);
  REQUIRE(at.ok());
  CHECK(ir::print(*at) == ir::print(recorded->graph));
  auto again = ir::parse(ir::print(g.graph));
  REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().text()), ir::print(g.graph));
  CHECK(ir::print(*again) == ir::print(g.graph));

  auto program = exec::Program::prepare(*again);
  REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : program.error().text()));
  auto guards = exec::SizeGuards::prepare(g.graph, g.guards);
  REQUIRE(guards.ok());
  at::manual_seed(1);
  Tensors real;
  Values inputs;
  for (const auto& s : p.sizes(values)) inputs.emplace_back(real.emplace_back(at::rand(s)));
  CHECK(guards->check(inputs) == "");
  const auto expected = p.body(real);
  const auto results = program->run(inputs);
  REQUIRE(results.size() == expected.size());
  for (size_t i = 0; i < results.size(); ++i) CHECK(at::equal(results[i].toTensor(), expected[i]));
}

}  // namespace

TEST_CASE("sizes stay expressions: products, sums, quotients, bounds") {
  const Program p{[](const Numbers& s) { return std::vector<Numbers>{{s[0], s[1], 8}, {64, 8}}; },
                  [](const Tensors& in) {
                    const auto &x = in[0], &table = in[1];
                    const int64_t b = x.size(0), n = x.size(1);
                    auto flat = x.reshape({b * n, 8});
                    auto padded = at::constant_pad_nd(flat, {0, 0, 1, 2});
                    auto halves = at::slice(x, 1, 0, INT64_MAX, 2);
                    auto positions = at::slice(table, 0, 0, n);                     // min(n, 64)
                    auto pairs = at::bmm(x, x.transpose(1, 2)).view({b, n * n});
                    auto windows = at::max_pool2d(x.unsqueeze(1), {3, 1}, {2, 1}, {1, 0}).squeeze(1);   // (n - 1)//2 + 1
                    return Tensors{padded, halves.contiguous().view({-1}), positions, pairs, windows.mul(n), x.view({b, -1})};
                  }};
  const auto g = symbolic_graph(p, {4, 12});
  INFO(ir::print(g.graph));
  REQUIRE(g.statics.empty());
  const auto type = [&](size_t output) { return g.graph.value(g.graph.body.outputs[output].as<ir::ValueRef>()->id).type.text(); };
  CHECK(type(0) == "f32[s0*s1 + 3, 8]");
  CHECK(type(1) == "f32[s0*((s1 + 1)//2)*8]");
  CHECK(type(2) == "f32[min(s1, 64), 8]");
  CHECK(type(3) == "f32[s0, s1*s1]");
  CHECK(type(4) == "f32[s0, (s1 + 1)//2, 8]");
  for (const auto& values : {Numbers{4, 12}, Numbers{2, 3}, Numbers{9, 7}, Numbers{3, 40}, Numbers{5, 100}}) check_at(p, g, values);
}

TEST_CASE("below autograd too") {
  const Program p{[](const Numbers& s) { return std::vector<Numbers>{{s[0], s[1], 16}, {16, 32}}; },
                  [](const Tensors& in) { return Tensors{at::softmax(at::matmul(in[0], in[1]), -1).sum(1), at::layer_norm(in[0], {16})}; }, trace::Where::below_autograd};
  const auto g = symbolic_graph(p, {3, 5});
  REQUIRE(g.statics.empty());
  CHECK(g.guards.size() == 2);
  CHECK(g.recordings <= 10);   // six, and the corners
  for (const auto& values : {Numbers{3, 5}, Numbers{7, 7}, Numbers{16, 2}}) check_at(p, g, values);
}

TEST_CASE("a size that must be a multiple is guarded") {
  const Program p{[](const Numbers& s) { return std::vector<Numbers>{{s[0], 3}}; }, [](const Tensors& in) { return Tensors{in[0].view({in[0].size(0) / 8, 8, 3}).mul(2)}; }};
  const auto g = symbolic_graph(p, {24});
  CHECK(texts(g.guards) == Texts{"2 <= s0", "mod(s0, 8) == 0"});
  check_at(p, g, {40});
  const auto guards = exec::SizeGuards::prepare(g.graph, g.guards);
  REQUIRE(guards.ok());
  CHECK(guards->check({at::ones({41, 3})}).find("mod(s0, 8) == 0 does not hold: 1 and 0") == 0);
  CHECK(guards->check({at::ones({40, 4})}).find("input 0 has size 4 in dimension 1") == 0);
}

TEST_CASE("a table that ends is an upper bound") {
  const Program p{[](const Numbers& s) { return std::vector<Numbers>{{2, s[0], 4}, {100, 4}}; }, [](const Tensors& in) { return Tensors{in[0] + at::slice(in[1], 0, 0, in[0].size(1))}; }};
  const auto g = symbolic_graph(p, {10});
  REQUIRE(g.statics.empty());
  REQUIRE(g.guards.size() == 2);
  CHECK(g.guards[1].left == ir::Dim::symbol("s0"));
  CHECK(g.guards[1].right.value() <= 100);
  CHECK(g.guards[1].right.value() >= 74);
  check_at(p, g, {50});
}

TEST_CASE("sizes that must be equal become one symbol") {
  const Program p{[](const Numbers& s) { return std::vector<Numbers>{{s[0], 4}, {s[1], 4}, {s[2], 2}}; }, [](const Tensors& in) { return Tensors{in[0] * in[1], in[2] + 1}; }};
  const auto g = symbolic_graph(p, {6, 6, 6});
  CHECK(g.statics.empty());
  CHECK(g.graph.value(g.graph.inputs[0].value).type.text() == "f32[s0, 4]");
  CHECK(g.graph.value(g.graph.inputs[1].value).type.text() == "f32[s0, 4]");
  CHECK(g.graph.value(g.graph.inputs[2].value).type.text() == "f32[s2, 2]");
  const auto guards = exec::SizeGuards::prepare(g.graph, g.guards);
  REQUIRE(guards.ok());
  CHECK(guards->check({at::ones({5, 4}), at::ones({5, 4}), at::ones({7, 2})}) == "");
  CHECK(guards->check({at::ones({5, 4}), at::ones({6, 4}), at::ones({7, 2})}).find("disagree about the symbol s0") != std::string::npos);
}

TEST_CASE("what differs in more than integers stays static, with the reason") {
  const auto sizes = [](const Numbers& s) { return std::vector<Numbers>{{s[0], s[1]}}; };
  SUBCASE("other operators") {
    const Program p{sizes, [](const Tensors& in) { return Tensors{in[0].size(0) == 6 ? in[0].relu() : in[0].tanh()}; }};
    const auto g = symbolic_graph(p, {6, 5});
    REQUIRE(g.statics.size() == 1);
    CHECK(g.statics[0].name == "s0");
    CHECK(g.statics[0].because.find("aten.relu at s0=6") != std::string::npos);
    CHECK(g.graph.value(g.graph.inputs[0].value).type.text() == "f32[6, s1]");
  }
  SUBCASE("a loop") {
    const Program p{sizes, [](const Tensors& in) { auto x = in[0]; for (int64_t i = 0; i < x.size(1); ++i) x = x + 1; return Tensors{x}; }};
    const auto g = symbolic_graph(p, {6, 5});
    REQUIRE(g.statics.size() == 1);
    CHECK(g.statics[0].name == "s1");
  }
  SUBCASE("a floating-point number") {
    const Program p{sizes, [](const Tensors& in) { return Tensors{in[0] * std::log(static_cast<double>(in[0].size(0)))}; }};
    const auto g = symbolic_graph(p, {6, 5});
    REQUIRE(g.statics.size() == 1);
    CHECK(g.statics[0].because.find("floating-point number that depends on the sizes") != std::string::npos);
  }
  SUBCASE("a constant") {
    std::map<int64_t, at::Tensor> by_size;   // as torch.tensor(x.shape[0]) would give
    for (const int64_t n : {2, 4, 5, 6, 7, 8, 14, 70, 518, 4102, 65542}) by_size[n] = at::full({}, n);
    const Program p{sizes, [&](const Tensors& in) { auto& c = by_size[in[0].size(0)]; TORCH_CHECK(c.defined(), "not a size of this test"); return Tensors{in[0] * c}; }};
    const auto g = symbolic_graph(p, {6, 5});
    REQUIRE(g.statics.size() == 1);
    CHECK(g.statics[0].because.find("the value of a constant depends on the sizes") != std::string::npos);
  }
  SUBCASE("one and nothing") {
    const Program p{sizes, [](const Tensors& in) { return Tensors{in[0] + 1}; }};
    CHECK(symbolic_graph(p, {1, 5}).statics[0].name == "s0");
  }
}

TEST_CASE("conditions that the program met become guards") {
  const Program p{[](const Numbers& s) { return std::vector<Numbers>{{s[0], 4}}; }, [](const Tensors& in) { return Tensors{in[0].relu()}; }};
  const auto with_condition = [&](const Numbers& v) -> base::Result<symbolic::Recording> {
    auto r = p(v);
    if (r.ok()) r->conditions = {{symbolic::Condition::Kind::less, v[0] * 4, 100, v[0] * 4 < 100, "model.py:7"}, {symbolic::Condition::Kind::equal, v[0], 0, v[0] == 0, ""}, {symbolic::Condition::Kind::less, 3, 4, true, ""}};
    return r;
  };
  auto g = trace::record_symbolic(with_condition, {{"s0", 6}});
  REQUIRE(g.ok());
  const auto t = texts(g->guards);
  CHECK(std::find(t.begin(), t.end(), "s0*4 < 100") != t.end());
  CHECK(std::find(t.begin(), t.end(), "s0 != 0") != t.end());
}

TEST_CASE("an error at the program's own sizes is the error") {
  const auto g = trace::record_symbolic([](const Numbers&) -> base::Result<symbolic::Recording> { return base::Error{.what = "no"}; }, {{"s0", 6}});
  REQUIRE_FALSE(g.ok());
  CHECK(g.error().what == "no");
}
