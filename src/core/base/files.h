// Files that survive: whole reads with a limit, atomic writes, durable directories, and paths that cannot leave their root.
// Everything returns Errors that name the path and the system's own reason.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace cutaway::base {

/// An open file descriptor, closed when it goes.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { const int fd = fd_; fd_ = -1; return fd; }
  void close();

 private:
  int fd_ = -1;
};

/// Written to the disk before success is told, or left to the system's own time (survives a killed process, not a power cut).
enum class Sync { durable, fast };

/// `place: what`, because the system said `errno_value`.
Error os_error(const std::filesystem::path& place, std::string what, int errno_value);

/// The whole file. More than `max_bytes`, a directory or a device is an error; with `Links::refuse` a symbolic link too.
enum class Links { follow, refuse };
Result<std::string> read_file(const std::filesystem::path&, uint64_t max_bytes = uint64_t{1} << 32, Links = Links::follow);
/// Readers see the old content, the new, or (before the first write) no file. Temporary file beside it, fsync, rename, fsync of
/// the directory.
Status write_file_atomic(const std::filesystem::path&, std::string_view text, Sync = Sync::durable);
/// Every byte, however often the system takes fewer. `place` is for messages.
Status write_all(int fd, const void* data, size_t bytes, const std::filesystem::path& place);

/// Like mkdir -p; new directories survive a power cut with Sync::durable.
Status make_directories(const std::filesystem::path&, Sync = Sync::durable);
Status sync_directory(const std::filesystem::path&);
/// A new directory that nobody else has, in `parent` (empty: the system's place for temporary files).
Result<std::filesystem::path> make_temporary_directory(std::string_view prefix, const std::filesystem::path& parent = {});
/// ".cutaway-tmp-<process>-<number>-<random>": different for every call, thread, process and machine.
std::string temporary_name();
/// A name that temporary_name() gave.
bool is_temporary_name(std::string_view name);

/// root / relative, or an Error: an absolute path, "..", ".", an empty component, a NUL, or a symbolic link that leads outside
/// the root. The file itself need not exist.
Result<std::filesystem::path> path_inside(const std::filesystem::path& root, std::string_view relative);

/// Removes itself with all its content when it goes: scratch space of one run or one test.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> make(std::string_view prefix);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace cutaway::base
