// What a plan knows of the program's changing numbers, made ready to be computed at every call: guards that they must pass, and numbers that
// follow from them. Numbers of sources come as 64-bit words: an int as it is, a float by its bits.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/symbolic/expression.h"
#include "core/symbolic/number_table.h"

namespace cutaway::symbolic {

class NumberRun {
 public:
  /// `names` are the symbols of sizes, by position in the words; float i stands at `floats[i]`. None where a symbol is not among the names.
  static std::optional<NumberRun> make(const NumberProgram&, const std::vector<std::string>& names, std::vector<size_t> floats);
  /// Nothing can fail: no guard is needed.
  bool always_holds() const;
  bool holds(std::span<const int64_t> words) const;
  /// Number `index` of the program's kept ones; none where Python would raise.
  std::optional<Number> kept(size_t index, std::span<const int64_t> words) const;

 private:
  struct Operand { NumberTerm::From from; Number constant; std::optional<Expression> integer; size_t index = 0; };
  struct Step { NumberStep::Kind kind; Operand left, right; };
  struct Question { Step asked; bool holds; };
  std::optional<Number> value(const Operand&, std::span<const int64_t> words, const std::vector<Number>& done) const;
  std::optional<std::vector<Number>> run(std::span<const int64_t> words) const;
  std::vector<size_t> floats_;
  std::vector<Step> steps_;
  std::vector<Question> questions_;
  std::vector<Operand> kept_;
};

}  // namespace cutaway::symbolic
