// The one C symbol by which the command enters the part that needs libtorch.
#include "app/session/entry.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/DeviceType.h>
#include <torch/version.h>

#include <cstdio>
#include <cstring>
#include <cstdlib>

#include "core/base/json.h"
#include "diagnosis/repro/trial_runner.h"
#include "diagnosis/worker/fork_server.h"

namespace cutaway::session {

std::string torch_report() {
  base::Json::Array devices = {"cpu"};
  if (at::globalContext().hasCUDA())
    for (int i = 0; i < static_cast<int>(at::getNumGPUs()); ++i) devices.push_back("cuda:" + std::to_string(i));
  return base::Json(base::Json::Object{{"torch", TORCH_VERSION}, {"threads", at::get_num_threads()}, {"cpu_capability", at::get_cpu_capability()}, {"devices", std::move(devices)},
                                       {"mkl", at::hasMKL()}, {"lapack", at::hasLAPACK()}}).text();
}

int run_worker() {
  const char* fd = std::getenv("CUTAWAY_WORKER_FD");
  if (!fd) {
    std::fprintf(stderr, "cutaway: a worker is started by another cutaway process, not by hand\n");
    return 2;
  }
  repro::warm_up();
  const auto status = worker::serve(std::atoi(fd), repro::handle_request);
  if (!status.ok()) std::fprintf(stderr, "cutaway: %s\n", status.error().text().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace cutaway::session

extern "C" int cutaway_entry(int argc, const char* const* argv) {
  if (argc >= 1 && !std::strcmp(argv[0], "torch-report")) {
    std::puts(cutaway::session::torch_report().c_str());
    return 0;
  }
  if (argc >= 1 && !std::strcmp(argv[0], "worker")) return cutaway::session::run_worker();
  std::fprintf(stderr, "cutaway: unknown entry \"%s\"\n", argc ? argv[0] : "");
  return 2;
}
