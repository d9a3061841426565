#include "app/flows/workers.h"

#include <algorithm>
#include <array>

namespace cutaway::flows {

bool needs_python(std::string_view backend) {
  constexpr std::array native = {std::string_view(""), std::string_view("eager"), std::string_view("fault"), std::string_view("command")};
  return std::find(native.begin(), native.end(), backend.substr(0, backend.find(':'))) == native.end();
}

std::unique_ptr<worker::Client> make_worker(const Programs& programs, std::string_view backend, const WorkerOptions& options) {
  std::map<std::string, std::string> environment = options.environment;
  // One thread until a trial says otherwise: a parallel region in the server would hang its children.
  environment["OMP_NUM_THREADS"] = "1";
  environment["MKL_NUM_THREADS"] = "1";
  const auto make = [&](std::vector<std::string> argv) {
    auto client = std::make_unique<worker::Client>(std::move(argv), std::move(environment));
    client->stop_when(options.is_interrupted);
    return client;
  };
  if (!needs_python(backend)) return make({programs.command, "worker"});
  environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1";
  if (!options.cache_directory.empty()) environment["TORCHINDUCTOR_CACHE_DIR"] = options.cache_directory;
  // A cached graph would hide a fault in lowering; kernels by their text are safe to share.
  environment["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0";
  environment["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0";
  std::vector<std::string> argv = {programs.python, "-m", "cutaway.worker"};
  const std::string_view ready = options.made_ready.empty() ? backend : std::string_view(options.made_ready);
  argv.insert(argv.end(), {"--backend", std::string(ready.substr(0, ready.find(':')))});
  if (!options.serves_many) argv.push_back("--once");
  if (options.is_trusted) argv.push_back("--trust");
  for (const std::string& p : options.python_path) { argv.push_back("--path"); argv.push_back(p); }
  return make(std::move(argv));
}

}  // namespace cutaway::flows
