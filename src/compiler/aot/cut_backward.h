// The backward graph in pieces, each an autograd node of its own. One piece, unless results are computed from others that the caller gets too (Joint::cuts): then a gradient
// comes to those through autograd, as in eager, where hooks see and change it and where a pass may end or begin.
//
// What a value of the backward graph is computed from decides where it belongs: from the same tangents, counting the whole gradient of a cut as a tangent of its own, the same piece.
// So a pass comes by the pieces that eager's would come by, and nothing is computed twice. Internal to compiler/aot.
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "compiler/aot/joint.h"
#include "compiler/aot/partition.h"
#include "core/base/result.h"

namespace cutaway::aot {

struct BackwardPiece {
  ir::Graph graph;                        ///< inputs: saved values, tangents, what other pieces hand over, symbols
  std::vector<size_t> saved;              ///< positions in Split::saved
  std::vector<size_t> tangents;           ///< of Joint::tangents
  size_t handed = 0;                      ///< how many values other pieces hand over
  std::vector<std::string> symbol_inputs;
  /// Where an output goes: the gradient of a primal that requires grad (in their order), of a cut, or an input of a later piece, counted behind its saved values.
  struct Target {
    enum class To : uint8_t { primal, cut, piece };
    To to = To::primal;
    size_t index = 0, input = 0;
    bool operator==(const Target&) const = default;
  };
  std::vector<Target> targets;
};

/// In the order in which they run. `in_terms`: gradients are handed to the engine as the terms that eager hands it. Refused where the terms would come in another order.
base::Result<std::vector<BackwardPiece>> cut_backward(const Joint&, const Split&, bool in_terms);

}  // namespace cutaway::aot
