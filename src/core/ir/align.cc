#include "core/ir/align.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace cutaway::ir {
namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;
using Sequence = std::span<const uint32_t>;

constexpr int kMaxEdits = 1000;   // the trace of the search takes kMaxEdits² numbers, its time kMaxEdits times the length

// Greedy search by the number of edits d: v[k] is how far along a the furthest path on the diagonal k = i - j gets. Each round's
// v is kept, and the way is read back from them.
std::optional<Pairs> shortest_edit(Sequence a, Sequence b) {
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
  const int max = std::min(n + m, kMaxEdits);
  std::vector<std::vector<int>> trace;
  std::vector<int> v(2 * static_cast<size_t>(max) + 3, 0);
  const int zero = max + 1;
  for (int d = 0; d <= max; ++d) {
    bool found = false;
    for (int k = -d; k <= d && !found; k += 2) {
      int i = k == -d || (k != d && v[zero + k - 1] < v[zero + k + 1]) ? v[zero + k + 1] : v[zero + k - 1] + 1;
      while (i < n && i - k < m && i - k >= 0 && a[i] == b[i - k]) ++i;
      v[zero + k] = i;
      found = i >= n && i - k >= m;
    }
    trace.emplace_back(v.begin() + zero - d, v.begin() + zero + d + 1);
    if (!found) continue;
    Pairs pairs;
    int i = n, j = m;
    for (int e = d; e >= 0 && (i > 0 || j > 0); --e) {
      const int k = i - j;
      int from_i = 0, from_j = 0;
      if (e > 0) {
        const std::vector<int>& before = trace[e - 1];   // diagonals -(e-1) .. e-1
        const auto at = [&](int diagonal) { return before[diagonal + e - 1]; };
        const bool down = k == -e || (k != e && (k - 1 < -(e - 1) || (k + 1 <= e - 1 && at(k - 1) < at(k + 1))));
        const int from_k = down ? k + 1 : k - 1;
        from_i = at(from_k);
        from_j = from_i - from_k;
      }
      // The snake follows the edit; before the first edit there is only the snake.
      const int snake_i = e == 0 ? 0 : from_i + (from_i - from_j > k ? 0 : 1);
      while (i > snake_i) {
        --i;
        --j;
        pairs.emplace_back(i, j);
      }
      i = from_i;
      j = from_j;
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }
  return std::nullopt;
}

// Elements that occur once in each, in the longest order that both agree on.
Pairs unique_anchors(Sequence a, Sequence b) {
  struct Count { size_t in_a = 0, in_b = 0, at_a = 0, at_b = 0; };
  std::unordered_map<uint32_t, Count> counts;
  for (size_t i = 0; i < a.size(); ++i) { Count& c = counts[a[i]]; ++c.in_a; c.at_a = i; }
  for (size_t j = 0; j < b.size(); ++j) { Count& c = counts[b[j]]; ++c.in_b; c.at_b = j; }
  Pairs candidates;
  for (size_t i = 0; i < a.size(); ++i)
    if (const Count& c = counts[a[i]]; c.in_a == 1 && c.in_b == 1) candidates.emplace_back(i, c.at_b);
  // Longest increasing subsequence of the second members.
  std::vector<size_t> tails, previous(candidates.size());
  for (size_t c = 0; c < candidates.size(); ++c) {
    const auto it = std::lower_bound(tails.begin(), tails.end(), c, [&](size_t x, size_t y) { return candidates[x].second < candidates[y].second; });
    previous[c] = it == tails.begin() ? c : *(it - 1);
    if (it == tails.end()) tails.push_back(c);
    else *it = c;
  }
  Pairs anchors;
  if (!tails.empty())
    for (size_t c = tails.back();; c = previous[c]) {
      anchors.push_back(candidates[c]);
      if (previous[c] == c) break;
    }
  std::reverse(anchors.begin(), anchors.end());
  return anchors;
}

void align_into(Sequence a, Sequence b, size_t base_a, size_t base_b, bool may_anchor, Pairs& out) {
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) {
    out.emplace_back(base_a + head, base_b + head);
    ++head;
  }
  size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const Sequence mid_a = a.subspan(head, a.size() - head - tail), mid_b = b.subspan(head, b.size() - head - tail);
  if (!mid_a.empty() && !mid_b.empty()) {
    if (std::optional<Pairs> pairs = shortest_edit(mid_a, mid_b)) {
      for (auto [i, j] : *pairs) out.emplace_back(base_a + head + i, base_b + head + j);
    } else if (may_anchor) {
      size_t i = 0, j = 0;
      const auto gap = [&](size_t to_i, size_t to_j) { align_into(mid_a.subspan(i, to_i - i), mid_b.subspan(j, to_j - j), base_a + head + i, base_b + head + j, false, out); };
      for (auto [x, y] : unique_anchors(mid_a, mid_b)) {
        gap(x, y);
        out.emplace_back(base_a + head + x, base_b + head + y);
        i = x + 1;
        j = y + 1;
      }
      gap(mid_a.size(), mid_b.size());
    }
  }
  for (size_t t = tail; t-- > 0;) out.emplace_back(base_a + a.size() - 1 - t, base_b + b.size() - 1 - t);
}

}  // namespace

std::vector<std::pair<size_t, size_t>> align(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  Pairs pairs;
  align_into(a, b, 0, 0, true, pairs);
  return pairs;
}

}  // namespace cutaway::ir
