#include "compiler/bytecode/stack_use.h"

#include <bit>

namespace cutaway::bytecode {

std::optional<StackUse> stack_use(const Instruction& i) {
  const int n = i.arg;
  switch (i.op) {
    case Op::LOAD_GLOBAL: return StackUse{0, 1, -1, i.flag != 0};
    case Op::LOAD_DEREF: case Op::LOAD_BUILD_CLASS: case Op::LOAD_ASSERTION_ERROR: return StackUse{0, 1};
    case Op::STORE_GLOBAL: case Op::STORE_DEREF: case Op::POP_TOP: return StackUse{1, 0};
    case Op::DELETE_GLOBAL: case Op::DELETE_DEREF: return StackUse{0, 0};
    case Op::LOAD_ATTR: return StackUse{1, 1};
    case Op::LOAD_METHOD: return StackUse{1, 1, -1, true};
    case Op::LOAD_SUPER_ATTR: return StackUse{3, 1, -1, (i.flag & 1) != 0};
    case Op::STORE_ATTR: return StackUse{2, 0};
    case Op::DELETE_ATTR: return StackUse{1, 0};
    case Op::IMPORT_NAME: return StackUse{2, 1};
    case Op::IMPORT_FROM: case Op::GET_LEN: case Op::MATCH_MAPPING: case Op::MATCH_SEQUENCE: return StackUse{1, 2};
    case Op::MATCH_KEYS: return StackUse{2, 3};
    case Op::MATCH_CLASS: return StackUse{3, 1};
    case Op::BINARY_OP: case Op::COMPARE_OP: case Op::IS_OP: case Op::CONTAINS_OP: case Op::BINARY_SUBSCR: return StackUse{2, 1};
    case Op::UNARY_POSITIVE: case Op::UNARY_NEGATIVE: case Op::UNARY_NOT: case Op::UNARY_INVERT: case Op::GET_ITER: case Op::LIST_TO_TUPLE:
    case Op::TO_BOOL: case Op::CONVERT_VALUE: return StackUse{1, 1};
    case Op::STORE_SUBSCR: return StackUse{3, 0};
    case Op::DELETE_SUBSCR: return StackUse{2, 0};
    case Op::BINARY_SLICE: return StackUse{3, 1};
    case Op::STORE_SLICE: return StackUse{4, 0};
    case Op::BUILD_TUPLE: case Op::BUILD_LIST: case Op::BUILD_SET: case Op::BUILD_STRING: case Op::BUILD_SLICE: return StackUse{n, 1};
    case Op::BUILD_MAP: return StackUse{2 * n, 1};
    case Op::BUILD_CONST_KEY_MAP: return StackUse{n + 1, 1};
    case Op::FORMAT_VALUE: return StackUse{(n & 4) ? 2 : 1, 1};
    case Op::LIST_APPEND: case Op::SET_ADD: case Op::LIST_EXTEND: case Op::SET_UPDATE: case Op::DICT_UPDATE: return StackUse{n + 1, n};
    case Op::MAP_ADD: return StackUse{n + 2, n};
    case Op::UNPACK_SEQUENCE: return StackUse{1, n};
    case Op::UNPACK_EX: return StackUse{1, (n & 0xff) + 1 + (n >> 8)};
    case Op::CALL: return StackUse{n + 2, 1};
    case Op::CALL_KW: return StackUse{n + 3, 1};
    case Op::CALL_FUNCTION_EX: return StackUse{3 + (n & 1), 1};
    case Op::MAKE_FUNCTION: return StackUse{1 + std::popcount(static_cast<unsigned>(n) & 15u), 1};
    case Op::SET_FUNCTION_ATTRIBUTE: return StackUse{2, 1};
    case Op::BEFORE_WITH: return StackUse{1, 2};
    case Op::RAISE_VARARGS: return StackUse{n, -1};
    case Op::POP_JUMP_IF_TRUE: case Op::POP_JUMP_IF_FALSE: case Op::POP_JUMP_IF_NONE: case Op::POP_JUMP_IF_NOT_NONE: return StackUse{1, 0, 0};
    case Op::JUMP_IF_TRUE_OR_POP: case Op::JUMP_IF_FALSE_OR_POP: return StackUse{1, 0, 1};
    case Op::FOR_ITER: return StackUse{1, 2, 0};
    default: return std::nullopt;
  }
}

PyObject* end_marker() {
  static PyObject* const marker = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return marker;
}

int operands_while_calling(const Instruction& i, bool of_generator) {
  if (i.op == Op::CALL || i.op == Op::CALL_KW || i.op == Op::CALL_FUNCTION_EX) return stack_use(i)->popped;
  return of_generator && (i.op == Op::FOR_ITER || i.op == Op::SEND) ? 1 : 0;
}

std::optional<AnswerUse> answer_use(const Instruction& i, int index, bool of_generator) {
  using What = AnswerUse::What;
  switch (i.op) {
    case Op::CALL: case Op::CALL_KW: case Op::CALL_FUNCTION_EX: case Op::LOAD_ATTR: case Op::BINARY_OP: case Op::BINARY_SUBSCR: case Op::BINARY_SLICE:
    case Op::UNARY_POSITIVE: case Op::UNARY_NEGATIVE: case Op::UNARY_INVERT: case Op::GET_ITER: case Op::BEFORE_WITH:
      return AnswerUse{What::push, index + 1, false};
    case Op::COMPARE_OP: return AnswerUse{i.flag ? What::truth : What::push, index + 1, false};
    case Op::TO_BOOL: return AnswerUse{What::truth, index + 1, false};
    case Op::LOAD_METHOD: return AnswerUse{What::push, index + 1, true};
    case Op::LOAD_SUPER_ATTR: return AnswerUse{What::push, index + 1, (i.flag & 1) != 0};
    case Op::STORE_ATTR: case Op::DELETE_ATTR: case Op::STORE_SUBSCR: case Op::DELETE_SUBSCR: case Op::STORE_SLICE: return AnswerUse{What::drop, index + 1, false};
    case Op::UNARY_NOT: return AnswerUse{What::invert, index + 1, false};
    case Op::CONTAINS_OP: return AnswerUse{i.arg == 1 ? What::invert : What::push, index + 1, false};
    case Op::POP_JUMP_IF_TRUE: case Op::POP_JUMP_IF_FALSE: return AnswerUse{What::truth, index, false};
    case Op::JUMP_IF_TRUE_OR_POP: return AnswerUse{What::jump_if_true, index + 1, false, i.target};
    case Op::JUMP_IF_FALSE_OR_POP: return AnswerUse{What::jump_if_false, index + 1, false, i.target};
    case Op::FOR_ITER: return of_generator ? AnswerUse{What::push, index, false} : AnswerUse{What::end_loop, index + 1, false, i.target};
    case Op::SEND: if (of_generator) return AnswerUse{What::send, index, false}; return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace cutaway::bytecode
