// Words of the text form. One token at a time, no memory of its own, no copies: tokens are views into the text.
// Not for use outside core/ir.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace cutaway::ir {

struct Token {
  enum class Kind {
    end, word, value, integer, floating, string, punctuation,
    location,   ///< "#" after code on the same line, and the rest of that line
    bad         ///< `problem` says why
  };
  Kind kind = Kind::end;
  std::string_view text;            ///< as written: value with its "%", string with its quotes
  size_t offset = 0;
  std::string_view problem = {};
  bool is(std::string_view s) const { return (kind == Kind::word || kind == Kind::punctuation) && text == s; }
};

/// Words may hold dots ("aten.add.Tensor"). A "#" that starts a line is a comment and is skipped.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  /// Goes back to a token that next() has given.
  void move_to(const Token& t) { at_ = t.offset; line_has_code_ = true; }

 private:
  Token make(Token::Kind kind, size_t start, std::string_view problem = {}) const { return {kind, text_.substr(start, at_ - start), start, problem}; }
  Token number(size_t start);
  Token string(size_t start);
  std::string_view text_;
  size_t at_ = 0;
  bool line_has_code_ = false;
};

/// What stands between the quotes, escapes resolved. Null problem means success; `bad_offset` is where it went wrong.
std::string unquote(std::string_view quoted, std::string_view& problem, size_t& bad_offset);

}  // namespace cutaway::ir
