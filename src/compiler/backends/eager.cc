#include "compiler/backends/eager.h"

#include "core/exec/interpreter.h"

namespace cutaway::backends {
namespace {

struct EagerGraph final : CompiledGraph {
  exec::Program program;
  explicit EagerGraph(exec::Program p) : program(std::move(p)) {}
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) override { return program.run(inputs); }
};

struct Eager final : Backend {
  base::Result<std::unique_ptr<CompiledGraph>> compile(const ir::Graph& graph, const std::vector<c10::IValue>&, debug::Sink*) override {
    CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(graph));
    return std::unique_ptr<CompiledGraph>(std::make_unique<EagerGraph>(std::move(program)));
  }
};

}  // namespace

base::Result<std::unique_ptr<Backend>> make_eager(std::string_view parameters) {
  if (!parameters.empty()) return base::Error{"the backend eager takes no parameters", "", "", "", ""};
  return std::unique_ptr<Backend>(std::make_unique<Eager>());
}

}  // namespace cutaway::backends
