#include "compiler/backends/aot_eager.h"

#include "compiler/backends/differentiated.h"
#include "core/exec/interpreter.h"

namespace cutaway::backends {
namespace {

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
    options.partition = partition;
    return differentiate(graph, examples, std::move(options), sink);
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
