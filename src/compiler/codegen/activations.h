// Products on a card that are followed by an activation: cuBLASLt computes both in one kernel.
#pragma once
#include <vector>

#include "compiler/codegen/rewrite.h"

namespace cutaway::codegen {

/// aten.addmm and the aten.relu, or aten.gelu of the tanh form, that alone uses it become one aten._addmm_activation. The activation is computed before the product is
/// rounded: nearer to what is meant than one after the other.
void join_activations(ir::Graph&, const RewriteOptions&, std::vector<Rewritten>& done);

}  // namespace cutaway::codegen
