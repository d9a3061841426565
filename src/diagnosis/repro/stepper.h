// Runs a graph in eager stretch by stretch and holds exactly the values that the rest still needs: what parts of the graph are fed with.
// Memory stays that of a plain run. Values are those of the moment: a tensor that a later node writes to is seen as it is here.
#pragma once
#include <ATen/core/ivalue.h>

#include <vector>

#include "core/exec/random_state.h"
#include "core/ir/graph.h"

namespace cutaway::repro {

class Stepper {
 public:
  /// Draws random numbers from `start` on, as one run of the whole graph would. The graph must outlive it. What the nodes of one of `groups`
  /// (positions, rising) use is held until the group's last node.
  Stepper(const ir::Graph&, const std::vector<c10::IValue>& inputs, const exec::RandomStart& start, const std::vector<std::vector<size_t>>& groups = {});
  /// Runs up to top-level node `to`, which is not run. Never back. Throws what eager throws.
  void advance(size_t to);
  /// Values that nodes from here on use.
  std::vector<c10::IValue> values(const std::vector<ir::ValueId>&) const;

 private:
  const ir::Graph& graph_;
  exec::RandomStateScope random_;
  std::vector<c10::IValue> values_;                  // by ValueId; empty ones are not there yet, or no longer
  std::vector<std::vector<ir::ValueId>> last_uses_;  // by node: what nothing uses after it
  size_t at_ = 0;
};

}  // namespace cutaway::repro
