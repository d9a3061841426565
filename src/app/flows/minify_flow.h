// `cutaway minify`: from a failing bundle to the smallest one that fails the same way, verified from its files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/flows/run_flow.h"
#include "app/flows/script_run.h"
#include "diagnosis/minify/minify.h"

namespace cutaway::flows {

/// What is said of a failure that needs no node.
inline constexpr std::string_view kAnyGraph = "fails the same way, even one that computes nothing: this operator is not the cause";

struct MinifyOptions {
  std::filesystem::path bundle;          ///< or its .tar
  std::filesystem::path output;          ///< empty: the bundle's name with "-minimal"
  std::string backend, accuracy;         ///< empty: as recorded
  std::string match;
  std::vector<std::string> passes;
  int jobs = 2;
  int64_t timeout_ms = 120'000;
  uint64_t max_bytes = 0;
  double time_budget_s = 0;
  bool resume = false;
  bool is_trusted = false;
  bool only_forward = false;
  std::optional<std::pair<size_t, size_t>> only_nodes;   ///< start from these nodes, [first, past the last), fed with eager's values
  uint64_t elements_before = 0;          ///< of the case that this bundle was shrunk from; 0: it is the first
  std::string op_hint;                   ///< an operator to try first (analyze's first wrong node)
  worker::Client* worker = nullptr;      ///< one for this backend and environment that runs already; null: one is started
  std::string cache_directory;           ///< of that worker's compiled kernels
  std::optional<oracle::TrialResult> known_start;   ///< how the bundle failed a moment ago in that worker: it is not run again
  std::string on = {};                   ///< a cluster that the candidates run on (WorkerOptions::on); empty: this machine
  std::function<bool(const minify::Progress&)> on_progress;   ///< false: the search stops with the best so far
  std::function<void(const std::string&)> on_step;   ///< a line about what happens now
  std::function<bool()> is_interrupted = nullptr;    ///< true: what waits for a worker gives up, and the reduction ends with an Error
};

struct MinifyReport {
  int exit_code = kUnreadable;
  oracle::TrialResult start;             ///< how the unreduced bundle failed
  oracle::TrialResult finish;            ///< how the smallest one failed when it was run from its files
  ScriptRun script;                      ///< how its repro.py ended
  std::string bundle, output, repro, report, backend, message;   ///< `report`: the page, empty when none was written
  minify::Score before, after;
  uint64_t candidates = 0, cached = 0;
  int64_t new_kernels = 0;
  double seconds = 0, search_seconds = 0;   ///< in all; of the engine alone
  bool one_minimal = false, stopped_early = false;
  bool needs_no_node = false;            ///< a graph that computes nothing fails too: it is no matter of any operator
  int fails = 0, runs = 0;               ///< of the final re-runs
  double start_rate = 1;                 ///< how often the unreduced bundle failed
  bool start_was_run = true;             ///< false: a small part of it failed as recorded first
  struct Other { std::string description, path; uint64_t count; };
  std::vector<Other> others;
  std::string graph_text;                ///< the smallest graph
  std::string attach;                    ///< which file to attach to a bug report, and what it needs
  std::string flags;                     ///< for the command that goes on from here
  bool needs_trust = false;              ///< the smallest one does more than compute
  std::string refusal() const;           ///< why nothing was reduced, or not verified; empty with exit_code 0
  std::string proof() const;             ///< what was run again at the end, in words
  std::string text() const;
  std::string to_json() const;
};
/// An Error for what cannot be read or written; everything else is in the report.
base::Result<MinifyReport> minify_bundle(const Programs&, const MinifyOptions&);

}  // namespace cutaway::flows
