// `cutaway triage`: from a user's script to what failed, in which stage, at which operator and line, and a minimal bundle of it.
// One pass: observe the script, ablate the saved graph (eager, aot_eager, the backend), analyze wrong numbers, minify, report.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/flows/minify_flow.h"
#include "app/flows/observation.h"

namespace cutaway::flows {

struct TriageOptions {
  std::vector<std::string> script;         ///< its path, "-" (its text is standard input), or "-m" and a module; and its arguments
  std::filesystem::path output;            ///< empty: cutaway_debug/run_<time>-pid_<pid>
  std::string accuracy = "accuracy";       ///< looked at when nothing raises; "none": not at all; "strict"
  int check_calls = 0;                     ///< accuracy: calls of each graph that are checked; 0: all
  int jobs = 2;
  int64_t timeout_ms = 300'000;            ///< of one compilation or call
  int64_t quiet_ms = 1'800'000;            ///< of the script's own code, without a sign of life
  uint64_t max_bytes = 0;                  ///< memory of a candidate, and of the script
  double time_budget_s = 0;                ///< of the reduction
  std::function<bool(const minify::Progress&)> on_progress;
  std::function<void(const std::string&)> on_step;
  std::function<bool()> is_interrupted;
};

/// One row of the ablation: the same graph with more and more of the compiler.
struct AblationRun {
  std::string backend;
  std::string outcome;                     ///< "pass", "skipped", "eager_fails", or the kind of failure
  std::optional<double> seconds;
  std::string detail;                      ///< one line
};
/// The text of ablation.json; docs/formats/observation.md.
std::string ablation_to_json(const std::vector<AblationRun>&);

struct TriageReport {
  int exit_code = kUnreadable;
  Observation seen;
  std::string stage;                       ///< capture, aot, backend; empty: no failure
  std::string backend;
  std::string kind;
  bundle::FailureSignature signature;
  std::vector<AblationRun> ablation;
  std::string output;                      ///< the run's folder
  std::string bundle;                      ///< the minimal one, else the whole one
  std::string repro, report, message;
  std::string attach;                      ///< which file to attach to a bug report, and what it needs
  std::vector<Observation::Judged> judged; ///< graphs that are no failure and differ from eager, or could not be judged
  std::vector<std::string> before;         ///< bundles that must be compiled and run before `bundle` in one process for it to fail
  std::vector<std::string> tried;          ///< where the saved graph passes alone: what else was tried
  std::optional<MinifyReport> minimal;
  std::optional<uint64_t> nodes, elements; ///< of the graph as captured
  struct FirstWrong { std::string node, op, source, reason, kernel; };
  std::optional<FirstWrong> first_wrong;   ///< of wrong numbers in the whole graph, by analysis; else in the minimal one
  std::string analysis;                    ///< analysis.json of the whole graph; empty: none
  double seconds = 0;
  std::string text() const;                ///< one screen
  std::string to_json() const;
};
base::Result<TriageReport> triage_script(const Programs&, const TriageOptions&);

}  // namespace cutaway::flows
