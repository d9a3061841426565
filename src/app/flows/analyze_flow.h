// `cutaway analyze`: at which node of a bundle's graph do the numbers go wrong?
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "app/flows/run_flow.h"
#include "diagnosis/oracle/analysis.h"

namespace cutaway::flows {

struct AnalyzeOptions {
  std::filesystem::path bundle;
  std::filesystem::path archive;    ///< the .tar that it was unpacked from: what is written goes beside it
  std::string backend;              ///< empty: the recorded one
  std::string accuracy;             ///< empty: as recorded, and "accuracy" where none is
  std::string match;                ///< --match
  bool every_node = false;          ///< --all
  double budget_s = 60;             ///< for nodes beyond the first wrong one
  bool is_trusted = false;
  bool is_own = false;           ///< the caller has written the bundle a moment ago: nothing is said about trust
  bool only_forward = false;
  int64_t timeout_ms = 1'800'000;   ///< of the whole analysis
  int64_t part_timeout_s = 120;     ///< of one part: then it hangs
  std::function<void(const std::string&)> on_step;   ///< a line about what happens now
  std::function<bool()> is_interrupted;
  uint64_t max_bytes = 0;
  int threads = 0;                        ///< 0: as the bundle says, else one
  worker::Client* worker = nullptr;   ///< one for this backend and environment that runs already; null: one is started
};
struct AnalyzeReport {
  int exit_code = kUnreadable;
  oracle::TrialResult result;       ///< of the whole graph
  oracle::Analysis analysis;
  std::string backend, accuracy, bundle;
  std::string repro;                ///< path of repro.py; empty: there is none
  std::string flags;                ///< for the next command
  uint64_t nodes = 0;
  uint64_t elements_before = 0, elements_after = 0;   ///< of the inputs; after they were cut
  std::string shrunk;               ///< how, where they were
  std::string written;              ///< analysis.json; empty when it could not be written
  std::string report;               ///< the page with the plot; empty when it could not be written
  int64_t peak_kb = 0;
  double seconds = 0;
  enum class Rows { of_interest, all };
  std::string text(Rows) const;     ///< the answer first, then the table
  std::string to_json() const;
};
/// Writes analysis.json into the bundle's directory, or beside its .tar. An Error for what cannot be read or run.
base::Result<AnalyzeReport> analyze_bundle(const Programs&, const AnalyzeOptions&);

/// The table alone, with "..." for rows that are left out.
std::string analysis_table(const oracle::Analysis&, AnalyzeReport::Rows);

}  // namespace cutaway::flows
