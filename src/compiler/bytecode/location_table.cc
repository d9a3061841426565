#include "compiler/bytecode/location_table.h"

#include <algorithm>
#include <cstdint>

namespace cutaway::bytecode {
namespace {

// Kinds of an entry: 15 no place, 13 a line without columns, 14 everything. Numbers are little-endian groups of six bits.
constexpr int kNoPlace = 15, kNoColumns = 13, kLong = 14;

void append_number(std::string& out, unsigned value) {
  for (; value > 63; value >>= 6) out.push_back(static_cast<char>(0x40 | (value & 63)));
  out.push_back(static_cast<char>(value));
}
void append_signed(std::string& out, int value) { append_number(out, value < 0 ? (static_cast<unsigned>(-value) << 1) | 1 : static_cast<unsigned>(value) << 1); }

}  // namespace

void append_location(std::string& table, int units, const SourceSpan& span, int& previous) {
  while (units > 0) {
    const int run = std::min(units, 8);
    units -= run;
    const int kind = span.line <= 0 ? kNoPlace : span.column < 0 || span.end_column < 0 || span.end_line < span.line ? kNoColumns : kLong;
    table.push_back(static_cast<char>(0x80 | (kind << 3) | (run - 1)));
    if (kind == kNoPlace) continue;
    append_signed(table, span.line - previous);
    previous = span.line;
    if (kind == kNoColumns) continue;
    append_number(table, static_cast<unsigned>(span.end_line - span.line));
    append_number(table, static_cast<unsigned>(span.column + 1));
    append_number(table, static_cast<unsigned>(span.end_column + 1));
  }
}

}  // namespace cutaway::bytecode
