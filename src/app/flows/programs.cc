#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "app/flows/workers.h"

namespace cutaway::flows {
namespace {

namespace fs = std::filesystem;
bool is_program(const fs::path& f) { return !f.empty() && ::access(f.c_str(), X_OK) == 0 && !fs::is_directory(f); }

/// The folder of this library: the Python package.
fs::path own_folder() {
  Dl_info info{};
  std::error_code ec;
  if (!dladdr(reinterpret_cast<const void*>(&find_programs), &info) || !info.dli_fname) return {};
  return fs::absolute(info.dli_fname, ec).parent_path();
}

}  // namespace

Programs find_programs(const std::string& built_with) {
  std::error_code ec;
  Programs p;
  p.command = fs::read_symlink("/proc/self/exe", ec).string();
  const fs::path beside = fs::path(p.command).parent_path();
  if (const char* chosen = std::getenv("CUTAWAY_PYTHON"); chosen && *chosen) p.python = chosen;
  else if (is_program(beside / "python3")) p.python = beside / "python3";
  else if (is_program(built_with)) p.python = built_with;
  else p.python = "python3";
  return p;
}

base::Result<Programs> find_programs_from_python(const std::string& python) {
  const auto variable = [](const char* name) { const char* value = std::getenv(name); return std::string(value ? value : ""); };
  const fs::path package = own_folder();
  std::vector<fs::path> places = {variable("CUTAWAY_COMMAND"), package / ".." / ".." / "bin" / "cutaway", fs::path(python).parent_path() / "cutaway"};
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) places.push_back(fs::path(folder) / "cutaway");
  Programs p;
  for (const fs::path& place : places)
    if (is_program(place)) {
      p.command = fs::absolute(place).lexically_normal();
      break;
    }
  if (p.command.empty()) return base::Error{"the command cutaway is not found", "", "", "install the package again, or set CUTAWAY_COMMAND", ""};
  p.python = variable("CUTAWAY_PYTHON").empty() ? python : variable("CUTAWAY_PYTHON");
  const std::string path = variable("PYTHONPATH");
  p.environment = {{"CUTAWAY_PYTHON", p.python}, {"PYTHONPATH", package.parent_path().string() + (path.empty() ? "" : ":" + path)}};
  p.removed_environment = {"CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"};
  return p;
}

}  // namespace cutaway::flows
