// What the command does once libtorch is loaded.
#pragma once
#include <string>

namespace cutaway::session {
/// Facts that only libtorch knows (version it was built against, devices, threads), as a JSON object.
std::string torch_report();
}  // namespace cutaway::session

/// The command's way in: argv[0] is the name of the work. Returns an exit code.
extern "C" int cutaway_entry(int argc, const char* const* argv);
