// Reading and checking a bundle. Nothing in it is executed, and nothing outside its directory is touched.
#include <cstdint>

#include "core/bundle/bundle.h"

#include <sys/stat.h>

#include "core/base/files.h"
#include "core/base/text.h"
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

constexpr uint64_t kMaxManifest = uint64_t{256} << 20;
constexpr uint64_t kMaxGraph = uint64_t{1} << 30;

/// The store's complaint about a blob, as this bundle's: with the input that needs it, and what to do.
Error about_input(Error error, const fs::path& manifest, const Bundle& bundle, size_t i) {
  const base::Digest& digest = bundle.manifest.inputs[i].tensor.storage;
  error.place = manifest.string();
  error.what += " (" + describe_input(bundle.graph, bundle.manifest, i) + ")";
  error.hint = "copy blobs/" + digest.hex().substr(0, 2) + "/ from the machine that wrote it, or --random-inputs to run on random data";
  return error;
}

/// Calls check(store, digest, bytes) for every distinct blob.
template <class Check>
Status check_blobs(const Bundle& bundle, Check&& check) {
  CUTAWAY_TRY_ASSIGN(const store::Store store, open_store(bundle));
  std::map<base::Digest, bool> seen;
  for (size_t i = 0; i < bundle.manifest.inputs.size(); ++i) {
    const InputRef& input = bundle.manifest.inputs[i];
    if (input.kind != InputRef::Kind::data || !seen.emplace(input.tensor.storage, true).second) continue;
    if (Status status = check(store, input.tensor.storage, input.tensor.storage_bytes); !status.ok()) {
      return about_input(std::move(status).error(), bundle.path / "manifest.json", bundle, i);
    }
  }
  return {};
}

}  // namespace

bool looks_like_bundle(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "manifest.json", ignored) && fs::is_regular_file(path / "graph.cut", ignored);
}

Result<ParsedManifest> read_manifest(const fs::path& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Error{.what = "there is no such bundle", .place = path.string()};
  if (!S_ISDIR(info.st_mode)) return Error{.what = "is not a bundle", .place = path.string(), .because = "a bundle is a directory with a manifest.json",
                                                .hint = path.extension() == ".tar" ? "tar -xf " + path.string() + ", then the directory" : ""};
  const fs::path file = path / "manifest.json";
  if (::lstat(file.c_str(), &info) != 0) return Error{.what = "is not a bundle", .place = path.string(), .because = "it has no manifest.json"};
  CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(file, kMaxManifest, base::Links::refuse));
  return manifest_from_json(text, file.string());
}

Result<Bundle> read_bundle(const fs::path& path, Blobs blobs) {
  CUTAWAY_TRY_ASSIGN(ParsedManifest parsed, read_manifest(path));
  const fs::path graph_file = path / "graph.cut";
  CUTAWAY_TRY_ASSIGN(const std::string graph_text, base::read_file(graph_file, kMaxGraph, base::Links::refuse));
  CUTAWAY_TRY_ASSIGN(ir::Graph graph, ir::parse(graph_text, graph_file.string()));
  if (std::vector<Error> breaches = ir::verify(graph, {.file = graph_file.string()}); !breaches.empty()) return std::move(breaches.front());
  if (const base::Digest found = ir::digest(graph); found != parsed.graph_digest) {
    return Error{.what = "this is not the graph that manifest.json names", .place = graph_file.string(),
                 .because = "its digest is " + found.short_hex() + ", the manifest says " + parsed.graph_digest.short_hex()};
  }
  if (Status status = check_inputs(graph, parsed.manifest); !status.ok()) return std::move(status).error().at((path / "manifest.json").string());

  Bundle bundle{path, std::move(graph), std::move(parsed.manifest)};
  if (blobs == Blobs::required) {
    CUTAWAY_TRY(check_blobs(bundle, [](const store::Store& store, const base::Digest& digest, uint64_t bytes) { return store.check_size(digest, bytes); }));
  }
  return bundle;
}

Status verify_bundle(const fs::path& path) {
  CUTAWAY_TRY_ASSIGN(const Bundle bundle, read_bundle(path));
  return check_blobs(bundle, [](const store::Store& store, const base::Digest& digest, uint64_t bytes) { return store.verify(digest, bytes); });
}

Result<store::Store> open_store(const Bundle& bundle) {
  // blobs/ must be a directory of the bundle itself, not a link to somewhere else.
  CUTAWAY_TRY(base::path_inside(bundle.path, "blobs"));
  return store::Store::open(bundle.path, store::Store::Open::existing_or_empty);
}

}  // namespace cutaway::bundle
