// Writing a bundle: built beside its place under another name, then moved there in one step.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <map>
#include <set>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/places.h"
#include "core/base/text.h"
#include "core/bundle/bundle.h"
#include "core/bundle/input_check.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace cutaway::bundle {

namespace fs = std::filesystem;
using base::Error;
using base::Result;
using base::Status;

namespace {

/// What a bundle consists of; nothing else may be lost by replacing one.
const std::set<std::string> kParts = {"manifest.json", "graph.cut", "blobs", "repro.py", "certificate.json", "ablation.json", "analysis.json", "bisect.json", "report.html", "other"};

/// Removes itself unless it was moved into place.
struct Staging {
  fs::path path;
  ~Staging() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

/// An absent or empty directory, or a bundle and nothing but a bundle.
Result<bool> may_replace(const fs::path& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return base::os_error(path, "cannot be examined", errno);
  }
  if (!S_ISDIR(info.st_mode)) return Error{.what = "is in the way: it is not a directory", .place = path.string()};
  std::vector<std::string> foreign;
  bool is_empty = true;
  std::error_code code;
  for (fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (base::is_temporary_name(name)) continue;   // a part whose writer was killed
    is_empty = false;
    if (!kParts.contains(name) && foreign.size() < 4) foreign.push_back(name);
  }
  if (code) return base::os_error(path, "cannot be listed", code.value());
  if (!is_empty && (!foreign.empty() || !looks_like_bundle(path))) {
    return Error{.what = "is in the way: the directory is not a bundle, or more than one", .place = path.string(),
                 .because = foreign.empty() ? "it has no manifest.json and graph.cut" : "it also holds " + base::join(foreign),
                 .hint = "another path, or move those files away"};
  }
  return true;
}

/// What is written can be read: a manifest with a word, a size or a text that the reader refuses is refused here.
Result<std::string> checked_manifest(const ir::Graph& graph, const Manifest& manifest, const fs::path& place) {
  if (Status status = check_inputs(graph, manifest); !status.ok()) return std::move(status).error().at(place.string());
  for (const auto* texts : {&manifest.options, &manifest.extra}) {
    for (const auto& [key, text] : *texts) {
      if (const Result<base::Json> value = base::Json::parse(text, key); !value.ok()) {
        return Error{.what = "the value of " + base::quote(key) + " is not JSON", .place = place.string(), .because = value.error().because};
      }
    }
  }
  const base::Digest digest = ir::digest(graph);
  std::string text = manifest_to_json(manifest, digest);
  if (text.find("\\ufffd") != std::string::npos) {   // only bytes that JSON cannot hold are written so
    return Error{.what = "the manifest holds text that is not UTF-8", .place = place.string()};
  }
  CUTAWAY_TRY_ASSIGN(const ParsedManifest back, manifest_from_json(text, place.string()));
  if (manifest_to_json(back.manifest, back.graph_digest) != text) {
    return Error{.what = "the manifest does not read back as it was written", .place = place.string()};
  }
  return text;
}

/// Directories of writers that were killed here; a living writer's is younger.
void remove_leftovers(const fs::path& parent) {
  std::error_code code;
  std::vector<fs::path> old;
  for (fs::directory_iterator entry(parent, code), end; !code && entry != end; entry.increment(code)) {
    struct stat info;
    if (!base::is_temporary_name(entry->path().filename().string())) continue;
    if (::lstat(entry->path().c_str(), &info) == 0 && S_ISDIR(info.st_mode) && time(nullptr) - info.st_mtime > 3600) old.push_back(entry->path());
  }
  for (const fs::path& path : old) fs::remove_all(path, code);
}

/// `staging` gets the name `path`; what was there gets the name `staging`.
Status move_into_place(const fs::path& staging, const fs::path& path, bool exists) {
  if (!exists && ::rename(staging.c_str(), path.c_str()) == 0) return {};
  if (!exists && errno != ENOTEMPTY && errno != EEXIST) return base::os_error(path, "cannot be written", errno);
  if (::renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return {};
  // A file system without exchange: for a moment there is no bundle.
  const fs::path aside = staging.string() + "-old";
  if (::rename(path.c_str(), aside.c_str()) != 0) return base::os_error(path, "cannot be replaced", errno);
  if (::rename(staging.c_str(), path.c_str()) != 0) {
    const Error error = base::os_error(path, "cannot be replaced", errno);
    ::rename(aside.c_str(), path.c_str());
    return error;
  }
  ::rename(aside.c_str(), staging.c_str());
  return {};
}

}  // namespace

Status write_bundle(const fs::path& given, const ir::Graph& of_here, const Manifest& manifest, const store::Store& blobs) {
  ir::Graph graph = of_here;
  std::map<std::string, std::string> names;
  for (ir::Location& l : graph.locations) {
    const auto [it, is_new] = names.try_emplace(l.file);
    if (is_new) it->second = base::package_relative(l.file);
    l.file = it->second;
  }
  fs::path path = given.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();   // "out/"
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (path.filename().empty() || path.filename() == "." || path.filename() == "..") {
    return Error{.what = "is not a path for a bundle", .place = given.string()};
  }
  if (std::vector<Error> breaches = ir::verify(graph, {.file = (path / "graph.cut").string()}); !breaches.empty()) return std::move(breaches.front());
  CUTAWAY_TRY_ASSIGN(const std::string manifest_text, checked_manifest(graph, manifest, path / "manifest.json"));
  CUTAWAY_TRY(base::make_directories(parent));
  remove_leftovers(parent);
  CUTAWAY_TRY_ASSIGN(const bool exists, may_replace(path));

  const Staging staging{parent / base::temporary_name()};
  CUTAWAY_TRY_ASSIGN(store::Store inside, store::Store::open(staging.path, store::Store::Open::create));
  for (size_t i = 0; i < manifest.inputs.size(); ++i) {
    const InputRef& input = manifest.inputs[i];
    if (input.kind != InputRef::Kind::data || inside.contains(input.tensor.storage)) continue;
    Status copied = blobs.check_size(input.tensor.storage, input.tensor.storage_bytes);
    if (copied.ok()) copied = blobs.copy_to(inside, input.tensor.storage);
    if (!copied.ok()) {
      Error error = std::move(copied).error();
      error.what += " (" + describe_input(graph, manifest, i) + ")";
      return error;
    }
  }
  CUTAWAY_TRY(base::write_file_atomic(staging.path / "graph.cut", ir::print(graph, {.header = true})));
  CUTAWAY_TRY(base::write_file_atomic(staging.path / "manifest.json", manifest_text));
  CUTAWAY_TRY(move_into_place(staging.path, path, exists));
  return base::sync_directory(parent);
}

}  // namespace cutaway::bundle
