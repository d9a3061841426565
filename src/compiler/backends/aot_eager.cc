#include "compiler/backends/aot_eager.h"

#include "compiler/aot/specialize.h"
#include "core/exec/interpreter.h"

namespace cutaway::backends {
namespace {

struct AotGraph final : CompiledGraph {
  aot::Specialized function;
  AotGraph(const ir::Graph& graph, aot::FunctionOptions options) : function(graph, std::move(options)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override { return function.run(inputs); }
  bool left_inputs_alone() const override { return aot::Specialized::last_run() == aot::Specialized::Ran::forward; }
  bool ran_operators() const override { return aot::Specialized::last_run() == aot::Specialized::Ran::operators; }
};

struct PlainGraph final : CompiledGraph {
  exec::Program program;
  explicit PlainGraph(exec::Program p) : program(std::move(p)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override { return program.run(inputs); }
};

struct AotEager final : Backend {
  Settings settings;
  aot::Partition partition = aot::Partition::min_cut;

  void configure(const Settings& s) override { settings = s; }

  base::Result<std::unique_ptr<CompiledGraph>> compile(const ir::Graph& graph, const std::vector<c10::IValue>& examples, debug::Sink* sink) override {
    if (settings.stage == "aot") {
      CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(graph));
      return std::unique_ptr<CompiledGraph>(std::make_unique<PlainGraph>(std::move(program)));
    }
    aot::FunctionOptions options;
    options.name = graph.name.empty() ? "model" : graph.name;
    options.partition = partition;
    options.sink = sink;
    options.runs_refused = true;   // guards of a frame do not tell all kinds apart: which inputs share a storage
    auto compiled = std::make_unique<AotGraph>(graph, options);
    CUTAWAY_TRY(compiled->function.find(examples));   // what cannot be differentiated is said now, not at the first run
    return std::unique_ptr<CompiledGraph>(std::move(compiled));
  }
};

}  // namespace

base::Result<std::unique_ptr<Backend>> make_aot_eager(std::string_view parameters) {
  auto backend = std::make_unique<AotEager>();
  if (parameters == "save_all") backend->partition = aot::Partition::save_all;
  else if (!parameters.empty() && parameters != "min_cut") return base::Error{.what = "the backend aot_eager has no split '" + std::string(parameters) + "'", .hint = "aot_eager, aot_eager:min_cut or aot_eager:save_all"};
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace cutaway::backends
