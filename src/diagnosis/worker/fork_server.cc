#include "diagnosis/worker/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <optional>
#include <vector>

#include "core/base/json.h"
#include "core/base/processor.h"
#include "core/base/subprocess.h"
#include "diagnosis/worker/message.h"
#include "diagnosis/worker/phase.h"

namespace cutaway::worker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxOutput = 64 * 1024;   // of what a child prints; the end of it
constexpr int kMemoryExit = 121;           // the child says: no memory (our own code; ordinary programs use small ones)

struct Child {
  int64_t id = 0;
  pid_t pid = -1;
  int pidfd = -1, answer = -1, output = -1;
  std::string answer_text, output_text;
  Clock::time_point start;
  std::optional<base::WorkLimit> limit;
  bool timed_out = false, exited = false;
  int status = 0;
  struct rusage usage {};
  double waited_ms = 0;   // for a processor
  PhasePage phase;
};

uint64_t own_data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmData:", 0) == 0) return std::strtoull(line.c_str() + 7, nullptr, 10) * 1024;
  return 0;
}

void run_child(const Handler& handler, const ForkHooks& hooks, const std::string& body, uint64_t max_bytes, int answer, int output, pid_t parent) {
  setpgid(0, 0);   // so that a compiler that it starts dies with it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  const struct rlimit no_core {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(output, 1);
  dup2(output, 2);
  if (max_bytes) {
    const rlim_t limit = own_data_bytes() + max_bytes;
    const struct rlimit r {limit, limit};
    setrlimit(RLIMIT_DATA, &r);
  }
  int code = 0;
  const pid_t self = getpid();
  try {
    if (hooks.after_in_child) hooks.after_in_child();
    const std::string text = handler(body);
    if (getpid() != self) _exit(0);   // the handler forked, and this is the other one: there is one answer
    if (!send_message(answer, text).ok()) code = 124;
  } catch (const std::bad_alloc&) {
    code = kMemoryExit;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "worker: the handler raised: %s\n", e.what());
    code = 123;
  }
  std::fflush(nullptr);
  _exit(code);   // no destructors of libtorch, no joins
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Appends what can be read now; false when the writer is gone.
bool drain(int fd, std::string& text, size_t keep) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  text.append(buffer, static_cast<size_t>(n));
  if (text.size() > keep) text.erase(0, text.size() - keep);
  return true;
}

class Server {
 public:
  Server(int fd, const Handler& handler, const ForkHooks& hooks) : fd_(fd), handler_(handler), hooks_(hooks) {}
  ~Server() {
    for (auto& c : children_) finish_silently(c);
  }
  base::Status run();

 private:
  base::Status take_request();
  base::Status start(const base::Json&);
  base::Status answer(Child&);
  void finish_silently(Child&);

  int fd_;
  const Handler& handler_;
  const ForkHooks& hooks_;
  std::vector<Child> children_;
};

base::Status Server::start(const base::Json& request) {
  int answer[2], output[2];
  if (pipe2(answer, O_CLOEXEC) || pipe2(output, O_CLOEXEC)) return base::Error{"cannot make a pipe", "worker", std::strerror(errno), "", ""};
  Child child;
  child.id = request.integer_or("id");
  child.start = Clock::now();
  if (const int64_t ms = request.integer_or("timeout_ms"); ms > 0) {
    child.limit.emplace(std::chrono::milliseconds(ms), child.start);
  }
  const std::string body = request.text_or("body");
  const pid_t parent = getpid();
  std::fflush(nullptr);
  if (hooks_.before) hooks_.before();
  child.pid = fork();
  if (child.pid == 0) child.phase.adopt();
  if (child.pid != 0 && hooks_.after_in_parent) hooks_.after_in_parent();
  if (child.pid < 0) return base::Error{"cannot fork", "worker", std::strerror(errno), "", ""};
  if (child.pid == 0) run_child(handler_, hooks_, body, static_cast<uint64_t>(request.integer_or("max_bytes")), answer[1], output[1], parent);
  setpgid(child.pid, child.pid);
  ::close(answer[1]);
  ::close(output[1]);
  child.answer = answer[0];
  child.output = output[0];
  fcntl(child.output, F_SETFL, O_NONBLOCK);
  child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
  children_.push_back(std::move(child));
  return {};
}

base::Status Server::take_request() {
  CUTAWAY_TRY_ASSIGN(std::optional<std::string> text, receive_message(fd_));
  if (!text) { ::close(fd_); fd_ = -1; return {}; }
  const base::Json request = base::Json::parse_or_null(*text);
  if (!request.find("id")) return base::Error{"a request is no JSON object with an id", "worker", "", "", ""};
  if (request.flag_or("cancel")) {
    for (Child& c : children_)
      if (c.id == request.integer_or("id")) { finish_silently(c); c.pid = -1; }
    std::erase_if(children_, [](const Child& c) { return c.pid < 0; });
    return {};
  }
  return start(request);
}

