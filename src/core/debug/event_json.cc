#include "core/debug/event_json.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "core/base/text.h"

namespace cutaway::debug {
namespace {

template <class T>
void append_number(std::string& out, T n) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, n).ptr;
  out.append(buffer, end);
}

// Shortest text that reads back as the same double and as no integer. JSON has no NaN and no infinity: an object stands for them.
void append_double(std::string& out, double d) {
  if (!std::isfinite(d)) {
    out += std::isnan(d) ? R"({"double":"nan"})" : d > 0 ? R"({"double":"inf"})" : R"({"double":"-inf"})";
    return;
  }
  const size_t start = out.size();
  append_number(out, d);
  if (out.find_first_of(".e", start) == std::string::npos) out += ".0";
}

void append_value(std::string& out, const FieldView& value) {
  std::visit([&](auto v) {
    using T = decltype(v);
    if constexpr (std::same_as<T, bool>) out += v ? "true" : "false";
    else if constexpr (std::same_as<T, int64_t>) append_number(out, v);
    else if constexpr (std::same_as<T, double>) append_double(out, v);
    else append_json_text(out, v);
  }, value.get());
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  size_t plain = 0;   // start of the run that needs no escape
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') { ++i; continue; }
    const size_t length = c >= 0x80 ? base::utf8_length(text.substr(i)) : 0;
    if (length > 0) { i += length; continue; }
    out.append(text, plain, i - plain);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (c >= 0x80) {
          out += "\xef\xbf\xbd";
        } else {
          constexpr char kHex[] = "0123456789abcdef";
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        }
    }
    plain = ++i;
  }
  out.append(text, plain, text.size() - plain);
  out += '"';
}

void append_event_line(std::string& out, const Event& e, int64_t pid, uint64_t start_us) {
  out += "{\"time_us\":";
  append_number(out, e.time_us > start_us ? e.time_us - start_us : 0);
  out += ",\"kind\":";
  append_json_text(out, e.kind);
  out += ",\"topic\":";
  append_json_text(out, e.topic);
  out += ",\"name\":";
  append_json_text(out, e.name);
  out += ",\"level\":\"";
  out += level_name(e.level);
  out += "\",\"phase\":";
  append_number(out, e.phase);
  if (e.outer != 0) {
    out += ",\"outer\":";
    append_number(out, e.outer);
  }
  out += ",\"pid\":";
  append_number(out, pid);
  out += ",\"thread\":";
  append_number(out, e.thread);
  if (!e.fields.empty()) {
    out += ",\"fields\":{";
    bool first = true;
    for (const Field& f : e.fields) {
      if (!first) out += ',';
      first = false;
      append_json_text(out, f.key);
      out += ':';
      append_value(out, f.value);
    }
    out += '}';
  }
  out += "}\n";
}

void append_stream_line(std::string& out, int64_t pid, std::string_view began) {
  out += "{\"kind\":\"stream\",\"version\":";
  append_number(out, kEventsVersion);
  out += ",\"pid\":";
  append_number(out, pid);
  out += ",\"began\":";
  append_json_text(out, began);
  out += "}\n";
}

}  // namespace cutaway::debug
