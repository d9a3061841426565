// Operators that are more than a kernel: cutaway::cond, cutaway::while_loop and cutaway::scan run programs that are known by name, cutaway::call_named calls a function
// of another language. They are made of other operators, so gradients flow through whatever runs.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/exec/interpreter.h"

namespace cutaway::exec {

/// Held for ever, like the callables that graphs name. Gives the name that operators have for it: text, so that no recording at several sizes takes it for a
/// number that depends on them. The program's outputs are tensors.
std::string keep_program(Program);

/// What cutaway::call_named calls: a name and tensors, and tensors back. Set once, where the language is linked.
using NamedCall = std::vector<at::Tensor> (*)(std::string_view name, at::TensorList);
void set_named_call(NamedCall);

/// While it lives, these operators give the tensors instead of running anything: what a trace knows of their results.
class GivenResults {
 public:
  explicit GivenResults(std::vector<at::Tensor>);
  ~GivenResults();
  GivenResults(const GivenResults&) = delete;
  GivenResults& operator=(const GivenResults&) = delete;
};

}  // namespace cutaway::exec
