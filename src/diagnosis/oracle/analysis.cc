#include "diagnosis/oracle/analysis.h"

#include <cmath>
#include <limits>

namespace cutaway::oracle {
namespace {

using base::Json;
using base::JsonAt;
using base::JsonFields;
constexpr int kVersion = 1;
const std::vector<std::string> kRepeats = {"unknown", "identical", "same", "differs"};

Json number_or_null(const std::optional<double>& v) { return v ? Json(*v) : Json(); }

// Json writes what JSON lacks as words.
base::Result<double> read_number(const JsonAt& at) {
  if (auto* d = at.value().as<double>()) return *d;
  if (auto* i = at.value().as<int64_t>()) return static_cast<double>(*i);
  if (auto* s = at.value().as<std::string>()) {
    if (*s == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (*s == "inf") return std::numeric_limits<double>::infinity();
    if (*s == "-inf") return -std::numeric_limits<double>::infinity();
  }
  return at.error("expected a number, got " + std::string(at.value().kind()));
}
base::Result<std::optional<double>> read_number_or_null(const JsonAt& at) {
  if (at.value().is_null()) return std::optional<double>();
  CUTAWAY_TRY_ASSIGN(double v, read_number(at));
  return std::optional(v);
}

base::Result<NodeAnalysis> node_from(const JsonAt& at) {
  CUTAWAY_TRY_ASSIGN(JsonFields f, JsonFields::open(at));
  NodeAnalysis n;
  const auto text = [&](std::string_view key, std::string& out) -> base::Status {
    CUTAWAY_TRY_ASSIGN(JsonAt field, f.required(key));
    CUTAWAY_TRY_ASSIGN(out, field.string());
    return {};
  };
  CUTAWAY_TRY(text("node", n.node));
  CUTAWAY_TRY(text("op", n.op));
  CUTAWAY_TRY(text("verdict", n.verdict));
  CUTAWAY_TRY(text("source", n.source));
  CUTAWAY_TRY(text("reason", n.reason));
  CUTAWAY_TRY(text("kernel", n.kernel));
  CUTAWAY_TRY_ASSIGN(JsonAt local, f.required("local_error"));
  CUTAWAY_TRY_ASSIGN(n.local_error, read_number_or_null(local));
  CUTAWAY_TRY_ASSIGN(JsonAt cumulative, f.required("cumulative_error"));
  CUTAWAY_TRY_ASSIGN(n.cumulative_error, read_number_or_null(cumulative));
  CUTAWAY_TRY(f.finish());
  return n;
}

}  // namespace

Json analysis_to_json(const Analysis& a) {
  Json::Array nodes, remarks;
  for (const NodeAnalysis& n : a.nodes) {
    Json row;
    row["node"] = Json(n.node);
    row["op"] = Json(n.op);
    row["local_error"] = number_or_null(n.local_error);
    row["cumulative_error"] = number_or_null(n.cumulative_error);
    row["verdict"] = Json(n.verdict);
    row["source"] = Json(n.source);
    row["reason"] = Json(n.reason);
    row["kernel"] = Json(n.kernel);
    nodes.push_back(std::move(row));
  }
  for (const std::string& r : a.remarks) remarks.push_back(r);
  return Json::Object{{"version", Json(kVersion)}, {"nodes", std::move(nodes)}, {"first_wrong", Json(a.first_wrong)}, {"together_with", Json(a.together_with)},
                      {"eager_repeated", kRepeats[static_cast<size_t>(a.eager)]}, {"backend_repeated", kRepeats[static_cast<size_t>(a.backend)]}, {"looks", Json(a.looks)},
                      {"bad_looks", Json(a.bad_looks)}, {"pieces", Json(a.pieces)}, {"compiled", Json(a.compiled)}, {"kernels", Json(a.kernels)}, {"distinct_kernels", Json(a.distinct_kernels)}, {"materialised", Json(a.materialised)}, {"error", Json(a.error)},
                      {"remarks", std::move(remarks)}};
}

std::string shown_verdict(const Analysis& a, size_t i) {
  const std::string& verdict = a.nodes[i].verdict;
  if (static_cast<int64_t>(i) != a.first_wrong) return verdict;
  if (a.together_with >= 0) return "WRONG (first), with %" + a.nodes[static_cast<size_t>(a.together_with)].node;
  return verdict == "wrong" ? "WRONG (first)" : "WRONG (first), " + verdict;
}

Json analysis_rows(const Analysis& a) {
  Json::Array rows;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const NodeAnalysis& n = a.nodes[i];
    Json row;
    row["node"] = Json(n.node);
    row["op"] = Json(n.op);
    row["local_error"] = number_or_null(n.local_error);
    row["cumulative_error"] = number_or_null(n.cumulative_error);
    row["verdict"] = Json(shown_verdict(a, i));
    row["source"] = Json(n.source);
    rows.push_back(std::move(row));
  }
  return rows;
}

base::Result<Analysis> analysis_from_json(const Json& j, std::string_view place) {
  CUTAWAY_TRY_ASSIGN(JsonFields f, JsonFields::open(JsonAt(j, place)));
  CUTAWAY_TRY_ASSIGN(JsonAt version, f.required("version"));
  CUTAWAY_TRY(version.integer(kVersion, kVersion));
  Analysis a;
  CUTAWAY_TRY_ASSIGN(JsonAt nodes, f.required("nodes"));
  CUTAWAY_TRY_ASSIGN(std::vector<JsonAt> rows, nodes.array());
  for (const JsonAt& row : rows) {
    CUTAWAY_TRY_ASSIGN(NodeAnalysis n, node_from(row));
    a.nodes.push_back(std::move(n));
  }
  const int64_t last = static_cast<int64_t>(a.nodes.size()) - 1;
  const auto integer = [&](std::string_view key, int64_t& out, int64_t least, int64_t most) -> base::Status {
    CUTAWAY_TRY_ASSIGN(JsonAt field, f.required(key));
    CUTAWAY_TRY_ASSIGN(out, field.integer(least, most));
    return {};
  };
  CUTAWAY_TRY(integer("first_wrong", a.first_wrong, -1, last));
  CUTAWAY_TRY(integer("together_with", a.together_with, -1, last));
  CUTAWAY_TRY(integer("looks", a.looks, 0, INT64_MAX));
  CUTAWAY_TRY(integer("bad_looks", a.bad_looks, 0, INT64_MAX));
  CUTAWAY_TRY(integer("pieces", a.pieces, 0, INT64_MAX));
  CUTAWAY_TRY(integer("compiled", a.compiled, 0, INT64_MAX));
  CUTAWAY_TRY(integer("kernels", a.kernels, -1, INT64_MAX));
  CUTAWAY_TRY(integer("distinct_kernels", a.distinct_kernels, -1, INT64_MAX));
  CUTAWAY_TRY(integer("materialised", a.materialised, -1, INT64_MAX));
  const auto repeat = [&](std::string_view key, Analysis::Repeat& out) -> base::Status {
    CUTAWAY_TRY_ASSIGN(JsonAt field, f.required(key));
    CUTAWAY_TRY_ASSIGN(std::string word, field.one_of(kRepeats));
    for (size_t i = 0; i < kRepeats.size(); ++i)
      if (word == kRepeats[i]) out = static_cast<Analysis::Repeat>(i);
    return {};
  };
  CUTAWAY_TRY(repeat("eager_repeated", a.eager));
  CUTAWAY_TRY(repeat("backend_repeated", a.backend));
  CUTAWAY_TRY_ASSIGN(JsonAt error, f.required("error"));
  CUTAWAY_TRY_ASSIGN(a.error, read_number(error));
  CUTAWAY_TRY_ASSIGN(JsonAt remarks, f.required("remarks"));
  CUTAWAY_TRY_ASSIGN(std::vector<JsonAt> lines, remarks.array());
  for (const JsonAt& line : lines) {
    CUTAWAY_TRY_ASSIGN(std::string text, line.string());
    a.remarks.push_back(std::move(text));
  }
  CUTAWAY_TRY(f.finish());
  return a;
}

}  // namespace cutaway::oracle
