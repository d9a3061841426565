// What `analyze` finds, as data: one row a node, and where the numbers first go wrong. docs/formats/analysis.md is its document.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace cutaway::oracle {

/// One top-level node of the graph.
struct NodeAnalysis {
  std::string node;                         ///< its first result, without the "%"; for a node without results "#12", its position
  std::string op;
  std::optional<double> local_error;        ///< largest absolute difference from eager when fed with eager's own inputs; NaN: NaN on one side only
  std::optional<double> cumulative_error;   ///< the same in a run of the whole graph
  /// equal, last-bit, within tolerance, closer to fp64, ill-conditioned, ignored, nondeterministic, wrong, raises, crashes, hangs, wrong input (right on
  /// the right inputs, but it does not get them), fused away (has no value of its own in the compiled graph), not measured.
  std::string verdict;
  std::string source;                       ///< "model.py:23 Net.forward"; may be empty
  std::string reason;                       ///< the rule and the numbers that decided; may be empty
  std::string kernel;                       ///< of the compiled graph, that computes it; empty: not known, or none does
  bool operator==(const NodeAnalysis&) const = default;
};

struct Analysis {
  enum class Repeat : uint8_t { unknown, identical, same, differs };   ///< same: equal under the rules, not bit for bit
  std::vector<NodeAnalysis> nodes;          ///< all of them, in the order of the graph
  int64_t first_wrong = -1;                 ///< into nodes; -1: none
  int64_t together_with = -1;               ///< first node of the smallest stretch that is wrong, when first_wrong alone is right
  Repeat eager = Repeat::unknown, backend = Repeat::unknown;
  int64_t looks = 0, bad_looks = 0;         ///< how often the whole graph was compiled and compared, and was wrong
  int64_t pieces = 0, compiled = 0;         ///< parts of the graph that were measured; distinct ones that were compiled for it
  int64_t kernels = -1, distinct_kernels = -1;   ///< of the compiled graph; distinct by operators, types and literals; -1: not known
  int64_t materialised = -1;                ///< nodes with a value of their own in the compiled graph; -1: not known
  double error = 0;                         ///< of the whole graph: the largest absolute difference
  std::vector<std::string> remarks;         ///< what could not be measured, and why
};

base::Json analysis_to_json(const Analysis&);
/// The rows of analysis.json (docs/formats/report_inputs.md). The verdict on the first wrong node begins with "WRONG (first)".
base::Json analysis_rows(const Analysis&);
/// "WRONG (first)" for that node, with what else is known of it; the plain verdict for all others.
std::string shown_verdict(const Analysis&, size_t node);
/// Strict: what it does not know is refused, with its place.
base::Result<Analysis> analysis_from_json(const base::Json&, std::string_view place);

}  // namespace cutaway::oracle
