#include "diagnosis/report/evidence.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/json.h"

namespace cutaway::report {
namespace {

using base::Json;
using base::JsonAt;
using base::JsonFields;
using base::Result;
using base::Status;
constexpr size_t kMaxRows = 100'000;

/// A number, one of the three strings that stand for what JSON lacks, or null.
Result<std::optional<double>> number_at(const JsonAt& at) {
  const Json& v = at.value();
  if (v.is_null()) return std::optional<double>();
  if (const auto* i = v.as<int64_t>()) return std::optional(static_cast<double>(*i));
  if (const auto* u = v.as<uint64_t>()) return std::optional(static_cast<double>(*u));
  if (const auto* d = v.as<double>()) return std::optional(*d);
  if (const auto* s = v.as<std::string>()) {
    if (*s == "nan") return std::optional(std::numeric_limits<double>::quiet_NaN());
    if (*s == "inf") return std::optional(std::numeric_limits<double>::infinity());
    if (*s == "-inf") return std::optional(-std::numeric_limits<double>::infinity());
  }
  return at.error("expected a number, \"nan\", \"inf\", \"-inf\" or null, got " + std::string(v.kind()));
}
Result<std::optional<double>> number_from_zero(const JsonAt& at) {
  CUTAWAY_TRY_ASSIGN(std::optional<double> v, number_at(at));
  if (v && *v < 0) return at.error("a negative number");
  return v;
}
Status fill_number(JsonFields& fields, std::string_view key, std::optional<double>& out) {
  return fields.when(key, [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(out, number_from_zero(at));
    return {};
  });
}
Status fill_count(JsonFields& fields, std::string_view key, std::optional<int64_t>& out) {
  return fields.when(key, [&](const JsonAt& at) -> Status {
    CUTAWAY_TRY_ASSIGN(out, at.integer(0));
    return {};
  });
}
Result<std::string> required_string(JsonFields& fields, std::string_view key) {
  CUTAWAY_TRY_ASSIGN(JsonAt at, fields.required(key));
  return at.string();
}

}  // namespace

Result<std::vector<AblationRow>> ablation_from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(Json document, Json::parse(text, place));
  CUTAWAY_TRY_ASSIGN(std::vector<JsonAt> items, JsonAt(document, place).array(kMaxRows));
  std::vector<AblationRow> rows;
  for (const JsonAt& at : items) {
    CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
    AblationRow row;
    CUTAWAY_TRY_ASSIGN(row.backend, required_string(fields, "backend"));
    CUTAWAY_TRY_ASSIGN(row.outcome, required_string(fields, "outcome"));
    CUTAWAY_TRY(fill_number(fields, "seconds", row.seconds));
    CUTAWAY_TRY(fields.fill("detail", row.detail, &JsonAt::string));
    CUTAWAY_TRY(fields.finish());
    rows.push_back(std::move(row));
  }
  return rows;
}

