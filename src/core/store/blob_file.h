// One blob's file: mapping it, checking it, writing it quickly. Internal to core/store.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/store/store.h"

namespace cutaway::store {

/// The content of an open file: mapped, or copied when it is small. Not verified.
base::Result<Blob> map_file(const base::FileDescriptor&, uint64_t bytes, const std::filesystem::path& place);

/// A temporary file that removes itself unless it was published. Begins to write to the disk while more bytes arrive, so that
/// the fsync at the end has little left to do.
class TemporaryFile {
 public:
  static base::Result<TemporaryFile> create(const std::filesystem::path& directory);
  TemporaryFile(TemporaryFile&&) noexcept = default;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();
  base::Status add(std::span<const std::byte>);
  base::Status sync();
  const std::filesystem::path& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  /// It has another name now; nothing is left to remove.
  void published() { path_.clear(); }

 private:
  TemporaryFile(base::FileDescriptor file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}
  base::FileDescriptor file_;
  std::filesystem::path path_;
  uint64_t bytes_ = 0;
  uint64_t begun_ = 0;   // bytes whose way to the disk has begun
};

/// An advisory lock on a directory, held while it lives: shared by writers, alone for collect. Where the file system has no
/// locks it does nothing.
class DirectoryLock {
 public:
  enum class Kind { shared, alone };
  DirectoryLock(const std::filesystem::path& directory, Kind);

 private:
  base::FileDescriptor directory_;   // closing it unlocks
};

}  // namespace cutaway::store
