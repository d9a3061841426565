#include "core/script/python_literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "core/base/text.h"
#include "core/script/callable.h"

namespace cutaway::script {

bool is_python_keyword(std::string_view s) {
  static constexpr std::array kWords = {"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
                                        "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
                                        "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield"};
  return std::find(kWords.begin(), kWords.end(), s) != kWords.end();
}

bool is_python_identifier(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

std::string python_dtype(ir::DType d) {
  // In the order of the enum, whose values are frozen.
  static constexpr std::array<const char*, ir::kDTypeCount> kNames = {
      "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool",
      "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2",
      "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64", "uint1", "uint2", "uint3", "uint4", "uint5",
      "uint6", "uint7", "int1", "int2", "int3", "int4", "int5", "int6", "int7", "float8_e8m0fnu", "float4_e2m1fn_x2"};
  return std::string("torch.") + kNames[static_cast<size_t>(d)];
}

std::string python_state(const ir::RegionState& s) {
  std::vector<std::string> parts;
  if (s.inference_mode) parts.push_back(std::string("torch.inference_mode(") + (*s.inference_mode ? "True)" : "False)"));
  if (s.grad_enabled) parts.push_back(std::string("torch.set_grad_enabled(") + (*s.grad_enabled ? "True)" : "False)"));
  for (auto& a : s.autocast)
    parts.push_back("torch.autocast(" + python_string(a.device.type) + ", dtype=" + python_dtype(a.dtype) + ", enabled=" + (a.enabled ? "True" : "False") + ", cache_enabled=" + (a.cache ? "True)" : "False)"));
  return base::join(parts);
}

std::string python_string(std::string_view s) {
  std::string out = "\"";
  for (size_t i = 0; i < s.size();) {
    const unsigned char c = static_cast<unsigned char>(s[i]);
    char escape[8];
    if (c == '"' || c == '\\') { out += '\\'; out += static_cast<char>(c); ++i; continue; }
    if (c >= 0x80) {
      // Kept where it is UTF-8, but for the characters that reorder or break a line in an editor.
      const size_t n = base::utf8_length(s.substr(i));
      const bool risky = n == 3 && c == 0xe2 && (static_cast<unsigned char>(s[i + 1]) == 0x80 || static_cast<unsigned char>(s[i + 1]) == 0x81);
      if (n > 0 && !risky && !(n == 2 && c == 0xc2 && static_cast<unsigned char>(s[i + 1]) < 0xa0)) { out += s.substr(i, n); i += n; continue; }
      if (n == 3) {
        const unsigned code = ((c & 0x0fu) << 12) | ((static_cast<unsigned char>(s[i + 1]) & 0x3fu) << 6) | (static_cast<unsigned char>(s[i + 2]) & 0x3fu);
        std::snprintf(escape, sizeof escape, "\\u%04x", code);
        out += escape; i += 3; continue;
      }
      if (n == 2) { std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(s[i + 1])); out += escape; i += 2; continue; }
    } else if (c >= 0x20 && c != 0x7f) {
      out += static_cast<char>(c); ++i; continue;
    }
    std::snprintf(escape, sizeof escape, "\\x%02x", c);
    out += escape;
    ++i;
  }
  return out + "\"";
}

std::string python_float(double v) {
  if (std::isnan(v)) return "float(\"nan\")";
  if (std::isinf(v)) return v > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string s(buffer, end);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

base::Result<std::string> python_argument(const ir::Argument& a, const std::function<std::string(ir::ValueId)>& value,
                                          const std::function<base::Result<std::string>(const ir::Dim&)>& symbol) {
  auto items = [&](const std::vector<ir::Argument>& list) -> base::Result<std::string> {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) {
      CUTAWAY_TRY_ASSIGN(std::string item, python_argument(list[i], value, symbol));
      out += (i ? ", " : "") + item;
    }
    return out;
  };
  return std::visit([&](const auto& v) -> base::Result<std::string> {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, ir::None>) return std::string("None");
    else if constexpr (std::is_same_v<T, ir::Ellipsis>) return std::string("...");
    else if constexpr (std::is_same_v<T, ir::ValueRef>) return value(v.id);
    else if constexpr (std::is_same_v<T, bool>) return std::string(v ? "True" : "False");
    else if constexpr (std::is_same_v<T, int64_t>) return std::to_string(v);
    else if constexpr (std::is_same_v<T, double>) return python_float(v);
    else if constexpr (std::is_same_v<T, std::complex<double>>) return "complex(" + python_float(v.real()) + ", " + python_float(v.imag()) + ")";
    else if constexpr (std::is_same_v<T, std::string>) return python_string(v);
    else if constexpr (std::is_same_v<T, ir::DType>) return python_dtype(v);
    else if constexpr (std::is_same_v<T, ir::Layout>) return v == ir::Layout::mkldnn ? std::string("torch._mkldnn") : "torch." + std::string(ir::layout_name(v));
    else if constexpr (std::is_same_v<T, ir::MemoryFormat>) return "torch." + std::string(ir::memory_format_name(v));
    else if constexpr (std::is_same_v<T, ir::Device>) return "torch.device(" + python_string(v.text()) + ")";
    else if constexpr (std::is_same_v<T, ir::Dim>) return symbol(v);
    else if constexpr (std::is_same_v<T, ir::List>) {
      CUTAWAY_TRY_ASSIGN(std::string inner, items(v.items));
      return "[" + inner + "]";
    } else if constexpr (std::is_same_v<T, ir::Tuple>) {
      CUTAWAY_TRY_ASSIGN(std::string inner, items(v.items));
      return "(" + inner + (v.items.size() == 1 ? ",)" : ")");
    } else if constexpr (std::is_same_v<T, ir::Slice>) {
      CUTAWAY_TRY_ASSIGN(std::string inner, items(v.parts));
      return "slice(" + inner + ")";
    } else if constexpr (std::is_same_v<T, ir::Dict>) {
      std::string out = "{";
      for (size_t i = 0; i < v.items.size(); ++i) {
        CUTAWAY_TRY_ASSIGN(std::string item, python_argument(v.items[i].second, value, symbol));
        out += (i ? ", " : "") + python_string(v.items[i].first) + ": " + item;
      }
      return out + "}";
    } else if constexpr (std::is_same_v<T, ir::GeneratorName>) {
      if (v.name == "default") return std::string("None");
      return base::Error{.what = "the random state " + base::quote(v.name) + " has no name in a script", .because = "its state is not written down"};
    } else {   // NamedObject: only what callable_from_torch lets through
      if (auto c = callable_from_torch(v.name); c && c->kind == Callable::Kind::function) return c->module + "." + c->name;
      return base::Error{.what = "the object " + base::quote(v.name) + " cannot be written in a script", .because = "only torch's tensor functions are named in one"};
    }
  }, a.v);
}

}  // namespace cutaway::script
