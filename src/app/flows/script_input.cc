#include "app/flows/script_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace cutaway::flows {

base::Status check_script(const std::filesystem::path& script) {
  std::error_code ec;
  if (std::filesystem::is_regular_file(script, ec) || std::filesystem::is_regular_file(script / "__main__.py", ec)) return {};
  if (std::filesystem::is_directory(script, ec)) return base::Error{"is a directory, not a script", script.string(), "it holds no __main__.py", "", ""};
  return base::Error{"there is no such script", script.string(), "", "", ""};
}

ScriptInput::ScriptInput(std::filesystem::path kept, int source) : path_(std::move(kept)), source_(source) {
  struct stat s {};
  if (::fstat(source, &s) != 0) return;
  if (S_ISREG(s.st_mode)) {
    kind_ = Kind::file;
    first_ = ::lseek(source, 0, SEEK_CUR);
  } else if (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode) || ::isatty(source)) {
    kind_ = Kind::pipe;
  }
  struct sigaction ignore {};   // a script that closes its input must not end us
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before_);
}

ScriptInput::~ScriptInput() { ::sigaction(SIGPIPE, &before_, nullptr); }

base::Result<base::FileDescriptor> ScriptInput::begin() {
  end();
  sent_ = 0;
  if (kind_ == Kind::file) {   // opened again: its own position
    const std::string place = "/proc/self/fd/" + std::to_string(source_);
    base::FileDescriptor again(::open(place.c_str(), O_RDONLY | O_CLOEXEC));
    if (!again.is_open() || ::lseek(again.get(), first_, SEEK_SET) < 0) return base::os_error("standard input", "cannot be read again", errno);
    return again;
  }
  if (kind_ == Kind::none) {
    base::FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing.is_open()) return base::os_error("/dev/null", "cannot be opened", errno);
    return nothing;
  }
  if (!kept_.is_open()) kept_ = base::FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!kept_.is_open()) return base::os_error(path_, "cannot keep what the script reads", errno);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::os_error("standard input", "cannot be handed to the script", errno);
  base::FileDescriptor theirs(ends[0]);
  to_script_ = base::FileDescriptor(ends[1]);
  ::fcntl(to_script_.get(), F_SETFL, O_NONBLOCK);
  CUTAWAY_TRY(pump());
  return theirs;
}

bool ScriptInput::read_more() {
  char buffer[1 << 16];
  for (;;) {
    pollfd ready{source_, POLLIN, 0};
    if (is_at_end_ || ::poll(&ready, 1, 0) <= 0) return false;
    // In the background a read would stop us. A terminal that does not control us (-1) stops nobody.
    if (const pid_t reader = ::isatty(source_) ? ::tcgetpgrp(source_) : -1; reader >= 0 && reader != ::getpgrp()) return false;
    const ssize_t n = ::read(source_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      is_at_end_ = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      return false;
    }
    if (::pwrite(kept_.get(), buffer, static_cast<size_t>(n), static_cast<off_t>(size_)) != n) {
      is_at_end_ = true;   // what cannot be kept is not given either: the runs would differ
      return false;
    }
    size_ += static_cast<uint64_t>(n);
    return true;
  }
}

base::Status ScriptInput::pump() {
  char buffer[1 << 16];
  while (to_script_.is_open()) {
    if (sent_ == size_ && !read_more()) {
      if (is_at_end_) to_script_.close();
      return {};
    }
    const ssize_t n = ::pread(kept_.get(), buffer, sizeof buffer, static_cast<off_t>(sent_));
    if (n <= 0) return base::os_error(path_, "cannot be read", errno);
    const ssize_t written = ::write(to_script_.get(), buffer, static_cast<size_t>(n));
    if (written > 0) sent_ += static_cast<uint64_t>(written);
    else if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    else if (errno != EINTR) to_script_.close();   // the script wants no more
  }
  return {};
}

base::Result<std::string> read_all_input(int source) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(source, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::os_error("standard input", "cannot be read", errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace cutaway::flows
