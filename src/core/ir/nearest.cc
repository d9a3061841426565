#include "core/ir/nearest.h"

#include <algorithm>

namespace cutaway::ir {
namespace {

// Edit distance with transpositions, given up once it exceeds `limit`.
size_t distance(std::string_view a, std::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    size_t best = row[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before_last[j - 2] + 1);
      best = std::min(best, row[j]);
    }
    if (best > limit) return limit + 1;
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix) {
  // A hostile word must not cost its length times everything known, and a guess far away helps nobody.
  if (word.empty() || word.size() > 64) return {};
  size_t best = word.size() <= 3 ? 1 : word.size() <= 6 ? 2 : 3;
  std::string_view found;
  for (std::string_view k : known)
    if (const size_t d = distance(word, k, best); d <= best && d < word.size() && (found.empty() || d < best)) {
      best = d;
      found = k;
    }
  if (found.empty()) return {};
  return "; did you mean \"" + std::string(prefix) + std::string(found) + "\"?";
}

}  // namespace cutaway::ir
