// One joint graph for many sizes: a captured graph whose inputs have symbolic sizes is recorded at several numbers for them, and what is the
// same up to integers becomes one graph with expressions (core/trace/symbolic.h). Views that outputs are rebuilt by and shapes that
// inputs get in place are recorded with it, so that they hold for the same sizes.
#pragma once
#include "compiler/aot/joint.h"
#include "core/exec/symbols.h"

namespace cutaway::aot {

/// Whether a size of an input is an expression.
bool has_symbolic_inputs(const ir::Graph& captured);

/// The joint graph with symbols where that works; then `symbols` of it are not empty. Otherwise as record_joint, for the sizes of the
/// examples alone, and `static_because` says why. Fails only when record_joint does.
base::Result<Joint> record_symbolic_joint(const ir::Graph& captured, const std::vector<c10::IValue>& examples, const JointOptions& = {});

/// As record_joint, for a captured graph with symbols: at the numbers that the examples give them.
base::Result<Joint> record_joint_at_numbers(const ir::Graph& captured, const std::vector<c10::IValue>& examples, const JointOptions& = {});

/// Gives a graph an integer input for each symbol that it uses and that none of its inputs tells; their names, in order.
std::vector<std::string> add_symbol_inputs(ir::Graph&);

}  // namespace cutaway::aot
