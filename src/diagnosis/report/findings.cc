#include "diagnosis/report/findings.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/digest.h"
#include "core/base/json.h"

namespace cutaway::report {
namespace {

using base::Json;

const char* level_word(Severity s) {
  switch (s) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "none";
}

/// Relative to `root` where it lies inside; else absolute. Nothing is asked of the disk.
std::filesystem::path seen_from(const std::string& file, std::string_view root) {
  const std::filesystem::path path = std::filesystem::path(file).lexically_normal();
  if (root.empty() || !path.is_absolute()) return path;
  const std::filesystem::path relative = path.lexically_relative(std::filesystem::path(root).lexically_normal());
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

/// RFC 3986: what is neither unreserved nor a slash is written as %XX.
std::string uri_path(const std::string& path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto u = static_cast<unsigned char>(c);
    const bool is_plain = (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || c == '-' || c == '_' || c == '.' || c == '~' || c == '/';
    if (is_plain) out += c;
    else out += {'%', kDigits[u >> 4], kDigits[u & 15]};
  }
  return out;
}

Json artifact_location(const std::string& file, std::string_view root) {
  const std::filesystem::path path = seen_from(file, root);
  if (path.is_absolute()) return Json::Object{{"uri", "file://" + uri_path(path.string())}};
  return Json::Object{{"uri", uri_path(path.string())}, {"uriBaseId", "%SRCROOT%"}};
}

Json::Object location(const Spot& spot, std::string_view root) {
  Json::Object region{{"startLine", Json(std::max<int64_t>(spot.line, 1))}};   // lines count from 1
  if (!spot.text.empty()) region["snippet"] = Json::Object{{"text", spot.text}};
  Json::Object out{{"physicalLocation", Json::Object{{"artifactLocation", artifact_location(spot.file, root)}, {"region", std::move(region)}}}};
  if (!spot.function.empty()) out["logicalLocations"] = Json::Array{Json::Object{{"name", spot.function}, {"kind", "function"}}};
  return out;
}

Json message(std::string_view text) { return Json::Object{{"text", text}}; }

/// The same finding after lines were added above it: by what and where, without the line.
std::string fingerprint(const Finding& f, std::string_view root) {
  return base::digest_text(f.rule + '\n' + seen_from(f.spot.file, root).string() + '\n' + f.spot.function + '\n' + f.spot.text).hex();
}

/// GitHub reads a command up to the end of its line.
std::string workflow_escape(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : text) {
    if (c == '%') out += "%25";
    else if (c == '\r') out += "%0D";
    else if (c == '\n') out += "%0A";
    else if (is_property && c == ':') out += "%3A";
    else if (is_property && c == ',') out += "%2C";
    else out += c;
  }
  return out;
}

}  // namespace

std::string sarif_text(const Findings& findings, std::string_view root, std::string_view version) {
  std::map<std::string, const Finding*> by_rule;
  for (const Finding& f : findings.list) by_rule.emplace(f.rule, &f);
  Json::Array rules, results, notifications;
  std::map<std::string, int64_t> index;
  for (const auto& [id, first] : by_rule) {
    index[id] = static_cast<int64_t>(rules.size());
    rules.push_back(Json::Object{{"id", id}, {"shortDescription", message(first->rule_text)}, {"defaultConfiguration", Json::Object{{"level", level_word(first->severity)}}}});
  }
  for (const Finding& f : findings.list) {
    Json::Object result{{"ruleId", f.rule}, {"ruleIndex", Json(index[f.rule])}, {"level", level_word(f.severity)}, {"message", message(f.message)},
                        {"locations", Json::Array{location(f.spot, root)}}, {"partialFingerprints", Json::Object{{"cutaway/v1", fingerprint(f, root)}}}};
    Json::Array related;
    for (const auto& [why, spot] : f.related) {
      Json::Object at = location(spot, root);
      at["id"] = Json(static_cast<int64_t>(related.size()));
      at["message"] = message(why);
      related.push_back(std::move(at));
    }
    if (!related.empty()) result["relatedLocations"] = Json(std::move(related));
    Json::Object properties;
    for (const auto& [key, value] : f.properties) properties[key] = Json(value);
    if (!properties.empty()) result["properties"] = Json(std::move(properties));
    results.push_back(std::move(result));
  }
  for (const auto& [severity, text] : findings.notes) notifications.push_back(Json::Object{{"level", level_word(severity)}, {"message", message(text)}});
  Json::Object invocation{{"executionSuccessful", findings.is_complete}};
  if (!notifications.empty()) invocation["toolExecutionNotifications"] = Json(std::move(notifications));
  Json::Object driver{{"name", "Cutaway"}, {"version", version}, {"semanticVersion", version}, {"rules", Json(std::move(rules))}};
  Json::Object run{{"tool", Json::Object{{"driver", std::move(driver)}}}, {"invocations", Json::Array{std::move(invocation)}}, {"results", Json(std::move(results))}};
  return Json(Json::Object{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", Json::Array{std::move(run)}}}).text(2);
}

std::string github_text(const Findings& findings, std::string_view root) {
  const auto command = [](Severity s) { return s == Severity::note ? "notice" : level_word(s); };
  std::string out;
  for (const Finding& f : findings.list)
    out += std::string("::") + command(f.severity) + " file=" + workflow_escape(seen_from(f.spot.file, root).string(), true) + ",line=" + std::to_string(std::max<int64_t>(f.spot.line, 1)) +
           ",title=" + workflow_escape("Cutaway: " + f.title, true) + "::" + workflow_escape(f.message, false) + "\n";
  for (const auto& [severity, text] : findings.notes) out += std::string("::") + command(severity) + " title=Cutaway::" + workflow_escape(text, false) + "\n";
  return out;
}

}  // namespace cutaway::report
