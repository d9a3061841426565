#include "core/bundle/tar_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/base/text.h"

namespace cutaway::bundle {
namespace {

using base::Error;
using base::Result;

// Places of the fields: offset and length.
struct Field { size_t at, length; };
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12}, kTime{136, 12}, kSum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;
constexpr uint64_t kMaxOctalSize = uint64_t{1} << 33;   // eleven octal digits
constexpr std::string_view kPosixMagic{"ustar\0" "00", 8}, kGnuMagic{"ustar  \0", 8};

std::string_view text_of(std::string_view block, Field f) {
  const std::string_view field = block.substr(f.at, f.length);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// Octal digits between blanks and a NUL or a blank; or, as GNU tar writes large ones, base 256 behind a byte 0x80.
std::optional<uint64_t> number_of(std::string_view block, Field f) {
  std::string_view field = block.substr(f.at, f.length);
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    uint64_t n = 0;
    for (char c : field.substr(1)) {
      if (n >> 56) return std::nullopt;
      n = n << 8 | static_cast<unsigned char>(c);
    }
    return n;
  }
  const size_t first = field.find_first_not_of(' ');
  if (first == field.npos) return std::nullopt;
  field.remove_prefix(first);
  const size_t end = std::min(field.find_first_of(std::string_view(" \0", 2)), field.size());
  uint64_t n = 0;
  const auto [stop, problem] = std::from_chars(field.data(), field.data() + end, n, 8);
  if (end == 0 || problem != std::errc() || stop != field.data() + end) return std::nullopt;
  return n;
}

uint64_t sum_of(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += i >= kSum.at && i < kSum.at + kSum.length ? ' ' : static_cast<unsigned char>(block[i]);
  return sum;
}

std::string_view refused_kind(char type) {
  switch (type) {
    case '1': return "a hard link";
    case '2': return "a symbolic link";
    case '3': case '4': return "a device";
    case '6': return "a named pipe";
    case 'S': return "a sparse file";
    case 'K': return "a link with a long name";
    case 'g': return "a header for all entries";
    default: return {};
  }
}

}  // namespace

bool is_zero_block(std::string_view block) { return std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; }); }

bool has_tar_magic(std::string_view block) {
  if (block.size() < kTarBlock) return false;
  const std::string_view magic = block.substr(kMagic.at, kMagic.length);
  return magic == kPosixMagic || magic == kGnuMagic;
}

Result<TarHeader> read_tar_header(std::string_view block) {
  if (!has_tar_magic(block)) return Error{.what = "this is not the header of an entry", .because = "it has no \"ustar\" in its place"};
  if (number_of(block, kSum) != sum_of(block)) return Error{.what = "the header of an entry is altered", .because = "its checksum is another"};
  TarHeader h;
  h.path = text_of(block, kName);
  if (block.substr(kMagic.at, kMagic.length) == kPosixMagic)   // GNU tar keeps times there
    if (const std::string_view prefix = text_of(block, kPrefix); !prefix.empty()) h.path = std::string(prefix) + "/" + h.path;
  h.type = block[kType] == '\0' ? '0' : block[kType];
  const std::string shown = base::quote(h.path);
  if (const std::string_view kind = refused_kind(h.type); !kind.empty()) return Error{.what = shown + " is " + std::string(kind) + ", which an archive of a bundle may not have"};
  if (h.type != '0' && h.type != '5' && h.type != 'x' && h.type != 'L') return Error{.what = shown + " is an entry of unknown type " + base::quote(std::string(1, h.type))};
  const std::optional<uint64_t> size = number_of(block, kSize);
  if (!size) return Error{.what = "the size of " + shown + " is not a number"};
  h.size = *size;
  return h;
}

bool fits_tar_header(const TarHeader& h) { return h.path.size() <= kName.length && h.size < kMaxOctalSize; }

std::array<char, kTarBlock> write_tar_header(const TarHeader& h) {
  std::array<char, kTarBlock> block{};
  const auto put = [&](Field f, std::string_view text) { std::memcpy(block.data() + f.at, text.data(), std::min(text.size(), f.length)); };
  const auto octal = [](uint64_t n, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; i-- > 0; n >>= 3) text[i] = static_cast<char>('0' + (n & 7));
    return text;
  };
  put(kName, h.path);
  put(kMode, h.type == '5' ? "0000755" : "0000644");
  put(kUid, octal(0, 7));
  put(kGid, octal(0, 7));
  put(kSize, octal(h.size < kMaxOctalSize ? h.size : 0, 11));
  put(kTime, octal(0, 11));
  block[kType] = h.type;
  put(kMagic, kPosixMagic);
  put(kSum, octal(sum_of({block.data(), block.size()}), 6) + std::string("\0 ", 2));
  return block;
}

Result<PaxFields> read_pax_records(std::string_view text) {
  PaxFields fields;
  while (!text.empty()) {
    size_t length = 0;
    const auto [blank, problem] = std::from_chars(text.data(), text.data() + text.size(), length);
    const size_t start = static_cast<size_t>(blank - text.data()) + 1;
    if (problem != std::errc() || length > text.size() || length <= start || text[start - 1] != ' ' || text[length - 1] != '\n')
      return Error{.what = "the fields before an entry are malformed"};
    const std::string_view record = text.substr(start, length - start - 1);
    text.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == record.npos) return Error{.what = "the fields before an entry are malformed"};
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") {
      fields.path = std::string(value);
    } else if (key == "size") {
      uint64_t n = 0;
      const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), n);
      if (bad != std::errc() || end != value.data() + value.size()) return Error{.what = "the size before an entry is not a number"};
      fields.size = n;
    } else if (key != "mtime" && key != "atime" && key != "ctime" && key != "uid" && key != "gid" && key != "uname" && key != "gname") {
      return Error{.what = "the field " + base::quote(std::string(key.substr(0, 60))) + " before an entry is not known"};
    }
  }
  return fields;
}

std::string pax_record(std::string_view key, std::string_view value) {
  // The length counts its own digits.
  const std::string rest = " " + std::string(key) + "=" + std::string(value) + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) length = std::to_string(length).size() + rest.size();
  return std::to_string(length) + rest;
}

}  // namespace cutaway::bundle
