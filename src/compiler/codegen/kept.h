// Operators whose results nobody uses. Ahead-of-time autograd has left them in for the error that their kernels may raise on real data (an index out of range, a matrix that is
// singular): they run as operators. Everything between rewrites and fusion sees the graph without them, and what they read as further outputs of it.
#pragma once
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::codegen {

class Kept {
 public:
  /// Takes them out. Those with effects stay where they are: nobody drops them.
  explicit Kept(ir::Graph&);
  /// Puts them back behind all others, reading what the further outputs are now, which go.
  void put_back(ir::Graph&) const;

 private:
  std::vector<ir::Node> nodes_;
  std::vector<ir::ValueId> reads_;   // one further output each
};

}  // namespace cutaway::codegen
