// The split of a joint graph into a forward graph and a backward graph, and what the first saves for the second.
//
// Saving costs memory between the two; making a value again costs time. Two ways: `save_all` saves what backward uses (views by their
// storage's owner, which costs nothing more); `min_cut` chooses the set of values of the fewest bytes from which backward can be computed when cheap
// operators may run again. Random operators and those with effects run once, in forward, in their recorded order.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/aot/joint.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace cutaway::aot {

enum class Partition : uint8_t { min_cut, save_all };

/// A value that backward takes from forward, and where the run-time wrapper finds it.
struct Saved {
  enum class From : uint8_t { primal, constant, result, extra };
  From from = From::extra;
  size_t index = 0;          ///< of the primal, the constant, the forward result; of an extra output of the forward graph: after the results
  /// Forward results whose storage this is a part of: a caller who writes to them afterwards must be noticed.
  std::vector<size_t> shares_with;
};

struct Split {
  ir::Graph forward;         ///< inputs: primals, constants; outputs: forward results, then extra ones
  ir::Graph backward;        ///< inputs: saved values, tangents, symbols; outputs: as the joint graph's gradients. Empty without a backward part
  std::vector<Saved> saved;
  std::vector<std::string> symbol_inputs;   ///< of the backward graph: symbols that no tensor among its inputs tells
  int64_t saved_bytes = 0;   ///< of what lives only for backward: not primals, constants and forward results
  int64_t kept_bytes = 0;    ///< of saved inputs and forward results, which live anyway as long as their owners keep them
  size_t recomputed = 0;     ///< operators that run in both graphs
};

/// Takes what it needs from the joint graph, whose name is the stem of the two names. Fails when a value that backward needs cannot be saved.
base::Result<Split> split(const Joint&, Partition, std::string_view stem);

}  // namespace cutaway::aot
