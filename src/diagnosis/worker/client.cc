#include "diagnosis/worker/client.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "diagnosis/worker/message.h"

extern char** environ;

namespace cutaway::worker {
namespace {

std::optional<Ending> ending_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Ending::lost); ++i)
    if (ending_name(static_cast<Ending>(i)) == name) return static_cast<Ending>(i);
  return std::nullopt;
}

}  // namespace

Client::Client(std::vector<std::string> argv, std::map<std::string, std::string> environment) : argv_(std::move(argv)), environment_(std::move(environment)) {}
Client::~Client() { stop(); }

void Client::stop() {
  if (fd_ >= 0) ::close(fd_);   // the worker ends when its socket closes
  fd_ = -1;
  if (pid_ > 0) {
    for (int i = 0; i < 50 && waitpid(pid_, nullptr, WNOHANG) == 0; ++i) {
      if (i == 49) { kill(-pid_, SIGKILL); waitpid(pid_, nullptr, 0); break; }
      usleep(10'000);
    }
    kill(-pid_, SIGKILL);
  }
  pid_ = -1;
  last_output();
  if (stderr_ >= 0) ::close(stderr_);
  stderr_ = -1;
}

std::string Client::last_output() const {
  char buffer[16384];
  for (ssize_t n; stderr_ >= 0 && (n = ::read(stderr_, buffer, sizeof buffer)) > 0;) output_.append(buffer, static_cast<size_t>(n));
  if (output_.size() > 8192) output_.erase(0, output_.size() - 8192);
  return output_;
}

base::Status Client::start() {
  if (fd_ >= 0) return {};
  int sockets[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) || pipe2(errors, O_CLOEXEC)) return base::Error{"cannot make a socket", "", std::strerror(errno), "", ""};
  fcntl(errors[0], F_SETFL, O_NONBLOCK);
  constexpr int kChildFd = 3;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // dup2 onto itself would leave close-on-exec set, so a descriptor that happens to be 3 moves away first.
  if (sockets[1] == kChildFd) { const int moved = fcntl(sockets[1], F_DUPFD_CLOEXEC, 10); ::close(sockets[1]); sockets[1] = moved; }
  posix_spawn_file_actions_adddup2(&actions, errors[1], 1);
  posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], kChildFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::map<std::string, std::string> variables;
  for (char** e = environ; *e; ++e)
    if (const char* eq = std::strchr(*e, '=')) variables[std::string(*e, static_cast<size_t>(eq - *e))] = eq + 1;
  for (const auto& [k, v] : environment_) variables[k] = v;
  variables["CUTAWAY_WORKER_FD"] = std::to_string(kChildFd);
  std::vector<std::string> env_text;
  for (const auto& [k, v] : variables) env_text.push_back(k + "=" + v);
  std::vector<char*> env, argv;
  for (auto& t : env_text) env.push_back(t.data());
  env.push_back(nullptr);
  for (auto& a : argv_) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int rc = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(sockets[1]);
  ::close(errors[1]);
  if (rc != 0) {
    ::close(sockets[0]);
    ::close(errors[0]);
    return base::Error{"cannot start the worker " + argv_[0], "", std::strerror(rc), "cutaway doctor tells which programs are found", ""};
  }
  pid_ = pid;
  fd_ = sockets[0];
  stderr_ = errors[0];
  output_.clear();
  return {};
}

/// False: interrupted. True as soon as there is something to read, an end of file included. What the worker prints meanwhile is taken, so that
/// a chatty one does not fill its pipe and stop.
bool Client::wait_for_answer() const {
  bool is_silent = false;   // its output was closed
  for (;;) {
    if (is_interrupted_ && is_interrupted_()) return false;
    pollfd polls[] = {{fd_, POLLIN, 0}, {is_silent ? -1 : stderr_, POLLIN, 0}};
    const int ready = ::poll(polls, 2, is_interrupted_ ? 100 : -1);
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    if (polls[1].revents) {
      is_silent = (polls[1].revents & POLLIN) == 0;
      last_output();
    }
    if (polls[0].revents) return true;
  }
}

base::Result<std::vector<Response>> Client::ask(std::span<const Request> requests, int at_once) {
  std::vector<Response> responses(requests.size());
  std::vector<bool> done(requests.size(), false);
  const size_t width = static_cast<size_t>(std::max(1, at_once));
  for (int attempt = 0; attempt < 2; ++attempt) {
    CUTAWAY_TRY(start());
    std::map<int64_t, size_t> open;
    size_t next = 0;
    bool broken = false;
    for (;;) {
      while (!broken && open.size() < width && next < requests.size()) {
        if (done[next]) { ++next; continue; }
        const Request& r = requests[next];
        const nlohmann::json j = {{"id", next_id_}, {"timeout_ms", r.timeout_ms}, {"max_bytes", r.max_bytes}, {"body", r.body}};
        if (!send_message(fd_, j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).ok()) { broken = true; break; }
        open[next_id_++] = next++;
      }
      if (broken || open.empty()) break;
      if (!wait_for_answer()) {
        stop();
        return base::Error{"interrupted", "", "", "", ""};
      }
      auto text = receive_message(fd_);
      if (!text.ok() || !*text) { broken = true; break; }
      const auto j = nlohmann::json::parse(**text, nullptr, false);
      auto it = j.is_object() ? open.find(j.value("id", int64_t{-1})) : open.end();
      if (it == open.end()) continue;   // an answer to something that was cancelled
      Response& out = responses[it->second];
      out.ending = ending_from_name(j.value("ending", "")).value_or(Ending::lost);
      out.body = j.value("body", "");
      out.signal = j.value("signal", "");
      out.exit_code = j.value("exit_code", 0);
      out.output = j.value("output", "");
      out.ms = j.value("ms", 0.0);
      out.phase = j.value("phase", "");
      out.peak_kb = j.value("peak_kb", int64_t{0});
      done[it->second] = true;
      open.erase(it);
    }
    if (!broken) return responses;
    stop();
  }
  return base::Error{"the worker died", "", output_.empty() ? "it said nothing" : "it said: " + output_, "", ""};
}

}  // namespace cutaway::worker
