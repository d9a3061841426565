// CUTAWAY_CHECK on the backend native: runs a compiled graph and hands every kernel, and the outputs, to whoever compares them (backends/check.h).
#pragma once
#include "core/exec/interpreter.h"

namespace cutaway::native {

/// `program` runs `fused`, with watched() calls; `whole` is the graph that it was made of. Level 3 is level 2 on kernels that store every value.
std::vector<c10::IValue> run_checked(const exec::Program& program, const ir::Graph& fused, const ir::Graph& whole, const std::string& backend, int level, std::vector<c10::IValue>& inputs);

}  // namespace cutaway::native