void Server::finish_silently(Child& c) {
  if (c.pid > 0) {
    kill(-c.pid, SIGKILL);
    waitpid(c.pid, nullptr, 0);
  }
  close_fd(c.pidfd);
  close_fd(c.answer);
  close_fd(c.output);
}

base::Status Server::answer(Child& c) {
  kill(-c.pid, SIGKILL);   // whatever it left behind
  while (c.answer >= 0 && drain(c.answer, c.answer_text, SIZE_MAX)) {}
  while (c.output >= 0) {
    const size_t before = c.output_text.size();
    if (!drain(c.output, c.output_text, kMaxOutput) || c.output_text.size() == before) break;
  }
  Ending ending = Ending::lost;
  std::string body;
  const bool has_answer = c.answer_text.size() >= 8;
  if (c.timed_out) ending = Ending::hang;
  else if (WIFSIGNALED(c.status)) ending = Ending::crash;
  else if (WEXITSTATUS(c.status) == kMemoryExit || (!has_answer && c.output_text.find("Thread creation failed") != std::string::npos)) ending = Ending::memory;
  else if (has_answer && WEXITSTATUS(c.status) == 0) { ending = Ending::answered; body = c.answer_text.substr(8); }
  base::Json reply = base::Json::Object{{"id", c.id}, {"ending", ending_name(ending)}, {"body", std::move(body)}, {"output", c.output_text},
                                        {"ms", std::chrono::duration<double, std::milli>(Clock::now() - c.start).count()}, {"waited_ms", c.waited_ms}, {"peak_kb", int64_t{c.usage.ru_maxrss}}, {"phase", c.phase.read()}};
  if (ending == Ending::crash) reply["signal"] = base::signal_name(WTERMSIG(c.status));
  if (ending == Ending::lost) reply["exit_code"] = WIFEXITED(c.status) ? WEXITSTATUS(c.status) : -1;
  close_fd(c.pidfd);
  close_fd(c.answer);
  close_fd(c.output);
  c.pid = -1;
  return send_message(fd_, reply.text());
}

base::Status Server::run() {
  while (fd_ >= 0) {
    std::vector<pollfd> polls{{fd_, POLLIN, 0}};
    int wait_ms = -1;
    const auto now = Clock::now();
    for (const Child& c : children_) {
      polls.push_back({c.pidfd, POLLIN, 0});
      polls.push_back({c.answer, POLLIN, 0});    // poll ignores a negative descriptor
      polls.push_back({c.output, POLLIN, 0});
      if (c.limit) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(c.limit->end() - now).count() + 1;
        wait_ms = wait_ms < 0 ? static_cast<int>(std::max<int64_t>(0, left)) : std::min(wait_ms, static_cast<int>(std::max<int64_t>(0, left)));
      }
    }
    if (poll(polls.data(), polls.size(), wait_ms) < 0 && errno != EINTR) return base::Error{"cannot wait for children", "worker", std::strerror(errno), "", ""};
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& c = children_[i];
      if (polls[1 + 3 * i + 1].revents && !drain(c.answer, c.answer_text, SIZE_MAX)) close_fd(c.answer);
      if (polls[1 + 3 * i + 2].revents && !drain(c.output, c.output_text, kMaxOutput)) close_fd(c.output);
      if (polls[1 + 3 * i].revents) {
        c.waited_ms = static_cast<double>(base::waited_for_processor(c.pid).count());
        wait4(c.pid, &c.status, 0, &c.usage);
        c.exited = true;
      } else if (c.limit && Clock::now() >= c.limit->end() && c.limit->is_over(c.pid)) {
        kill(-c.pid, SIGKILL);
        wait4(c.pid, &c.status, 0, &c.usage);
        c.exited = c.timed_out = true;
      }
      if (c.exited) CUTAWAY_TRY(answer(c));
    }
    std::erase_if(children_, [](const Child& c) { return c.exited; });
    if (polls[0].revents) CUTAWAY_TRY(take_request());
  }
  return {};
}

}  // namespace

std::string_view ending_name(Ending e) {
  constexpr std::string_view names[] = {"answered", "crash", "hang", "memory", "lost"};   // part of the protocol
  return names[static_cast<int>(e)];
}

base::Status serve(int fd, const Handler& handler, const ForkHooks& hooks) { return Server(fd, handler, hooks).run(); }

}  // namespace cutaway::worker
