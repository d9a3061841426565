// `cutaway run`: does this bundle still fail, and as recorded?
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "app/flows/workers.h"
#include "diagnosis/oracle/switches.h"
#include "diagnosis/oracle/trial.h"

namespace cutaway::flows {

/// Exit codes of run, triage, minify, analyze and bisect. docs/exit_codes.md; do not renumber.
enum ExitCode : int { kPasses = 0, kFailsAsRecorded = 1, kUnreadable = 2, kFailsOtherwise = 3, kEagerFails = 4, kStartDoesNotFail = 5 };

/// Of an option: the compiler's own value instead of the recorded one.
inline constexpr std::string_view kDefaultOption = "default";

struct RunOptions {
  std::filesystem::path bundle;
  std::string backend;            ///< empty: the recorded one
  std::string accuracy;           ///< empty: as recorded
  std::string device;             ///< empty: as recorded; else "cpu" or "cuda"
  bool is_trusted = false;
  bool random_inputs = false;
  bool only_forward = false;
  int64_t timeout_ms = 300'000;
  uint64_t max_bytes = 0;
  std::vector<std::string> before;        ///< bundles that are compiled and run in the same process first
  int threads = 0;                        ///< 0: as the bundle says, else one
  std::string match;
  std::filesystem::path archive;  ///< the .tar that the bundle was unpacked from; empty: it is the user's own directory
  bool has_profile = false;       ///< native: profile.json and report.html in the bundle tell where time goes
  oracle::Switches switches;      ///< parts of the compiler to run without; an option with the value kDefaultOption is as if never recorded
  std::string cache_directory;    ///< of compiled kernels, by their text; empty: an empty one that is removed again
  worker::Client* worker = nullptr;   ///< one for this backend and environment that has served nothing else; null: one is started
  std::function<void(const std::string&)> on_step;   ///< a line about what happens now
  std::function<bool()> is_interrupted;
};
struct RunReport {
  int exit_code = kUnreadable;
  oracle::TrialResult result;
  std::string backend, accuracy, bundle;
  std::string page;              ///< report.html, where one was written
  std::string repro;             ///< path of repro.py; empty: there is none
  std::string flags;             ///< for the next command
  uint64_t nodes = 0;
  bool is_recorded_failure = false;
  bool has_record = false;       ///< the bundle says how it failed
  double seconds = 0;
  std::string text() const;      ///< the answer first, then the evidence
  std::string to_json() const;
};
base::Result<RunReport> run_bundle(const Programs&, const RunOptions&);

/// How a bundle's numbers are compared: as asked for, else as recorded; one that was found wrong is compared.
std::string accuracy_of(const std::string& asked, const bundle::Manifest&);

/// The common keys of --json for an outcome.
std::string_view outcome_word(int exit_code);

}  // namespace cutaway::flows
