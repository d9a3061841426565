#include <cstdint>

#include "core/ir/diff.h"

#include <doctest/doctest.h>

#include "core/ir/align.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "tests/support/random_graph.h"

namespace diff_test {

using namespace cutaway;
using testing::RandomGraph;

namespace {
// Longest common subsequence by the table: slow and plainly right.
size_t longest_common(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<std::vector<size_t>> t(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) t[i + 1][j + 1] = a[i] == b[j] ? t[i][j] + 1 : std::max(t[i][j + 1], t[i + 1][j]);
  return t[a.size()][b.size()];
}
void require_alignment(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, const std::vector<std::pair<size_t, size_t>>& pairs) {
  for (size_t k = 0; k < pairs.size(); ++k) {
    REQUIRE(a.at(pairs[k].first) == b.at(pairs[k].second));
    if (k) REQUIRE((pairs[k - 1].first < pairs[k].first && pairs[k - 1].second < pairs[k].second));
  }
}
// What `patch` does with a unified diff; context lines must agree.
std::string patched(const std::string& a, const std::string& diff) {
  if (diff.empty()) return a;
  const auto lines = [](const std::string& s) {
    std::vector<std::string> out;
    for (size_t i = 0; i < s.size();) {
      const size_t end = std::min(s.find('\n', i), s.size() - 1);
      out.push_back(s.substr(i, end + 1 - i));
      i = end + 1;
    }
    return out;
  };
  const std::vector<std::string> from = lines(a), script = lines(diff);
  std::string out;
  size_t at = 0;
  for (size_t k = 2; k < script.size(); ++k) {
    const std::string& l = script[k];
    if (l[0] == '@') {
      size_t start = std::stoul(l.substr(4));
      const size_t comma = l.find_first_of(", ", 4);
      const bool empty = l[comma] == ',' && l[comma + 1] == '0';
      if (!empty) --start;
      while (at < start) out += from.at(at++);
      continue;
    }
    std::string text = l.substr(1);
    if (k + 1 < script.size() && script[k + 1][0] == '\\') text.pop_back();
    if (l[0] == '\\') continue;
    if (l[0] != '+') REQUIRE(from.at(at++) == text);
    if (l[0] != '-') out += text;
  }
  while (at < from.size()) out += from[at++];
  return out;
}
}  // namespace

TEST_CASE("alignments are longest common subsequences") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint32_t> a, b;
    for (size_t i = 0, n = random() % 14; i < n; ++i) a.push_back(random() % 4);
    for (size_t i = 0, n = random() % 14; i < n; ++i) b.push_back(random() % 4);
    const auto pairs = ir::align(a, b);
    require_alignment(a, b, pairs);
    REQUIRE(pairs.size() == longest_common(a, b));
  }
}

TEST_CASE("two long sequences with little in common are aligned by what is unique, in time") {
  std::vector<uint32_t> a, b;
  for (uint32_t i = 0; i < 30000; ++i) {
    a.push_back(i % 10 == 0 ? i : 1000000 + i);
    b.push_back(i % 10 == 0 ? i : 2000000 + i);
  }
  const auto pairs = ir::align(a, b);
  require_alignment(a, b, pairs);
  CHECK(pairs.size() == 3000);
}

TEST_CASE("a unified diff turns one text into the other") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string a, b;
    const auto text = [&](std::string& s) {
      for (size_t i = 0, n = random() % 30; i < n; ++i) s += std::string(1, static_cast<char>('a' + random() % 3)) + "\n";
      if (random() % 4 == 0) s += "no newline";
    };
    text(a);
    if (random() % 2) text(b);
    else for (char c : a) if (random() % 12) b += c;
    CAPTURE(a);
    CAPTURE(b);
    REQUIRE(patched(a, ir::unified_diff(a, b, "a", "b", static_cast<int>(random() % 4))) == b);
  }
  CHECK(ir::unified_diff("x\n", "x\n", "a", "b").empty());
  CHECK(ir::unified_diff("1\n2\n3\n", "1\n4\n3\n", "old", "new", 1) == "--- old\n+++ new\n@@ -1,3 +1,3 @@\n 1\n-2\n+4\n 3\n");
}

TEST_CASE("graphs that mean the same have no differences, others have some") {
  std::vector<ir::Graph> graphs;
  for (uint64_t seed = 0; seed < 60; ++seed) graphs.push_back(RandomGraph(seed, {.nodes = 6}).make());
  for (size_t i = 0; i < graphs.size(); ++i) {
    ir::Graph renamed = graphs[i];
    ir::renumber(renamed, ir::Names::canonical);
    REQUIRE(ir::diff(graphs[i], renamed).empty());
    ir::Graph& other = graphs[(i * 7 + 1) % graphs.size()];
    other.name = graphs[i].name;
    REQUIRE(ir::diff(graphs[i], other).empty() == (ir::digest(graphs[i]) == ir::digest(other)));
    // One node less, or one operand changed, is seen as just that.
    for (size_t k = 0; k < graphs[i].body.nodes.size(); ++k) {
      ir::Graph p = ir::prefix(graphs[i], k);
      REQUIRE(ir::diff(graphs[i], p).empty() == (ir::digest(graphs[i]) == ir::digest(p)));
    }
  }
}

}  // namespace diff_test
