#include "core/ir/spelling.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace cutaway::ir {

bool is_identifier(std::string_view s) { return !s.empty() && is_word_start(s[0]) && std::all_of(s.begin(), s.end(), is_word_char); }

bool is_dotted_identifier(std::string_view s) {
  for (;;) {
    const size_t dot = s.find('.');
    if (!is_identifier(s.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    s.remove_prefix(dot + 1);
  }
}

bool is_value_name(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), is_name_char); }

bool is_bare_symbol(std::string_view s) { return s.size() > 1 && s[0] == 's' && std::all_of(s.begin() + 1, s.end(), is_digit); }

bool is_bare_device_type(std::string_view s) {
  constexpr std::array<std::string_view, 19> names = {"cpu", "cuda", "xpu", "mps", "meta", "hip", "xla", "hpu", "mtia", "ipu",
                                                      "lazy", "vulkan", "maia", "ve", "fpga", "opengl", "opencl", "ideep", "privateuseone"};
  return std::find(names.begin(), names.end(), s) != names.end();
}

size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + n > text.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool too_large = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : n;
}

namespace {
// Characters that would act on a terminal or on the order of the text: C1 controls, line separators, direction overrides.
bool acts_on_display(std::string_view c) {
  if (c.size() == 2) return c[0] == '\xc2' && static_cast<unsigned char>(c[1]) < 0xa0;
  if (c.size() != 3 || c[0] != '\xe2') return false;
  const unsigned char second = c[1], third = c[2];
  return (second == 0x80 && (third == 0xa8 || third == 0xa9 || (third >= 0xaa && third <= 0xae))) ||
         (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}
void write_escaped_byte(std::string& out, char c) {
  constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}
}  // namespace

void write_quoted(std::string& out, std::string_view s) {
  out += '"';
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    const size_t n = utf8_length(s, i);
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (n == 0 || (n == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f))) write_escaped_byte(out, c);
    else if (n > 1 && acts_on_display(s.substr(i, n)))
      for (size_t k = 0; k < n; ++k) write_escaped_byte(out, s[i + k]);
    else out += s.substr(i, n);
    i += n ? n : 1;
  }
  out += '"';
}

void write_float(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "nan";
    return;
  }
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  const std::string_view text(digits, end - digits);
  out += text;
  if (text.find_first_of(".en") == std::string_view::npos) out += ".0";   // "n" as in "inf"
}

void write_integer(std::string& out, int64_t v) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
}

void write_dim(std::string& out, const Dim& d) {
  if (d.is_symbolic()) out += d.text();
  else write_integer(out, d.value());
}

void write_device(std::string& out, const Device& d) {
  if (is_bare_device_type(d.type)) {
    out += d.type;
    if (d.index >= 0) {
      out += ':';
      write_integer(out, d.index);
    }
  } else {
    out += "device(";
    write_quoted(out, d.text());
    out += ')';
  }
}

void write_type(std::string& out, const Type& type) {
  if (!type.is_tensor()) {
    out += type_kind_name(type.kind);
    return;
  }
  const TensorType& t = type.tensor;
  out += dtype_name(t.dtype);
  out += '[';
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    if (i) out += ", ";
    write_dim(out, t.sizes[i]);
  }
  out += ']';
  // Only strides that the parser would fill in the same way may be left out: the row-major ones, exactly.
  if (t.strides != contiguous_strides(t.sizes)) {
    out += " strides(";
    for (size_t i = 0; i < t.strides.size(); ++i) {
      if (i) out += ", ";
      write_dim(out, t.strides[i]);
    }
    out += ')';
  }
  if (t.layout != Layout::strided) (out += ' ') += layout_name(t.layout);
  if (t.device != Device{}) {
    out += ' ';
    write_device(out, t.device);
  }
  if (t.requires_grad) out += " grad";
}

std::string Type::text() const {
  std::string out;
  write_type(out, *this);
  return out;
}

}  // namespace cutaway::ir
