// Runs a bundle's repro.py as the person will who gets it: a new process, torch alone. The other half of a result's proof.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "app/flows/workers.h"
#include "core/base/json.h"
#include "core/base/result.h"
#include "core/base/running.h"
#include "core/bundle/bundle.h"

namespace cutaway::flows {

struct ScriptRun {
  enum class Outcome : uint8_t {
    same_failure,     ///< exit status 1, or the recorded signal
    passes,           ///< exit status 0
    otherwise,        ///< another failure, or none that can be named
    cannot_run,       ///< exit status 2: its backend is no part of torch
    absent,           ///< there is no repro.py
  };
  Outcome outcome = Outcome::absent;
  std::string ending;       ///< "exit status 1", "SIGSEGV"
  std::string said;         ///< the last lines that it printed
  double seconds = 0;
  /// For the certificate.
  base::Json to_json() const;
};
struct ScriptLimits {
  int64_t timeout_ms = 300'000;   ///< of compiling and running; starting Python comes on top
  uint64_t max_bytes = 0;         ///< 0: none
  bool is_trusted = false;        ///< modules may come from the directories that the bundle names
};
/// A Python that loads torch while a search goes on, and waits for the script. It is a process of its own as that of `python repro.py` is; nothing of
/// the search or of Cutaway is in it. Destroying it ends it.
class EarlyPython {
 public:
  /// For a script of a graph with this manifest.
  static base::Result<EarlyPython> start(const Programs&, const bundle::Manifest&, const ScriptLimits&);

 private:
  friend class ScriptStart;
  EarlyPython(base::Running process, base::FileDescriptor script, base::Command command) : process_(std::move(process)), script_(std::move(script)), command_(std::move(command)) {}
  base::Running process_;
  base::FileDescriptor script_;   // gets the path of the script
  base::Command command_;
};

/// `expected` is how it should fail. `early` is used where it was started as the script wants to be. An Error only where no process could be started.
base::Result<ScriptRun> run_script(const Programs&, const std::filesystem::path& bundle, const bundle::Manifest&, const bundle::FailureSignature& expected, const ScriptLimits&,
                                   std::optional<EarlyPython> early = std::nullopt);

}  // namespace cutaway::flows
