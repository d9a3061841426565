// The instructions of CPython 3.11, 3.12 and 3.13 as one vocabulary. What the versions spell differently has one name here
// (code.h says how arguments are normalised), so that an interpreter has one handler for all.
#pragma once
#include <cstdint>
#include <string_view>

namespace cutaway::bytecode {

// Name here, as CPython writes it. Rows that stand for several of CPython's are filled in opcodes.cc.
#define CUTAWAY_OPCODES(X)                                                                                                             \
  X(NOP) X(RESUME) X(POP_TOP) X(PUSH_NULL) X(COPY) X(SWAP)                                                                              \
  X(LOAD_CONST) X(LOAD_FAST) X(LOAD_FAST_CHECK) X(LOAD_FAST_AND_CLEAR) X(STORE_FAST) X(DELETE_FAST)                                     \
  X(LOAD_GLOBAL) X(STORE_GLOBAL) X(DELETE_GLOBAL) X(LOAD_NAME) X(STORE_NAME) X(DELETE_NAME)                                             \
  X(LOAD_ATTR) X(LOAD_METHOD) X(LOAD_SUPER_ATTR) X(STORE_ATTR) X(DELETE_ATTR)                                                           \
  X(LOAD_CLOSURE) X(LOAD_DEREF) X(STORE_DEREF) X(DELETE_DEREF) X(MAKE_CELL) X(COPY_FREE_VARS) X(LOAD_CLASSDEREF)                        \
  X(LOAD_FROM_DICT_OR_DEREF) X(LOAD_FROM_DICT_OR_GLOBALS) X(LOAD_LOCALS) X(LOAD_BUILD_CLASS) X(LOAD_ASSERTION_ERROR)                     \
  X(IMPORT_NAME) X(IMPORT_FROM) X(IMPORT_STAR) X(SETUP_ANNOTATIONS) X(PRINT_EXPR)                                                        \
  X(BINARY_OP) X(COMPARE_OP) X(IS_OP) X(CONTAINS_OP) X(UNARY_POSITIVE) X(UNARY_NEGATIVE) X(UNARY_NOT) X(UNARY_INVERT) X(TO_BOOL)        \
  X(BINARY_SUBSCR) X(STORE_SUBSCR) X(DELETE_SUBSCR) X(BINARY_SLICE) X(STORE_SLICE)                                                      \
  X(BUILD_TUPLE) X(BUILD_LIST) X(BUILD_SET) X(BUILD_MAP) X(BUILD_CONST_KEY_MAP) X(BUILD_SLICE) X(BUILD_STRING) X(FORMAT_VALUE) X(CONVERT_VALUE) \
  X(LIST_APPEND) X(SET_ADD) X(MAP_ADD) X(LIST_EXTEND) X(SET_UPDATE) X(DICT_UPDATE) X(DICT_MERGE) X(LIST_TO_TUPLE)                        \
  X(UNPACK_SEQUENCE) X(UNPACK_EX) X(GET_LEN) X(MATCH_CLASS) X(MATCH_MAPPING) X(MATCH_SEQUENCE) X(MATCH_KEYS)                             \
  X(KW_NAMES) X(CALL) X(CALL_KW) X(CALL_FUNCTION_EX) X(MAKE_FUNCTION) X(SET_FUNCTION_ATTRIBUTE) X(RETURN_VALUE) X(RETURN_CONST)         \
  X(CALL_INTRINSIC_1) X(CALL_INTRINSIC_2)                                                                                               \
  X(JUMP) X(POP_JUMP_IF_TRUE) X(POP_JUMP_IF_FALSE) X(POP_JUMP_IF_NONE) X(POP_JUMP_IF_NOT_NONE) X(JUMP_IF_TRUE_OR_POP)                    \
  X(JUMP_IF_FALSE_OR_POP) X(GET_ITER) X(FOR_ITER) X(END_FOR)                                                                            \
  X(PUSH_EXC_INFO) X(POP_EXCEPT) X(CHECK_EXC_MATCH) X(CHECK_EG_MATCH) X(PREP_RERAISE_STAR) X(RERAISE) X(RAISE_VARARGS)                  \
  X(BEFORE_WITH) X(WITH_EXCEPT_START)                                                                                                   \
  X(RETURN_GENERATOR) X(YIELD_VALUE) X(SEND) X(END_SEND) X(GET_YIELD_FROM_ITER) X(STOPITERATION_ERROR) X(CLEANUP_THROW)                 \
  X(ASYNC_GEN_WRAP) X(GET_AWAITABLE) X(GET_AITER) X(GET_ANEXT) X(BEFORE_ASYNC_WITH) X(END_ASYNC_FOR)                                    \
  X(UNKNOWN)

enum class Op : uint8_t {
#define CUTAWAY_OPCODE_ROW(name) name,
  CUTAWAY_OPCODES(CUTAWAY_OPCODE_ROW)
#undef CUTAWAY_OPCODE_ROW
};
/// "LOAD_FAST".
std::string_view op_name(Op);

}  // namespace cutaway::bytecode
