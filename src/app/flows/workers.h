// Which worker serves which backend, and how it is started.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/worker/client.h"

namespace cutaway::flows {

/// Where the programs are that a flow starts.
struct Programs {
  std::string command;   ///< the native command itself
  std::string python;    ///< CUTAWAY_PYTHON, else python3 beside the command, else the one it was built with
};
/// Reads CUTAWAY_PYTHON. `built_with` is the interpreter of the build.
Programs find_programs(const std::string& built_with);
/// Backends that live in Python: all but the few in C++.
bool needs_python(std::string_view backend);

struct WorkerOptions {
  std::string cache_directory;                          ///< private to this run: kernels compiled once, nothing left behind
  std::map<std::string, std::string> environment;       ///< of the bundle
  bool is_trusted = false;
  std::vector<std::string> python_path;                 ///< directories that the user's own modules come from
  std::string made_ready;                               ///< the backend that a Python worker loads before it forks; empty: the one asked for
  bool serves_many = true;                              ///< worth warming up before the first trial
  std::function<bool()> is_interrupted = nullptr;       ///< true: what waits for an answer gives up
};
std::unique_ptr<worker::Client> make_worker(const Programs&, std::string_view backend, const WorkerOptions&);

}  // namespace cutaway::flows
