// Operators that only say how memory is looked at. A kernel folds them into its indices.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::codegen {

struct View {
  enum class Kind : uint8_t {
    reshape,   ///< the same elements in the same order: element number i stays element number i
    expand,    ///< elements are repeated along dimensions of size 1, and new ones in front
    strided,   ///< anything else that strides and an offset can say
  };
  Kind kind = Kind::strided;
  ir::ValueId base = ir::kNoValue;
  std::vector<int64_t> offsets;   ///< by result: where it starts in the base, in elements
};

/// None when the node is no view of the table, or when its sizes are not numbers.
std::optional<View> view_of(const ir::Graph&, const ir::Node&);

/// Sizes and strides as numbers; none when one is symbolic, or when the tensor is not one that kernels read (another kind of device than a processor or a CUDA card, another layout).
struct Shape {
  std::vector<int64_t> sizes, strides;
  int64_t numel() const;
};
std::optional<Shape> shape_of(const ir::Type&);

/// Dimensions that an operator is given, in order, counted from the front; all of them for none or an empty list. None for what are no numbers, and for
/// dimensions that are not there: torch allows 0 and -1 of a single number.
std::optional<std::vector<int64_t>> dims_of(const ir::Argument*, int64_t rank);

}  // namespace cutaway::codegen
