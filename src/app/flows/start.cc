#include "app/flows/start.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "app/flows/permission.h"
#include "app/flows/run_flow.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/trust.h"

namespace cutaway::flows {
namespace {

using oracle::TrialResult;
constexpr int kRateRuns = 8;             // looks at a start that does not always fail
constexpr int kBatch = 13;               // looks before it is asked whether one was enough
constexpr double kMissedFailure = 0.02;  // how likely a flaky failure may be taken for "passes"
bool fails(const TrialResult& r) { return r.outcome == TrialResult::Outcome::failure; }

}  // namespace

int more_looks(const TrialResult& r) {
  constexpr double kMost = 12, kMostMs = 3000;
  if (r.signature.kind == "hang") return 0;
  return static_cast<int>(std::min(kMost, kMostMs / std::max(1.0, r.eager_ms + r.compile_ms + r.run_ms)));
}

int looks_at_passing(const TrialResult& r) {
  constexpr double kFewest = 11, kMost = 39, kMostMs = 20'000;
  return static_cast<int>(std::clamp(kMostMs / std::max(1.0, r.eager_ms + r.compile_ms + r.run_ms), kFewest, kMost));
}

uint64_t repeats_for(double rate, size_t runs) {
  // The rate may be lower than it looked in so few runs.
  const double n = static_cast<double>(runs);
  const double low = std::max(rate - 1.28 * std::sqrt(rate * (1 - rate) / n), 0.5 / n);
  return static_cast<uint64_t>(std::ceil(std::log(kMissedFailure) / std::log(1 - low)));
}

base::Result<bundle::Bundle> open_to_run(const OpenOptions& options) {
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, bundle::read_bundle(options.bundle));
  if (!options.match.empty()) CUTAWAY_TRY(oracle::check_pattern(options.match));
  if (!options.backend.empty()) {
    if (const std::string other = capabilities::nearest(options.backend); !other.empty())
      return base::Error{"unknown backend " + base::quote(options.backend) + other + " (cutaway backends lists them)", "", "", "", ""};
    b.manifest.backend = options.backend;
  }
  if (b.manifest.backend.empty()) return base::Error{"the bundle names no backend", options.bundle.string(), "", "--backend inductor, or another one (cutaway backends lists them)", ""};
  CUTAWAY_TRY(check_trust(b, options.is_trusted, options.say));
  if (is_live(b.manifest.backend) && program_of(b.manifest).empty())
    return base::Error{"the backend " + b.manifest.backend.substr(5) + " lived in a process that is gone", options.bundle.string(), "no script makes it again: it came from an interactive session", "--backend with another one", ""};
  return b;
}

base::Result<Start> look_at_start(const AskStart& ask, const bundle::FailureSignature& recorded, const std::string& match, const std::string& place) {
  CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> results, ask(1));
  const TrialResult first = results.front();
  const bool is_judged = first.outcome != TrialResult::Outcome::eager_fails && first.outcome != TrialResult::Outcome::invalid;
  int looks = !is_judged ? 0 : fails(first) ? more_looks(first) : recorded.kind.empty() ? kRateRuns : looks_at_passing(first);
  if (looks > 0) {
    do {
      CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> more, ask(std::min(looks, kBatch)));
      results.insert(results.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
      looks -= kBatch;
    } while (looks > 0 && (fails(results.front()) || std::none_of(results.begin(), results.end(), fails)));
    const auto count = std::count_if(results.begin(), results.end(), fails);
    if (count > 0 && count < static_cast<int64_t>(results.size())) {
      // Looks at the start are cheap: the better its rate is known, the fewer every candidate needs.
      CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> rest, ask(std::max(kRateRuns, looks_at_passing(first))));
      results.insert(results.end(), rest.begin(), rest.end());
    }
  }
  Start start;
  const auto failing = std::find_if(results.begin(), results.end(), fails);
  start.result = failing == results.end() ? results.front() : *failing;
  start.rate = static_cast<double>(std::count_if(results.begin(), results.end(), fails)) / static_cast<double>(results.size());
  const TrialResult& s = start.result;
  if (s.outcome == TrialResult::Outcome::invalid) return base::Error{"the bundle cannot be run", place, s.message, "", ""};
  if (s.outcome == TrialResult::Outcome::eager_fails) {
    start.exit_code = kEagerFails;
    start.message = s.message;
  } else if (!fails(s)) {
    start.exit_code = kStartDoesNotFail;
    start.message = "passed " + std::to_string(results.size()) + " of " + std::to_string(results.size()) + " runs";
  } else if (!recorded.kind.empty() && !oracle::is_same_failure(recorded, s.signature, s.message, match)) {
    start.exit_code = kFailsOtherwise;
    start.message = "recorded: " + oracle::describe(recorded) + "\nnow: " + oracle::describe(s.signature);
  } else if (start.rate < 1) {
    start.repeats = repeats_for(start.rate, results.size());
  }
  return start;
}

}  // namespace cutaway::flows
