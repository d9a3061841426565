#include "core/store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <unordered_set>

#include "core/base/text.h"
#include "core/store/blob_file.h"

namespace cutaway::store {

namespace fs = std::filesystem;
using base::Digest;
using base::Error;
using base::Result;
using base::Status;

namespace {

std::string named(const Digest& digest) { return "blob " + digest.short_hex(); }

base::Sync sync_of(bool durable) { return durable ? base::Sync::durable : base::Sync::fast; }

/// Tells truncated from altered where the size is known.
Error wrong_content(const fs::path& place, const Digest& digest, uint64_t bytes, const Digest& found) {
  if (bytes == 0) return Error{.what = named(digest) + " is empty", .place = place.string(), .because = "its content was lost"};
  return Error{.what = named(digest) + " is altered", .place = place.string(),
               .because = "its " + base::human_bytes(bytes) + " have the digest " + found.short_hex()};
}

}  // namespace

fs::path Store::path_of(const Digest& digest) const {
  const std::string hex = digest.hex();
  return root_ / "blobs" / hex.substr(0, 2) / hex;
}

Result<Store> Store::open(fs::path root, Open open, Durability durability) {
  Store store(std::move(root), durability);
  const fs::path blobs = store.root_ / "blobs";
  if (open == Open::create) {
    CUTAWAY_TRY(base::make_directories(blobs, sync_of(store.is_durable())));
    return store;
  }
  struct stat info;
  if (::stat(blobs.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return Error{.what = "is not a directory", .place = blobs.string()};
    return store;
  }
  if (errno != ENOENT && errno != ENOTDIR) return base::os_error(blobs, "cannot be examined", errno);
  if (::stat(store.root_.c_str(), &info) != 0) return Error{.what = "there is no such directory", .place = store.root_.string()};
  if (open == Open::existing_or_empty && S_ISDIR(info.st_mode)) return store;
  return Error{.what = "is not a store", .place = store.root_.string(), .because = "it has no directory blobs/"};
}

Result<std::pair<base::FileDescriptor, uint64_t>> Store::open_blob(const Digest& digest, std::optional<uint64_t> bytes) const {
  const fs::path path = path_of(digest);
  // No link is followed (a stranger's bundle must not make us read elsewhere), and no named pipe is waited for.
  base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return Error{.what = named(digest) + " is missing", .place = root_.string()};
    if (errno == ELOOP) return Error{.what = named(digest) + " is a symbolic link, not a plain file", .place = path.string()};
    return base::os_error(path, named(digest) + " cannot be opened", errno);
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) return base::os_error(path, named(digest) + " cannot be examined", errno);
  if (!S_ISREG(info.st_mode)) return Error{.what = named(digest) + " is not a plain file", .place = path.string()};
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (bytes && size != *bytes) {
    const std::string numbers = std::to_string(size) + " of " + base::count_of(*bytes, "byte");
    return Error{.what = named(digest) + (size < *bytes ? " is truncated: it has " : " is altered: it has ") + numbers, .place = path.string()};
  }
  return std::pair(std::move(file), size);
}

bool Store::contains(const Digest& digest) const {
  struct stat info;
  return ::lstat(path_of(digest).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<uint64_t> Store::size_of(const Digest& digest) const {
  CUTAWAY_TRY_ASSIGN(auto opened, open_blob(digest, std::nullopt));
  return opened.second;
}

Status Store::check_size(const Digest& digest, uint64_t bytes) const {
  CUTAWAY_TRY(open_blob(digest, bytes));
  return {};
}

Result<Blob> Store::get(const Digest& digest, std::optional<uint64_t> bytes) const {
  CUTAWAY_TRY_ASSIGN(auto opened, open_blob(digest, bytes));
  const fs::path path = path_of(digest);
  CUTAWAY_TRY_ASSIGN(Blob blob, map_file(opened.first, opened.second, path));
  const Digest found = base::digest_bytes(blob.data(), blob.size());
  if (found != digest) return wrong_content(path, digest, blob.size(), found);
  return blob;
}

Status Store::verify(const Digest& digest, std::optional<uint64_t> bytes) const {
  CUTAWAY_TRY(get(digest, bytes));
  return {};
}

Result<bool> Store::adopt_existing(const Digest& digest) const {
  if (!verify(digest).ok()) return false;   // missing, or damaged and about to be replaced
  if (!is_durable()) return true;
  // Another writer may have made it a moment ago without waiting for the disk.
  const fs::path path = path_of(digest);
  base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return false;
  if (fsync(file.get()) != 0) return base::os_error(path, "cannot be made durable", errno);
  CUTAWAY_TRY(base::sync_directory(path.parent_path()));
  CUTAWAY_TRY(base::sync_directory(root_ / "blobs"));
  return true;
}

Status Store::make_shard(const Digest& digest) const {
  const fs::path shard = path_of(digest).parent_path();
  if (::mkdir(shard.c_str(), 0777) != 0 && errno != EEXIST) return base::os_error(shard, "cannot be created", errno);
  // Also when it was there: whoever made it may not have got as far as this line.
  return is_durable() ? base::sync_directory(root_ / "blobs") : Status();
}

Status Store::publish(const fs::path& temporary, const Digest& digest) const {
  CUTAWAY_TRY(make_shard(digest));
  const fs::path path = path_of(digest);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return base::os_error(path, named(digest) + " cannot be written", errno);
  return is_durable() ? base::sync_directory(path.parent_path()) : Status();
}

class Store::FileWriter final : public Store::Writer {
 public:
  FileWriter(const Store& store, TemporaryFile file) : store_(store), file_(std::move(file)) {}

  Status add(std::span<const std::byte> data) override {
    hasher_.add(data.data(), data.size());
    return file_.add(data);
  }

  Result<Digest> finish() override { return finish(hasher_.finish()); }

  Result<Digest> finish(const Digest& digest) {
    if (store_.is_durable()) CUTAWAY_TRY(file_.sync());
    const DirectoryLock lock(store_.root_ / "blobs", DirectoryLock::Kind::shared);
    CUTAWAY_TRY(store_.publish(file_.path(), digest));
    file_.published();
    return digest;
  }

 private:
  const Store store_;
  TemporaryFile file_;
  base::Hasher hasher_;
};

Result<Digest> Store::put(std::span<const std::byte> data) {
  const Digest digest = base::digest_bytes(data.data(), data.size());
  {
    const DirectoryLock lock(root_ / "blobs", DirectoryLock::Kind::shared);
    CUTAWAY_TRY_ASSIGN(const bool is_there, adopt_existing(digest));
    if (is_there) return digest;
  }
  CUTAWAY_TRY_ASSIGN(TemporaryFile file, TemporaryFile::create(root_ / "blobs"));
  CUTAWAY_TRY(file.add(data));
  return FileWriter(*this, std::move(file)).finish(digest);
}

Result<std::unique_ptr<Store::Writer>> Store::writer() {
  CUTAWAY_TRY_ASSIGN(TemporaryFile file, TemporaryFile::create(root_ / "blobs"));
  return std::unique_ptr<Writer>(std::make_unique<FileWriter>(*this, std::move(file)));
}

Result<std::vector<BlobInfo>> Store::list() const {
  std::vector<BlobInfo> out;
  std::error_code code;
  const fs::path blobs = root_ / "blobs";
  for (fs::directory_iterator shard(blobs, code), end; !code && shard != end; shard.increment(code)) {
    const std::string prefix = shard->path().filename().string();
    std::error_code ignored;   // a shard that vanishes meanwhile has nothing to list
    if (prefix.size() != 2 || !shard->is_directory(ignored)) continue;
    std::error_code shard_code;
    for (fs::directory_iterator file(shard->path(), shard_code); !shard_code && file != end; file.increment(shard_code)) {
      const std::string name = file->path().filename().string();
      const Result<Digest> digest = Digest::parse(name);
      if (!digest.ok() || !name.starts_with(prefix)) continue;
      struct stat info;
      if (::lstat(file->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      out.push_back({*digest, static_cast<uint64_t>(info.st_size)});
    }
    if (shard_code) return base::os_error(shard->path(), "cannot be listed", shard_code.value());
  }
  if (code && code != std::errc::no_such_file_or_directory) return base::os_error(blobs, "cannot be listed", code.value());
  std::sort(out.begin(), out.end(), [](const BlobInfo& a, const BlobInfo& b) { return a.digest < b.digest; });
  return out;
}

Status Store::copy_to(Store& other, const Digest& digest) const {
  CUTAWAY_TRY_ASSIGN(const Blob blob, get(digest));
  {
    const DirectoryLock lock(other.root_ / "blobs", DirectoryLock::Kind::shared);
    CUTAWAY_TRY_ASSIGN(const bool is_there, other.adopt_existing(digest));
    if (is_there) return {};
    const fs::path from = path_of(digest), to = other.path_of(digest);
    CUTAWAY_TRY(other.make_shard(digest));
    if (::link(from.c_str(), to.c_str()) == 0) {
      CUTAWAY_TRY_ASSIGN(const bool is_good, other.adopt_existing(digest));
      if (is_good) return {};
    }
    // Another file system, no links, or a damaged file in the way: write it anew.
  }
  CUTAWAY_TRY(other.put(blob.span()));
  return {};
}

Result<uint64_t> Store::collect(const std::vector<Digest>& keep) {
  const DirectoryLock lock(root_ / "blobs", DirectoryLock::Kind::alone);
  const std::unordered_set<Digest> kept(keep.begin(), keep.end());
  CUTAWAY_TRY_ASSIGN(const std::vector<BlobInfo> all, list());
  uint64_t freed = 0;
  for (const BlobInfo& blob : all) {
    if (kept.contains(blob.digest)) continue;
    const fs::path path = path_of(blob.digest);
    if (::unlink(path.c_str()) == 0) freed += blob.bytes;
    else if (errno != ENOENT) return base::os_error(path, "cannot be removed", errno);
  }
  std::error_code code;
  for (fs::directory_iterator file(root_ / "blobs", code), end; !code && file != end; file.increment(code)) {
    if (!base::is_temporary_name(file->path().filename().string())) continue;
    struct stat info;
    if (::lstat(file->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (time(nullptr) - info.st_mtime < 3600) continue;   // its writer may still be at work
    if (::unlink(file->path().c_str()) == 0) freed += static_cast<uint64_t>(info.st_size);
  }
  return freed;
}

}  // namespace cutaway::store
