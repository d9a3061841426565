// Runs one of our own Python programs to its end, in a process of its own with a time limit, and turns how it ended into a Status.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/flows/workers.h"
#include "core/base/result.h"

namespace cutaway::flows {

/// The last lines of what a program printed, without empty ones at the end.
std::string last_lines(std::string_view text, size_t most);

/// `python -m module words…`. Exit status 2 is an Error with the text that the program printed; any other bad end names it, with the last
/// lines. What it printed on standard error otherwise goes to `say`. It may not watch itself: the variables that ask for that are taken away.
base::Status run_python_program(const Programs&, const std::string& module, const std::vector<std::string>& words, const std::string& place, int64_t timeout_ms,
                                const std::function<void(const std::string&)>& say);

}  // namespace cutaway::flows
