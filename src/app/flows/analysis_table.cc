// The table of `cutaway analyze`: node, operator, errors, verdict, source.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/flows/analyze_flow.h"

namespace cutaway::flows {
namespace {

using oracle::Analysis;
using oracle::NodeAnalysis;
constexpr size_t kAround = 3;      // rows before and after one of interest
constexpr size_t kMostRows = 40;   // of interest; --all prints every one
constexpr size_t kWidest = 32;     // of a column

using Row = std::array<std::string, 6>;

std::string error_text(const std::optional<double>& v) {
  if (!v) return "-";
  char b[32];
  std::snprintf(b, sizeof b, "%.1e", *v);
  return *v == 0 ? "0" : b;
}

bool is_of_interest(const NodeAnalysis& n) {
  for (const char* verdict : {"wrong", "nondeterministic", "raises", "crashes", "hangs", "ill-conditioned", "closer to fp64"})
    if (n.verdict == verdict) return true;
  return false;
}

std::vector<size_t> choose(const Analysis& a, AnalyzeReport::Rows rows) {
  std::vector<bool> shown(a.nodes.size(), rows == AnalyzeReport::Rows::all);
  size_t count = 0;
  const auto show = [&](size_t i) {
    if (!shown[i]) ++count;
    shown[i] = true;
  };
  const auto around = [&](size_t i) {
    for (size_t k = i < kAround ? 0 : i - kAround; k < std::min(a.nodes.size(), i + kAround + 1); ++k) show(k);
  };
  if (rows == AnalyzeReport::Rows::of_interest) {
    if (a.first_wrong >= 0) around(static_cast<size_t>(a.first_wrong));
    if (a.together_with >= 0) show(static_cast<size_t>(a.together_with));
    for (size_t i = 0; i < a.nodes.size() && count < kMostRows; ++i)
      if (is_of_interest(a.nodes[i])) show(i);
    if (count == 0) {   // nothing wrong: the largest errors
      std::vector<size_t> order(a.nodes.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      const auto error = [&](size_t i) { return std::max(a.nodes[i].local_error.value_or(0), a.nodes[i].cumulative_error.value_or(0)); };
      std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return error(x) > error(y); });
      for (size_t k = 0; k < std::min<size_t>(order.size(), 2 * kAround); ++k)
        if (error(order[k]) > 0) show(order[k]);
    }
  }
  std::vector<size_t> chosen;
  for (size_t i = 0; i < shown.size(); ++i)
    if (shown[i]) chosen.push_back(i);
  return chosen;
}

}  // namespace

std::string analysis_table(const Analysis& a, AnalyzeReport::Rows rows) {
  const std::vector<size_t> chosen = choose(a, rows);
  if (chosen.empty()) return "";
  std::vector<Row> table = {{"node", "op", "local error", "cumulative", "verdict", "source"}};
  for (size_t i : chosen) {
    const NodeAnalysis& n = a.nodes[i];
    table.push_back({n.node.starts_with('#') ? n.node : "%" + n.node, n.op, error_text(n.local_error), error_text(n.cumulative_error), oracle::shown_verdict(a, i), n.source});
  }
  std::array<size_t, 6> width{};
  for (const Row& r : table)
    for (size_t c = 0; c < r.size(); ++c) width[c] = std::max(width[c], std::min(kWidest, r[c].size()));
  std::string out;
  const auto write = [&](const Row& r) {
    std::string line;
    for (size_t c = 0; c < r.size(); ++c) {
      const std::string pad(r[c].size() < width[c] ? width[c] - r[c].size() : 0, ' ');
      const bool is_number = c == 2 || c == 3;
      line += (c ? "   " : "") + (is_number ? pad + r[c] : r[c] + pad);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  write(table[0]);
  size_t next = 0;
  for (size_t k = 0; k < chosen.size(); ++k) {
    if (chosen[k] != next) out += "...\n";
    write(table[k + 1]);
    next = chosen[k] + 1;
  }
  if (next < a.nodes.size()) out += "...\n";
  return out;
}

}  // namespace cutaway::flows
