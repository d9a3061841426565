// Where the values that kernels write lie while a fused graph runs: one piece of memory a run, in which a value takes the place of those that nobody
// reads any more. What leaves the graph, and what an operator of torch's might hand on, is not in it.
// Main function: plan_memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::codegen {

struct MemoryPlan {
  struct Place {
    ir::ValueId value = ir::kNoValue;
    int64_t bytes = 0, offset = 0;
    size_t from = 0, to = 0;        ///< positions of the node that writes it and of the last one that reads it
  };
  std::vector<Place> places;        ///< in the order of `from`
  int64_t bytes = 0;                ///< of the piece of memory
  int64_t live = 0;                 ///< most bytes that are wanted at one moment: no plan can do with less
  int64_t apart = 0;                ///< bytes when every value has memory of its own
  /// A table: value, bytes, offset, from, to.
  std::string text(const ir::Graph&) const;
};

constexpr int64_t kPlanAlignment = 64;

/// For a fused graph: values of calls `native.*` whose sizes are numbers.
MemoryPlan plan_memory(const ir::Graph&);

}  // namespace cutaway::codegen
