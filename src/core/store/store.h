// Content-addressed blobs on disk: put, get, verify, list, copy into a bundle. docs/formats/store.md is its document.
// Main type: Store. Knows bytes and digests, no tensors. Safe with several writers, in several processes, at once.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/result.h"

namespace cutaway::store {

/// Read-only bytes of one blob; memory-mapped, so that nothing is copied. Verified when it was opened.
class Blob {
 public:
  Blob() = default;
  Blob(const void* data, size_t bytes, std::shared_ptr<const void> owner) : data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  const void* data() const { return data_; }
  size_t size() const { return bytes_; }
  std::span<const std::byte> span() const { return {static_cast<const std::byte*>(data_), bytes_}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  const void* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
};

struct BlobInfo { base::Digest digest; uint64_t bytes = 0; };
/// Durable: fsync before put returns, so an acknowledged blob survives a power cut. Fast: survives a killed process.
enum class Durability { durable, fast };

class Store {
 public:
  /// Opens (and with `create` makes) a store rooted at `root`: blobs/<2 digits>/<32 digits>. `existing` wants blobs/ to be there;
  /// `existing_or_empty` takes its absence for an empty store (a bundle without data may have lost its empty directory on the way).
  enum class Open { existing, existing_or_empty, create };
  static base::Result<Store> open(std::filesystem::path root, Open, Durability = Durability::durable);

  /// Writes the bytes unless they are there already, intact: a damaged blob of that name is replaced. Atomic: temporary file,
  /// fsync, rename.
  base::Result<base::Digest> put(std::span<const std::byte>);
  /// The same for content that arrives in parts.
  class Writer {
   public:
    virtual ~Writer() = default;
    virtual base::Status add(std::span<const std::byte>) = 0;
    virtual base::Result<base::Digest> finish() = 0;   ///< destroying a writer that was not finished leaves nothing
  };
  base::Result<std::unique_ptr<Writer>> writer();

  /// Whether there is a file of that name; verify() says whether it is what the name says.
  bool contains(const base::Digest&) const;
  /// The size of the file of that name, unverified. An error when it is missing or no plain file.
  base::Result<uint64_t> size_of(const base::Digest&) const;
  /// Present and of that size, content unread.
  base::Status check_size(const base::Digest&, uint64_t bytes) const;
  /// Verified: a missing, truncated or altered blob is an error that names it. A size that is known lets it tell truncated from altered.
  base::Result<Blob> get(const base::Digest&, std::optional<uint64_t> bytes = std::nullopt) const;
  /// Reads and verifies one blob without keeping it.
  base::Status verify(const base::Digest&, std::optional<uint64_t> bytes = std::nullopt) const;
  /// Every blob, ordered by digest. Stray files are left alone and not listed; leftovers of killed writers likewise.
  base::Result<std::vector<BlobInfo>> list() const;
  /// Into another store: hard link where possible, else a copy. Verified first: damage is not spread.
  base::Status copy_to(Store& other, const base::Digest&) const;
  /// Removes every blob that is not in `keep` and temporary files older than an hour. Returns bytes freed. Waits for puts that are
  /// under way; a blob that was put before it begins and is not in `keep` goes, whoever put it.
  base::Result<uint64_t> collect(const std::vector<base::Digest>& keep);

  /// Small named records (JSON text) beside the blobs: names/<name>.json; a name may contain slashes, never "..". Last put wins.
  base::Status put_record(std::string_view name, std::string_view text);
  base::Result<std::string> get_record(std::string_view name) const;
  bool contains_record(std::string_view name) const;
  /// Names that begin with `prefix`, sorted.
  base::Result<std::vector<std::string>> list_records(std::string_view prefix = {}) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  class FileWriter;
  explicit Store(std::filesystem::path root, Durability d) : root_(std::move(root)), durability_(d) {}
  std::filesystem::path path_of(const base::Digest&) const;
  bool is_durable() const { return durability_ == Durability::durable; }
  /// Open, a plain file, of the right size if that is known; else an error that names the blob.
  base::Result<std::pair<base::FileDescriptor, uint64_t>> open_blob(const base::Digest&, std::optional<uint64_t> bytes) const;
  /// True when an intact blob of that name is there, made durable if that was asked for.
  base::Result<bool> adopt_existing(const base::Digest&) const;
  base::Status make_shard(const base::Digest&) const;
  base::Status publish(const std::filesystem::path& temporary, const base::Digest&) const;
  std::filesystem::path root_;
  Durability durability_;
};

}  // namespace cutaway::store
