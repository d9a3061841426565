// What every flow over a failing bundle begins with: open it, ask for trust, and look whether it fails, how, and how often.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/bundle/bundle.h"
#include "diagnosis/oracle/trial.h"

namespace cutaway::flows {

struct OpenOptions {
  std::filesystem::path bundle;
  std::string backend;                                ///< empty: the recorded one
  std::string match;                                  ///< checked to be a pattern
  bool is_trusted = false;
  std::function<void(const std::string&)> say;        ///< what --trust lets run
};
/// The bundle with its backend chosen. An Error for what cannot be read, for no backend at all, and for what needs --trust.
base::Result<bundle::Bundle> open_to_run(const OpenOptions&);

struct Start {
  int exit_code = 0;                  ///< 0: it fails as wanted; else kStartDoesNotFail, kEagerFails or kFailsOtherwise, with a message
  oracle::TrialResult result;         ///< of a run that failed, where one did
  std::string message;
  double rate = 1;                    ///< how often it failed
  uint64_t repeats = 1;               ///< runs that must all pass before a case counts as passing
};
/// How often to look again at a case that failed, to see whether it always does: twelve times (a coin would show its other side in 4,095 of 4,096),
/// fewer where that takes more than three seconds, never at a hang.
int more_looks(const oracle::TrialResult&);
/// How often to look again at a case that has failed somewhere and passes now: 39 times (a failure in 1 of 10 runs shows in 98 of 100), fewer where
/// that takes more than 20 seconds, 11 at least.
int looks_at_passing(const oracle::TrialResult&);
/// How many runs must pass before a case counts as passing, where the failure came in this part of so many runs (less than all of them).
uint64_t repeats_for(double rate, size_t runs);
/// Runs the unreduced case so many times.
using AskStart = std::function<base::Result<std::vector<oracle::TrialResult>>(int times)>;
/// A start that fails is looked at again where that is cheap; one that passes gets more looks, for it may fail now and then.
base::Result<Start> look_at_start(const AskStart&, const bundle::FailureSignature& recorded, const std::string& match, const std::string& place);

}  // namespace cutaway::flows
