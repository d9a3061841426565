#include "core/store/blob_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

namespace cutaway::store {

namespace {
constexpr uint64_t kSmall = 64 * 1024;            // below this a copy is cheaper than a mapping
constexpr size_t kAlignment = 64;                 // what tensors expect of their memory
constexpr uint64_t kWriteAtOnce = 8 * 1024 * 1024;
}  // namespace

base::Result<Blob> map_file(const base::FileDescriptor& file, uint64_t bytes, const std::filesystem::path& place) {
  if (bytes > SIZE_MAX / 2) return base::Error{.what = "is too large to be mapped", .place = place.string()};
  const size_t size = static_cast<size_t>(bytes);
  if (size >= kSmall) {
    void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.get(), 0);
    if (data != MAP_FAILED) {
      return Blob(data, size, std::shared_ptr<const void>(data, [size](const void* p) { munmap(const_cast<void*>(p), size); }));
    }
    // Some file systems cannot map: read it instead.
  }
  void* const data = ::operator new(std::max<size_t>(size, 1), std::align_val_t(kAlignment), std::nothrow);
  if (!data) return base::Error{.what = "does not fit into memory", .place = place.string()};
  Blob blob(data, size, std::shared_ptr<const void>(data, [](const void* p) { ::operator delete(const_cast<void*>(p), std::align_val_t(kAlignment)); }));
  size_t got = 0;
  while (got < size) {
    const ssize_t n = pread(file.get(), static_cast<char*>(data) + got, size - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::os_error(place, "cannot be read", errno);
    if (n == 0) return base::Error{.what = "became shorter while it was read", .place = place.string()};
    got += static_cast<size_t>(n);
  }
  return blob;
}

base::Result<TemporaryFile> TemporaryFile::create(const std::filesystem::path& directory) {
  std::filesystem::path path = directory / base::temporary_name();
  // Read-only for everybody: a bundle's hard link shares the content with the store, and an editor must not change both.
  base::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file.is_open()) return base::os_error(directory, "cannot be written to", errno);
  return TemporaryFile(std::move(file), std::move(path));
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

base::Status TemporaryFile::add(std::span<const std::byte> data) {
  while (!data.empty()) {
    const size_t n = std::min<size_t>(data.size(), kWriteAtOnce);
    CUTAWAY_TRY(base::write_all(file_.get(), data.data(), n, path_));
    data = data.subspan(n);
    bytes_ += n;
    if (bytes_ - begun_ >= kWriteAtOnce) {
      // Only a hint: an error here would come back from fsync.
      (void)sync_file_range(file_.get(), static_cast<off_t>(begun_), static_cast<off_t>(bytes_ - begun_), SYNC_FILE_RANGE_WRITE);
      begun_ = bytes_;
    }
  }
  return {};
}

base::Status TemporaryFile::sync() {
  if (fsync(file_.get()) != 0) return base::os_error(path_, "cannot be made durable", errno);
  return {};
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, Kind kind)
    : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_.is_open()) return;
  while (flock(directory_.get(), kind == Kind::shared ? LOCK_SH : LOCK_EX) != 0 && errno == EINTR) {
  }
}

}  // namespace cutaway::store
