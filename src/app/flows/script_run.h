// Runs a bundle's repro.py as the person will who gets it: a new process, torch alone. The other half of a result's proof.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "app/flows/workers.h"
#include "core/base/json.h"
#include "core/base/result.h"
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
/// `expected` is how it should fail. An Error only where no process could be started.
base::Result<ScriptRun> run_script(const Programs&, const std::filesystem::path& bundle, const bundle::Manifest&, const bundle::FailureSignature& expected, const ScriptLimits&);

}  // namespace cutaway::flows
