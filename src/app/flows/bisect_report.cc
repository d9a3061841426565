// What `cutaway bisect` says: for people, and as JSON.
#include <cstdio>

#include "app/flows/bisect_flow.h"
#include "app/flows/report_json.h"
#include "core/base/text.h"
#include "core/capabilities/parts.h"
#include "diagnosis/oracle/signature.h"

namespace cutaway::flows {
namespace {

using base::Json;

Json text_or_null(const std::string& t) { return t.empty() ? Json() : Json(t); }

Json culprit_json(const Culprit& c) {
  const Json value = c.value.empty() ? Json() : Json(c.value), off = c.off.empty() ? Json() : Json(c.off);
  const bool is_option = c.part.empty(), is_one = !c.application.part.empty();
  return Json::Object{{"kind", is_option ? "option" : std::string(capabilities::one_of(c.part))}, {"part", text_or_null(c.part)}, {"name", text_or_null(is_option ? c.option : c.application.name)},
                      {"number", is_one ? Json(c.application.number + 1) : Json()}, {"of", is_one ? Json(c.of) : Json()}, {"graph", text_or_null(c.application.graph)},
                      {"node", text_or_null(c.application.node)}, {"place", text_or_null(c.application.place)}, {"value", value}, {"off", off}, {"switch", c.flag()}};
}

// For a shell; names hold no more than operators, words and punctuation, but "aten.add(…)" needs the quotes.
std::string shell_word(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:=,+-/") == std::string::npos) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string Culprit::text() const {
  if (part.empty()) return "option " + option + " = " + (value.empty() ? std::string(kDefaultOption) : value);
  if (application.part.empty()) return part;
  std::string out = std::string(capabilities::one_of(part)) + " " + std::to_string(application.number + 1) + " of " + std::to_string(of) + ": " + application.name;
  if (!application.node.empty()) out += " (" + application.node + ")";
  if (!application.graph.empty()) out += " in graph " + application.graph;
  return out;
}

std::string Culprit::flag() const {
  if (part.empty()) return "--option " + shell_word(option + "=" + off);
  if (application.part.empty()) return "--without " + part;
  if (is_alone) return "--without " + shell_word(part + ":" + application.name);
  return "--limit " + part + "=" + std::to_string(application.number);
}

std::string BisectReport::text() const {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) { out += report_line(key, value); };
  if (exit_code == kStartDoesNotFail) { line("no failure", bundle + " " + message); return out; }
  if (exit_code == kEagerFails) { line("eager", "itself fails"); return out + message + "\n"; }
  if (!guilty && exit_code == kFailsOtherwise) { line("other failure", "the bundle fails, but not as recorded"); return out + message + "\n"; }
  line("failure", oracle::describe(start.signature, start.message) + "   (backend " + backend + ")");
  if (!guilty) {
    line("guilty", "not found: " + message);
    line("next", "cutaway minify " + bundle + flags);
    return out;
  }
  line("guilty", guilty->text());
  if (!guilty->application.place.empty()) line("at", guilty->application.place);
  for (const Culprit& c : also) line("also cured by", c.part.empty() ? "option " + c.option + " = " + c.off + (c.value.empty() ? "" : " (it is " + c.value + ")") : "all " + c.part + " off");
  line("certainty", is_verified ? "with it off it passes, with it on it fails, each in a fresh process" : "NOT VERIFIED: " + message);
  char cost[64];
  std::snprintf(cost, sizeof cost, "%s, %.0f s", base::count_of(trials, "trial").c_str(), seconds);
  line("cost", std::string(cost) + (minified ? " (with " + base::count_of(minified->candidates, "candidate") + " of minify)" : ""));
  if (minified && !minified->graph_text.empty()) {
    out += "minimal graph\n";
    for (size_t at = 0; at < minified->graph_text.size();) {
      const size_t end = std::min(minified->graph_text.find('\n', at), minified->graph_text.size());
      out += "    " + minified->graph_text.substr(at, end - at) + "\n";
      at = end + 1;
    }
    if (!minified->attach.empty()) line("attach", minified->attach);
  } else if (minified) {
    line("not minified", minified->message);
  }
  if (!report.empty()) line("report", report);
  line("next", check);
  return out;
}

std::string BisectReport::to_json() const {
  const bool is_small = minified && !minified->graph_text.empty();
  Json::Object j = common_keys(exit_code == 0 ? "failure" : outcome_word(exit_code), start.signature, backend, is_small ? minified->output : bundle, is_small ? minified->repro : "", seconds,
                               message.empty() ? start.message : message);
  const auto count = [](uint64_t n) { return Json(static_cast<int64_t>(n)); };
  j["nodes_before"] = count(nodes);
  if (minified) {
    j["candidates"] = count(minified->candidates);
    j["elements_before"] = count(minified->before.elements);
  }
  if (is_small) {
    j["nodes_after"] = count(minified->after.nodes);
    j["elements_after"] = count(minified->after.elements);
    j["one_minimal"] = Json(minified->one_minimal);
    j["graph"] = Json(minified->graph_text);
  }
  j["accuracy"] = Json(accuracy);
  j["guilty"] = guilty ? culprit_json(*guilty) : Json();
  Json::Array list;
  for (const Culprit& c : also) list.push_back(culprit_json(c));
  j["also"] = Json(std::move(list));
  j["check"] = text_or_null(check);
  j["report"] = text_or_null(report);
  j["trials"] = count(trials);
  j["verified"] = Json(is_verified);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
