// JsonAt and JsonFields: reading a document with the place in hand.
#include <cstdint>

#include "core/base/json.h"
#include "core/base/text.h"

namespace cutaway::base {

std::string JsonAt::place() const {
  return path_.empty() ? std::string(document_) : std::string(document_) + ": " + path_;
}

Error JsonAt::error(std::string what, std::string because, std::string hint) const {
  return Error{.what = std::move(what), .place = place(), .because = std::move(because), .hint = std::move(hint)};
}

namespace {
Error wrong_kind(const JsonAt& at, std::string_view expected) {
  return at.error("expected " + std::string(expected) + ", got " + std::string(at.value().kind()));
}
}  // namespace

Result<bool> JsonAt::boolean() const {
  if (const bool* b = value_->as<bool>()) return *b;
  return wrong_kind(*this, "true or false");
}

Result<int64_t> JsonAt::integer(int64_t least, int64_t most) const {
  const int64_t* i = value_->as<int64_t>();
  if (!i && !value_->as<uint64_t>()) return wrong_kind(*this, "an integer");
  if (!i || *i < least || *i > most) {
    const std::string shown = value_->text();
    if (!i || *i > most) return error(shown + " is too large", most == INT64_MAX ? "it must fit 64 bits with sign" : "at most " + std::to_string(most));
    return error(shown + " is too small", "at least " + std::to_string(least));
  }
  return *i;
}

Result<uint64_t> JsonAt::unsigned_integer(uint64_t most) const {
  uint64_t number = 0;
  if (const int64_t* i = value_->as<int64_t>()) {
    if (*i < 0) return error(value_->text() + " is too small", "at least 0");
    number = static_cast<uint64_t>(*i);
  } else if (const uint64_t* u = value_->as<uint64_t>()) {
    number = *u;
  } else {
    return wrong_kind(*this, "an integer");
  }
  if (number > most) return error(value_->text() + " is too large", "at most " + std::to_string(most));
  return number;
}

Result<std::string> JsonAt::string() const {
  if (const std::string* s = value_->as<std::string>()) return *s;
  return wrong_kind(*this, "a string");
}

Result<std::string> JsonAt::one_of(const std::vector<std::string>& names) const {
  CUTAWAY_TRY_ASSIGN(std::string text, string());
  for (const std::string& name : names) {
    if (name == text) return text;
  }
  return error("unknown word " + quote(text.substr(0, 60)) + did_you_mean(text, names), "expected one of " + join(names));
}

Result<std::vector<JsonAt>> JsonAt::array(size_t most) const {
  const Json::Array* items = value_->as<Json::Array>();
  if (!items) return wrong_kind(*this, "an array");
  if (items->size() > most) return error(count_of(items->size(), "element") + " are too many", "at most " + std::to_string(most));
  std::vector<JsonAt> out;
  out.reserve(items->size());
  for (size_t i = 0; i < items->size(); ++i) out.emplace_back((*items)[i], document_, path_ + "[" + std::to_string(i) + "]");
  return out;
}

Result<std::vector<int64_t>> JsonAt::integers(size_t most, int64_t least) const {
  CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> items, array(most));
  std::vector<int64_t> out;
  out.reserve(items.size());
  for (const JsonAt& item : items) {
    CUTAWAY_TRY_ASSIGN(const int64_t number, item.integer(least));
    out.push_back(number);
  }
  return out;
}

Result<std::map<std::string, std::string>> JsonAt::strings_by_name() const {
  const Json::Object* fields = value_->as<Json::Object>();
  if (!fields) return wrong_kind(*this, "an object");
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : *fields) {
    CUTAWAY_TRY_ASSIGN(std::string text, JsonAt(value, document_, path_ + "." + key).string());
    out.emplace(key, std::move(text));
  }
  return out;
}

Result<JsonFields> JsonFields::open(const JsonAt& at) {
  if (!at.value().as<Json::Object>()) return wrong_kind(at, "an object");
  return JsonFields(at);
}

JsonAt JsonFields::child(std::string_view key, const Json& value) const {
  return JsonAt(value, at_.document(), at_.path().empty() ? std::string(key) : at_.path() + "." + std::string(key));
}

std::optional<JsonAt> JsonFields::optional(std::string_view key) {
  asked_.emplace(key);
  const auto& fields = *at_.value().as<Json::Object>();
  const auto found = fields.find(key);
  if (found == fields.end()) return std::nullopt;
  return child(key, found->second);
}

Result<JsonAt> JsonFields::required(std::string_view key) {
  if (auto at = optional(key)) return *std::move(at);
  return at_.error("the field " + quote(key) + " is missing");
}

Status JsonFields::finish() const {
  for (const auto& [key, value] : *at_.value().as<Json::Object>()) {
    if (!asked_.contains(key)) {
      return at_.error("unknown field " + quote(key.substr(0, 60)) + did_you_mean(key, {asked_.begin(), asked_.end()}));
    }
  }
  return {};
}

}  // namespace cutaway::base
