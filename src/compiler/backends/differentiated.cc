#include "compiler/backends/differentiated.h"

#include "compiler/aot/specialize.h"
#include "core/capabilities/capabilities.h"

namespace cutaway::backends {
namespace {

struct AotGraph final : CompiledGraph {
  aot::Specialized function;
  AotGraph(const ir::Graph& graph, aot::FunctionOptions options) : function(graph, std::move(options)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override { return function.run(inputs); }
  std::vector<c10::IValue> run_or_tell(std::vector<c10::IValue>& inputs, exec::RunFailure& failure) override { return function.run(inputs, &failure); }
  int64_t new_kernels() const override {
    int64_t sum = 0;
    for_each_half([&](const CompiledGraph& half) { sum += half.new_kernels(); });
    return sum;
  }
  std::vector<Kernel> kernels() const override {
    std::vector<Kernel> all;
    for_each_half([&](const CompiledGraph& half) { for (Kernel& k : half.kernels()) all.push_back(std::move(k)); });
    return all;
  }

 private:
  template <class F> void for_each_half(F&& f) const {
    for (const auto& made : function.functions())
      for (const auto& half : made->compiled()) f(*half);
  }
};

}  // namespace

aot::Compile compile_halves(std::string name) {
  if (capabilities::row_of(name).last_stage == capabilities::Stage::capture) return {};   // the interpreter runs the halves as they are
  return [name = std::move(name)](const ir::Graph& graph, const std::vector<c10::IValue>& examples, debug::Sink* sink) -> base::Result<std::shared_ptr<exec::CompiledGraph>> {
    CUTAWAY_TRY_ASSIGN(std::unique_ptr<Backend> found, find_backend(name));
    found->configure({.stage = "aot"});
    CUTAWAY_TRY_ASSIGN(std::unique_ptr<CompiledGraph> compiled, found->compile(graph, examples, sink));
    return std::shared_ptr<exec::CompiledGraph>(std::move(compiled));
  };
}

base::Result<std::unique_ptr<CompiledGraph>> differentiate(const ir::Graph& graph, const std::vector<c10::IValue>& examples, aot::FunctionOptions options, debug::Sink* sink) {
  options.name = graph.name.empty() ? "model" : graph.name;
  options.sink = sink;
  options.runs_refused = true;   // guards of a frame do not tell all kinds apart: which inputs share a storage
  auto compiled = std::make_unique<AotGraph>(graph, std::move(options));
  CUTAWAY_TRY(compiled->function.find(examples));
  return std::unique_ptr<CompiledGraph>(std::move(compiled));
}

}  // namespace cutaway::backends
