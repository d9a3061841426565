#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/flows/workers.h"

namespace cutaway::flows {

Programs find_programs(const std::string& built_with) {
  namespace fs = std::filesystem;
  std::error_code ec;
  Programs p;
  p.command = fs::read_symlink("/proc/self/exe", ec).string();
  const auto is_program = [](const fs::path& f) { return !f.empty() && ::access(f.c_str(), X_OK) == 0; };
  const fs::path beside = fs::path(p.command).parent_path();
  if (const char* chosen = std::getenv("CUTAWAY_PYTHON"); chosen && *chosen) p.python = chosen;
  else if (is_program(beside / "python3")) p.python = beside / "python3";
  else if (is_program(built_with)) p.python = built_with;
  else p.python = "python3";
  return p;
}

}  // namespace cutaway::flows
