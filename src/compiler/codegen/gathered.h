// Weights on a card that are put one behind the other, or laid out anew, before anything else runs: all of them by one kernel.
// Main types: Gathered, gathered_of.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/emit_cuda.h"
#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// A node that does nothing but copy inputs of the graph: aten.cat of whole ones along the first dimension, aten.clone of one to channels_last.
struct Gathered {
  struct Piece {
    ir::ValueId from = ir::kNoValue;
    int64_t at = 0, bytes = 0;                        ///< in the result
    int64_t channels = 1, places = 1, element = 0;    ///< channels_last: [n, channels, places] becomes [n, places, channels]; else a plain copy
  };
  ir::ValueId result = ir::kNoValue;
  std::vector<Piece> pieces;
};
/// None for every other node.
std::optional<Gathered> gathered_of(const ir::Graph&, const ir::Node&);

/// One kernel for all of them; the buffers are what is read, then what is written.
struct GatheredKernel { Kernel kernel; CudaText text; };
GatheredKernel gathered_kernel(const ir::Graph&, const std::vector<Gathered>&, std::string name);
constexpr size_t kMostGathered = 240;   ///< addresses that a launch takes

}  // namespace cutaway::codegen
