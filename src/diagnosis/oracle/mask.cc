#include "diagnosis/oracle/mask.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace cutaway::oracle {
namespace {

constexpr size_t kLongWord = 32;   // no identifier that a person writes; digests and Inductor's names for kernels are longer

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

struct Token {
  std::string text;
  bool is_size = false;   // may stand inside brackets that are a shape: numbers, symbols, separators
};

// "float32", "uint8", "bf16", "c64": letters that name a kind of number, then its width in bits.
bool is_dtype(std::string_view word) {
  constexpr std::array kinds = {"float", "int", "uint", "complex", "bfloat", "qint", "quint", "bits", "f", "i", "u", "bf", "c"};
  constexpr std::array widths = {"8", "16", "32", "64", "128"};
  return std::any_of(kinds.begin(), kinds.end(), [&](std::string_view kind) {
    return starts_with(word, kind) && std::find(widths.begin(), widths.end(), word.substr(kind.size())) != widths.end();
  });
}

// "buf12" and "arg0_1" without their numbers; empty when the word does not end in one.
std::string_view without_number(std::string_view word) {
  std::string_view rest = word;
  while (!rest.empty() && is_digit(rest.back())) {
    while (!rest.empty() && is_digit(rest.back())) rest.remove_suffix(1);
    while (!rest.empty() && rest.back() == '_') rest.remove_suffix(1);
  }
  return rest.size() == word.size() ? std::string_view() : rest;
}

class Masker {
 public:
  explicit Masker(std::string_view line) : line_(line) {}
  std::string run();

 private:
  char at(size_t i) const { return i < line_.size() ? line_[i] : '\0'; }
  bool follows_word() const { return at_ > 0 && is_word(line_[at_ - 1]); }
  bool is_member() const {   // after '.' of a name or after '::': a name that somebody chose
    if (at_ >= 2 && line_[at_ - 1] == ':' && line_[at_ - 2] == ':') return true;
    return at_ >= 2 && line_[at_ - 1] == '.' && is_word(line_[at_ - 2]);
  }
  void emit(std::string text, bool is_size, size_t consumed) {
    out_.push_back({std::move(text), is_size});
    at_ += consumed;
  }
  bool take_path();
  bool take_number();
  void take_word();
  void take_closing(char open, char close);

  std::string_view line_;
  size_t at_ = 0;
  std::vector<Token> out_;
};

bool Masker::take_path() {
  if (at(at_) != '/' || follows_word()) return false;
  size_t end = at_;
  int parts = 0;
  while (at(end) == '/' && (is_word(at(end + 1)) || at(end + 1) == '.' || at(end + 1) == '-')) {
    ++end;
    while (is_word(at(end)) || at(end) == '.' || at(end) == '-' || at(end) == '+') ++end;
    ++parts;
  }
  if (parts < 2) return false;
  while (line_[end - 1] == '.') --end;   // the end of a sentence
  emit("PATH", false, end - at_);
  return true;
}

bool Masker::take_number() {
  size_t i = at_;
  const bool may_have_sign = !follows_word() && (at_ == 0 || !(line_[at_ - 1] == ')' || line_[at_ - 1] == ']'));
  if ((at(i) == '-' || at(i) == '+') && may_have_sign) ++i;
  if (!is_digit(at(i)) || (i == at_ && follows_word())) return false;
  if (at(i) == '0' && (at(i + 1) == 'x' || at(i + 1) == 'X') && std::isxdigit(static_cast<unsigned char>(at(i + 2)))) {
    i += 2;
    while (std::isxdigit(static_cast<unsigned char>(at(i)))) ++i;
    emit("ADDR", false, i - at_);
    return true;
  }
  const auto digits = [&] { while (is_digit(at(i))) ++i; };
  digits();
  if (at(i) == '.' && !is_letter(at(i + 1)) && at(i + 1) != '.') {
    if (is_digit(at(i + 1))) { ++i; digits(); }
    else if (at(i + 1) == ',' || at(i + 1) == ']' || at(i + 1) == ')') ++i;   // "1." as tensors print
  }
  if ((at(i) == 'e' || at(i) == 'E') && (is_digit(at(i + 1)) || ((at(i + 1) == '-' || at(i + 1) == '+') && is_digit(at(i + 2))))) { i += 2; digits(); }
  if (is_letter(at(i))) {   // "2d", "3rd", "1a2f…": a word that begins with a digit
    while (is_word(at(i))) ++i;
    const std::string_view word = line_.substr(at_, i - at_);
    const bool is_shape = word.find_first_not_of("0123456789x") == word.npos;   // "2x64"
    emit(word.size() >= kLongWord ? "HASH" : is_shape ? "N" : std::string(word), is_shape, i - at_);
    return true;
  }
  emit("N", true, i - at_);
  return true;
}

void Masker::take_word() {
  size_t end = at_;
  while (is_word(at(end))) ++end;
  const std::string_view word = line_.substr(at_, end - at_);
  const size_t size = word.size();
  if (size >= kLongWord && std::any_of(word.begin(), word.end(), is_digit) && word.find('_') == word.npos) return emit("HASH", false, size);
  if (starts_with(word, "cpp_fused") || starts_with(word, "triton_")) return emit("KERNEL", false, size);
  const std::string_view stem = without_number(word);
  if (stem.empty() || is_member() || is_dtype(word)) return emit(std::string(word), false, size);
  emit(std::string(stem), stem.size() == 1, size);   // a single letter: a symbolic size (s0, u3)
}

// What stands since the matching bracket, when it is all sizes, becomes one N.
void Masker::take_closing(char open, char close) {
  size_t begin = out_.size();
  while (begin > 0 && out_[begin - 1].is_size && out_[begin - 1].text != std::string(1, open)) --begin;
  const bool matches = begin > 0 && out_[begin - 1].text == std::string(1, open);
  const bool is_empty = begin == out_.size();
  if (!matches || (is_empty && open == '(')) return emit(std::string(1, close), false, 1);   // "()" is a call
  const bool has_number = std::any_of(out_.begin() + static_cast<int64_t>(begin), out_.end(), [](const Token& t) { return t.text != "," && t.text != " "; });
  if (!is_empty && !has_number) return emit(std::string(1, close), false, 1);
  out_.resize(begin - 1);
  emit(open == '[' ? "[N]" : "(N)", true, 1);
}

std::string Masker::run() {
  while (at_ < line_.size()) {
    const char c = line_[at_];
    if (is_space(c)) {
      if (!out_.empty() && out_.back().text != " ") out_.push_back({" ", true});
      ++at_;
    } else if (c == '%' && is_letter(at(at_ + 1))) {
      size_t end = at_ + 1;
      while (is_word(at(end)) || (at(end) == '.' && is_word(at(end + 1)))) ++end;
      emit("%V", false, end - at_);
    } else if (take_path() || take_number()) {
    } else if (is_word(c)) {
      take_word();
    } else if (c == ']') {
      take_closing('[', ']');
    } else if (c == ')') {
      take_closing('(', ')');
    } else {
      emit(std::string(1, c), c == ',' || c == '*' || c == '+' || c == '-', 1);
    }
  }
  while (!out_.empty() && out_.back().text == " ") out_.pop_back();
  std::string text;
  for (const Token& t : out_) text += t.text;
  return text;
}

}  // namespace

std::string mask_line(std::string_view line) { return Masker(line).run(); }

}  // namespace cutaway::oracle
