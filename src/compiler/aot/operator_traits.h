// What the split must know of an operator: whether its result is a view, whether it may run twice, and whether that is cheap.
// Internal to compiler/aot.
#pragma once
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::aot {

struct OperatorTraits {
  static constexpr int kFresh = -1;
  std::vector<std::string> argument_names;
  int viewed_argument = kFresh;   ///< position in the schema of the tensor whose storage the results share
  bool must_stay = false;         ///< random, writes, or unknown: runs exactly once
  bool is_cheap = false;          ///< pointwise, a copy, a constant: reading memory costs as much as making it again
};
/// By target; found once. Unknown operators must stay.
const OperatorTraits& operator_traits(const std::string& target);

/// The value that a view's storage belongs to, through any number of views; kNoValue when the results are fresh.
ir::ValueId viewed_value(const ir::Node&);

}  // namespace cutaway::aot
