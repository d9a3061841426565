// Floating-point numbers of the program's that change between calls: which of a recording's numbers follow from which others. A tracer reports
// every computation with floats and every question about them, in order; over several recordings these become expressions and guards.
// A number is known by what it was in all recordings, bit by bit: the numbers that recordings are made at have full mantissas.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/type.h"

namespace cutaway::symbolic {

/// An int or a float of Python.
struct Number {
  bool is_float = false;
  int64_t integer = 0;
  double floating = 0;
  static Number of(int64_t i) { return {false, i, 0}; }
  static Number of(double d) { return {true, 0, d}; }
  bool same_as(const Number&) const;   ///< to the last bit
  std::string text() const;
};

/// A computation that gives a float, or a question whose answer decided the program's way. Python's own meaning, errors excluded: what makes
/// Python raise is asked about before.
struct NumberStep {
  enum class Kind : uint8_t { add, sub, mul, truediv, floordiv, mod, pow, min, max, neg, abs, to_float, sqrt, exp, log, sin, cos, tanh, equal, not_equal, less, less_equal, same };
  Kind kind = Kind::add;
  Number left, right;       ///< of one operand: the left one
  double result = 0;        ///< of a computation
  bool holds = true;        ///< of a question
  std::string where;
  bool is_question() const { return kind >= Kind::equal; }
};
/// None where Python raises: a division by zero, a root of a negative number, an overflow of exp or pow.
std::optional<double> compute_number(NumberStep::Kind, const Number& left, const Number& right);
bool answer(NumberStep::Kind, const Number& left, const Number& right);
bool has_one_operand(NumberStep::Kind);

/// Where a number comes from.
struct NumberTerm {
  enum class From : uint8_t { constant, integer, symbol, step };
  From from = From::constant;
  Number constant;
  ir::Dim integer;          ///< over the symbols of sizes
  size_t index = 0;         ///< of a symbol or of a step
};
/// Everything that is known of the numbers of one program. Steps refer to earlier ones.
struct NumberProgram {
  struct Step { NumberStep::Kind kind; NumberTerm left, right; };
  struct Question { Step asked; bool holds = true; std::string because; };
  std::vector<Step> steps;
  std::vector<Question> guards;             ///< all must have these answers
  std::vector<NumberTerm> kept;             ///< the recordings' `kept` numbers
  /// "lr*0.5", with the names of the symbols.
  std::string text(const NumberTerm&, const std::vector<std::string>& symbols) const;
  std::string text(const Question&, const std::vector<std::string>& symbols) const;
};

/// Made from what several recordings reported.
class NumberTable {
 public:
  using Bits = std::vector<uint64_t>;
  /// `explain` gives the expression of an integer, by what it was in each recording.
  using Explain = std::function<std::optional<ir::Dim>(const std::vector<int64_t>&)>;
  explicit NumberTable(Explain explain) : explain_(std::move(explain)) {}

  /// values[k]: what symbol `index` was in recording k.
  void add_symbol(size_t index, const std::vector<double>& values);
  /// steps[k]: the steps of recording k. Fails where recordings went other ways, or computed with a number that nothing explains.
  base::Status add_steps(const std::vector<const std::vector<NumberStep>*>& steps);
  /// The term of a number that was values[k] in recording k; none where nothing explains it.
  std::optional<NumberTerm> find(const std::vector<double>& values) const;
  NumberProgram& program() { return program_; }

 private:
  std::optional<NumberTerm> operand(const std::vector<Number>&);
  Explain explain_;
  std::map<Bits, NumberTerm> known_;
  NumberProgram program_;
};

}  // namespace cutaway::symbolic
