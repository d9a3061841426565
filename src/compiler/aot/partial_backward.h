// Backward passes that begin at some of the outputs. Eager runs only what leads to those: an output that the loss does not use adds nothing to a gradient (not
// zero times infinity), and its history stays when theirs is freed. Internal to compiler/aot.
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace cutaway::aot {

/// What the backward graph does with each tangent.
struct TangentFacts {
  std::vector<std::vector<size_t>> tangents_of;   ///< by gradient: what it is computed from; empty for one that nothing reaches
  std::vector<std::vector<size_t>> spent_with;    ///< by tangent: those whose backward pass reads something that its own pass frees, itself among them
};
TangentFacts find_tangent_facts(const ir::Graph& backward, size_t saved, size_t tangents);
/// By value: the tangents that it is computed from.
std::vector<std::set<size_t>> find_origins(const ir::Graph& backward, size_t saved, size_t tangents);
/// x + y, as the engine adds up gradients.
bool is_sum(const ir::Node&);

/// Sums that the engine made of an input's gradients become their terms: it adds them to those of other graphs in eager's order, one after the other.
/// Only of the first `count` outputs. By output: the one that it belonged to.
std::vector<size_t> take_sums_apart(ir::Graph& backward, const std::set<std::string>& sums, size_t count);

/// A backward graph, and which of the saved values and tangents it takes: in their order, then the symbols.
struct BackwardGraph {
  ir::Graph graph;
  std::vector<size_t> saved, tangents;
  std::vector<std::string> symbol_inputs;
};
/// The part that runs when these tangents are given and no others. Gradients that it does not reach are none.
BackwardGraph take_part(const ir::Graph& backward, size_t saved, const std::vector<bool>& given, bool is_symbolic);

}  // namespace cutaway::aot
