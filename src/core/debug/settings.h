// What the environment says about logs, events and the debug directory, read once at the edge of the program and passed down.
// docs/env_vars.md lists the variables. Nothing else in this folder looks at the environment.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/debug/debug_directory.h"
#include "core/debug/log_filter.h"

namespace cutaway::debug {

struct Settings {
  LogFilter logs;                   ///< TORCH_LOGS, then CUTAWAY_LOGS over it
  FileChoice files;                 ///< CUTAWAY_DEBUG (or TORCH_COMPILE_DEBUG) and CUTAWAY_DEBUG_FILES
  std::string debug_root = ".";     ///< CUTAWAY_DEBUG_DIR, else TORCH_COMPILE_DEBUG_DIR
  std::string events_file;          ///< CUTAWAY_EVENTS; empty: none
  std::vector<std::string> notes;   ///< said once in the log: words that were left to torch
  std::string help;                 ///< the table of topics, when CUTAWAY_LOGS has the word "help"
};
/// The value of a variable, or nothing.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
/// A value that makes no sense is an Error that names the variable; those that other folders read are looked at too.
base::Result<Settings> from_environment(const Lookup&);
/// CUTAWAY_DEBUG_DIR, else TORCH_COMPILE_DEBUG_DIR, else ".": the folder that gets "cutaway_debug".
std::string debug_root(const Lookup&);
/// Looks variables up in this process.
std::optional<std::string> process_environment(const char* name);

}  // namespace cutaway::debug
