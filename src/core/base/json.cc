#include "core/base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"   // g++ 12 and 13 see one in every moved variant that holds a vector
#endif

namespace cutaway::base {

Json::Json(uint64_t i) {
  if (i <= static_cast<uint64_t>(INT64_MAX)) value_ = static_cast<int64_t>(i);
  else value_ = i;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  return std::get<Object>(value_)[std::string(key)];
}

Json Json::parse_or_null(std::string_view text) {
  Result<Json> parsed = parse(text, "");
  return parsed.ok() ? std::move(parsed).value() : Json();
}

const Json* Json::find(std::string_view key) const {
  const Object* object = as<Object>();
  if (!object) return nullptr;
  const auto found = object->find(key);
  return found == object->end() ? nullptr : &found->second;
}
std::string Json::text_or(std::string_view key, std::string otherwise) const {
  const Json* found = find(key);
  const std::string* text = found ? found->as<std::string>() : nullptr;
  return text ? *text : std::move(otherwise);
}
int64_t Json::integer_or(std::string_view key, int64_t otherwise) const {
  const Json* found = find(key);
  const int64_t* number = found ? found->as<int64_t>() : nullptr;
  return number ? *number : otherwise;
}
double Json::number_or(std::string_view key, double otherwise) const {
  const Json* found = find(key);
  if (const double* number = found ? found->as<double>() : nullptr) return *number;
  return found && found->as<int64_t>() ? static_cast<double>(*found->as<int64_t>()) : otherwise;
}
bool Json::flag_or(std::string_view key, bool otherwise) const {
  const Json* found = find(key);
  const bool* flag = found ? found->as<bool>() : nullptr;
  return flag ? *flag : otherwise;
}
std::vector<std::string> Json::texts_or_none(std::string_view key) const {
  std::vector<std::string> out;
  const Json* found = find(key);
  if (const Array* list = found ? found->as<Array>() : nullptr)
    for (const Json& item : *list)
      if (const std::string* text = item.as<std::string>()) out.push_back(*text);
  return out;
}
std::map<std::string, std::string> Json::texts_by_name_or_none(std::string_view key) const {
  std::map<std::string, std::string> out;
  const Json* found = find(key);
  if (const Object* object = found ? found->as<Object>() : nullptr)
    for (const auto& [name, value] : *object)
      if (const std::string* text = value.as<std::string>()) out.emplace(name, *text);
  return out;
}

std::string_view Json::kind() const {
  static constexpr std::string_view kNames[] = {"null", "a bool", "an integer", "an integer", "a number", "a string", "an array", "an object"};
  return kNames[value_.index()];
}

namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const unsigned char c = static_cast<unsigned char>(text[0]);
    size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      static constexpr char kDigits[] = "0123456789abcdef";
      switch (c) {
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        default: out += "\\u00"; out += kDigits[c >> 4]; out += kDigits[c & 15];
      }
    } else if (length == 0) {
      out += "\\ufffd";
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_double(std::string& out, double d) {
  if (std::isnan(d)) {
    out += "\"nan\"";
  } else if (std::isinf(d)) {
    out += d > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, d).ptr;   // the shortest text that reads back equal
    const std::string_view text(buffer, static_cast<size_t>(end - buffer));
    out += text;
    if (text.find_first_of(".e") == std::string_view::npos) out += ".0";     // stays a number with a fraction when read
  }
}

bool is_plain(const Json& value) { return !value.as<Json::Array>() && !value.as<Json::Object>(); }

void append(std::string& out, const Json& value, int indent, int level);

/// "[1, 2]" or one element a line; the same for objects.
template <class Items, class AppendItem>
void append_items(std::string& out, const Items& items, char open, char close, bool lines, int indent, int level, AppendItem&& append_item) {
  out += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    if (lines) {
      out += '\n';
      out.append(static_cast<size_t>(indent) * (level + 1), ' ');
    } else if (!first && indent > 0) {
      out += ' ';
    }
    append_item(item);
    first = false;
  }
  if (lines && !first) {
    out += '\n';
    out.append(static_cast<size_t>(indent) * level, ' ');
  }
  out += close;
}

void append(std::string& out, const Json& value, int indent, int level) {
  if (value.is_null()) out += "null";
  else if (const bool* b = value.as<bool>()) out += *b ? "true" : "false";
  else if (const int64_t* i = value.as<int64_t>()) out += std::to_string(*i);
  else if (const uint64_t* u = value.as<uint64_t>()) out += std::to_string(*u);
  else if (const double* d = value.as<double>()) append_double(out, *d);
  else if (const std::string* s = value.as<std::string>()) append_string(out, *s);
  else if (const Json::Array* a = value.as<Json::Array>()) {
    bool lines = indent > 0;
    if (lines) {
      lines = false;
      for (const Json& item : *a) lines = lines || !is_plain(item);
    }
    append_items(out, *a, '[', ']', lines, indent, level, [&](const Json& item) { append(out, item, indent, level + 1); });
  } else {
    append_items(out, *value.as<Json::Object>(), '{', '}', indent > 0, indent, level, [&](const auto& field) {
      append_string(out, field.first);
      out += indent > 0 ? ": " : ":";
      append(out, field.second, indent, level + 1);
    });
  }
}

