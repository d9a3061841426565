// The files beside a bundle that a report is made from, as data: ablation.json, analysis.json, certificate.json and bisect.json.
// docs/formats/report_inputs.md is their document. Reading is strict, because a report that leaves out evidence misleads.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace cutaway::report {

/// One run of the ablation: the same program with a larger and larger part of the compiler.
struct AblationRow {
  std::string backend;
  std::string outcome;              ///< "pass" or "ok", "skipped"; everything else is a failure
  std::optional<double> seconds;
  std::string detail;
  bool passes() const { return outcome == "pass" || outcome == "ok"; }
  bool fails() const { return !passes() && outcome != "skipped"; }
};
base::Result<std::vector<AblationRow>> ablation_from_json(std::string_view text, std::string_view place);

/// One node or kernel of an analysis, in program order.
struct AnalysisRow {
  std::string node;                        ///< without the "%"
  std::string op;
  std::optional<double> local_error;       ///< absent: not measured; may be NaN or infinite
  std::optional<double> cumulative_error;
  std::string verdict;
  std::string source;
  bool is_wrong() const;                   ///< wrong by itself, not because of its inputs
};
base::Result<std::vector<AnalysisRow>> analysis_from_json(std::string_view text, std::string_view place);
/// The row that the analysis calls "(first)", else the first that is wrong by itself, or null.
const AnalysisRow* first_wrong(const std::vector<AnalysisRow>&);

/// What a reduction tried. Absent numbers were not recorded.
struct Certificate {
  bool one_minimal = false;
  bool stopped_early = false;
  std::optional<bool> verified;
  std::vector<std::pair<std::string, int64_t>> single_removals;   ///< pass, how many single steps of the final sweep no longer fail
  std::optional<int64_t> candidates, failed_runs, runs, nodes_before, nodes_after, elements_before, elements_after, new_kernels;
  std::string clean_process, repro;                               ///< what came of the two re-runs: "same failure", …; empty: not recorded
  std::optional<double> seconds, rate_of_the_start;
  std::string failure;
  struct Other { std::string failure, bundle; int64_t candidates = 0; };
  std::vector<Other> others;
  std::vector<std::pair<std::string, std::string>> unknown;       ///< fields of later writers: name, JSON text
};
base::Result<Certificate> certificate_from_json(std::string_view text, std::string_view place);

/// Which part of the compiler is guilty: what makes the failure go away when it is off.
struct Culprit {
  std::string kind, name;                  ///< "lowering", "aten.relu.default"; "option", "cpp.simdlen"
  std::optional<int64_t> number, of;       ///< of a part: which application of how many
  std::string graph, node, place;          ///< of a part: where it was applied; empty: not known
  std::string value, off;                  ///< of an option, as JSON: as it was (empty: at its default), and where the failure is gone
};
struct Bisection {
  std::optional<Culprit> guilty;
  std::vector<Culprit> also;               ///< what else makes it go away
  bool verified = false;
  std::string check;                       ///< the command that shows it
  std::optional<int64_t> trials;
};
/// What `cutaway bisect --json` prints; fields of other commands' answers in it are passed over.
base::Result<Bisection> bisection_from_json(std::string_view text, std::string_view place);

}  // namespace cutaway::report
