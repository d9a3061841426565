// A captured graph behind ahead-of-time autograd: what backends share that compile the two halves.
#pragma once
#include "compiler/aot/function.h"
#include "compiler/backends/backend.h"

namespace cutaway::backends {

/// `options.compile` compiles forward and backward; name, sink and what else a frame's graph needs are set here. What cannot be
/// differentiated is refused now, not at the first run.
base::Result<std::unique_ptr<CompiledGraph>> differentiate(const ir::Graph&, const std::vector<c10::IValue>& examples, aot::FunctionOptions, debug::Sink*);

/// Backends of the table as what compiles the two halves; empty for eager, which is the wrapper's own.
aot::Compile compile_halves(std::string name);

}  // namespace cutaway::backends
