#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "compiler/aot/function.h"
#include "core/ir/graph.h"
#include "core/tensor/convert.h"

using namespace cutaway;
using Values = std::vector<c10::IValue>;

namespace {

/// Its backward is not that of its operators.
struct Tripled : torch::autograd::Function<Tripled> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x.exp();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, const torch::autograd::variable_list& g) {
    return {g[0] * 3 + context->get_saved_variables()[0]};
  }
};

ir::Graph signature(const Values& inputs) {
  ir::Graph g;
  g.name = "program";
  for (size_t i = 0; i < inputs.size(); ++i) g.add_input("arg" + std::to_string(i), ir::Type::of(tensor::type_of(inputs[i].toTensor())));
  return g;
}

}  // namespace

TEST_CASE("the backward of an autograd function in C++ is recorded through the engine") {
  const trace::Callable program = [](Values& in) -> Values { return {Tripled::apply(at::mm(in[0].toTensor(), in[1].toTensor())).sin()}; };
  const auto x = at::randn({3, 4});
  auto w = at::randn({4, 4}).requires_grad_();
  aot::FunctionOptions options;
  options.program = program;
  auto f = aot::Function::make(signature({x, w}), {x, w}, options);
  REQUIRE_MESSAGE(f.ok(), (f.ok() ? "" : f.error().text()));
  Values one{x, w}, two{x, w};
  const auto out = (*f)->run(one)[0].toTensor(), expected = program(two)[0].toTensor();
  CHECK(at::equal(out, expected));
  CHECK(at::allclose(torch::autograd::grad({out.sum()}, {w}).front(), torch::autograd::grad({expected.sum()}, {w}).front()));
}

TEST_CASE("a program may not use tensors that need gradients and are no inputs") {
  auto w = at::randn({4}).requires_grad_();
  const auto x = at::randn({4}).requires_grad_();
  aot::FunctionOptions options;
  options.program = [w](Values& in) -> Values { return {in[0].toTensor() * w}; };
  const auto f = aot::Function::make(signature({x}), {x}, options);
  REQUIRE_FALSE(f.ok());
  CHECK(f.error().what.find("is no input") != std::string::npos);
}
