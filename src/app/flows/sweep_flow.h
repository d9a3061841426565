// `cutaway sweep`: many graphs with many backends, dtypes and batch sizes. Each combination is a cell and runs in a worker's child; what fails is cut down, and
// failures that come to the same minimal graph are told once. Every answer is on disk before the next question: a sweep that was killed goes on where it was.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/flows/minify_flow.h"
#include "app/flows/variation.h"
#include "diagnosis/generate/random_graph.h"

namespace cutaway::flows {

struct SweepOptions {
  std::vector<std::string> subjects;        ///< bundles, their .tar files, folders of them, scripts (.py)
  uint64_t random_graphs = 0;               ///< as many random graphs besides
  generate::RandomOptions random;           ///< its seed is the first one
  std::vector<std::string> backends;        ///< empty: as recorded; random graphs: native
  std::vector<std::string> dtypes;          ///< names of the text form, or "recorded"; empty: as recorded
  std::vector<int64_t> batches;             ///< 0: as recorded; empty: as recorded
  std::vector<std::string> modes;           ///< "inference", "training"; empty: training where an input asks for gradients
  std::filesystem::path output;             ///< empty: cutaway_sweep
  std::string accuracy = "accuracy";        ///< "none", "accuracy", "strict"
  int jobs = 2;
  int64_t timeout_ms = 120'000;
  uint64_t max_bytes = 0;
  bool resume = false;
  bool is_trusted = false;
  uint64_t most_reduced = 20;               ///< failures that are cut down; the others are listed
  double reduction_budget_s = 120;          ///< for each
  std::string on;                           ///< "ray://HOST:PORT", "ray": workers of a Ray cluster; empty: this machine
  std::function<void(const std::string&)> on_step;
  std::function<void(uint64_t done, uint64_t failures)> on_progress;
  std::function<bool()> is_interrupted;
};

/// One combination, and what came of it.
struct SweepCell {
  std::string subject, backend, dtype, mode;   ///< dtype "recorded": as it was
  int64_t batch = 0;
  std::string graph;                           ///< digest of the graph as the subject has it: an answer about another one does not count
  std::string outcome;                         ///< "pass", "failure", "eager_fails", "unfit" (no such form of this graph), "not_run"
  bundle::FailureSignature signature;
  std::string message;                         ///< of a failure, or why it is unfit
  double eager_ms = 0, compile_ms = 0, run_ms = 0;
  std::string key() const;                     ///< names the combination; the same in every run
  std::string column() const;                  ///< everything but the subject, as people read it: "inductor, bf16, batch 3, training"
};

/// Failures that are one bug, as far as can be told: the same kind of failure, and the same operators in the minimal graph.
struct SweepFailure {
  std::string description, backend;
  std::vector<std::string> cells;              ///< keys
  std::string bundle, repro, report, graph;    ///< of the minimal one; empty where it was not cut down
  uint64_t nodes = 0;
  bool is_verified = false;
  std::string note;                            ///< why it was not cut down, or did not fail again
};

struct SweepReport {
  std::vector<SweepCell> cells;
  std::vector<SweepFailure> failures;
  std::string output, page;
  uint64_t answered_before = 0;                ///< cells that an earlier run had answered
  bool was_interrupted = false;
  double seconds = 0;
  uint64_t count(std::string_view outcome) const;
  int exit_code() const;                       ///< 0: nothing fails, 1: something does, 2: some cells could not be run, 130: interrupted
  std::string text() const;
  std::string to_json() const;
};
/// An Error for what cannot be read or written, and for a folder that has another sweep in it.
base::Result<SweepReport> sweep(const Programs&, const SweepOptions&);

}  // namespace cutaway::flows
