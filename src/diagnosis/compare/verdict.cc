#include "diagnosis/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/json.h"
#include "diagnosis/compare/wording.h"

namespace cutaway::compare {

std::string_view outcome_name(Outcome o) {
  switch (o) {
    case Outcome::equal: return "equal";
    case Outcome::last_bit: return "last-bit";
    case Outcome::within_tolerance: return "within tolerance";
    case Outcome::closer_to_fp64: return "closer to fp64";
    case Outcome::ill_conditioned: return "ill-conditioned";
    case Outcome::drawn_otherwise: return "drawn in another order";
    case Outcome::ignored: return "ignored";
    case Outcome::nondeterministic: return "nondeterministic";
    case Outcome::wrong: return "wrong";
    case Outcome::raised: return "raised";
    case Outcome::refused: return "refused";
  }
  return "?";
}

std::string_view aspect_name(Aspect a) {
  switch (a) {
    case Aspect::values: return "values";
    case Aspect::gradients: return "gradients";
    case Aspect::inputs: return "inputs";
    case Aspect::structure: return "structure";
    case Aspect::dtype: return "dtype";
    case Aspect::device: return "device";
    case Aspect::layout: return "layout";
    case Aspect::shape: return "shape";
    case Aspect::strides: return "strides";
    case Aspect::aliasing: return "aliasing";
    case Aspect::history: return "history";
  }
  return "?";
}

namespace {

constexpr size_t kShownParts = 10;

void write_stats(const TensorStats& s, std::string& out) {
  out += "\n   tensor: " + s.dtype + " " + index_text(s.sizes) + ", " + count_text(s.unequal) + " of " + count_text(s.elements) + " elements differ";
  if (s.unequal || s.not_close) {
    out += "\n   worst: " + (s.worst_index.empty() ? std::string() : "at " + index_text(s.worst_index) + " ") + "reference " + number_text(s.worst_reference) + ", result " + number_text(s.worst_result);
    out += "\n   largest difference: " + number_text(s.max_abs) + " absolute, " + number_text(s.max_rel) + " relative; cosine " + number_text(s.cosine);
  }
  if (!std::isnan(s.rmse_result) || !std::isnan(s.rmse_reference))
    out += "\n   RMSE to fp64: result " + number_text(s.rmse_result) + ", reference " + number_text(s.rmse_reference);
  if (s.nan_reference || s.nan_result) out += "\n   NaN: " + count_text(s.nan_reference) + " in the reference, " + count_text(s.nan_result) + " in the result";
  if (s.inf_reference || s.inf_result) out += "\n   Inf: " + count_text(s.inf_reference) + " in the reference, " + count_text(s.inf_result) + " in the result";
}

base::Json numbers(const std::vector<int64_t>& list) { return base::Json::Array(list.begin(), list.end()); }

// Fields stay in the order in which people read them.
std::string json_of(const Verdict& v) {
  base::JsonObjectText j;
  j.add("outcome", outcome_name(v.outcome)).add("same", is_same(v.outcome)).add("aspect", aspect_name(v.aspect)).add("path", v.path).add("reason", v.reason);
  if (v.stats) {
    const TensorStats& s = *v.stats;
    base::JsonObjectText stats;   // NaN and infinities are texts there
    stats.add("dtype", s.dtype).add("sizes", numbers(s.sizes)).add("elements", s.elements).add("unequal", s.unequal).add("not_close", s.not_close).add("max_abs", s.max_abs).add("max_rel", s.max_rel);
    stats.add("rmse_result", s.rmse_result).add("rmse_reference", s.rmse_reference).add("worst_index", numbers(s.worst_index)).add("worst_reference", s.worst_reference).add("worst_result", s.worst_result);
    stats.add("nan_reference", s.nan_reference).add("nan_result", s.nan_result).add("inf_reference", s.inf_reference).add("inf_result", s.inf_result).add("cosine", s.cosine);
    j.add_text("stats", stats.text());
  }
  j.add("leaves", v.leaves);
  if (!v.parts.empty()) {
    std::string parts;
    for (const Verdict& p : v.parts) parts += (parts.empty() ? "" : ",") + json_of(p);
    j.add_text("parts", "[" + parts + "]");
  }
  return j.text();
}

}  // namespace

std::string Verdict::text() const {
  std::string out(outcome_name(outcome));
  if (!path.empty()) out += ": " + path;
  if (leaves != 1) out += " (" + count_text(static_cast<int64_t>(parts.size())) + " of " + count_text(leaves) + " parts differ)";
  if (!reason.empty()) out += "\n   because: " + reason;
  if (stats) write_stats(*stats, out);
  // The first part is the one above.
  for (size_t i = 1; i < parts.size() && i < kShownParts; ++i)
    out += "\n   also: " + parts[i].path + " " + std::string(outcome_name(parts[i].outcome)) + ", " + parts[i].reason;
  if (parts.size() > kShownParts) out += "\n   also: " + count_text(static_cast<int64_t>(parts.size() - kShownParts)) + " more";
  return out;
}

std::string Verdict::to_json() const {
  // A path may hold any bytes that a Python string can; replacing is better than failing to report.
  return json_of(*this);
}

void Gathering::add(Verdict leaf) {
  ++leaves_;
  if (leaf.outcome != Outcome::equal) unequal_.push_back(std::move(leaf));
}

Verdict Gathering::finish(std::string root) && {
  Verdict whole;
  whole.path = std::move(root);
  if (!unequal_.empty()) {
    std::stable_sort(unequal_.begin(), unequal_.end(), [](const Verdict& x, const Verdict& y) { return x.outcome > y.outcome; });
    whole = unequal_.front();
    whole.parts = std::move(unequal_);
  } else {
    whole.reason = leaves_ == 1 ? "the two are equal" : "all " + count_text(leaves_) + " parts are equal";
  }
  whole.leaves = leaves_;
  return whole;
}

}  // namespace cutaway::compare
