// The reader of blobs and records before any bytes on disk. The first 16 bytes of the input choose the digest that is asked for
// (its own, so that good files occur, when they are zero), the next one how the file lies there; the rest is its content.
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "core/base/files.h"
#include "core/store/store.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cutaway;
namespace fs = std::filesystem;

CUTAWAY_FUZZ_TARGET(blob) {
  if (input.size() < 17) return;
  static const auto scratch = std::move(base::TemporaryDirectory::make("cutaway-blob-fuzz-")).value();
  const fs::path root = scratch.path() / "store";
  fs::remove_all(root);
  fs::create_directories(root / "blobs");
  const std::string_view content = input.substr(17);
  base::Digest digest;
  for (int i = 0; i < 16; ++i) {
    uint64_t& half = i < 8 ? digest.high : digest.low;
    half = half << 8 | static_cast<unsigned char>(input[static_cast<size_t>(i)]);
  }
  if (digest.is_none()) digest = base::digest_text(content);
  const fs::path file = root / "blobs" / digest.hex().substr(0, 2) / digest.hex();
  const auto lay = [&](const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  };
  const unsigned how = static_cast<unsigned char>(input[16]) % 5;
  switch (how) {
    case 0: lay(file); break;
    case 1: lay(root / "elsewhere"); fs::create_directories(file.parent_path()); fs::create_symlink(root / "elsewhere", file); break;
    case 2: fs::create_directories(file); break;
    case 3: lay(file.parent_path()); break;   // a file where the directory should be
    case 4: break;                            // nothing
  }

  auto store = std::move(store::Store::open(root, store::Store::Open::existing, store::Durability::fast)).value();
  const bool is_good = how == 0 && base::digest_text(content) == digest;
  const auto blob = store.get(digest);
  CUTAWAY_FUZZ_REQUIRE(blob.ok() == is_good);
  if (blob.ok()) CUTAWAY_FUZZ_REQUIRE(std::string_view(static_cast<const char*>(blob->data()), blob->size()) == content);
  else CUTAWAY_FUZZ_REQUIRE(blob.error().what.find(digest.short_hex()) != std::string::npos);
  CUTAWAY_FUZZ_REQUIRE(store.verify(digest, content.size()).ok() == is_good);
  CUTAWAY_FUZZ_REQUIRE(!store.verify(digest, content.size() + 1).ok());
  for (const auto& listed : *store.list()) CUTAWAY_FUZZ_REQUIRE(listed.digest == digest && listed.bytes == content.size());

  // The same bytes as a name and as a record: what is accepted reads back, and nothing appears outside names/.
  const std::string name(content.substr(0, 64));
  if (store.put_record(name, content).ok()) {
    CUTAWAY_FUZZ_REQUIRE(*store.get_record(name) == content);
    CUTAWAY_FUZZ_REQUIRE(*store.list_records() == std::vector<std::string>{name});
  } else {
    CUTAWAY_FUZZ_REQUIRE(!store.get_record(name).ok());
  }
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(scratch.path())) entries += entry.path() == root ? 1 : 1000;
  CUTAWAY_FUZZ_REQUIRE(entries == 1);
}
