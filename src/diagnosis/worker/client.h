// The engine's side: starts a worker process, sends it requests, collects answers. Starts another one when it dies.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/subprocess.h"
#include "diagnosis/worker/fork_server.h"

namespace cutaway::worker {

struct Request {
  std::string body;
  int64_t timeout_ms = 0;    ///< of work (base::WorkLimit); 0: none
  uint64_t max_bytes = 0;    ///< above the server's own; 0: none
};
struct Response {
  Ending ending = Ending::lost;
  std::string body;          ///< of Ending::answered
  std::string signal;        ///< of Ending::crash: "SIGSEGV"
  int exit_code = 0;         ///< of Ending::lost
  std::string output;        ///< the end of what the child printed
  double ms = 0;
  double waited_ms = 0;      ///< of those, for a processor; not of a hang
  int64_t peak_kb = 0;
  std::string phase;         ///< what it was doing when it ended, as set_phase() said
};

/// Starts a program as base::start_command does.
using Starter = std::function<base::Result<base::Process>(const base::Command&, const std::vector<std::pair<int, int>>& descriptors)>;

/// One worker process with its socket. Not thread-safe.
class Client {
 public:
  /// argv[0] is looked up in PATH. The worker finds its end of the socket in the variable CUTAWAY_WORKER_FD.
  Client(std::vector<std::string> argv, std::map<std::string, std::string> environment, Starter starter = base::start_command);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// All requests, at most `at_once` of them in flight. The Error is for a worker that cannot be started or dies twice on the same
  /// requests; what a candidate does to its own child is a Response.
  base::Result<std::vector<Response>> ask(std::span<const Request>, int at_once);
  /// Starts the process without a request, so that its loading overlaps with other work.
  base::Status start();
  /// Asked a few times a second while answers are awaited; true: ask() gives an Error and the process ends.
  void stop_when(std::function<bool()> is_interrupted) { is_interrupted_ = std::move(is_interrupted); }
  /// Ends the process and what it started. The next request starts another one.
  void end() { stop(); }
  /// What the worker itself printed last, for error messages.
  std::string last_output() const;

 private:
  enum class Stop : uint8_t { at_once, by_itself };   // by itself: what its children have started ends too
  void stop(Stop = Stop::at_once);
  bool wait_for_answer() const;
  std::vector<std::string> argv_;
  std::map<std::string, std::string> environment_;
  Starter starter_;
  int fd_ = -1, stderr_ = -1;
  std::optional<base::Process> process_;
  int64_t next_id_ = 1;
  mutable std::string output_;
  std::function<bool()> is_interrupted_;
};

}  // namespace cutaway::worker
