#include "core/bundle/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <vector>

#include "core/base/text.h"
#include "core/bundle/bundle.h"
#include "core/bundle/tar_header.h"

namespace cutaway::bundle {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::Result;
using base::Status;

constexpr uint64_t kMaxFields = 1 << 20;   // of what stands before one entry
constexpr size_t kMaxPath = 1024, kMaxDepth = 16, kMaxEntries = 1'000'000;
constexpr size_t kCopyAtOnce = 1 << 20;

uint64_t padded(uint64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

/// The path below the root, without "./" before and "/" behind; empty for the root itself.
Result<std::string> checked_path(std::string_view path, bool is_directory) {
  const auto refuse = [&](std::string because) { return Error{.what = "the entry " + base::quote(std::string(path.substr(0, kMaxPath))) + " is refused", .because = std::move(because)}; };
  if (path.size() > kMaxPath) return refuse("its name has more than " + std::to_string(kMaxPath) + " bytes");
  if (path.find('\0') != path.npos || !base::is_utf8(path)) return refuse("its name is not text");
  std::string_view rest = path;
  if (rest.starts_with('/')) return refuse("its path is absolute");
  while (rest.starts_with("./")) rest.remove_prefix(2);
  if (is_directory && rest.ends_with('/')) rest.remove_suffix(1);
  if (is_directory && (rest.empty() || rest == ".")) return std::string();
  size_t depth = 0;
  for (std::string_view left = rest;;) {
    const size_t slash = left.find('/');
    const std::string_view part = left.substr(0, slash);
    if (part == "..") return refuse("its path leaves the archive's folder");
    if (part.empty() || part == ".") return refuse("its path has an empty part");
    if (++depth > kMaxDepth) return refuse("it is nested more than " + std::to_string(kMaxDepth) + " deep");
    if (slash == left.npos) break;
    left.remove_prefix(slash + 1);
  }
  return std::string(rest);
}

class Unpacker {
 public:
  Unpacker(base::FileDescriptor file, uint64_t bytes, fs::path place, fs::path into) : file_(std::move(file)), bytes_(bytes), place_(std::move(place)), into_(std::move(into)) {}

  Status run() {
    for (size_t entries = 0;; ++entries) {
      if (entries > kMaxEntries) return wrong({.what = "has more than " + std::to_string(kMaxEntries) + " entries"});
      if (at_ == bytes_ && entries > 0) return {};   // some writers leave the zeros at the end out
      CUTAWAY_TRY_ASSIGN(const std::string block, take(kTarBlock));
      if (is_zero_block(block)) return entries > 0 ? Status() : Status(wrong({.what = "is an empty archive"}));
      auto header = read_tar_header(block);
      if (!header.ok()) return wrong(std::move(header).error());
      CUTAWAY_TRY(entry(*header));
    }
  }

 private:
  Error wrong(Error e) const { return std::move(e).at(place_.string()); }

  Result<std::string> take(uint64_t bytes) {
    if (bytes > bytes_ - at_) return wrong({.what = "is truncated", .because = "it ends inside an entry, after " + base::count_of(bytes_, "byte")});
    std::string out(bytes, '\0');
    CUTAWAY_TRY(read(out.data(), bytes));
    return out;
  }
  Status read(char* into, size_t bytes) {
    for (size_t got = 0; got < bytes;) {
      const ssize_t n = ::pread(file_.get(), into + got, bytes - got, static_cast<off_t>(at_ + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::os_error(place_, "cannot be read", errno);
      if (n == 0) return wrong({.what = "became shorter while it was read"});
      got += static_cast<size_t>(n);
    }
    at_ += bytes;
    return {};
  }

  Status entry(TarHeader h) {
    if (h.type == 'x' || h.type == 'L') {
      if (h.size > kMaxFields) return wrong({.what = "has " + base::human_bytes(h.size) + " of fields before one entry"});
      CUTAWAY_TRY_ASSIGN(std::string text, take(padded(h.size)));
      text.resize(h.size);
      if (h.type == 'L') {
        next_.path = text.substr(0, text.find('\0'));
        return {};
      }
      auto fields = read_pax_records(text);
      if (!fields.ok()) return wrong(std::move(fields).error());
      if (fields->path) next_.path = std::move(fields->path);
      if (fields->size) next_.size = fields->size;
      return {};
    }
    if (next_.path) h.path = *std::move(next_.path);
    if (next_.size) h.size = *next_.size;
    next_ = {};
    const bool is_directory = h.type == '5';
    auto path = checked_path(h.path, is_directory);
    if (!path.ok()) return wrong(std::move(path).error());
    if (is_directory && h.size != 0) return wrong({.what = "the folder " + base::quote(h.path) + " has content"});
    if (path->empty()) return {};
    if (!names_.insert(*path).second) return wrong({.what = "the entry " + base::quote(*path) + " comes twice"});
    if (h.size > bytes_ - at_ || padded(h.size) > bytes_ - at_) return wrong({.what = "is truncated", .because = base::quote(*path) + " should have " + base::count_of(h.size, "byte")});
    const fs::path target = into_ / *path;
    CUTAWAY_TRY(base::make_directories(is_directory ? target : target.parent_path(), base::Sync::fast));
    return is_directory ? Status() : copy(target, h.size);
  }

  Status copy(const fs::path& target, uint64_t size) {
    base::FileDescriptor out(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!out.is_open()) return base::os_error(target, "cannot be unpacked", errno);
    const uint64_t end = at_ + padded(size);
    std::string buffer(std::min<uint64_t>(size, kCopyAtOnce), '\0');
    while (size > 0) {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(size, buffer.size()));
      CUTAWAY_TRY(read(buffer.data(), n));
      CUTAWAY_TRY(base::write_all(out.get(), buffer.data(), n, target));
      size -= n;
    }
    at_ = end;
    return {};
  }

  base::FileDescriptor file_;
  uint64_t bytes_, at_ = 0;
  fs::path place_, into_;
  PaxFields next_;                // what was said about the entry to come
  std::set<std::string> names_;   // files and folders that have come
};

Result<std::vector<std::string>> files_below(const fs::path& root) {
  std::vector<std::string> out;
  std::error_code code;
  for (fs::recursive_directory_iterator it(root, code), end; !code && it != end; it.increment(code)) {
    if (base::is_temporary_name(it->path().filename().string())) {
      it.disable_recursion_pending();
      continue;
    }
    struct stat info;
    if (::lstat(it->path().c_str(), &info) != 0) return base::os_error(it->path(), "cannot be examined", errno);
    if (S_ISDIR(info.st_mode)) continue;
    if (!S_ISREG(info.st_mode)) return Error{.what = "is not a plain file", .place = it->path().string(), .because = "an archive of a bundle holds files alone"};
    out.push_back(it->path().lexically_relative(root).string());
  }
  if (code) return base::os_error(root, "cannot be listed", code.value());
  std::sort(out.begin(), out.end());
  return out;
}

class Packer {
 public:
  Packer(int fd, const fs::path& place) : fd_(fd), place_(place) {}

  Status add(const fs::path& file, std::string name) {
    base::FileDescriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info;
    if (!in.is_open() || ::fstat(in.get(), &info) != 0) return base::os_error(file, "cannot be read", errno);
    TarHeader h{.path = std::move(name), .size = static_cast<uint64_t>(info.st_size)};
    if (!fits_tar_header(h)) {
      const std::string records = pax_record("path", h.path) + pax_record("size", std::to_string(h.size));
      CUTAWAY_TRY(header({.path = "PaxHeaders/" + std::to_string(++long_ones_), .size = records.size(), .type = 'x'}));
      CUTAWAY_TRY(write(records.data(), records.size()));
      CUTAWAY_TRY(pad(records.size()));
      h.path = h.path.substr(0, 100);
    }
    CUTAWAY_TRY(header(h));
    std::string buffer(kCopyAtOnce, '\0');
    for (uint64_t left = h.size; left > 0;) {
      const ssize_t n = ::read(in.get(), buffer.data(), static_cast<size_t>(std::min<uint64_t>(left, buffer.size())));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::os_error(file, "cannot be read", errno);
      if (n == 0) return Error{.what = "became shorter while it was read", .place = file.string()};
      CUTAWAY_TRY(write(buffer.data(), static_cast<size_t>(n)));
      left -= static_cast<uint64_t>(n);
    }
    return pad(h.size);
  }
  Status finish() {
    const std::string zeros(2 * kTarBlock, '\0');
    return write(zeros.data(), zeros.size());
  }

 private:
  Status header(const TarHeader& h) {
    const auto block = write_tar_header(h);
    return write(block.data(), block.size());
  }
  Status pad(uint64_t bytes) {
    const std::string zeros(padded(bytes) - bytes, '\0');
    return write(zeros.data(), zeros.size());
  }
  Status write(const void* data, size_t bytes) { return base::write_all(fd_, data, bytes, place_); }

  int fd_;
  const fs::path& place_;
  size_t long_ones_ = 0;
};

}  // namespace

bool looks_like_archive(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char block[kTarBlock];
  return file.is_open() && ::pread(file.get(), block, kTarBlock, 0) == static_cast<ssize_t>(kTarBlock) && has_tar_magic({block, kTarBlock});
}

Status unpack_archive(const fs::path& archive, const fs::path& into) {
  base::FileDescriptor file(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!file.is_open() || ::fstat(file.get(), &info) != 0) return base::os_error(archive, "cannot be opened", errno);
  if (!S_ISREG(info.st_mode)) return Error{.what = "is not a plain file", .place = archive.string()};
  return Unpacker(std::move(file), static_cast<uint64_t>(info.st_size), archive, into).run();
}

Status write_archive(const fs::path& bundle, const fs::path& archive) {
  CUTAWAY_TRY_ASSIGN(const std::vector<std::string> files, files_below(bundle));
  const fs::path folder = archive.parent_path(), temporary = folder / base::temporary_name();
  base::FileDescriptor out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!out.is_open()) return base::os_error(archive, "cannot be written", errno);
  const Status done = [&]() -> Status {
    Packer packer(out.get(), archive);
    for (const std::string& name : files) CUTAWAY_TRY(packer.add(bundle / name, archive.stem().string() + "/" + name));
    CUTAWAY_TRY(packer.finish());
    if (::fsync(out.get()) != 0 || ::rename(temporary.c_str(), archive.c_str()) != 0) return base::os_error(archive, "cannot be written", errno);
    return {};
  }();
  if (!done.ok()) ::unlink(temporary.c_str());
  return done;
}

Result<UnpackedBundle> unpack_bundle(const fs::path& archive) {
  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-archive-"));
  CUTAWAY_TRY(unpack_archive(archive, scratch.path()));
  fs::path path = scratch.path();
  if (!looks_like_bundle(path)) {   // tar -cf out.tar out
    std::vector<fs::path> found;
    for (const fs::directory_entry& e : fs::directory_iterator(path)) found.push_back(e.path());
    if (found.size() != 1 || !looks_like_bundle(found.front()))
      return Error{.what = "is not the archive of a bundle", .place = archive.string(), .because = "neither it nor the one folder in it has a manifest.json and a graph.cut"};
    path = found.front();
  }
  return UnpackedBundle{std::move(scratch), std::move(path)};
}

Result<BundleArgument> open_argument(const fs::path& path) {
  if (!looks_like_archive(path)) return BundleArgument{path, std::nullopt};
  CUTAWAY_TRY_ASSIGN(UnpackedBundle unpacked, unpack_bundle(path));
  fs::path inside = unpacked.path;
  return BundleArgument{std::move(inside), std::move(unpacked)};
}

}  // namespace cutaway::bundle
