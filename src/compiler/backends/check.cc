#include "compiler/backends/check.h"

#include <cstdlib>
#include <mutex>
#include <stdexcept>

namespace cutaway::backends {
namespace {

/// Made when first asked for: others set them before main.
struct Hooks { std::mutex mutex; Checker checker; std::function<void(const std::string&)> raise; };
Hooks& hooks() {
  static Hooks* made = new Hooks;   // never gone: threads may still run when a process ends
  return *made;
}

}  // namespace

base::Result<int> check_level() {
  const char* given = std::getenv("CUTAWAY_CHECK");
  if (!given || !*given) return 0;
  if (given[0] >= '0' && given[0] <= '3' && !given[1]) return given[0] - '0';
  return base::Error{.what = "CUTAWAY_CHECK is '" + std::string(given) + "'", .because = "it is 0 (off), 1 (outputs), 2 (kernels) or 3 (every value)"};
}

void set_checker(Checker c) {
  const std::lock_guard lock(hooks().mutex);
  hooks().checker = std::move(c);
}
Checker checker() {
  const std::lock_guard lock(hooks().mutex);
  return hooks().checker;
}

void set_check_failure(std::function<void(const std::string&)> raise) {
  const std::lock_guard lock(hooks().mutex);
  hooks().raise = std::move(raise);
}
void raise_check_failure(const std::string& text) {
  std::function<void(const std::string&)> raise;
  {
    const std::lock_guard lock(hooks().mutex);
    raise = hooks().raise;
  }
  if (raise) raise(text);
  throw std::runtime_error(text);
}

}  // namespace cutaway::backends