/// Builds a Json from nlohmann's events; stops at the first breach.
class Builder {
 public:
  using number_integer_t = int64_t;
  using number_unsigned_t = uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view text, std::string_view place, int max_depth) : text_(text), place_(place), max_depth_(max_depth) {}

  bool null() { return put(nullptr); }
  bool boolean(bool b) { return put(b); }
  bool number_integer(int64_t i) { return put(i); }
  bool number_unsigned(uint64_t i) { return put(i); }
  bool number_float(double d, const std::string&) { return put(d); }
  bool string(std::string& s) { return put(std::move(s)); }
  bool binary(binary_t&) { return false; }   // JSON text has none
  bool start_object(size_t) { return open(Json::Object{}); }
  bool start_array(size_t) { return open(Json::Array{}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    Level& level = levels_.back();
    auto [at, is_new] = level.value->as<Json::Object>()->try_emplace(key);
    if (!is_new) {
      const std::string where = path();
      error = Error{.what = "the key " + quote(key) + " appears twice", .place = std::string(place_) + (where.empty() ? "" : ": " + where)};
      return false;
    }
    level.key = std::move(key);
    level.slot = &at->second;
    return true;
  }

  bool parse_error(size_t position, const std::string& last_token, const nlohmann::detail::exception& exception) {
    // The position counts the byte after the bad token's end; the message has its own idea of a place, which is cut off.
    const size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    const std::string_view before = text_.substr(0, at);
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const std::string where = std::string(place_) + ":" + std::to_string(line) + ":" + std::to_string(at - line_start + 1);
    if (exception.id == 406) {   // out of range
      error = Error{.what = "the number " + last_token.substr(0, 40) + " is too large", .place = where};
      return false;
    }
    std::string reason = exception.what();
    const size_t colon = reason.find(": ");   // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    if (colon != std::string::npos) reason = reason.substr(colon + 2);
    if (reason.size() > 200) reason.resize(200);
    std::string because;                      // the library quotes the text, which may be anything
    for (char c : reason) because += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f ? '?' : c;
    error = Error{.what = "this is not JSON", .place = where, .because = because};
    return false;
  }

  Json result;
  std::optional<Error> error;

 private:
  struct Level {
    Json* value;
    std::string key;        // object: of the field being read
    Json* slot = nullptr;   // object: where it goes
  };

  Json* target() {
    if (levels_.empty()) return &result;
    Level& level = levels_.back();
    if (auto* array = level.value->as<Json::Array>()) return &array->emplace_back();
    return level.slot;
  }
  bool put(Json value) {
    *target() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (static_cast<int>(levels_.size()) >= max_depth_) {
      const std::string where = path();
      error = Error{.what = "nested more than " + std::to_string(max_depth_) + " deep", .place = std::string(place_) + (where.empty() ? "" : ": " + where)};
      return false;
    }
    Json* at = target();
    *at = std::move(value);
    levels_.push_back({at, {}, nullptr});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }
  std::string path() const {
    std::string out;
    for (size_t i = 0; i + 1 < levels_.size() && out.size() < 200; ++i) {
      if (const auto* array = levels_[i].value->as<Json::Array>()) out += "[" + std::to_string(array->size() - 1) + "]";
      else out += (out.empty() ? "" : ".") + levels_[i].key;
    }
    return out;
  }

  std::string_view text_, place_;
  int max_depth_;
  std::vector<Level> levels_;
};

}  // namespace

std::string Json::text(int indent) const {
  std::string out;
  append(out, *this, indent, 0);
  return out;
}

Result<Json> Json::parse(std::string_view text, std::string_view place, int max_depth) {
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {   // the library would stop there and call it the end
    return Error{.what = "this is not JSON", .place = std::string(place), .because = "byte " + std::to_string(zero + 1) + " is zero"};
  }
  Builder builder(text, place, max_depth);
  const bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (builder.error) return *std::move(builder.error);
  if (!ok) return Error{.what = "this is not JSON", .place = std::string(place)};
  return std::move(builder.result);
}

JsonObjectText& JsonObjectText::add_text(std::string_view key, std::string_view json) {
  if (text_.size() > 1) text_ += ',';
  text_ += json_text(key);
  text_ += ':';
  text_ += json;
  return *this;
}

std::string json_text(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

}  // namespace cutaway::base
