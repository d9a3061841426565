#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/text.h"

namespace cutaway::base {

namespace fs = std::filesystem;

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Error os_error(const fs::path& place, std::string what, int errno_value) {
  char buffer[256];
  // The GNU form returns the text, which may or may not be in the buffer.
  Error error{.what = std::move(what), .place = place.string(), .because = strerror_r(errno_value, buffer, sizeof buffer)};
  // These come of writing alone.
  if (errno_value == ENOSPC || errno_value == EDQUOT) error.hint = "make room there, or -o with a folder elsewhere";
  if (errno_value == EROFS) error.hint = "-o with a folder that may be written to";
  if (errno_value == EFBIG) error.hint = "raise the limit of file sizes (ulimit -f); -o names another folder";
  return error;
}

Result<std::string> read_file(const fs::path& path, uint64_t max_bytes, Links links) {
  // Non-blocking: opening a named pipe would otherwise wait for ever.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::refuse ? O_NOFOLLOW : 0)));
  if (!file.is_open()) {
    if (errno == ENOENT) return Error{.what = "there is no such file", .place = path.string()};
    if (errno == ELOOP && links == Links::refuse) return Error{.what = "is a symbolic link, which is not followed here", .place = path.string()};
    return os_error(path, "cannot be opened", errno);
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) return os_error(path, "cannot be examined", errno);
  if (S_ISDIR(info.st_mode)) return Error{.what = "is a directory, not a file", .place = path.string()};
  if (!S_ISREG(info.st_mode)) return Error{.what = "is not a plain file", .place = path.string()};
  const auto too_large = [&](uint64_t bytes) {
    return Error{.what = "is too large: " + human_bytes(bytes) + ", at most " + human_bytes(max_bytes) + " are read", .place = path.string()};
  };
  if (static_cast<uint64_t>(info.st_size) > max_bytes) return too_large(static_cast<uint64_t>(info.st_size));

  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (true) {   // to the end, not to st_size: files of /proc say 0, and a file may grow meanwhile
    if (got == text.size()) {
      if (got > max_bytes) return too_large(got);
      text.resize(got + (got == static_cast<size_t>(info.st_size) ? 1 : 65536));
    }
    const ssize_t n = ::read(file.get(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(path, "cannot be read", errno);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  if (got > max_bytes) return too_large(got);
  text.resize(got);
  return text;
}

Status write_all(int fd, const void* data, size_t bytes, const fs::path& place) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(place, "cannot be written", errno);
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return {};
}

Status sync_directory(const fs::path& path) {
  FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return os_error(path, "cannot be opened", errno);
  // Some file systems have nothing to sync for a directory and say EINVAL.
  if (fsync(directory.get()) != 0 && errno != EINVAL) return os_error(path, "cannot be made durable", errno);
  return {};
}

Status write_file_atomic(const fs::path& path, std::string_view text, Sync sync) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path temporary = directory / temporary_name();
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) return os_error(path, "cannot be written", errno);
  const auto fail = [&](Error error) {
    ::unlink(temporary.c_str());
    return error;
  };
  if (Status status = write_all(file.get(), text.data(), text.size(), path); !status.ok()) return fail(std::move(status).error());
  if (sync == Sync::durable && fsync(file.get()) != 0) return fail(os_error(path, "cannot be made durable", errno));
  file.close();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(os_error(path, "cannot be replaced", errno));
  return sync == Sync::durable ? sync_directory(directory) : Status();
}

Status make_directories(const fs::path& path, Sync sync) {
  std::vector<fs::path> missing;   // deepest first
  for (fs::path at = path.lexically_normal(); !at.empty();) {
    if (!at.has_filename() && at.has_parent_path() && at != at.parent_path()) {   // a trailing slash
      at = at.parent_path();
      continue;
    }
    struct stat info;
    if (::stat(at.c_str(), &info) == 0) {
      if (!S_ISDIR(info.st_mode)) return Error{.what = "is not a directory", .place = at.string()};
      break;
    }
    if (errno != ENOENT) return os_error(at, "cannot be examined", errno);
    missing.push_back(at);
    if (at == at.parent_path()) break;
    at = at.parent_path();
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (::mkdir(at->c_str(), 0777) != 0 && errno != EEXIST) {
      Error error = os_error(*at, "cannot be created", errno);
      if (error.hint.empty()) error.hint = "-o with a folder that may be written to";
      return error;
    }
    if (sync == Sync::durable) CUTAWAY_TRY(sync_directory(at->has_parent_path() ? at->parent_path() : fs::path(".")));
  }
  return {};
}

namespace {
constexpr std::string_view kTemporaryPrefix = ".cutaway-tmp-";
}

std::string temporary_name() {
  static std::atomic<uint64_t> counter{0};
  // The process id alone is not enough: two machines, or two containers, may share a file system. The clock and the device are
  // asked on every call, because a forked child would inherit a seed.
  std::random_device device;
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  char random[40];
  std::snprintf(random, sizeof random, "%08x%08x", device(), device() ^ static_cast<unsigned>(now));
  return std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-" + std::to_string(counter++) + "-" + random;
}

bool is_temporary_name(std::string_view name) { return name.starts_with(kTemporaryPrefix); }

Result<fs::path> make_temporary_directory(std::string_view prefix, const fs::path& parent) {
  std::error_code code;
  const fs::path base = parent.empty() ? fs::temp_directory_path(code) : parent;
  if (code) return Error{.what = "there is no directory for temporary files", .because = code.message(), .hint = "set TMPDIR"};
  const fs::path path = base / (std::string(prefix) + temporary_name().substr(kTemporaryPrefix.size()));
  if (::mkdir(path.c_str(), 0700) != 0) return os_error(path, "cannot be created", errno);
  return path;
}

Result<fs::path> path_inside(const fs::path& root, std::string_view relative) {
  const auto refuse = [&](std::string why) {
    return Error{.what = quote(relative) + " is not a path inside a directory", .place = root.string(), .because = std::move(why)};
  };
  if (relative.empty()) return refuse("it is empty");
  if (relative.front() == '/') return refuse("it is absolute");
  if (relative.find('\0') != std::string_view::npos) return refuse("it contains a zero byte");
  for (size_t start = 0; start <= relative.size();) {
    const size_t end = std::min(relative.find('/', start), relative.size());
    const std::string_view part = relative.substr(start, end - start);
    if (part.empty()) return refuse("it has an empty component");
    if (part == "." || part == "..") return refuse("it has the component " + quote(part));
    if (part.size() > 255) return refuse("it has a component longer than 255 bytes");
    start = end + 1;
  }
  // Links on the way: what exists of the path, resolved, must still lie under the resolved root.
  std::error_code code;
  const fs::path real_root = fs::weakly_canonical(root, code);
  if (code) return os_error(root, "cannot be resolved", code.value());
  const fs::path joined = root / fs::path(relative);
  const fs::path real = fs::weakly_canonical(joined, code);
  if (code) return refuse("it cannot be resolved: " + code.message());
  const auto [root_end, ignored] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  if (root_end != real_root.end()) return refuse("a symbolic link on the way leads outside");
  return joined;
}

Result<TemporaryDirectory> TemporaryDirectory::make(std::string_view prefix) {
  CUTAWAY_TRY_ASSIGN(fs::path path, make_temporary_directory(prefix));
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;   // nothing sensible can be done about scratch that stays
  fs::remove_all(path_, ignored);
}

}  // namespace cutaway::base
