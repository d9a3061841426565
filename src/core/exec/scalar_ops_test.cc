#include "core/exec/scalar_ops.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

namespace cutaway::exec {
namespace {

using c10::IValue;

IValue apply(std::string_view name, std::vector<IValue> args) {
  const ScalarOp* op = find_scalar_op("sym." + std::string(name));
  REQUIRE(op);
  return op->run(args.data(), args.size());
}
constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();

TEST_CASE("sizes follow Python's arithmetic") {
  CHECK(apply("floordiv", {-7, 2}).toInt() == -4);
  CHECK(apply("mod", {-7, 2}).toInt() == 1);
  CHECK(apply("mod", {7, -2}).toInt() == -1);
  CHECK(apply("floordiv", {-7.0, 2}).toDouble() == -4.0);
  CHECK(apply("mod", {-7.5, 2}).toDouble() == 0.5);
  CHECK(apply("truediv", {7, 2}).toDouble() == 3.5);
  CHECK(apply("add", {true, 2}).toInt() == 3);
  CHECK(apply("add", {1, 0.5}).toDouble() == 1.5);
  CHECK(apply("pow", {2, 62}).toInt() == int64_t{1} << 62);
  CHECK(apply("pow", {2, -1}).toDouble() == 0.5);
  CHECK(apply("pow", {-3, 3}).toInt() == -27);
  CHECK(apply("max", {3, 2.5}).toDouble() == 3.0);
  CHECK(apply("min", {3, 2}).toInt() == 2);
  CHECK(apply("eq", {kMax, static_cast<double>(kMax)}).toBool() == false);   // 2^63 - 1 against 2^63
  CHECK(apply("ge", {3, 3}).toBool());
  CHECK(apply("int", {-2.7}).toInt() == -2);
  CHECK(apply("floor", {-2.7}).toInt() == -3);
  CHECK(apply("ceil", {2.1}).toInt() == 3);
  CHECK(apply("round", {2.5}).toInt() == 2);
  CHECK(apply("sqrt", {9}).toDouble() == 3.0);
  CHECK(apply("not", {0}).toBool());
  CHECK(apply("and", {true, false}).toBool() == false);
  CHECK(apply("and", {6, 3}).toInt() == 2);
  CHECK(apply("lshift", {-1, 62}).toInt() == -(int64_t{1} << 62));
  CHECK(apply("rshift", {-8, 70}).toInt() == -1);
  CHECK(apply("ite", {true, 1, 2}).toInt() == 1);
  CHECK(apply("sum", {c10::List<int64_t>({1, 2, 3})}).toInt() == 6);
}

TEST_CASE("what does not fit or is not defined raises") {
  CHECK_THROWS_AS(apply("add", {kMax, 1}), c10::ValueError);
  CHECK_THROWS_AS(apply("mul", {kMax, 2}), c10::ValueError);
  CHECK_THROWS_AS(apply("neg", {kMin}), c10::ValueError);
  CHECK_THROWS_AS(apply("floordiv", {kMin, -1}), c10::ValueError);
  CHECK_THROWS_AS(apply("floordiv", {1, 0}), c10::ValueError);
  CHECK_THROWS_AS(apply("mod", {1.0, 0}), c10::ValueError);
  CHECK_THROWS_AS(apply("pow", {10, 19}), c10::ValueError);
  CHECK_THROWS_AS(apply("int", {1e30}), c10::ValueError);
  CHECK_THROWS_AS(apply("lshift", {1, 63}), c10::ValueError);
  CHECK_THROWS_AS(apply("sqrt", {-1}), c10::ValueError);
  CHECK_THROWS_AS(apply("add", {"a", 1}), c10::TypeError);
  CHECK(find_scalar_op("sym.nothing") == nullptr);
  CHECK(find_scalar_op("aten.add") == nullptr);
}

}  // namespace
}  // namespace cutaway::exec
