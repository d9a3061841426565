// Control flow by operators: cutaway::cond and cutaway::while_loop run programs that are known by name. They are made of other operators, so
// gradients flow through whichever branch runs.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/exec/interpreter.h"

namespace cutaway::exec {

/// Held for ever, like the callables that graphs name. Gives the name that operators have for it: text, so that no recording at several sizes takes it for a
/// number that depends on them. The program's outputs are tensors.
std::string keep_program(Program);

/// While it lives, these operators give the tensors instead of running anything: what a trace knows of their results.
class GivenResults {
 public:
  explicit GivenResults(std::vector<at::Tensor>);
  ~GivenResults();
  GivenResults(const GivenResults&) = delete;
  GivenResults& operator=(const GivenResults&) = delete;
};

}  // namespace cutaway::exec
