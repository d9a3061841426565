#include "diagnosis/repro/analyze.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "compiler/backends/backend.h"
#include "core/base/files.h"
#include "core/exec/interpreter.h"
#include "core/ir/text.h"
#include "core/tensor/tensor_store.h"

namespace cutaway {
namespace {

// Fuses %a, %r and %c into one kernel, and has a wrong relu; calls the two products itself.
struct FusingGraph final : backends::CompiledGraph {
  exec::Program program;
  std::vector<backends::Kernel> told;
  FusingGraph(exec::Program p, std::vector<backends::Kernel> k) : program(std::move(p)), told(std::move(k)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override {
    exec::Hooks hooks;
    hooks.after = [](size_t, const ir::Node& n, std::vector<c10::IValue>& results) {
      if (n.target == "aten.relu") results[0] = results[0].toTensor() + 1;
    };
    exec::RunOptions options;
    options.hooks = &hooks;
    return program.run(inputs, options);
  }
  std::vector<backends::Kernel> kernels() const override { return told; }
};

struct Fusing final : backends::Backend {
  Fusing() {
    row = capabilities::row_of("fusing");
    row.observes = true;
  }
  base::Result<std::unique_ptr<backends::CompiledGraph>> compile(const ir::Graph& graph, const std::vector<c10::IValue>&, debug::Sink*) override {
    CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(graph));
    std::vector<backends::Kernel> kernels;
    if (graph.body.nodes.size() == 6) kernels = {{"mm_0", {"h"}}, {"fused_1", {"a", "r", "c"}}, {"mm_2", {"m"}}, {"fused_3", {"d"}}};
    return std::unique_ptr<backends::CompiledGraph>(std::make_unique<FusingGraph>(std::move(program), std::move(kernels)));
  }
};

constexpr const char* kGraph = R"(graph g(%x: f32[4, 4], %w: f32[4, 4]) {
  %h: f32[4, 4] = aten.mm(%x, %w)
  %a: f32[4, 4] = aten.sin(%h)
  %d: f32[4, 4] = aten.cos(%h)
  %r: f32[4, 4] = aten.relu(%a)
  %c: f32[4, 4] = aten.add.Tensor(%r, %h)
  %m: f32[4, 4] = aten.mm(%c, %w)
  return (%m, %d)
}
)";

oracle::Trial trial_on(const base::TemporaryDirectory& folder, const char* backend) {
  oracle::Trial t;
  t.task = oracle::Trial::Task::analyze;
  t.subject.graph = ir::parse(kGraph, "test").value();
  t.subject.manifest.backend = backend;
  t.subject.manifest.stage = "aot";
  t.accuracy = "accuracy";
  t.every_node = true;
  t.store = folder.path().string();
  auto store = store::Store::open(folder.path(), store::Store::Open::create, store::Durability::fast);
  REQUIRE(store.ok());
  auto saved = tensor::save_inputs(*store, {c10::IValue(at::ones({4, 4})), c10::IValue(at::ones({4, 4}))});
  REQUIRE(saved.ok());
  t.subject.manifest.inputs = std::move(*saved);
  return t;
}

const oracle::NodeAnalysis& row(const oracle::Analysis& a, const std::string& node) {
  for (const auto& n : a.nodes)
    if (n.node == node) return n;
  FAIL("no row " << node);
  return a.nodes.front();
}

TEST_CASE("analyze measures kernels as a whole and names the node inside the wrong one") {
  backends::register_backend("fusing_for_test", [](std::string_view) -> base::Result<std::unique_ptr<backends::Backend>> { return std::unique_ptr<backends::Backend>(std::make_unique<Fusing>()); });
  const auto folder = base::TemporaryDirectory::make("cutaway-test-");
  REQUIRE(folder.ok());
  const oracle::TrialResult r = repro::analyze(trial_on(*folder, "fusing_for_test"));
  REQUIRE(r.outcome == oracle::TrialResult::Outcome::failure);
  REQUIRE(r.analysis);
  const oracle::Analysis& a = *r.analysis;
  CHECK(a.kernels == 4);
  CHECK(a.distinct_kernels == 3);   // the products are alike
  REQUIRE(a.first_wrong >= 0);
  CHECK(a.nodes[static_cast<size_t>(a.first_wrong)].node == "r");
  CHECK(a.together_with == -1);
  CHECK(row(a, "r").kernel == "fused_1");
  CHECK(row(a, "h").kernel == "mm_0");
  CHECK(row(a, "c").verdict == "wrong input");   // right alone
  CHECK(row(a, "m").verdict == "wrong input");
  CHECK(row(a, "d").verdict == "equal");
}

TEST_CASE("what ended an earlier try is not tried again and has that as its verdict") {
  const auto folder = base::TemporaryDirectory::make("cutaway-test-");
  REQUIRE(folder.ok());
  oracle::Trial t = trial_on(*folder, "fault:crash:aten.cumsum");   // this graph has none: nothing dies here
  t.dead_parts["whole"] = "SIGSEGV";
  t.progress = (folder->path() / "log").string();
  const oracle::TrialResult r = repro::analyze(t);
  CHECK(r.outcome == oracle::TrialResult::Outcome::failure);
  CHECK(r.signature.kind == "crash");
  CHECK(r.signature.signal == "SIGSEGV");
  REQUIRE(r.analysis);
  CHECK(r.analysis->first_wrong == 5);      // no stretch but the whole one is bad
  CHECK(r.analysis->together_with == 0);
  const auto text = base::read_file(folder->path() / "log");
  REQUIRE(text.ok());
  CHECK(text->find("part whole") == std::string::npos);
  CHECK(text->find("part ") != std::string::npos);
  CHECK(text->find("done") != std::string::npos);
}

}  // namespace
}  // namespace cutaway
