// The reader of archives before any bytes. Whatever it unpacks lies inside of the directory it was given, as plain files and
// directories, and is no larger than the archive.
#include <cstdint>
#include <fstream>

#include "core/bundle/archive.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cutaway;
namespace fs = std::filesystem;

CUTAWAY_FUZZ_TARGET(archive) {
  static const auto scratch = std::move(base::TemporaryDirectory::make("cutaway-archive-fuzz-")).value();
  const fs::path into = scratch.path() / "into", archive = scratch.path() / "a.tar";
  fs::remove_all(into);
  fs::create_directories(into);
  std::ofstream(archive, std::ios::binary).write(input.data(), static_cast<std::streamsize>(input.size()));
  const auto done = bundle::unpack_archive(archive, into);
  if (!done.ok()) CUTAWAY_FUZZ_REQUIRE(!done.error().what.empty());
  size_t bytes = 0, entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(into)) {
    CUTAWAY_FUZZ_REQUIRE(!entry.is_symlink() && (entry.is_regular_file() || entry.is_directory()));
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  CUTAWAY_FUZZ_REQUIRE(bytes <= input.size());
  for (const auto& entry : fs::directory_iterator(scratch.path())) entries += entry.path() == into || entry.path() == archive ? 1 : 1000;
  CUTAWAY_FUZZ_REQUIRE(entries == 2);
}
