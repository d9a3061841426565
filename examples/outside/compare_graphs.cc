// Two graphs that ought to compute the same, run on the same input and compared as every command of Cutaway compares: the second is wrong.
#include <ATen/ATen.h>

#include <cstdio>
#include <optional>

#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "diagnosis/compare/same.h"

using namespace cutaway;

namespace {

std::optional<at::Tensor> run(const char* text, const at::Tensor& x) {
  const auto graph = ir::parse(text, "graph");
  if (!graph.ok()) {
    std::fprintf(stderr, "%s\n", graph.error().text().c_str());
    return {};
  }
  const auto program = exec::Program::prepare(*graph);
  if (!program.ok()) {
    std::fprintf(stderr, "%s\n", program.error().text().c_str());
    return {};
  }
  std::vector<c10::IValue> values{x};
  return program->run(values).at(0).toTensor();
}

}  // namespace

int main() {
  const at::Tensor x = at::linspace(-2, 2, 5);
  const auto right = run("graph f(%x: f32[5]) {\n  %y: f32[5] = aten.relu(%x)\n  return (%y)\n}\n", x);
  const auto wrong = run("graph f(%x: f32[5]) {\n  %y: f32[5] = aten.abs(%x)\n  return (%y)\n}\n", x);
  if (!right || !wrong) return 2;
  const compare::Verdict verdict = compare::same_tensors(*right, *wrong, {}, {}, "y");
  std::printf("%s\n", verdict.text().c_str());
  return verdict ? 0 : 1;
}
