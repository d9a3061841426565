#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "compiler/aot/specialize.h"
#include "compiler/aot/symbolic_joint.h"
#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

using namespace cutaway;
using Values = std::vector<c10::IValue>;

namespace {

ir::Graph parsed(std::string_view text) {
  auto g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), (g.ok() ? "" : g.error().text()));
  return std::move(g).value();
}

}  // namespace

TEST_CASE("a graph with a symbol is differentiated once for all its sizes") {
  const auto graph = parsed(R"(graph net(%x: f32[n, 8], %w: f32[8, 8] grad) {
  %h: f32[n, 8] = aten.mm(%x, %w)
  %y: f32[n, 8] = aten.tanh(%h)
  %m: f32[] = aten.mean(%y)
  %v: f32[8, n] = aten.t(%x)
  return (%m, %v)
}
)");
  auto w = at::randn({8, 8}).requires_grad_();
  aot::Specialized f(graph, {});
  for (const int64_t n : {5, 2, 9, 64}) {
    const auto x = at::randn({n, 8});
    Values inputs{x, w};
    const auto out = f.run(inputs);
    const auto expected = at::tanh(at::mm(x, w)).mean();
    CHECK(at::allclose(out[0].toTensor(), expected));
    CHECK(out[1].toTensor().is_alias_of(x));
    CHECK(at::equal(out[1].toTensor(), x.t()));
    CHECK(at::allclose(torch::autograd::grad({out[0].toTensor()}, {w}).front(), torch::autograd::grad({expected}, {w}).front()));
  }
  REQUIRE(f.functions().size() == 1);
  const auto& made = *f.functions().front();
  CHECK(made.joint().symbols == exec::SymbolValues{{"n", 5}});
  CHECK(made.joint().static_because.empty());
  for (const ir::Graph* g : {&made.joint().graph, &made.graphs().forward, &made.graphs().backward}) {
    const auto breaches = ir::verify(*g, {.schemas = &exec::dispatcher_schemas()});
    CHECK_MESSAGE(breaches.empty(), (breaches.empty() ? "" : breaches.front().text()), "\n", ir::print(*g));
  }
  Values one{at::randn({1, 8}), w};   // a size that broadcasts is a kind of its own
  CHECK(f.run(one)[0].toTensor().dim() == 0);
  CHECK(f.functions().size() == 2);
  CHECK(f.functions().back()->joint().symbols.empty());
}

TEST_CASE("a compiler that takes no symbols gets numbers") {
  const auto graph = parsed(R"(graph net(%x: f32[n] grad) {
  %y: f32[n] = aten.exp(%x)
  return (%y)
}
)");
  int symbolic = 0, numbers = 0;
  aot::FunctionOptions options;
  options.compile = [&](const ir::Graph& g, const Values&, debug::Sink*) -> base::Result<std::shared_ptr<exec::CompiledGraph>> {
    for (const ir::Value& v : g.values)
      for (const ir::Dim& d : v.type.tensor.sizes)
        if (d.is_symbolic()) { ++symbolic; return base::Error{.what = "symbols are not taken"}; }
    ++numbers;
    auto program = exec::Program::prepare(g);
    if (!program.ok()) return program.error();
    struct Made final : exec::CompiledGraph {
      exec::Program program;
      explicit Made(exec::Program p) : program(std::move(p)) {}
      Values run(Values& in) override { return program.run(in); }
    };
    return std::shared_ptr<exec::CompiledGraph>(std::make_shared<Made>(std::move(program).value()));
  };
  aot::Specialized f(graph, options);
  for (const int64_t n : {3, 4}) {
    const auto x = at::randn({n}).requires_grad_();
    Values inputs{x};
    const auto y = f.run(inputs)[0].toTensor();
    CHECK(at::allclose(torch::autograd::grad({y.sum()}, {x}).front(), x.exp()));
  }
  CHECK(symbolic == 2);   // the forward graph, once for each kind
  CHECK(numbers == 4);
  CHECK(f.functions().size() == 2);
}

TEST_CASE("a symbol that no tensor tells becomes an input of the graph") {
  auto g = parsed(R"(graph flat(%x: f32[s0*s1]) {
  %y: f32[s0, s1] = aten.view(%x, [s0, s1])
  return (%y)
}
)");
  CHECK(aot::add_symbol_inputs(g) == std::vector<std::string>{"s0", "s1"});
  auto program = exec::Program::prepare(g);
  REQUIRE(program.ok());
  Values inputs{at::arange(6), int64_t{2}, int64_t{3}};
  CHECK(program->run(inputs)[0].toTensor().sizes() == at::IntArrayRef({2, 3}));
}
