#include "core/capabilities/switches.h"

#include "core/base/json.h"

namespace cutaway::capabilities {

using base::Json;
using base::JsonAt;

std::string Switches::to_json() const {
  if (empty()) return "";
  Json::Object j;
  if (!limits.empty()) {
    Json::Object o;
    for (const auto& [part, n] : limits) o.emplace(part, Json(n));
    j["limits"] = Json(std::move(o));
  }
  if (!without.empty()) {
    Json::Array a;
    for (const std::string& w : without) a.emplace_back(w);
    j["without"] = Json(std::move(a));
  }
  if (!options.empty()) {
    Json::Object o;
    for (const auto& [name, text] : options) {
      auto value = Json::parse(text, name);
      o.emplace(name, value.ok() ? std::move(*value) : Json(text));
    }
    j["options"] = Json(std::move(o));
  }
  if (!code.empty()) j["code"] = Json(code);
  if (!profile.empty()) j["profile"] = Json(profile);
  if (!write_code.empty()) j["write_code"] = Json(write_code);
  if (!log.empty()) j["log"] = Json(log);
  return Json(std::move(j)).text();
}

base::Result<Switches> Switches::from_json(std::string_view text) {
  Switches s;
  if (text.empty()) return s;
  CUTAWAY_TRY_ASSIGN(const Json json, Json::parse(text, "switches"));
  CUTAWAY_TRY_ASSIGN(base::JsonFields fields, base::JsonFields::open(JsonAt(json, "switches")));
  CUTAWAY_TRY(fields.when("limits", [&](const JsonAt& at) -> base::Status {
    const auto* limits = at.value().as<Json::Object>();
    if (!limits) return at.error("expected an object", "got " + std::string(at.value().kind()));
    for (const auto& [part, n] : *limits) {
      if (!n.as<int64_t>()) return at.error("the limit of " + part + " is not a whole number");
      s.limits[part] = *n.as<int64_t>();
    }
    return {};
  }));
  CUTAWAY_TRY(fields.when("without", [&](const JsonAt& at) -> base::Status {
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> words, at.array());
    for (const JsonAt& word : words) {
      CUTAWAY_TRY_ASSIGN(std::string one, word.string());
      s.without.push_back(std::move(one));
    }
    return {};
  }));
  CUTAWAY_TRY(fields.when("options", [&](const JsonAt& at) -> base::Status {
    const auto* options = at.value().as<Json::Object>();
    if (!options) return at.error("expected an object", "got " + std::string(at.value().kind()));
    for (const auto& [name, value] : *options) s.options[name] = value.text();
    return {};
  }));
  CUTAWAY_TRY(fields.fill("code", s.code, &JsonAt::string));
  CUTAWAY_TRY(fields.fill("profile", s.profile, &JsonAt::string));
  CUTAWAY_TRY(fields.fill("write_code", s.write_code, &JsonAt::string));
  CUTAWAY_TRY(fields.fill("log", s.log, &JsonAt::string));
  CUTAWAY_TRY(fields.finish());
  return s;
}

}  // namespace cutaway::capabilities
