#include "core/ir/source_place.h"

#include <algorithm>
#include <vector>

#include "core/ir/spelling.h"

namespace cutaway::ir {
namespace {

constexpr size_t kMaxShown = 120;     // characters of a line
constexpr size_t kBeforeCaret = 60;   // of them to the left of the caret, when the line is cut

struct Character {
  size_t offset;
  size_t length;
  bool is_printable;
};

// The characters of one line; bytes that are not UTF-8 count one each.
std::vector<Character> characters(std::string_view line) {
  std::vector<Character> out;
  for (size_t i = 0; i < line.size();) {
    const size_t n = utf8_length(line, i);
    const bool control = n == 1 && (static_cast<unsigned char>(line[i]) < 0x20 || line[i] == 0x7f) && line[i] != '\t';
    out.push_back({i, n ? n : 1, n != 0 && !control});
    i += n ? n : 1;
  }
  return out;
}

std::string_view line_around(std::string_view text, size_t offset, size_t& start) {
  start = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;   // npos + 1 is 0
  const size_t end = text.find('\n', offset);
  return text.substr(start, end == std::string_view::npos ? end : end - start);
}

}  // namespace

Place place_of(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  size_t start = 0;
  const std::string_view line = line_around(text, offset, start);
  Place p;
  p.line = 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(start), '\n'));
  for (const Character& c : characters(line.substr(0, offset - start))) p.column += c.length > 0;
  return p;
}

base::Error error_at(std::string_view text, std::string_view file, size_t offset, size_t length, std::string what, std::string because,
                     std::string hint) {
  offset = std::min(offset, text.size());
  const Place place = place_of(text, offset);
  size_t start = 0;
  const std::string_view line = line_around(text, offset, start);
  const std::vector<Character> all = characters(line);
  const size_t caret = place.column - 1;
  size_t first = 0, last = all.size();
  if (all.size() > kMaxShown) {
    first = caret > kBeforeCaret ? caret - kBeforeCaret : 0;
    last = std::min(all.size(), first + kMaxShown);
  }
  std::string number = std::to_string(place.line);
  if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
  std::string shown = number + " | ", marks = std::string(number.size(), ' ') + " | ";
  if (first > 0) {
    shown += "…";
    marks += ' ';
  }
  for (size_t i = first; i < last; ++i) {
    const Character& c = all[i];
    if (c.is_printable) shown += line.substr(c.offset, c.length);
    else shown += '?';
    const bool marked = i >= caret && (i == caret || start + c.offset < offset + length);
    if (i < caret) marks += line[c.offset] == '\t' ? '\t' : ' ';
    else if (marked) marks += '^';
  }
  if (last < all.size()) shown += "…";
  if (caret >= all.size()) marks += '^';   // after the end of the line
  std::string at(file);
  at += ':' + std::to_string(place.line) + ':' + std::to_string(place.column);
  return {std::move(what), std::move(at), std::move(because), std::move(hint), shown + "\n" + marks};
}

}  // namespace cutaway::ir
