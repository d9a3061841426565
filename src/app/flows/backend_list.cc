#include "app/flows/backend_list.h"

#include <type_traits>

#include "core/base/text.h"

namespace cutaway::flows {
namespace {

using base::Json;

// "needs_trust" -> "needs trust".
std::string in_words(std::string field) {
  for (char& c : field)
    if (c == '_') c = ' ';
  return field;
}

}  // namespace

std::string backend_names(const std::vector<capabilities::Row>& rows) {
  std::vector<std::string> names;
  for (const capabilities::Row& r : rows)
    if (!r.needs_trust) names.push_back(r.name + r.parameters);
  return base::join(names);
}

std::string backends_text(const std::vector<capabilities::Row>& rows) {
  std::string out;
  for (const capabilities::Row& r : rows) {
    std::vector<std::string> facts;
    capabilities::for_each_field(r, [&](std::string_view field, const auto& value) {
      if (field == "name" || field == "parameters" || field == "summary") return;
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, bool>) { if (value) facts.push_back(in_words(std::string(field))); }
      else if constexpr (std::is_same_v<T, std::string>) { if (!value.empty()) facts.push_back(in_words(std::string(field)) + ": " + value); }
      else facts.push_back(in_words(std::string(field)) + ": " + base::join(value, " "));
    });
    out += r.name + r.parameters + "\n    " + r.summary + "\n    " + base::join(facts, "; ") + "\n";
  }
  return out;
}

Json backends_json(const std::vector<capabilities::Row>& rows) {
  Json::Array list;
  for (const capabilities::Row& r : rows) {
    Json::Object row;
    capabilities::for_each_field(r, [&](const char* field, const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<std::string>>) row[field] = Json(Json::Array(value.begin(), value.end()));
      else row[field] = Json(value);
    });
    list.push_back(std::move(row));
  }
  return Json(std::move(list));
}

}  // namespace cutaway::flows
