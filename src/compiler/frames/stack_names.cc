#include "compiler/frames/stack_names.h"

#include <algorithm>
#include <optional>

#include "compiler/bytecode/stack_use.h"
#include "compiler/frames/code_state.h"

namespace cutaway::frames {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::Op;

struct Moves { int popped = 0, pushed = 0; };
std::optional<Moves> moves_of(const Instruction& i) {
  switch (i.op) {
    case Op::NOP: case Op::RESUME: return Moves{0, 0};
    case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK: case Op::LOAD_CONST: case Op::LOAD_CLOSURE: case Op::PUSH_NULL: return Moves{0, 1};
    case Op::STORE_FAST: return Moves{1, 0};
    default: break;
  }
  const auto use = bytecode::stack_use(i);
  if (!use || use->pushed < 0) return std::nullopt;
  return Moves{use->popped, use->pushed + (use->with_null ? 1 : 0)};
}

int line_at(const Code& code, int index) {
  for (int i = index; i >= 0; --i)
    if (const int line = code.instructions()[static_cast<size_t>(i)].line) return line;
  return code.object()->co_firstlineno;
}

bool is_entered_by_jump(const Code& code, int index) {
  const auto leads_there = [&](const auto& from) { return from.target == index; };
  return std::any_of(code.instructions().begin(), code.instructions().end(), leads_there) || std::any_of(code.handlers().begin(), code.handlers().end(), leads_there);
}

// Goes back to the instruction that pushed the entry, as long as there is one way only.
StackName name_of(const Code& code, int index, int height, int entry) {
  const auto unnamed = [&](int at) { return StackName{"the value under construction at line " + std::to_string(line_at(code, at)), false}; };
  for (int i = index - 1; i >= 0 && !is_entered_by_jump(code, i + 1); --i) {
    const Instruction& in = code.instructions()[static_cast<size_t>(i)];
    const auto moves = moves_of(in);
    if (!moves) break;
    const int before = height - moves->pushed + moves->popped;
    if (entry < before - moves->popped) {
      height = before;
      continue;
    }
    switch (in.op) {
      case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK: case Op::LOAD_DEREF: case Op::LOAD_CLOSURE: return {code.slot_name(in.arg), true};
      case Op::LOAD_GLOBAL: return {PyUnicode_AsUTF8(code.name(in.arg)), true};
      case Op::LOAD_ATTR: case Op::LOAD_METHOD:
        if (StackName owner = name_of(code, i, before, before - 1); owner.is_variable) return {owner.text + "." + PyUnicode_AsUTF8(code.name(in.arg)), true};
        return unnamed(i);
      case Op::FOR_ITER: {
        const std::string loop = " of the loop at line " + std::to_string(line_at(code, i));
        if (entry < before) return {"the iterator" + loop, false};
        const Instruction& next = code.instructions()[static_cast<size_t>(i) + 1];   // the item: most loops store it at once
        if (next.op == Op::STORE_FAST || next.op == Op::STORE_DEREF) return {code.slot_name(next.arg), true};
        return {"the item" + loop, false};
      }
      default: return unnamed(i);
    }
  }
  return unnamed(index);
}

}  // namespace

std::vector<StackName> names_on_stack(const Code& code, int index, int height, int count) {
  std::vector<StackName> names;
  for (int entry = 0; entry < count; ++entry) names.push_back(name_of(code, index, height, entry));
  return names;
}

std::string name_in(const StackName& name, const std::string& function) { return name.is_variable ? function + "'s " + name.text : name.text + " in " + function; }

const std::vector<StackName>& stack_names_of(PyCodeObject* made) { return state_of(made).stack_names; }
std::shared_ptr<const BreakReason> left_by(PyCodeObject* code) { return state_of(code).left_by; }

}  // namespace cutaway::frames
