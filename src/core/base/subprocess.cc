#include "core/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <tuple>

#include "core/base/running.h"
#include "core/base/text.h"

extern char** environ;

namespace cutaway::base {

using Clock = std::chrono::steady_clock;

std::string signal_name(int signal) {
  const char* short_name = sigabbrev_np(signal);
  return short_name ? std::string("SIG") + short_name : "signal " + std::to_string(signal);
}

std::string Exit::text(std::chrono::milliseconds limit) const {
  if (kind == Kind::exited) return "exit status " + std::to_string(code);
  if (kind == Kind::signaled) return signal_name(code);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3g", static_cast<double>(limit.count()) / 1000);
  return limit.count() == 0 ? "no answer in time" : std::string("no answer in ") + seconds + " s";
}

std::vector<std::string> environment_of(const Command& command) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> out;
  for (char** at = environ; at && *at; ++at) {
    const std::string_view name = name_of(*at);
    const bool replaced = std::any_of(command.environment.begin(), command.environment.end(), [&](const auto& e) { return e.first == name; });
    const bool removed = std::find(command.removed_environment.begin(), command.removed_environment.end(), name) != command.removed_environment.end();
    if (!replaced && !removed) out.emplace_back(*at);
  }
  for (const auto& [name, value] : command.environment) out.push_back(name + "=" + value);
  return out;
}

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// posix_spawn's two descriptions, released together.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

bool set_non_blocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/// Keeps the first and the last half of a stream of any length.
class Capture {
 public:
  explicit Capture(uint64_t limit) : half_(std::max<uint64_t>(limit / 2, 1)) {}
  void add(std::string_view text) {
    const size_t room = static_cast<size_t>(std::min<uint64_t>(half_ - std::min<uint64_t>(half_, head_.size()), text.size()));
    head_ += text.substr(0, room);
    tail_ += text.substr(room);
    if (tail_.size() > 2 * half_) trim();
  }
  std::pair<std::string, uint64_t> finish() && {
    trim();
    return {std::move(head_) + std::move(tail_), dropped_};
  }

 private:
  void trim() {
    if (tail_.size() <= half_) return;
    const size_t extra = tail_.size() - static_cast<size_t>(half_);
    dropped_ += extra;
    tail_.erase(0, extra);
  }
  uint64_t half_, dropped_ = 0;
  std::string head_, tail_;
};

/// Reads what is there. False at the end of the stream.
bool drain(int fd, Capture& into) {
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n > 0) {
      into.add({buffer, static_cast<size_t>(n)});
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

int milliseconds_until(std::optional<Clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace

Process::Process(Process&& other) noexcept : pid_(other.pid_), pidfd_(std::move(other.pidfd_)), group_(other.group_), exit_(other.exit_) { other.pid_ = -1; }

Process::~Process() {
  if (pid_ < 0 || exit_) return;
  kill_group();
  (void)wait();
}

void Process::kill_group() {
  // Until it has been waited for, its number (and with it the group's) cannot belong to anybody else.
  if (pid_ > 0 && !exit_) ::kill(group_ == Command::Group::own ? -pid_ : pid_, SIGKILL);
}

Result<std::optional<Exit>> Process::wait(std::optional<std::chrono::milliseconds> at_most) {
  if (exit_) return exit_;
  std::optional<Clock::time_point> deadline;
  if (at_most) deadline = Clock::now() + *at_most;
  while (true) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    const int n = ::poll(&ended, 1, milliseconds_until(deadline));
    if (n > 0) break;
    if (n < 0 && errno != EINTR) return os_error("poll", "cannot wait for process " + std::to_string(pid_), errno);
    if (n == 0 && deadline && Clock::now() >= *deadline) return std::optional<Exit>();
  }
  kill_group();   // what it left running; itself it is past that
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return os_error("waitpid", "cannot wait for process " + std::to_string(pid_), errno);
  }
  exit_ = WIFSIGNALED(status) ? Exit{Exit::Kind::signaled, WTERMSIG(status)} : Exit{Exit::Kind::exited, WEXITSTATUS(status)};
  return exit_;
}

Result<Process> Process::adopt(pid_t pid) {
  FileDescriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.is_open()) return os_error("pidfd_open", "process " + std::to_string(pid) + " cannot be watched", errno);
  return Process(pid, std::move(pidfd), Command::Group::own);
}

