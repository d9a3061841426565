// "# model.py:12 Net.forward in encoder.layer.0", after a node.
#include <cstdint>
#include <limits>

#include "core/ir/parser.h"
#include "core/ir/spelling.h"

namespace cutaway::ir {
namespace {

// Words of a location are separated by blanks and may be quoted.
class LocationReader {
 public:
  explicit LocationReader(std::string_view text) : rest_(text) {}
  void skip_blanks() { while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1); }
  bool at_end() { skip_blanks(); return rest_.empty(); }
  /// Up to a blank, or up to a colon when `stop_at_colon`; false for a bad quoted string or an empty word.
  bool word(std::string& out, bool stop_at_colon) {
    skip_blanks();
    if (!rest_.empty() && rest_[0] == '"') {
      size_t end = 1;
      while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
      if (end >= rest_.size()) return false;
      std::string_view problem;
      size_t bad_offset = 0;
      out = unquote(rest_.substr(0, end + 1), problem, bad_offset);
      rest_.remove_prefix(end + 1);
      return problem.empty();
    }
    size_t end = 0;
    while (end < rest_.size() && rest_[end] != ' ' && rest_[end] != '\t' && rest_[end] != '\r' && !(stop_at_colon && rest_[end] == ':')) ++end;
    out = std::string(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return end > 0;
  }
  bool line(int& out) {
    rest_.remove_prefix(1);   // the colon
    int64_t n = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && is_digit(rest_[digits]) && n <= std::numeric_limits<int>::max(); ++digits) n = n * 10 + (rest_[digits] - '0');
    if (digits == 0 || n > std::numeric_limits<int>::max()) return false;
    rest_.remove_prefix(digits);
    out = static_cast<int>(n);
    return rest_.empty() || rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r';
  }
  bool at_colon() const { return !rest_.empty() && rest_[0] == ':'; }
  bool accept_in() {
    skip_blanks();
    const bool found = rest_.starts_with("in") && (rest_.size() == 2 || rest_[2] == ' ' || rest_[2] == '\t');
    if (found) rest_.remove_prefix(2);
    return found;
  }

 private:
  std::string_view rest_;
};

bool read_location(std::string_view text, Location& l) {
  LocationReader r(text);
  if (r.accept_in()) return r.word(l.module, false) && r.at_end();   // a file that is called "in" is quoted
  if (!r.word(l.file, true)) return false;
  if (r.at_colon() && !r.line(l.line)) return false;
  if (r.at_end()) return true;
  if (!r.accept_in()) {
    if (!r.word(l.function, false)) return false;
    if (r.at_end()) return true;
    if (!r.accept_in()) return false;
  }
  return r.word(l.module, false) && r.at_end();
}

}  // namespace

bool Parser::location(LocationId& id) {
  if (token_.kind != Token::Kind::location) return true;
  const Token comment = take();
  const auto [it, is_new] = locations_.emplace(comment.text, kNoLocation);
  if (is_new) {
    Location l;
    if (!read_location(comment.text.substr(1), l))
      return fail(comment, "this is not a source location", "what follows '#' after a node is read as \"file:line function in module\"",
                  "a line of its own for a comment");
    it->second = graph_.add_location(l);
  }
  id = it->second;
  return true;
}

}  // namespace cutaway::ir
