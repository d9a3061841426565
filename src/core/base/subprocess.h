// Running other programs: a command with its arguments (no shell), what goes in, what came out, how it ended.
// Main functions: run_command (waits) and start_command (a Process that the caller talks to, as with workers).
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/base/result.h"

namespace cutaway::base {

struct Command {
  std::vector<std::string> argv;                                    ///< argv[0] is looked up in PATH unless it has a slash
  std::vector<std::pair<std::string, std::string>> environment;     ///< added to, or in place of, what this process has
  std::vector<std::string> removed_environment;                     ///< names that the child does not get
  std::filesystem::path directory;                                  ///< empty: this process's
  /// Whose process group: with the caller's, whoever ends the caller's group ends the program too, and only the program itself is killed here.
  enum class Group : uint8_t { own, callers } group = Group::own;
};

/// How a program ended.
struct Exit {
  enum class Kind : uint8_t { exited, signaled, timed_out };
  Kind kind = Kind::exited;
  int code = 0;     ///< exited: the status; signaled and timed_out: the signal
  bool ok() const { return kind == Kind::exited && code == 0; }
  /// "exit status 1", "SIGSEGV", "no answer in 2.5 s"; the last needs the limit.
  std::string text(std::chrono::milliseconds limit = {}) const;
};
/// "SIGSEGV"; "signal 77" where there is no name.
std::string signal_name(int signal);

/// A program that runs, in a process group of its own unless the Command says otherwise. Destroying it ends the whole group.
class Process {
 public:
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();
  pid_t pid() const { return pid_; }
  /// Becomes readable when the program ends: for poll().
  int exit_descriptor() const { return pidfd_.get(); }
  /// None: it still runs after that time. Kills what the program left running in its group. May be called again.
  Result<std::optional<Exit>> wait(std::optional<std::chrono::milliseconds> at_most = std::nullopt);
  /// SIGKILL to the whole group; wait() tells the end.
  void kill_group();
  /// A child of this process that somebody else has started for it, in a process group of its own.
  static Result<Process> adopt(pid_t);

 private:
  friend Result<Process> start_command(const Command&, const std::vector<std::pair<int, int>>&);
  Process(pid_t pid, FileDescriptor pidfd, Command::Group group) : pid_(pid), pidfd_(std::move(pidfd)), group_(group) {}
  pid_t pid_ = -1;
  FileDescriptor pidfd_;
  Command::Group group_ = Command::Group::own;
  std::optional<Exit> exit_;
};

/// Starts a command. `descriptors` are (here, there): which descriptor of this process is which of the child's. Standard input is
/// /dev/null unless given; the child gets no other descriptor that was opened close-on-exec, and default signal handling.
Result<Process> start_command(const Command&, const std::vector<std::pair<int, int>>& descriptors = {});

/// "NAME=value" of every variable that the command gets.
std::vector<std::string> environment_of(const Command&);

struct RunLimits {
  std::optional<std::chrono::milliseconds> time;   ///< then the whole group is killed
  uint64_t output_bytes = 16 << 20;                ///< of each stream; of more, the first and the last half are kept
};
struct Output {
  Exit exit;
  std::string out, err;
  uint64_t out_dropped = 0, err_dropped = 0;       ///< bytes left out of the middle
  std::chrono::microseconds elapsed{0};
};
/// Runs to the end. An Error means that it could not be started; how it ended is in the Output. What the command leaves running in
/// its process group is ended too, and nothing waits for its pipes.
Result<Output> run_command(const Command&, std::string_view input = {}, const RunLimits& = {});

}  // namespace cutaway::base
