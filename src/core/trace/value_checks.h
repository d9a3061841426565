// Operators that look at the values of a tensor only to raise an error when they are not what they must be (quantile: all of q between 0
// and 1). The answer is not guessed: recorded above autograd the operator itself asks again when the graph runs, and below
// autograd the question is written into the graph as an assertion. Main type: ValueChecks.
#pragma once
#include <ATen/core/stack.h>

#include <string_view>

#include "core/trace/fakes/operator_info.h"

namespace cutaway::trace {

/// The name itself, kept for ever, when all questions about values that the operator asks are of the form "raise unless this holds"; else
/// empty. By the name in the dispatcher.
std::string_view checking_operator(std::string_view full_name);

/// While one lives on this thread, the program is inside such an operator. Nests.
class ValueChecks {
 public:
  explicit ValueChecks(std::string_view checking_operator);
  ~ValueChecks();
  ValueChecks(const ValueChecks&) = delete;
  ValueChecks& operator=(const ValueChecks&) = delete;
  /// The operator that asks; empty outside.
  static std::string_view asking();
  /// Whether this call is how torch's composite operators ask: equal(condition, true), both booleans without dimensions.
  static bool is_question(const OperatorInfo&, const torch::jit::Stack&);
  /// Whether it is how the backward of a complex svd or eig asks that the loss does not depend on the phases of the vectors, and raises if it does.
  static bool is_check_of_backward(const OperatorInfo&);

 private:
  std::string_view before_;
};

}  // namespace cutaway::trace
