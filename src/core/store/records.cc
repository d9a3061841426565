// Store's named records: names/<name>.json.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "core/base/text.h"
#include "core/store/blob_file.h"
#include "core/store/store.h"

namespace cutaway::store {

namespace fs = std::filesystem;
using base::Error;
using base::Result;
using base::Status;

namespace {
constexpr std::string_view kSuffix = ".json";
constexpr uint64_t kMaxRecord = uint64_t{1} << 30;

Result<fs::path> record_path(const fs::path& root, std::string_view name) {
  // The name by itself too: with the suffix "." and ".." would be ordinary files.
  const Result<fs::path> bare = base::path_inside(root / "names", name);
  Result<fs::path> path = base::path_inside(root / "names", std::string(name) + std::string(kSuffix));
  if (bare.ok() && path.ok()) return path;
  return Error{.what = base::quote(name) + " is not a name for a record", .place = root.string(),
               .because = bare.ok() ? path.error().because : bare.error().because};
}
}  // namespace

Status Store::put_record(std::string_view name, std::string_view text) {
  CUTAWAY_TRY_ASSIGN(const fs::path path, record_path(root_, name));
  const base::Sync sync = is_durable() ? base::Sync::durable : base::Sync::fast;
  CUTAWAY_TRY(base::make_directories(path.parent_path(), sync));
  // The temporary file lies with those of the blobs, where collect() looks for leftovers and no name can mean it.
  CUTAWAY_TRY_ASSIGN(TemporaryFile file, TemporaryFile::create(root_ / "blobs"));
  CUTAWAY_TRY(file.add(std::as_bytes(std::span(text))));
  if (is_durable()) CUTAWAY_TRY(file.sync());
  if (::rename(file.path().c_str(), path.c_str()) != 0) return base::os_error(path, "cannot be written", errno);
  file.published();
  return is_durable() ? base::sync_directory(path.parent_path()) : Status();
}

Result<std::string> Store::get_record(std::string_view name) const {
  CUTAWAY_TRY_ASSIGN(const fs::path path, record_path(root_, name));
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    std::string near;
    if (const auto names = list_records(); names.ok()) near = base::did_you_mean(name, *names);
    return Error{.what = "there is no record " + base::quote(name) + near, .place = root_.string()};
  }
  return base::read_file(path, kMaxRecord, base::Links::refuse);
}

bool Store::contains_record(std::string_view name) const {
  const Result<fs::path> path = record_path(root_, name);
  struct stat info;
  return path.ok() && ::lstat(path->c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<std::vector<std::string>> Store::list_records(std::string_view prefix) const {
  std::vector<std::string> out;
  const fs::path names = root_ / "names";
  std::error_code code;
  for (fs::recursive_directory_iterator at(names, code), end; !code && at != end; at.increment(code)) {
    struct stat info;
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    std::string name = at->path().lexically_relative(names).generic_string();
    if (!name.ends_with(kSuffix) || at->path().filename() == kSuffix) continue;
    name.resize(name.size() - kSuffix.size());
    if (name.starts_with(prefix)) out.push_back(std::move(name));
  }
  if (code && code != std::errc::no_such_file_or_directory) return base::os_error(names, "cannot be listed", code.value());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace cutaway::store
