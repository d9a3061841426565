#include "diagnosis/report/html.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/text.h"
#include "diagnosis/report/style.h"

namespace cutaway::report {
namespace {

std::string spelled(uint32_t point) {
  char digits[8];
  const auto end = std::to_chars(digits, digits + sizeof digits, point, 16).ptr;
  const std::string hex(digits, end);
  return "\\u" + std::string(hex.size() < 4 ? 4 - hex.size() : 0, '0') + hex;
}
uint32_t decode(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(sequence[i])); };
  switch (sequence.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3: return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default: return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  }
}
/// Controls but newline and tab, bidirectional marks and isolates, zero-width characters, line and paragraph separators, the byte order mark.
bool misleads(uint32_t p) {
  return (p < 0x20 && p != '\n' && p != '\t') || (p >= 0x7f && p < 0xa0) || p == 0x61c || (p >= 0x200b && p <= 0x200f) || (p >= 0x2028 && p <= 0x202e) ||
         (p >= 0x2060 && p <= 0x206f) || p == 0xfeff || (p & 0xfffe) == 0xfffe;
}
/// The first character: its bytes, or one byte that is not UTF-8.
size_t step(std::string_view text) { return std::max<size_t>(base::utf8_length(text), 1); }

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const size_t length = base::utf8_length(text);
    const std::string_view one = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(one.size());
    if (length == 0) out += "\xef\xbf\xbd";
    else if (one == "&") out += "&amp;";
    else if (one == "<") out += "&lt;";
    else if (one == ">") out += "&gt;";
    else if (one == "\"") out += "&quot;";
    else if (one == "'") out += "&#39;";
    else if (const uint32_t point = decode(one); misleads(point)) out += spelled(point);
    else out += one;
  }
  return out;
}

size_t count_characters(std::string_view text) {
  size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(step(text));
  return n;
}

std::string shorten(std::string_view text, size_t most) {
  const size_t n = count_characters(text);
  if (n <= most) return std::string(text);
  const size_t head = most / 2, tail = most - head - 1;
  size_t at = 0, from = 0;
  for (size_t i = 0; i < n; ++i) {
    if (i == head) at = from;
    if (i == n - tail) break;
    from += step(text.substr(from));
  }
  return std::string(text.substr(0, at)) + "…" + std::string(text.substr(from));
}

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return scientific(value);
  if (std::abs(value) >= 1e15) return scientific(value);
  char b[64];
  std::string out(b, std::to_chars(b, b + sizeof b, value, std::chars_format::fixed, digits).ptr);
  if (out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
  }
  return out == "-0" ? "0" : out;
}

std::string scientific(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return "0";
  char b[64];
  return {b, std::to_chars(b, b + sizeof b, value, std::chars_format::scientific, 1).ptr};
}

std::string duration(double seconds) {
  if (!(seconds >= 0)) return scientific(seconds) + " s";
  if (seconds < 1) return fixed(seconds, 2) + " s";
  if (seconds < 10) return fixed(seconds, 1) + " s";
  if (seconds < 120 || !(seconds < 1e9)) return fixed(seconds, 0) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return whole < 7200 ? std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s" : std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

std::string percent(double rate) {
  const double p = rate * 100;
  if (p > 99 && p < 100) return "over 99 %";
  if (p > 0 && p < 1) return "under 1 %";
  return fixed(p, 0) + " %";
}

std::string shell_word(std::string_view path) {
  std::string out = path.starts_with('-') ? "./" + std::string(path) : std::string(path);
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_-./+:,@%=").find(c) != std::string_view::npos; };
  if (!out.empty() && std::all_of(out.begin(), out.end(), is_plain)) return out;
  std::string quoted = "'";
  for (char c : out) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string page_head(std::string_view title) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<title>" + escape(title) + " - Cutaway</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n";
}

}  // namespace cutaway::report
