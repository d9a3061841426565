#include "core/symbolic/guard.h"

#include <algorithm>

namespace cutaway::symbolic {

std::string Guard::text() const {
  constexpr const char* words[] = {" == ", " != ", " < ", " <= "};
  return left.text() + words[static_cast<size_t>(kind)] + right.text();
}

std::optional<GuardTest> GuardTest::make(const Guard& g, std::span<const std::string> names) {
  auto left = Expression::make(g.left, names), right = Expression::make(g.right, names);
  if (!left || !right) return std::nullopt;
  GuardTest test;
  test.kind_ = g.kind;
  test.left_ = std::move(*left);
  test.right_ = std::move(*right);
  return test;
}

std::optional<GuardTest::Sides> GuardTest::sides(std::span<const int64_t> numbers) const {
  const auto left = left_.at(numbers), right = right_.at(numbers);
  if (!left || !right) return std::nullopt;
  return Sides{*left, *right};
}

bool GuardTest::holds(const Sides& s) const {
  switch (kind_) {
    case Condition::Kind::equal: return s.left == s.right;
    case Condition::Kind::not_equal: return s.left != s.right;
    case Condition::Kind::less: return s.left < s.right;
    case Condition::Kind::less_equal: return s.left <= s.right;
  }
  return false;
}

bool GuardTest::holds(std::span<const int64_t> numbers) const {
  const auto s = sides(numbers);
  return s && holds(*s);
}

base::Result<std::vector<GuardTest>> make_tests(std::span<const Guard> guards, std::span<const std::string> names) {
  std::vector<GuardTest> tests;
  for (const Guard& g : guards) {
    auto test = GuardTest::make(g, names);
    if (!test) return base::Error{.what = "the guard " + g.text() + " names a symbol that has no value"};
    tests.push_back(std::move(*test));
  }
  return tests;
}

bool all_hold(std::span<const GuardTest> tests, std::span<const int64_t> numbers) {
  return std::ranges::all_of(tests, [&](const GuardTest& t) { return t.holds(numbers); });
}

}  // namespace cutaway::symbolic
