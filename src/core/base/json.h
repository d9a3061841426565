// JSON as data, read strictly and written the same way every time: keys sorted, numbers in their shortest exact form.
// Main types: Json, and JsonAt, which walks one with a path in hand so that every complaint names its place. The parser is
// nlohmann's; it is included in json.cc alone, because it takes seconds to compile.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace cutaway::base {

/// One JSON value. Integers stay integers: int64_t, and uint64_t only above its range.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;
  using Variant = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}
  Json(bool b) : value_(b) {}
  Json(int i) : value_(int64_t{i}) {}
  Json(int64_t i) : value_(i) {}
  Json(uint64_t i);
  Json(double d) : value_(d) {}
  Json(std::string s) : value_(std::move(s)) {}
  Json(std::string_view s) : value_(std::string(s)) {}
  Json(const char* s) : value_(std::string(s)) {}
  Json(Array a) : value_(std::move(a)) {}
  Json(Object o) : value_(std::move(o)) {}

  template <class T> const T* as() const { return std::get_if<T>(&value_); }
  template <class T> T* as() { return std::get_if<T>(&value_); }
  const Variant& variant() const { return value_; }
  bool is_null() const { return as<std::nullptr_t>() != nullptr; }
  /// An object's field; makes a null one, and makes an object of a null.
  Json& operator[](std::string_view key);
  /// An object's field; null where there is none, or this is no object.
  const Json* find(std::string_view key) const;
  /// The field where it is there and of that kind; else `otherwise`. For what our own processes wrote: JsonFields is for what people write.
  std::string text_or(std::string_view key, std::string otherwise = {}) const;
  int64_t integer_or(std::string_view key, int64_t otherwise = 0) const;
  double number_or(std::string_view key, double otherwise = 0) const;
  bool flag_or(std::string_view key, bool otherwise = false) const;
  std::vector<std::string> texts_or_none(std::string_view key) const;
  std::map<std::string, std::string> texts_by_name_or_none(std::string_view key) const;
  bool operator==(const Json&) const = default;
  /// "null", "a bool", "an integer", "a number", "a string", "an array", "an object": for messages.
  std::string_view kind() const;

  /// One line without spaces, or with `indent` spaces a level. Arrays of plain values stay on one line. NaN and infinities, which
  /// JSON lacks, become the strings "nan", "inf" and "-inf"; bytes that are not UTF-8 become U+FFFD.
  std::string text(int indent = 0) const;

  /// Refuses what is not exactly one value of RFC 8259: bad UTF-8, duplicate keys, numbers that no double holds, text after the value,
  /// nesting deeper than `max_depth`. Errors have the place "place:line:column", or "place: path" for a duplicate key.
  static Result<Json> parse(std::string_view text, std::string_view place, int max_depth = 64);
  /// The same; null for what is not JSON.
  static Json parse_or_null(std::string_view text);

 private:
  Variant value_;
};

/// The text in double quotes, escaped for JSON.
std::string json_text(std::string_view text);

/// An object as text whose fields stay in the order in which they are added: for people who read it.
class JsonObjectText {
 public:
  JsonObjectText& add(std::string_view key, const Json& value) { return add_text(key, value.text()); }
  /// `json` is a value already.
  JsonObjectText& add_text(std::string_view key, std::string_view json);
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

/// A value inside a document and the way to it. Errors read `out/manifest.json: inputs[3].sizes: expected an array, got a string`.
class JsonAt {
 public:
  JsonAt(const Json& value, std::string_view document, std::string path = {}) : value_(&value), document_(document), path_(std::move(path)) {}
  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  std::string_view document() const { return document_; }
  std::string place() const;
  Error error(std::string what, std::string because = {}, std::string hint = {}) const;

  Result<bool> boolean() const;
  Result<int64_t> integer(int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;
  Result<uint64_t> unsigned_integer(uint64_t most = UINT64_MAX) const;
  Result<std::string> string() const;
  /// One of `names`, else an error with the nearest.
  Result<std::string> one_of(const std::vector<std::string>& names) const;
  Result<std::vector<JsonAt>> array(size_t most = SIZE_MAX) const;
  Result<std::vector<int64_t>> integers(size_t most, int64_t least) const;
  Result<std::map<std::string, std::string>> strings_by_name() const;

 private:
  const Json* value_;
  std::string_view document_;
  std::string path_;
};

/// Reads an object field by field, and knows in the end which fields nobody asked for.
class JsonFields {
 public:
  static Result<JsonFields> open(const JsonAt& at);
  Result<JsonAt> required(std::string_view key);
  /// Absent when there is no such field. A null is a value: it is not the same as absent.
  std::optional<JsonAt> optional(std::string_view key);
  /// An error for the first field that was not asked for.
  Status finish() const;

  /// Reads a field that may be absent: `read` is called with its place.
  template <class F> Status when(std::string_view key, F&& read) {
    if (auto at = optional(key)) return read(*at);
    return {};
  }
  template <class T> Status fill(std::string_view key, T& out, Result<T> (JsonAt::*read)() const) {
    return when(key, [&](const JsonAt& at) -> Status {
      CUTAWAY_TRY_ASSIGN(out, (at.*read)());
      return {};
    });
  }

 private:
  explicit JsonFields(const JsonAt& at) : at_(at) {}
  JsonAt child(std::string_view key, const Json& value) const;
  JsonAt at_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace cutaway::base
