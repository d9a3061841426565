// Dropout draws its mask into fresh memory, in the order in which that lies: of a transposed input column by column. Functionalization puts
// aten.bernoulli.p in its place, which always draws row by row, so that eager and the graph would drop different elements.
// Internal to compiler/aot.
#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::aot {
/// Where a mask is drawn into memory that is not row-major, it is drawn into a permuted view that is. Types are found anew when one was.
base::Status keep_memory_order(ir::Graph&);
}
