#include "app/flows/workers.h"

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"
#include "core/capabilities/capabilities.h"

namespace cutaway::flows {

base::Command Programs::with_variables(base::Command command) const {
  for (const auto& variable : environment)
    if (std::none_of(command.environment.begin(), command.environment.end(), [&](const auto& own) { return own.first == variable.first; })) command.environment.push_back(variable);
  command.removed_environment.insert(command.removed_environment.end(), removed_environment.begin(), removed_environment.end());
  return command;
}

base::Result<base::Process> Programs::start(const base::Command& given, const std::vector<std::pair<int, int>>& descriptors) const {
  const base::Command command = with_variables(given);
  return launcher ? launcher->start(command, descriptors) : base::start_command(command, descriptors);
}

bool needs_python(std::string_view backend) {
  return !backend.empty() && capabilities::row_of(backend).lives == capabilities::Lives::python;
}

bool is_live(std::string_view backend) { return capabilities::name_of(backend) == "live"; }
bool has_operators_of_program(const bundle::Manifest& m) { return m.extra.count("operators_of_the_program") > 0; }

std::string program_of(const bundle::Manifest& m) {
  if (!is_live(m.backend) && !has_operators_of_program(m)) return "";
  const auto found = m.extra.find("program");
  return found == m.extra.end() ? "" : found->second;
}

std::map<std::string, std::string> worker_environment(std::map<std::string, std::string> of_bundle) {
  // One thread until a trial says otherwise: a parallel region in the server would hang its children.
  of_bundle["OMP_NUM_THREADS"] = "1";
  of_bundle["MKL_NUM_THREADS"] = "1";
  return of_bundle;
}

std::unique_ptr<worker::Client> make_worker(const Programs& programs, std::string_view backend, const WorkerOptions& options) {
  std::map<std::string, std::string> environment = worker_environment(options.environment);
  const auto make = [&](std::vector<std::string> argv) {
    if (!options.on.empty()) argv.insert(argv.begin(), {programs.python, "-m", "cutaway.remote_worker", "--on", options.on, "--"});
    auto client = std::make_unique<worker::Client>(std::move(argv), std::move(environment), [programs](const auto& command, const auto& descriptors) { return programs.start(command, descriptors); });
    client->stop_when(options.is_interrupted);
    return client;
  };
  if (!needs_python(backend) && !options.imports_libraries && options.program.empty()) return make({programs.command, "worker"});
  environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1";
  if (!options.cache_directory.empty()) environment["TORCHINDUCTOR_CACHE_DIR"] = options.cache_directory;
  // A cached graph would hide a fault in lowering; kernels by their text are safe to share.
  environment["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0";
  environment["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0";
  if (!options.program.empty()) {
    const std::string file = (std::filesystem::path(options.cache_directory) / "program.json").string();
    if (auto written = base::write_file_atomic(file, options.program, base::Sync::fast); written.ok()) {
      std::vector<std::string> argv = {programs.python, "-m", "cutaway.observe", "--serve", file};
      if (!options.copy.empty()) argv.insert(argv.begin(), {programs.command, "worker", "--join", options.copy, "--"});
      return make(std::move(argv));
    }
  }
  std::vector<std::string> argv = {programs.python, "-m", "cutaway.worker"};
  const std::string_view ready = options.made_ready.empty() ? backend : std::string_view(options.made_ready);
  argv.insert(argv.end(), {"--backend", std::string(ready.substr(0, ready.find(':')))});
  if (!options.serves_many) argv.push_back("--once");
  if (options.is_trusted) argv.push_back("--trust");
  for (const std::string& p : options.python_path) { argv.push_back("--path"); argv.push_back(p); }
  return make(std::move(argv));
}

}  // namespace cutaway::flows
