#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "core/ir/align.h"
#include "core/ir/diff.h"

namespace cutaway::ir {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t n = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, n));   // with its newline: a missing last one is a difference
    text.remove_prefix(n);
  }
  return lines;
}

struct Line {
  char mark;   // ' ', '-', '+'
  std::string_view text;
  size_t a, b;   // how many lines of each side stand before it
};

void write_range(std::string& out, size_t before, size_t count) {
  out += std::to_string(count == 0 ? before : before + 1);
  if (count != 1) out += "," + std::to_string(count);
}

}  // namespace

std::string unified_diff(std::string_view a, std::string_view b, std::string_view a_name, std::string_view b_name, int context) {
  if (a == b) return {};
  const std::vector<std::string_view> lines_a = split_lines(a), lines_b = split_lines(b);
  std::unordered_map<std::string_view, uint32_t> ids;
  const auto number = [&](const std::vector<std::string_view>& lines) {
    std::vector<uint32_t> out;
    for (std::string_view l : lines) out.push_back(ids.emplace(l, static_cast<uint32_t>(ids.size())).first->second);
    return out;
  };
  const std::vector<uint32_t> ids_a = number(lines_a), ids_b = number(lines_b);

  std::vector<Line> script;
  size_t i = 0, j = 0;
  const auto change_until = [&](size_t to_i, size_t to_j) {
    for (; i < to_i; ++i) script.push_back({'-', lines_a[i], i, j});
    for (; j < to_j; ++j) script.push_back({'+', lines_b[j], i, j});
  };
  for (auto [x, y] : align(ids_a, ids_b)) {
    change_until(x, y);
    script.push_back({' ', lines_a[x], i, j});
    ++i;
    ++j;
  }
  change_until(lines_a.size(), lines_b.size());

  std::string out = "--- " + std::string(a_name) + "\n+++ " + std::string(b_name) + "\n";
  const size_t around = static_cast<size_t>(std::max(context, 0));
  for (size_t at = 0; at < script.size();) {
    if (script[at].mark == ' ') {
      ++at;
      continue;
    }
    // A hunk goes on while the next change is near enough for its context to touch.
    const size_t first = at > around ? at - around : 0;
    size_t last_change = at, end = at;
    for (; end < script.size() && end <= last_change + 2 * around + (around == 0); ++end)
      if (script[end].mark != ' ') last_change = end;
    end = std::min(script.size(), last_change + around + 1);
    size_t count_a = 0, count_b = 0;
    for (size_t k = first; k < end; ++k) {
      count_a += script[k].mark != '+';
      count_b += script[k].mark != '-';
    }
    out += "@@ -";
    write_range(out, script[first].a, count_a);
    out += " +";
    write_range(out, script[first].b, count_b);
    out += " @@\n";
    for (size_t k = first; k < end; ++k) {
      out += script[k].mark;
      out += script[k].text;
      if (!script[k].text.ends_with('\n')) out += "\n\\ No newline at end of file\n";
    }
    at = end;
  }
  return out;
}

}  // namespace cutaway::ir
