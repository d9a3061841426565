// Ten models, recorded in a process without Python: forward above autograd, forward and backward below it, on fake tensors.
// The graphs are written by tests/support/model_zoo.py. Types must be those that a run on real tensors shows.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fstream>
#include <sstream>

#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "core/tensor/convert.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"

using namespace cutaway;
using trace::Where;
using Values = std::vector<c10::IValue>;

namespace {

const char* const kModels[] = {"bert", "gpt2", "llama", "t5", "vit", "resnet", "whisper", "mixtral", "unet", "lstm"};

ir::Graph read_model(const std::string& name) {
  std::ifstream file(std::string(CUTAWAY_SOURCE_DIR) + "/tests/golden/models/" + name + ".cut");
  REQUIRE_MESSAGE(file.good(), name);
  std::stringstream text;
  text << file.rdbuf();
  auto graph = ir::parse(text.str(), name);
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  return std::move(graph).value();
}

// Indices are 0, which every table has; numbers are between 0 and 1, which a variance may be.
Values real_inputs(const ir::Graph& g) {
  at::manual_seed(0);
  Values inputs;
  for (const auto& input : g.inputs) {
    const auto& t = g.value(input.value).type.tensor;
    std::vector<int64_t> sizes, strides;
    for (const auto& d : t.sizes) sizes.push_back(d.value());
    for (const auto& d : t.strides) strides.push_back(d.value());
    auto made = at::empty_strided(sizes, strides, tensor::to_aten(t.dtype));
    if (made.is_floating_point()) made.uniform_(0.1, 1);
    else made.zero_();
    inputs.emplace_back(made.set_requires_grad(t.requires_grad));
  }
  return inputs;
}
Values fakes_of(const Values& real) {
  std::vector<at::Tensor> tensors;
  for (const auto& v : real) tensors.push_back(v.toTensor());
  Values fakes;
  for (auto& t : trace::make_fakes(tensors)) fakes.emplace_back(t);
  return fakes;
}

ir::Graph recorded(const exec::Program& program, Values inputs, Where where) {
  const Values given = inputs;
  auto graph = trace::record(
      [&](Values& in) {
        Values arguments = in;
        auto out = program.run(arguments);
        if (where == Where::above_autograd) return out;
        at::Tensor loss;
        for (const auto& o : out)
          if (o.isTensor() && o.toTensor().requires_grad()) loss = loss.defined() ? loss + o.toTensor().pow(2).mean() : o.toTensor().pow(2).mean();
        std::vector<at::Tensor> wanted;
        for (const auto& v : given)
          if (v.toTensor().requires_grad()) wanted.push_back(v.toTensor());
        for (auto& g : torch::autograd::grad({loss}, wanted, {}, std::nullopt, false, /*allow_unused=*/true)) out.emplace_back(g);
        return out;
      },
      std::move(inputs), {.where = where});
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  return std::move(graph).value();
}

}  // namespace

TEST_CASE("models record without Python, forward and backward, with the types of eager") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    const auto graph = read_model(name);
    auto program = exec::Program::prepare(graph);
    REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : program.error().text()));
    const auto real = real_inputs(graph);
    const auto fakes = fakes_of(real);
    for (const auto where : {Where::above_autograd, Where::below_autograd}) {
      ir::Graph on_fakes;
      {
        const trace::FakeMode mode;
        REQUIRE_NOTHROW(on_fakes = recorded(*program, fakes, where));
      }
      const auto on_real = recorded(*program, real, where);
      CHECK(ir::count_ops(on_fakes) > (where == Where::above_autograd ? 5 : 40));
      // oneDNN alone knows the size of its workspace: those run on zeros. Everything else has a rule in C++.
      for (const auto& [op, times] : trace::dispatcher_operators()) CHECK_MESSAGE(op.starts_with("aten::mkldnn_rnn_layer"), op);
      if (!ir::identical(on_fakes, on_real)) CHECK(ir::print(on_fakes) == ir::print(on_real));
    }
  }
}
