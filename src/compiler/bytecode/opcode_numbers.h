// The running CPython's numbers of the instructions, asked from its own `opcode` module: one build of the table serves every version.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/bytecode/opcodes.h"

namespace cutaway::bytecode {

enum class Direction : uint8_t { none, forward, backward };   ///< of a relative jump
struct OpcodeRow {
  Op op = Op::UNKNOWN;
  Direction jump = Direction::none;
  uint8_t caches = 0;          ///< code units behind the instruction
  bool takes_argument = false;
  bool left_out = false;       ///< CACHE, PRECALL, EXTENDED_ARG
  Op second = Op::UNKNOWN;     ///< of an instruction that is two (LOAD_FAST_LOAD_FAST): the other one. Each has four bits of the argument, the first the high ones
};
/// By CPython's number. Needs the GIL at the first call. Null when the interpreter's tables cannot be read.
const std::array<OpcodeRow, 256>* opcode_rows();
/// CPython's number of the instruction of that name, if this version has it.
std::optional<uint8_t> opcode_number(std::string_view name);

}  // namespace cutaway::bytecode
