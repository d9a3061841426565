// What an instruction takes from the stack and puts on it when it runs on its own, outside of its code.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/bytecode/code.h"

namespace cutaway::bytecode {

struct StackUse {
  int popped = 0;
  int pushed = 0;              ///< when it does not jump; -1: it never goes on there
  int pushed_on_jump = -1;     ///< -1: it does not jump
  bool with_null = false;      ///< pushes a NULL too (kNullOnTop says where), which is not counted in `pushed`
};
/// What an instruction does with the value that a function gives to it, called in its place: LOAD_ATTR by a property, STORE_ATTR by __setattr__.
/// Its operands are gone by then.
struct AnswerUse {
  enum class What : uint8_t {
    push, drop, invert,
    truth,                     ///< pushes True or False
    end_loop,                  ///< pushes it, or, when it is end_marker(), drops it and the iterator and jumps
    jump_if_true, jump_if_false,   ///< by its truth, to `other` with what lies below, else without that to `target`
    send,                      ///< pushes it and None
  } what = What::push;
  int target = -1;             ///< index of the instruction to go on at: the next one, or itself, with a truth value or a generator in the place of its operand
  bool with_null = false;      ///< pushes a NULL too
  int other = -1;              ///< where a jump leads
};
/// Nothing for instructions that call nothing, or that do more behind it. A generator that goes on is a new one: FOR_ITER and SEND then ask that.
std::optional<AnswerUse> answer_use(const Instruction&, int index, bool of_generator);
/// How many operands an instruction has on the stack, at the top, while what it calls runs, and which the frame behind a break is not given.
int operands_while_calling(const Instruction&, bool of_generator);
/// What stands for the end of an iterator. Borrowed.
PyObject* end_marker();

/// Nothing for instructions that make no sense alone (those of except blocks, generators, class bodies).
std::optional<StackUse> stack_use(const Instruction&);

}  // namespace cutaway::bytecode
