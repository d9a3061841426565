// Which worker serves which backend, and how it is started.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/bundle.h"
#include "diagnosis/worker/client.h"
#include "diagnosis/worker/launcher.h"

namespace cutaway::flows {

/// Where the programs are that a flow starts.
struct Programs {
  std::string command;   ///< the native command itself
  std::string python;    ///< CUTAWAY_PYTHON, else python3 beside the command, else the one it was built with
  std::shared_ptr<worker::Launcher> launcher = nullptr;   ///< of a flow that needs several Python processes
  std::vector<std::pair<std::string, std::string>> environment = {};   ///< what all of them have beyond this process's own
  std::vector<std::string> removed_environment = {};
  /// The command with those variables; its own come first.
  base::Command with_variables(base::Command) const;
  /// By the launcher where there is one.
  base::Result<base::Process> start(const base::Command&, const std::vector<std::pair<int, int>>& descriptors) const;
};
/// Reads CUTAWAY_PYTHON. `built_with` is the interpreter of the build.
Programs find_programs(const std::string& built_with);
/// For a flow inside of a Python program, whose interpreter is `python`: its processes find this package and watch nothing themselves. The command is
/// CUTAWAY_COMMAND, or lies beside this library, beside the interpreter or in PATH; the Error says that there is none.
base::Result<Programs> find_programs_from_python(const std::string& python);
/// Backends that live in Python (capabilities.h).
bool needs_python(std::string_view backend);
/// An object of the program's own process: "live:NAME".
bool is_live(std::string_view backend);

struct WorkerOptions {
  std::string cache_directory;                          ///< private to this run: kernels compiled once, nothing left behind
  std::map<std::string, std::string> environment;       ///< of the bundle
  bool is_trusted = false;
  std::vector<std::string> python_path;                 ///< directories that the user's own modules come from
  std::string made_ready;                               ///< the backend that a Python worker loads before it forks; empty: the one asked for
  bool serves_many = true;                              ///< worth warming up before the first trial
  std::function<bool()> is_interrupted = nullptr;       ///< true: what waits for an answer gives up
  std::string program;                                  ///< as the bundle describes it: it runs up to the bundle's compilation and serves there; empty: none needs to
  bool imports_libraries = false;                       ///< operators of the graph come from Python modules, which only Python can import
  std::string on;                                       ///< "ray://HOST:PORT" or "ray": the trials run on that cluster (python/cutaway/remote_worker.py); empty: on this machine
  std::string copy;                                     ///< where a copy of that program waits that is there already; it runs again where this one is gone
};
/// The program that must run for this bundle's trials: its backend lives in there, or operators of the graph do. Empty: none.
std::string program_of(const bundle::Manifest&);
/// Operators of the graph exist only in the program that the bundle comes from.
bool has_operators_of_program(const bundle::Manifest&);
/// What a worker has of a bundle's variables.
std::map<std::string, std::string> worker_environment(std::map<std::string, std::string> of_bundle);
/// `cache_directory` must exist where a program is to run.
std::unique_ptr<worker::Client> make_worker(const Programs&, std::string_view backend, const WorkerOptions&);

}  // namespace cutaway::flows
