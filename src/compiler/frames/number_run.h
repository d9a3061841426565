// What a plan knows of the program's changing numbers, made ready to be computed at every call: guards that they must pass, and numbers that
// follow from them. Numbers of sources come as 64-bit words: an int as it is, a float by its bits.
#pragma once
#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/frames/size_expression.h"
#include "core/symbolic/number_table.h"

namespace cutaway::frames {

class NumberRun {
 public:
  /// `names` are the symbols of sizes, by position in the words; float i stands at `floats[i]`. None where a symbol is not among the names.
  static std::optional<NumberRun> make(const symbolic::NumberProgram&, const std::vector<std::string>& names, std::vector<size_t> floats);
  /// Nothing can fail: no guard is needed.
  bool always_holds() const;
  bool holds(const std::vector<int64_t>& words) const;
  /// Number `index` of the program's kept ones; none where Python would raise.
  std::optional<symbolic::Number> kept(size_t index, const std::vector<int64_t>& words) const;

 private:
  struct Operand { symbolic::NumberTerm::From from; symbolic::Number constant; std::optional<SizeExpression> integer; size_t index = 0; };
  struct Step { symbolic::NumberStep::Kind kind; Operand left, right; };
  struct Question { Step asked; bool holds; };
  std::optional<symbolic::Number> value(const Operand&, const std::vector<int64_t>& words, const std::vector<symbolic::Number>& done) const;
  std::optional<std::vector<symbolic::Number>> run(const std::vector<int64_t>& words) const;
  std::vector<size_t> floats_;
  std::vector<Step> steps_;
  std::vector<Question> questions_;
  std::vector<Operand> kept_;
};

/// The word of an int or a float; none of another object, and of an int beyond 64 bits.
std::optional<int64_t> number_word(PyObject*);

}  // namespace cutaway::frames