bool AnalysisRow::is_wrong() const {
  const auto starts = [&](std::string_view word) {
    return verdict.size() >= word.size() && std::equal(word.begin(), word.end(), verdict.begin(), [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  };
  return starts("wrong") && !starts("wrong input");
}

Result<std::vector<AnalysisRow>> analysis_from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(Json document, Json::parse(text, place));
  CUTAWAY_TRY_ASSIGN(std::vector<JsonAt> items, JsonAt(document, place).array(kMaxRows));
  std::vector<AnalysisRow> rows;
  for (const JsonAt& at : items) {
    CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
    AnalysisRow row;
    CUTAWAY_TRY_ASSIGN(row.node, required_string(fields, "node"));
    if (row.node.starts_with('%')) row.node.erase(0, 1);
    CUTAWAY_TRY_ASSIGN(row.op, required_string(fields, "op"));
    CUTAWAY_TRY_ASSIGN(row.verdict, required_string(fields, "verdict"));
    CUTAWAY_TRY(fill_number(fields, "local_error", row.local_error));
    CUTAWAY_TRY(fill_number(fields, "cumulative_error", row.cumulative_error));
    CUTAWAY_TRY(fields.fill("source", row.source, &JsonAt::string));
    CUTAWAY_TRY(fields.finish());
    rows.push_back(std::move(row));
  }
  return rows;
}

const AnalysisRow* first_wrong(const std::vector<AnalysisRow>& rows) {
  auto it = std::find_if(rows.begin(), rows.end(), [](const AnalysisRow& r) { return r.is_wrong() && r.verdict.find("(first)") != std::string::npos; });
  if (it == rows.end()) it = std::find_if(rows.begin(), rows.end(), [](const AnalysisRow& r) { return r.is_wrong(); });
  return it == rows.end() ? nullptr : &*it;
}

Result<Certificate> certificate_from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(Json document, Json::parse(text, place));
  const JsonAt root(document, place);
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(root));
  CUTAWAY_TRY_ASSIGN(JsonAt version, fields.required("version"));
  CUTAWAY_TRY_ASSIGN(int64_t number, version.integer());
  if (number != 1) return version.error("version " + std::to_string(number) + " is not known", "this program reads version 1", "a newer cutaway");
  Certificate c;
  CUTAWAY_TRY_ASSIGN(JsonAt one_minimal, fields.required("one_minimal"));
  CUTAWAY_TRY_ASSIGN(c.one_minimal, one_minimal.boolean());
  CUTAWAY_TRY(fields.fill("stopped_early", c.stopped_early, &JsonAt::boolean));
  if (auto at = fields.optional("verified")) {
    CUTAWAY_TRY_ASSIGN(c.verified, at->boolean());
  }
  CUTAWAY_TRY(fields.fill("failure", c.failure, &JsonAt::string));
  for (auto& [key, out] : {std::pair("candidates", &c.candidates), std::pair("failed_runs", &c.failed_runs), std::pair("runs", &c.runs), std::pair("nodes_before", &c.nodes_before),
                           std::pair("nodes_after", &c.nodes_after), std::pair("elements_before", &c.elements_before), std::pair("elements_after", &c.elements_after), std::pair("new_kernels", &c.new_kernels)})
    CUTAWAY_TRY(fill_count(fields, key, *out));
  CUTAWAY_TRY(fill_number(fields, "seconds", c.seconds));
  CUTAWAY_TRY(fill_number(fields, "rate_of_the_start", c.rate_of_the_start));
  if (c.rate_of_the_start && !(*c.rate_of_the_start <= 1)) return base::Error{"rate_of_the_start: expected a number from 0 to 1", std::string(place), "", "", ""};
  if (auto at = fields.optional("single_removals_that_no_longer_fail")) {
    CUTAWAY_TRY(JsonFields::open(*at));
    for (const auto& [pass, count] : *at->value().as<Json::Object>()) {
      CUTAWAY_TRY_ASSIGN(int64_t n, JsonAt(count, place, at->path() + "." + pass).integer(0));
      c.single_removals.emplace_back(pass, n);
    }
  }
  if (auto at = fields.optional("others")) {
    CUTAWAY_TRY_ASSIGN(std::vector<JsonAt> items, at->array(kMaxRows));
    for (const JsonAt& item : items) {
      CUTAWAY_TRY_ASSIGN(JsonFields other, JsonFields::open(item));
      Certificate::Other o;
      CUTAWAY_TRY(other.fill("failure", o.failure, &JsonAt::string));
      CUTAWAY_TRY(other.fill("bundle", o.bundle, &JsonAt::string));
      std::optional<int64_t> count;
      CUTAWAY_TRY(fill_count(other, "candidates", count));
      o.candidates = count.value_or(0);
      CUTAWAY_TRY(other.finish());
      c.others.push_back(std::move(o));
    }
  }
  for (auto& [key, out] : {std::pair("clean_process", &c.clean_process), std::pair("repro", &c.repro)})
    if (auto at = fields.optional(key)) {
      CUTAWAY_TRY_ASSIGN(JsonFields run, JsonFields::open(*at));
      CUTAWAY_TRY(run.fill("outcome", *out, &JsonAt::string));
    }
  static const std::vector<std::string_view> known = {"version", "clean_process", "repro", "new_kernels", "one_minimal", "stopped_early", "verified", "failure", "candidates", "failed_runs", "runs", "nodes_before", "nodes_after",
                                                      "elements_before", "elements_after", "seconds", "rate_of_the_start", "single_removals_that_no_longer_fail", "others"};
  for (const auto& [key, value] : *document.as<Json::Object>())
    if (std::find(known.begin(), known.end(), key) == known.end()) c.unknown.emplace_back(key, value.text());
  return c;
}

namespace {

/// A string or null.
Status fill_text(JsonFields& fields, std::string_view key, std::string& out) {
  return fields.when(key, [&](const JsonAt& at) -> Status {
    if (at.value().is_null()) return {};
    CUTAWAY_TRY_ASSIGN(out, at.string());
    return {};
  });
}
Status fill_number_or_null(JsonFields& fields, std::string_view key, std::optional<int64_t>& out) {
  return fields.when(key, [&](const JsonAt& at) -> Status {
    if (at.value().is_null()) return {};
    CUTAWAY_TRY_ASSIGN(out, at.integer(0));
    return {};
  });
}

Result<Culprit> culprit_at(const JsonAt& at) {
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(at));
  Culprit c;
  CUTAWAY_TRY_ASSIGN(c.kind, required_string(fields, "kind"));
  for (auto& [key, out] : {std::pair("name", &c.name), std::pair("graph", &c.graph), std::pair("node", &c.node), std::pair("place", &c.place), std::pair("value", &c.value), std::pair("off", &c.off)})
    CUTAWAY_TRY(fill_text(fields, key, *out));
  std::string part;
  CUTAWAY_TRY(fill_text(fields, "part", part));
  if (c.name.empty()) c.name = part;
  CUTAWAY_TRY(fill_number_or_null(fields, "number", c.number));
  CUTAWAY_TRY(fill_number_or_null(fields, "of", c.of));
  return c;
}

}  // namespace

Result<Bisection> bisection_from_json(std::string_view text, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(Json document, Json::parse(text, place));
  CUTAWAY_TRY_ASSIGN(JsonFields fields, JsonFields::open(JsonAt(document, place)));
  Bisection b;
  CUTAWAY_TRY_ASSIGN(JsonAt guilty, fields.required("guilty"));
  if (!guilty.value().is_null()) {
    CUTAWAY_TRY_ASSIGN(b.guilty, culprit_at(guilty));
  }
  if (auto at = fields.optional("also")) {
    CUTAWAY_TRY_ASSIGN(std::vector<JsonAt> items, at->array(kMaxRows));
    for (const JsonAt& item : items) {
      CUTAWAY_TRY_ASSIGN(Culprit c, culprit_at(item));
      b.also.push_back(std::move(c));
    }
  }
  CUTAWAY_TRY(fields.fill("verified", b.verified, &JsonAt::boolean));
  CUTAWAY_TRY(fill_text(fields, "check", b.check));
  CUTAWAY_TRY(fill_number_or_null(fields, "trials", b.trials));
  return b;
}

}  // namespace cutaway::report
