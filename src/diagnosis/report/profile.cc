#include "diagnosis/report/profile.h"

#include <algorithm>

#include "core/base/json.h"
#include "diagnosis/report/html.h"

namespace cutaway::report {
namespace {

using base::Json;
using base::JsonAt;
using base::JsonFields;
constexpr size_t kMaxProfileRows = 100'000, kMaxShown = 200, kMaxProfileCell = 600, kMaxText = 20'000;

double number_of(const Json& j) {
  if (const double* d = j.as<double>()) return *d;
  if (const int64_t* i = j.as<int64_t>()) return static_cast<double>(*i);
  return 0;
}
void fill(JsonFields& fields, std::string_view key, double& into) {
  if (const auto at = fields.optional(key)) into = number_of(at->value());
}
void fill(JsonFields& fields, std::string_view key, int64_t& into) {
  if (const auto at = fields.optional(key)) into = static_cast<int64_t>(number_of(at->value()));
}
void fill(JsonFields& fields, std::string_view key, std::string& into) {
  if (const auto at = fields.optional(key))
    if (const auto* s = at->value().as<std::string>()) into = *s;
}

std::string rate(double amount, double seconds, double share) {
  if (amount <= 0 || seconds <= 0) return "";
  return fixed(amount / seconds * 1e-9) + (share > 0 ? " (" + percent(share) + ")" : "");
}

}  // namespace

base::Result<Profile> profile_from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(const Json document, Json::parse(text, place));
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(JsonAt(document, place)));
  Profile p;
  CUTAWAY_TRY_ASSIGN(const JsonAt graphs, fields.required("graphs"));
  CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> list, graphs.array(kMaxProfileRows));
  for (const JsonAt& at : list) {
    CUTAWAY_TRY_ASSIGN(JsonFields graph, JsonFields::open(at));
    ProfiledGraph g;
    fill(graph, "name", g.name);
    fill(graph, "calls", g.calls);
    fill(graph, "seconds", g.seconds);
    CUTAWAY_TRY_ASSIGN(const JsonAt steps, graph.required("steps"));
    CUTAWAY_TRY_ASSIGN(const std::vector<JsonAt> rows, steps.array(kMaxProfileRows));
    for (const JsonAt& row : rows) {
      CUTAWAY_TRY_ASSIGN(JsonFields step, JsonFields::open(row));
      ProfileStep s;
      fill(step, "name", s.name);
      fill(step, "kind", s.kind);
      fill(step, "computes", s.computes);
      fill(step, "place", s.place);
      fill(step, "text", s.text);
      fill(step, "calls", s.calls);
      fill(step, "bytes", s.bytes);
      fill(step, "operations", s.operations);
      fill(step, "seconds", s.seconds);
      fill(step, "share_of_bandwidth", s.share_of_bandwidth);
      fill(step, "share_of_operations", s.share_of_operations);
      g.steps.push_back(std::move(s));
    }
    p.graphs.push_back(std::move(g));
  }
  if (const auto limits = fields.optional("limits"); limits && !limits->value().is_null()) {
    CUTAWAY_TRY_ASSIGN(JsonFields machine, JsonFields::open(*limits));
    fill(machine, "bytes_per_s", p.bytes_per_s);
    fill(machine, "operations_per_s", p.operations_per_s);
    fill(machine, "threads", p.threads);
  }
  return p;
}

std::string profile_html(const Profile& p) {
  const auto cell = [](std::string_view text) { return escape(shorten(text, kMaxProfileCell)); };
  std::string out;
  if (p.bytes_per_s > 0)
    out += "<p>This machine, with " + std::to_string(p.threads) + (p.threads == 1 ? " thread" : " threads") + ", copies " + fixed(p.bytes_per_s * 1e-9) + " GB/s and does " + fixed(p.operations_per_s * 1e-9) +
           " GFLOP/s. Shares are of those; above 100 % caches are at work.</p>\n";
  for (const ProfiledGraph& g : p.graphs) {
    std::vector<const ProfileStep*> order;
    for (const ProfileStep& s : g.steps)
      if (s.calls > 0) order.push_back(&s);
    std::ranges::stable_sort(order, std::ranges::greater(), &ProfileStep::seconds);
    out += "<h3>" + cell(g.name) + "</h3>\n<p>" + std::to_string(g.calls) + (g.calls == 1 ? " call, " : " calls, ") + fixed(g.seconds * 1e3, 3) + " ms.</p>\n";
    std::string table = "<table><thead><tr><th>Step</th><th>Calls</th><th>Each</th><th>Share</th><th>GB/s</th><th>GFLOP/s</th><th>Computes</th><th>Your line</th></tr></thead><tbody>\n";
    for (size_t i = 0; i < order.size() && i < kMaxShown; ++i) {
      const ProfileStep& s = *order[i];
      const double each = s.seconds / static_cast<double>(s.calls);
      table += "<tr><td><code>" + cell(s.name) + "</code></td><td>" + std::to_string(s.calls) + "</td><td>" + fixed(each * 1e6, 2) + " us</td><td>" + percent(g.seconds > 0 ? s.seconds / g.seconds : 0) + "</td><td>" +
               rate(static_cast<double>(s.bytes), each, s.share_of_bandwidth) + "</td><td>" + rate(static_cast<double>(s.operations), each, s.share_of_operations) + "</td><td>" + cell(s.computes);
      if (!s.text.empty()) table += "<details><summary>text</summary><pre tabindex=\"0\"><code>" + escape(shorten(s.text, kMaxText)) + "</code></pre></details>";
      table += "</td><td>" + cell(s.place) + "</td></tr>\n";
    }
    if (order.size() > kMaxShown) table += "<tr><td colspan=\"8\">" + std::to_string(order.size() - kMaxShown) + " more steps are in profile.json</td></tr>\n";
    out += "<div class=\"scroll\" role=\"region\" aria-label=\"Times\" tabindex=\"0\">\n" + table + "</tbody></table>\n</div>\n";
  }
  return out;
}

}  // namespace cutaway::report
