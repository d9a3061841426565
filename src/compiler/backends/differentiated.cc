#include "compiler/backends/differentiated.h"

#include "compiler/aot/specialize.h"

namespace cutaway::backends {
namespace {

struct AotGraph final : CompiledGraph {
  aot::Specialized function;
  AotGraph(const ir::Graph& graph, aot::FunctionOptions options) : function(graph, std::move(options)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override { return function.run(inputs); }
  bool left_inputs_alone() const override { return aot::Specialized::last_run() == aot::Specialized::Ran::forward; }
  bool ran_operators() const override { return aot::Specialized::last_run() == aot::Specialized::Ran::operators; }
};

}  // namespace

base::Result<std::unique_ptr<CompiledGraph>> differentiate(const ir::Graph& graph, const std::vector<c10::IValue>& examples, aot::FunctionOptions options, debug::Sink* sink) {
  options.name = graph.name.empty() ? "model" : graph.name;
  options.sink = sink;
  options.runs_refused = true;   // guards of a frame do not tell all kinds apart: which inputs share a storage
  auto compiled = std::make_unique<AotGraph>(graph, std::move(options));
  CUTAWAY_TRY(compiled->function.find(examples));
  return std::unique_ptr<CompiledGraph>(std::move(compiled));
}

}  // namespace cutaway::backends
