// A Python process in which torch is loaded, from which the processes that need it are forked: loading takes seconds, a fork milliseconds.
// What is forked has run nothing but imports, so that it is as fresh as one that was started. docs/formats/worker.md has the messages.
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/base/subprocess.h"

namespace cutaway::worker {

/// Orphans of this process's descendants become its own children as long as there is one (PR_SET_CHILD_SUBREAPER). Thread-safe.
class Launcher {
 public:
  /// `environment`: what all of its processes have beyond this process's own.
  Launcher(std::string python, std::vector<std::pair<std::string, std::string>> environment);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// As base::start_command, for `python -m cutaway.observe …` and `cutaway.worker`. Other commands, and those whose variables torch would have
  /// read while it was loaded, are started afresh, and so is everything when the process of the launcher cannot serve.
  base::Result<base::Process> start(const base::Command&, const std::vector<std::pair<int, int>>& descriptors);
  /// Asked a few times a second while it loads; true: start() gives the Error "interrupted".
  void stop_when(std::function<bool()> is_interrupted) { is_interrupted_ = std::move(is_interrupted); }

 private:
  bool can_fork(const base::Command&, const std::vector<std::string>& environment) const;
  base::Status open();
  base::Result<std::optional<pid_t>> ask(const std::string& request, const std::vector<std::pair<int, int>>& descriptors);

  std::string python_;
  std::vector<std::pair<std::string, std::string>> added_;
  std::vector<std::string> environment_;   // that torch was loaded with, sorted
  std::optional<base::Process> process_;
  base::FileDescriptor socket_;
  bool is_broken_ = false;
  std::function<bool()> is_interrupted_;
  std::mutex mutex_;
};

}  // namespace cutaway::worker
