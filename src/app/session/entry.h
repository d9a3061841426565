// What the command does once libtorch is loaded.
#pragma once
#include <string>

namespace cutaway::session {
/// Facts that only libtorch knows (version it was built against, devices, threads), as a JSON object.
std::string torch_report();
/// Serves trials on the descriptor that CUTAWAY_WORKER_FD names until the other side closes it.
int run_worker();
}  // namespace cutaway::session

/// The command's way in: argv[0] is the name of the work. Returns an exit code.
extern "C" int cutaway_entry(int argc, const char* const* argv);