Result<Process> start_command(const Command& command, const std::vector<std::pair<int, int>>& descriptors) {
  if (command.argv.empty() || command.argv[0].empty()) return Error{.what = "there is no command to run"};
  std::vector<std::string> arguments = command.argv, environment = environment_of(command);
  for (const auto* texts : {&arguments, &environment}) {
    for (const std::string& text : *texts) {
      if (text.find('\0') != std::string::npos) return Error{.what = "an argument or variable contains a zero byte", .place = command.argv[0]};
    }
  }

  SpawnPlan plan;
  // Copies above every target first, so that no dup2 overwrites a descriptor that a later one needs; close-on-exec takes them away.
  std::vector<FileDescriptor> copies;
  int above = 2;
  for (const auto& [here, there] : descriptors) above = std::max(above, there);
  bool has_input = false;
  for (const auto& [here, there] : descriptors) {
    copies.emplace_back(fcntl(here, F_DUPFD_CLOEXEC, above + 1));
    if (!copies.back().is_open()) return os_error(command.argv[0], "cannot be given descriptor " + std::to_string(here), errno);
    posix_spawn_file_actions_adddup2(&plan.actions, copies.back().get(), there);
    has_input = has_input || there == 0;
  }
  if (!has_input) posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
  if (!command.directory.empty()) posix_spawn_file_actions_addchdir_np(&plan.actions, command.directory.c_str());

  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setpgroup(&plan.attributes, 0);
  posix_spawnattr_setsigmask(&plan.attributes, &none);
  posix_spawnattr_setsigdefault(&plan.attributes, &all);   // Python ignores SIGPIPE, which children would inherit
  const int own_group = command.group == Command::Group::own ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(&plan.attributes, static_cast<short>(own_group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, arguments[0].c_str(), &plan.actions, &plan.attributes, pointers(arguments).data(), pointers(environment).data());
  if (failure != 0) return os_error(command.argv[0], "cannot be started", failure);
  FileDescriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.is_open()) {
    const int reason = errno;
    ::kill(own_group ? -pid : pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return os_error(command.argv[0], "cannot be watched", reason);
  }
  return Process(pid, std::move(pidfd), command.group);
}

Result<Running> Running::start(const Command& command, std::string_view input, const std::vector<std::pair<int, int>>& descriptors) {
  const std::string place = command.argv.empty() ? std::string() : command.argv[0];
  const auto make_pipe = [&](FileDescriptor& read_end, FileDescriptor& write_end) -> Status {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return os_error(place, "cannot be given a pipe", errno);
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
    if (!set_non_blocking(ends[0])) return os_error(place, "cannot be given a pipe", errno);
    return {};
  };
  // Input goes through memory that looks like a file: no pipe to feed, so no deadlock and no SIGPIPE.
  FileDescriptor stdin_file(memfd_create("cutaway-input", MFD_CLOEXEC));
  if (!stdin_file.is_open()) return os_error(place, "cannot be given its input", errno);
  CUTAWAY_TRY(write_all(stdin_file.get(), input.data(), input.size(), place));
  lseek(stdin_file.get(), 0, SEEK_SET);

  FileDescriptor out_read, out_write, err_read, err_write;
  CUTAWAY_TRY(make_pipe(out_read, out_write));
  CUTAWAY_TRY(make_pipe(err_read, err_write));
  std::vector<std::pair<int, int>> all = descriptors;
  all.insert(all.end(), {{stdin_file.get(), 0}, {out_write.get(), 1}, {err_write.get(), 2}});
  CUTAWAY_TRY_ASSIGN(Process process, start_command(command, all));
  return Running(std::move(process), std::move(out_read), std::move(err_read), place);
}

Result<Output> Running::finish(const RunLimits& limits) {
  const auto start = Clock::now();
  std::optional<Clock::time_point> deadline;
  if (limits.time) deadline = start + *limits.time;
  Capture out(limits.output_bytes), err(limits.output_bytes);
  bool timed_out = false;
  while (true) {
    pollfd watched[3] = {{process_.exit_descriptor(), POLLIN, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
    const int n = ::poll(watched, 3, milliseconds_until(timed_out ? std::nullopt : deadline));
    if (n < 0 && errno != EINTR) return os_error(place_, "cannot be waited for", errno);
    if (!timed_out && deadline && Clock::now() >= *deadline && !(n > 0 && watched[0].revents)) {
      timed_out = true;
      process_.kill_group();
      continue;
    }
    if (n <= 0) continue;
    // A closed stream is taken off the list: poll would report it for ever. (A negative descriptor is skipped.)
    if (watched[1].revents && !drain(out_.get(), out)) out_.close();
    if (watched[2].revents && !drain(err_.get(), err)) err_.close();
    if (watched[0].revents) break;
  }
  CUTAWAY_TRY_ASSIGN(const std::optional<Exit> ended, process_.wait());
  if (out_.is_open()) drain(out_.get(), out);   // what it wrote last; not what others may still write
  if (err_.is_open()) drain(err_.get(), err);

  Output result;
  result.exit = *ended;
  if (timed_out) result.exit.kind = Exit::Kind::timed_out;
  std::tie(result.out, result.out_dropped) = std::move(out).finish();
  std::tie(result.err, result.err_dropped) = std::move(err).finish();
  result.elapsed = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  return result;
}

Result<Output> run_command(const Command& command, std::string_view input, const RunLimits& limits) {
  CUTAWAY_TRY_ASSIGN(Running running, Running::start(command, input));
  return running.finish(limits);
}

}  // namespace cutaway::base
