#include <ATen/ATen.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/ir/text.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"

using namespace cutaway;
using Values = std::vector<c10::IValue>;

namespace {

at::Tensor fake(at::IntArrayRef sizes) { return trace::make_fake(at::empty(sizes, at::TensorOptions().device(at::kMeta)), at::kCPU); }
std::vector<std::string> targets(const ir::Graph& g) {
  std::vector<std::string> names;
  ir::for_each_node(g.body, [&](const ir::Node& n) { if (n.kind == ir::Node::Kind::op) names.push_back(n.target); });
  return names;
}

}  // namespace

TEST_CASE("inside a transform of torch.func what the transform makes of an operator is recorded, on the tensors of the program") {
  trace::FakeMode mode;
  std::vector<at::Tensor> constants;
  const auto graph = trace::record(
      [](Values& in) -> Values {
        const int64_t level = at::functorch::initAndPushDynamicLayer(at::functorch::TransformType::Vmap, c10::SymInt(3), at::functorch::RandomnessType::Error);
        const at::Tensor row = at::functorch::makeBatched(in[0].toTensor(), 0, level);
        const at::Tensor sum = at::sum(at::sin(row), at::IntArrayRef{0});
        const at::Tensor out = at::functorch::unsafeGetBatchedImpl(sum)->value();
        at::functorch::popDynamicLayerAndDeleteMetadata();
        return {out};
      },
      {fake({3, 4})}, {}, &constants);
  REQUIRE(graph.ok());
  CHECK(constants.empty());
  CHECK(targets(*graph) == std::vector<std::string>{"aten.sin", "aten.sum.dim_IntList"});
  CHECK(graph->value(graph->body.nodes[1].results[0]).type.text() == "f32[3]");
}

TEST_CASE("a backward pass above autograd is recorded where it is allowed, composite operators taken apart") {
  trace::FakeMode mode;
  const at::Tensor x = fake({3, 4}).requires_grad_(true), target = trace::make_fake(at::empty({3}, at::TensorOptions().dtype(at::kLong).device(at::kMeta)), at::kCPU);
  const auto gradient = [&] { return torch::autograd::grad({at::cross_entropy_loss(x, target)}, {x})[0]; };
  {
    trace::Recorder recorder({x, target}, {});
    CHECK_THROWS_WITH(gradient(), doctest::Contains("backward inside a recording"));
  }
  trace::Recorder recorder({x, target}, {});
  recorder.allow_backward(true);
  const at::Tensor g = gradient();
  const auto graph = recorder.finish({g});
  REQUIRE(graph.ok());
  CHECK(recorder.constants().empty());
  const auto names = targets(*graph);
  const auto has = [&](const char* n) { return std::find(names.begin(), names.end(), n) != names.end(); };
  CHECK(has("aten.nll_loss_backward"));
  CHECK(has("aten._log_softmax_backward_data"));
  CHECK_FALSE(has("aten.cross_entropy_loss"));
}
