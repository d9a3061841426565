#include "core/ir/lexer.h"

#include "core/ir/spelling.h"

namespace cutaway::ir {

Token Lexer::next() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') {
      line_has_code_ = false;
    } else if (c == '#' && !line_has_code_) {
      at_ = text_.find('\n', at_);
      if (at_ == std::string_view::npos) at_ = text_.size();
      --at_;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      break;
    }
  }
  const size_t start = at_;
  if (at_ >= text_.size()) return make(Token::Kind::end, start);
  line_has_code_ = true;
  const char c = text_[at_];
  if (is_word_start(c)) {
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    return make(Token::Kind::word, start);
  }
  if (c == '%') {
    ++at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    if (at_ == start + 1) return make(Token::Kind::bad, start, "a value needs a name of letters, digits, '_' and '.'");
    return make(Token::Kind::value, start);
  }
  if (is_digit(c) || c == '-') return number(start);
  if (c == '"') return string(start);
  if (c == '#') {
    at_ = text_.find('\n', at_);
    if (at_ == std::string_view::npos) at_ = text_.size();
    return make(Token::Kind::location, start);
  }
  if (text_.substr(at_, 3) == "...") {
    at_ += 3;
    return make(Token::Kind::punctuation, start);
  }
  if (text_.substr(at_, 2) == "//") {
    at_ += 2;
    return make(Token::Kind::punctuation, start);
  }
  ++at_;
  if (std::string_view("()[]{},:=+*").find(c) != std::string_view::npos) return make(Token::Kind::punctuation, start);
  at_ += utf8_length(text_, start) > 1 ? utf8_length(text_, start) - 1 : 0;
  return make(Token::Kind::bad, start, "this character has no meaning here");
}

Token Lexer::number(size_t start) {
  const auto digits = [this] { while (at_ < text_.size() && is_digit(text_[at_])) ++at_; };
  if (text_[at_] == '-') ++at_;
  for (std::string_view word : {"inf", "nan"})
    if (text_.substr(at_, 3) == word) {
      at_ += 3;
      return make(Token::Kind::floating, start);
    }
  const size_t first = at_;
  digits();
  if (at_ == first) return make(Token::Kind::bad, start, "'-' must be followed by a number");
  bool is_float = false;
  if (at_ < text_.size() && text_[at_] == '.') {
    is_float = true;
    ++at_;
    digits();
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    is_float = true;
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    const size_t exponent = at_;
    digits();
    if (at_ == exponent) return make(Token::Kind::bad, start, "the exponent has no digits");
  }
  if (at_ < text_.size() && is_name_char(text_[at_])) {
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    return make(Token::Kind::bad, start, "this is neither a number nor a word");
  }
  return make(is_float ? Token::Kind::floating : Token::Kind::integer, start);
}

Token Lexer::string(size_t start) {
  for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
    if (text_[at_] == '"') {
      ++at_;
      return make(Token::Kind::string, start);
    }
    if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
  }
  return make(Token::Kind::bad, start, "the string does not end on its line");
}

std::string unquote(std::string_view quoted, std::string_view& problem, size_t& bad_offset) {
  problem = {};
  std::string out;
  out.reserve(quoted.size());
  const auto hex = [](char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    const size_t escape = i++;
    switch (quoted[i]) {
      case 'n': out += '\n'; continue;
      case 't': out += '\t'; continue;
      case 'r': out += '\r'; continue;
      case '"': case '\\': out += quoted[i]; continue;
      case 'x':
        if (i + 3 < quoted.size() && hex(quoted[i + 1]) >= 0 && hex(quoted[i + 2]) >= 0) {
          out += static_cast<char>(hex(quoted[i + 1]) * 16 + hex(quoted[i + 2]));
          i += 2;
          continue;
        }
        [[fallthrough]];
      default:
        problem = "an escape is one of \\n \\t \\r \\\" \\\\ and \\x with two hexadecimal digits";
        bad_offset = escape;
        return out;
    }
  }
  return out;
}

}  // namespace cutaway::ir
