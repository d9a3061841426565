// What an instruction takes from the stack and puts on it when it runs on its own, outside of its code.
#pragma once
#include <optional>

#include "compiler/bytecode/code.h"

namespace cutaway::bytecode {

struct StackUse {
  int popped = 0;
  int pushed = 0;              ///< when it does not jump; -1: it never goes on there
  int pushed_on_jump = -1;     ///< -1: it does not jump
  bool null_below = false;     ///< pushes a NULL first, which is not counted in `pushed`
};
/// Nothing for instructions that make no sense alone (those of except blocks, generators, class bodies).
std::optional<StackUse> stack_use(const Instruction&);

}  // namespace cutaway::bytecode
