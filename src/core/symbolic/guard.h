// What a recorded program reports about integers (questions, computations), and what becomes of it: symbols and guards over them.
// Main types: Guard, and GuardTest, a guard made ready to be asked at every call.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/symbolic/expression.h"

namespace cutaway::symbolic {

/// A question about integers that the recorded program asked on its way, and that decided how it went on (`if x.shape[0] > 8`).
/// A tracer that sees such questions reports them; they become guards where the sizes decide them.
struct Condition {
  enum class Kind : uint8_t { equal, not_equal, less, less_equal };
  Kind kind = Kind::equal;
  int64_t left = 0, right = 0;
  bool holds = true;        ///< the answer
  std::string where;        ///< the user's line, for the guard's reason; may be empty
};

/// An integer that the recorded program computed from others. What fits the numbers of a few recordings proves little, so it is taken as
/// what it is.
struct Computation {
  enum class Kind : uint8_t { add, sub, mul, floor_div, mod, min, max };
  Kind kind = Kind::add;
  int64_t left = 0, right = 0, result = 0;
};

struct Symbol {
  std::string name;        ///< as in the text of sizes: letters, digits and '_'
  int64_t value = 0;       ///< the number for which the graph is wanted first
  int64_t min = 2, max = INT64_MAX;   ///< what the caller knows or wants. Less than 2: no size, but a number that may be 0, 1 or negative
};

/// left kind right, over the symbols.
struct Guard {
  Condition::Kind kind = Condition::Kind::equal;
  ir::Dim left, right;
  std::string because;
  /// "s0 <= 512", "mod(s0, 8) == 0".
  std::string text() const;
};

/// The one evaluator of guards. Symbols are slots (expression.h).
class GuardTest {
 public:
  /// None where the guard names a symbol that is not among the names.
  static std::optional<GuardTest> make(const Guard&, std::span<const std::string> names);
  /// The two sides; none where one cannot be computed.
  struct Sides { int64_t left = 0, right = 0; };
  std::optional<Sides> sides(std::span<const int64_t> numbers) const;
  /// What cannot be computed does not hold.
  bool holds(std::span<const int64_t> numbers) const;
  bool holds(const Sides&) const;

 private:
  Condition::Kind kind_ = Condition::Kind::equal;
  Expression left_, right_;
};
/// Of several; refuses a guard about a symbol that is not among the names.
base::Result<std::vector<GuardTest>> make_tests(std::span<const Guard>, std::span<const std::string> names);
bool all_hold(std::span<const GuardTest>, std::span<const int64_t> numbers);

}  // namespace cutaway::symbolic
