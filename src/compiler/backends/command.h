// A backend that is another program: command:PROGRAM [ARGUMENTS] {bundle}
// The program gets the graph and its inputs as a bundle directory and writes its results into another; docs/formats/command_backend.md is the
// protocol. It runs once for each call of the graph, in the caller's process group. Forward only: what it computes has no history.
#pragma once
#include <stdexcept>
#include <string>

#include "compiler/backends/backend.h"

namespace cutaway::backends {

/// What follows "command:". Words are split at spaces, with '…' and "…" as in a shell; no shell runs. `{bundle}` must be among them.
base::Result<std::unique_ptr<Backend>> make_command(std::string_view parameters);

/// The program was killed by a signal: a crash, for whoever asks.
struct ProgramDied : std::runtime_error {
  std::string signal;   ///< "SIGSEGV"
  ProgramDied(const std::string& what, std::string s) : std::runtime_error(what), signal(std::move(s)) {}
};

}  // namespace cutaway::backends
