// Commands that run the user's script in Python and tell about it: what follows the options is the script's own.
// Main functions: declare_script, which makes the rest of the line the script's, and run_script.
#pragma once
#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cutaway::cli {

/// `says` is what torch.compile means while the script runs.
void declare_script(CLI::App&, std::string_view says);
/// Becomes `python -m MODULE OPTIONS SCRIPT ARGS…`, whose output and end are ours. Returns only when that is not possible: an exit code.
int run_script(const CLI::App&, std::string_view module, const std::vector<std::string>& options);

}  // namespace cutaway::cli
