// `cutaway bisect`: which part of torch's Inductor is guilty of a bundle's failure? Parts are switched off until it passes: passes, pattern
// replacements, decompositions, lowerings and fusions one application at a time, options by their value. The answer is verified in fresh processes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/flows/minify_flow.h"
#include "diagnosis/oracle/switches.h"

namespace cutaway::flows {

struct BisectOptions {
  std::filesystem::path bundle;
  std::filesystem::path archive;         ///< the .tar that it was unpacked from: what is written goes beside it
  std::filesystem::path output;          ///< of the smallest bundle; empty: the bundle's name with "-minimal"
  std::string backend, accuracy;         ///< empty: as recorded
  std::string match;
  int jobs = 2;
  int64_t timeout_ms = 120'000;
  uint64_t max_bytes = 0;
  bool is_trusted = false;
  bool only_forward = false;
  bool minify = true;
  bool try_options = true;               ///< else only the parts
  std::function<bool(const minify::Progress&)> on_progress;
  std::function<void(const std::string&)> on_step;
  std::function<bool()> is_interrupted;
};

/// What makes the failure go away when it is switched off: one application of a part, or an option.
struct Culprit {
  std::string part;                      ///< of core/capabilities/parts.h; empty: an option
  oracle::Application application;       ///< of a part
  int64_t of = 0;                        ///< applications of the part in one compilation
  bool is_alone = false;                 ///< of a part: with all applications of this name off, and no other, it passes
  std::string option, value, off;        ///< an option, as it was (empty: at its default) and as it is when the failure is gone
  /// "lowering 17 of 120: aten.relu.default (node relu_3)", "option cpp.simdlen = 1".
  std::string text() const;
  /// What `cutaway run` takes to switch it off.
  std::string flag() const;
};

struct BisectReport {
  int exit_code = kUnreadable;
  oracle::TrialResult start;
  std::string bundle, backend, accuracy, message;
  std::string flags;                     ///< for the next command
  std::optional<Culprit> guilty;
  std::vector<Culprit> also;             ///< other switches that make it pass
  std::optional<MinifyReport> minified;
  std::string check;                     ///< the command that shows it
  std::string report;                    ///< the page that tells it; empty when it could not be written
  uint64_t nodes = 0, trials = 0;
  bool is_verified = false;
  double seconds = 0;
  std::string text() const;
  std::string to_json() const;
};
/// Writes bisect.json into the smallest bundle, or into the bundle (beside its .tar) when nothing is minified, and the page there. An Error for what cannot be read or run.
base::Result<BisectReport> bisect_bundle(const Programs&, const BisectOptions&);

}  // namespace cutaway::flows
