#include "compiler/bytecode/opcodes.h"

#include <iterator>

namespace cutaway::bytecode {
namespace {
constexpr std::string_view kNames[] = {
#define CUTAWAY_OPCODE_ROW(name) #name,
    CUTAWAY_OPCODES(CUTAWAY_OPCODE_ROW)
#undef CUTAWAY_OPCODE_ROW
};
}  // namespace

std::string_view op_name(Op op) { return kNames[static_cast<size_t>(op)]; }

}  // namespace cutaway::bytecode
