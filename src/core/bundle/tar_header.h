// One 512-byte header of a .tar (POSIX ustar, with the spellings of GNU tar): its bytes, and the fields that we read.
// No file is touched here.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace cutaway::bundle {

inline constexpr size_t kTarBlock = 512;

struct TarHeader {
  std::string path;    ///< with its prefix; as written, not checked
  uint64_t size = 0;   ///< bytes that follow, before padding
  char type = '0';     ///< '0' a file, '5' a directory, 'x' fields of the next entry, 'L' its long name; others are refused
};

/// A block of zeros ends an archive.
bool is_zero_block(std::string_view block);
/// Begins like a header of a .tar.
bool has_tar_magic(std::string_view block);
/// Checks magic, checksum and numbers. Says what a refused kind of entry is.
base::Result<TarHeader> read_tar_header(std::string_view block);
/// Of a path that fits and a size below 8 GB, else see `pax_records`.
std::array<char, kTarBlock> write_tar_header(const TarHeader&);
bool fits_tar_header(const TarHeader&);

/// "25 path=blobs/ab/abcd…\n" and so on: what an entry of type 'x' says about the next one.
struct PaxFields {
  std::optional<std::string> path;
  std::optional<uint64_t> size;
};
base::Result<PaxFields> read_pax_records(std::string_view text);
std::string pax_record(std::string_view key, std::string_view value);

}  // namespace cutaway::bundle
