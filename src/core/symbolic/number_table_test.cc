#include "core/symbolic/number_table.h"

#include <doctest/doctest.h>

#include <cmath>

namespace number_table_test {

using namespace cutaway::symbolic;
using Kind = NumberStep::Kind;

namespace {

NumberStep computed(Kind kind, Number left, Number right) { return {kind, left, right, *compute_number(kind, left, right), true, {}}; }

/// What a program would report that is run at these numbers.
template <class Program> cutaway::base::Result<NumberProgram> over(const std::vector<double>& at, Program&& program) {
  std::vector<std::vector<NumberStep>> recordings;
  std::vector<const std::vector<NumberStep>*> all;
  for (const double x : at) recordings.push_back(program(x));
  for (const auto& r : recordings) all.push_back(&r);
  NumberTable table([](const std::vector<int64_t>&) { return std::nullopt; });
  table.add_symbol(0, at);
  CUTAWAY_TRY(table.add_steps(all));
  return table.program();
}
const std::vector<double> kAt = {0.25, 0.31830988618379067, 0.7071067811865476};

}  // namespace

TEST_CASE("computations with a changing number are steps, and what is computed twice is one") {
  const auto p = over(kAt, [](double x) {
    const auto twice = computed(Kind::mul, Number::of(x), Number::of(int64_t{2}));
    return std::vector<NumberStep>{twice, twice, computed(Kind::add, Number::of(twice.result), Number::of(1.0))};
  });
  REQUIRE(p.ok());
  CHECK(p->steps.size() == 2);
  CHECK(p->guards.empty());
  CHECK(p->text(NumberTerm{NumberTerm::From::step, {}, {}, 1}, {"lr"}) == "((lr*2) + 1)");
}

TEST_CASE("what the numbers alone cannot tell apart is guarded") {
  const auto zero = over(kAt, [](double x) { return std::vector<NumberStep>{computed(Kind::add, Number::of(x), Number::of(0.0))}; });
  REQUIRE(zero.ok());
  REQUIRE(zero->guards.size() == 1);   // -0.0 + 0.0 is 0.0
  CHECK(zero->text(zero->guards[0], {"lr"}) == "(lr + 0) is the same number as lr");
  const auto lost = over(kAt, [](double x) { return std::vector<NumberStep>{computed(Kind::mul, Number::of(x), Number::of(0.0))}; });
  REQUIRE(lost.ok());
  CHECK(lost->guards.size() == 1);     // inf * 0.0 is NaN
}

TEST_CASE("a question is a guard, and another answer is another program") {
  const auto asks = [](double than) { return [than](double x) { return std::vector<NumberStep>{{Kind::less, Number::of(x), Number::of(than), 0, x < than, "f.py:3"}}; }; };
  const auto same = over(kAt, asks(1.0));
  REQUIRE(same.ok());
  REQUIRE(same->guards.size() == 1);
  CHECK(same->text(same->guards[0], {"lr"}) == "lr < 1");
  CHECK_FALSE(over(kAt, asks(0.5)).ok());
}

TEST_CASE("a number that nothing explains is refused") {
  CHECK_FALSE(over(kAt, [](double x) { return std::vector<NumberStep>{computed(Kind::neg, Number::of(std::sinh(x)), {})}; }).ok());
}

TEST_CASE("numbers are computed as Python does") {
  CHECK_FALSE(compute_number(Kind::truediv, Number::of(1.0), Number::of(-0.0)));
  CHECK_FALSE(compute_number(Kind::exp, Number::of(1000.0), {}));
  CHECK_FALSE(compute_number(Kind::sqrt, Number::of(-1.0), {}));
  CHECK(*compute_number(Kind::floordiv, Number::of(-0.5), Number::of(0.3)) == -2.0);
  CHECK(Number::of(*compute_number(Kind::mod, Number::of(-0.6), Number::of(0.3))).same_as(Number::of(0.0)));
  CHECK(answer(Kind::less, Number::of(int64_t{9007199254740993}), Number::of(9007199254740994.0)));
  CHECK_FALSE(answer(Kind::equal, Number::of(int64_t{9007199254740993}), Number::of(9007199254740992.0)));
  CHECK_FALSE(answer(Kind::same, Number::of(0.0), Number::of(-0.0)));
}

}  // namespace number_table_test
