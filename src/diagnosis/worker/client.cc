#include "diagnosis/worker/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/base/json.h"
#include "diagnosis/worker/message.h"

namespace cutaway::worker {
namespace {

std::optional<Ending> ending_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Ending::lost); ++i)
    if (ending_name(static_cast<Ending>(i)) == name) return static_cast<Ending>(i);
  return std::nullopt;
}

}  // namespace

Client::Client(std::vector<std::string> argv, std::map<std::string, std::string> environment, Starter starter)
    : argv_(std::move(argv)), environment_(std::move(environment)), starter_(std::move(starter)) {}
Client::~Client() { stop(); }

void Client::stop(Stop how) {
  if (fd_ >= 0) ::close(fd_);   // the worker ends when its socket closes
  fd_ = -1;
  if (process_ && how == Stop::by_itself) (void)process_->wait(std::chrono::milliseconds(500));
  process_.reset();   // ends its group
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
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) return base::Error{"cannot make a socket", "", std::strerror(errno), "", ""};
  base::FileDescriptor own(sockets[0]), workers(sockets[1]);
  if (pipe2(errors, O_CLOEXEC)) return base::Error{"cannot make a pipe", "", std::strerror(errno), "", ""};
  base::FileDescriptor said(errors[0]), printed(errors[1]);
  fcntl(said.get(), F_SETFL, O_NONBLOCK);
  constexpr int kChildFd = 3;
  base::Command command;
  command.argv = argv_;
  for (const auto& [name, value] : environment_) command.environment.emplace_back(name, value);
  command.environment.emplace_back("CUTAWAY_WORKER_FD", std::to_string(kChildFd));
  auto process = starter_(command, {{printed.get(), 1}, {printed.get(), 2}, {workers.get(), kChildFd}});
  if (!process.ok()) return base::Error{"cannot start the worker " + argv_[0], "", process.error().text(), "cutaway doctor tells which programs are found", ""};
  process_.emplace(std::move(*process));
  fd_ = own.release();
  stderr_ = said.release();
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
        const base::Json j(base::Json::Object{{"id", next_id_}, {"timeout_ms", r.timeout_ms}, {"max_bytes", r.max_bytes}, {"body", r.body}});
        if (!send_message(fd_, j.text()).ok()) { broken = true; break; }
        open[next_id_++] = next++;
      }
      if (broken || open.empty()) break;
      if (!wait_for_answer()) {
        stop(Stop::by_itself);
        return base::Error{"interrupted", "", "", "", ""};
      }
      auto text = receive_message(fd_);
      if (!text.ok() || !*text) { broken = true; break; }
      const base::Json j = base::Json::parse_or_null(**text);
      auto it = open.find(j.integer_or("id", -1));
      if (it == open.end()) continue;   // an answer to something that was cancelled
      Response& out = responses[it->second];
      out.ending = ending_from_name(j.text_or("ending")).value_or(Ending::lost);
      out.body = j.text_or("body");
      out.signal = j.text_or("signal");
      out.exit_code = static_cast<int>(j.integer_or("exit_code"));
      out.output = j.text_or("output");
      out.ms = j.number_or("ms");
      out.waited_ms = j.number_or("waited_ms");
      out.phase = j.text_or("phase");
      out.peak_kb = j.integer_or("peak_kb");
      done[it->second] = true;
      open.erase(it);
    }
    if (!broken) return responses;
    stop(Stop::by_itself);
  }
  return base::Error{"the worker died", "", output_.empty() ? "it said nothing" : "it said: " + output_, "", ""};
}

}  // namespace cutaway::worker
