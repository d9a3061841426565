// Trains a torch::nn module whose backward was found ahead of time. No Python: libtorch and libcutaway alone.
// The module runs once under the recorder; its graph is differentiated and split; then the two graphs train the module's own parameters.
// A copy trained by eager torch goes along, and the program fails when the two part.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <cstdio>

#include "compiler/aot/function.h"
#include "core/ir/text.h"
#include "core/trace/recorder.h"

using namespace cutaway;

namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(8, 32))};
  torch::nn::BatchNorm1d batch_norm{register_module("batch_norm", torch::nn::BatchNorm1d(32))};
  torch::nn::LayerNorm layer_norm{register_module("layer_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({32})))};
  torch::nn::Dropout dropout{register_module("dropout", torch::nn::Dropout(0.1))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(32, 1))};
  torch::Tensor forward(const torch::Tensor& x) { return second(dropout(torch::gelu(layer_norm(batch_norm(first(x)))))); }
};

torch::Tensor loss_of(Net& net, const torch::Tensor& x, const torch::Tensor& y) { return torch::mse_loss(net.forward(x), y); }

int fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  return 1;
}

}  // namespace

int main() {
  torch::manual_seed(0);
  Net net, eager;
  const auto x = torch::randn({64, 8}), y = x.pow(2).sum(1, true);

  // Record: inputs are the parameters, the buffers, then x and y.
  std::vector<c10::IValue> inputs;
  trace::RecordOptions record;
  record.graph_name = "net";
  for (const auto& p : net.named_parameters()) {
    inputs.emplace_back(p.value());
    record.input_names.push_back({p.key(), ir::InputKind::parameter, p.key()});
  }
  for (const auto& b : net.named_buffers()) {
    inputs.emplace_back(b.value());
    record.input_names.push_back({b.key(), ir::InputKind::buffer, b.key()});
  }
  inputs.emplace_back(x);
  inputs.emplace_back(y);
  auto graph = trace::record([&](std::vector<c10::IValue>&) -> std::vector<c10::IValue> { return {loss_of(net, x, y)}; }, inputs, record);
  if (!graph.ok()) return fail(graph.error().text());
  // Recording ran the module once, which has moved its statistics: the copy starts from here.
  for (size_t i = 0; i < net.parameters().size(); ++i) eager.parameters()[i].data().copy_(net.parameters()[i].data());
  for (size_t i = 0; i < net.buffers().size(); ++i) eager.buffers()[i].copy_(net.buffers()[i]);

  auto made = aot::Function::make(*graph, inputs, {.name = "net"});
  if (!made.ok()) return fail(made.error().text());
  const aot::Function& function = **made;
  std::printf("%s\n%s\n", ir::print(function.graphs().forward).c_str(), ir::print(function.graphs().backward).c_str());
  std::printf("saved for backward: %lld bytes; %zu operators run again there\n\n", static_cast<long long>(function.graphs().saved_bytes), function.graphs().recomputed);

  torch::optim::Adam ours(net.parameters(), 0.01), theirs(eager.parameters(), 0.01);
  double first = 0, last = 0;
  for (int step = 0; step < 50; ++step) {
    std::vector<c10::IValue> arguments = inputs;   // a run empties its inputs
    torch::manual_seed(step);                      // the same dropout on both sides
    const torch::Tensor loss = function.run(arguments).front().toTensor();
    torch::manual_seed(step);
    const torch::Tensor expected = loss_of(eager, x, y);
    ours.zero_grad();
    loss.backward();
    ours.step();
    theirs.zero_grad();
    expected.backward();
    theirs.step();
    last = loss.item<double>();
    if (step == 0) first = last;
    if (step % 10 == 9) std::printf("step %2d  loss %.6f  eager %.6f\n", step + 1, last, expected.item<double>());
    if (std::abs(last - expected.item<double>()) > 1e-4 * std::abs(last)) return fail("the losses part");
  }
  for (size_t i = 0; i < net.parameters().size(); ++i)
    if (!torch::allclose(net.parameters()[i], eager.parameters()[i], 1e-3, 1e-5)) return fail("the parameters part");
  for (size_t i = 0; i < net.buffers().size(); ++i)
    if (!torch::allclose(net.buffers()[i], eager.buffers()[i], 1e-3, 1e-5)) return fail("the statistics part");
  return last < first / 2 ? 0 : fail("it did not learn");
}
