// Removes from a functional graph what only autograd needed: detach, alias. Internal to compiler/aot.
#pragma once
#include "core/ir/graph.h"

namespace cutaway::aot {
/// Uses of such a node's result become uses of its argument, except where it is returned: callers tell tensors apart.
void simplify(ir::Graph&);
}
