// A code object, decoded once: instructions with folded arguments, jump targets as indices, lines, exception handlers, live variables.
// Main type: Code. It is read-only and may be shared; decode_code() keeps one a code object. It does not keep the code object alive.
//
// How arguments are normalised (arg, flag):
//   LOAD_GLOBAL name, flag: push a NULL below it.   LOAD_ATTR / LOAD_METHOD name (3.12's LOAD_ATTR with the low bit is LOAD_METHOD).
//   LOAD_SUPER_ATTR name, flag bit 0: load as a method, bit 1: super() was called with two arguments.
//   COMPARE_OP 0..5 for < <= == != > >=, flag: it pushes the truth of the answer (3.13, before a jump or `not`, which ask for it anyway).   IS_OP, CONTAINS_OP 1 when inverted.   BINARY_OP as CPython (13 and above are in place).
//   LOAD_FAST, LOAD_DEREF, LOAD_CLOSURE, MAKE_CELL and their like: slot in localsplus, the same in all versions. 3.13's pairs
//   (LOAD_FAST_LOAD_FAST) are two instructions of one offset. 3.13's TO_BOOL before a jump or `not` is part of that instruction.
//   Jumps have `target`; JUMP and POP_JUMP_IF_… in any direction. FOR_ITER at the end of the iterator: pop it and go to `target`
//   (behind 3.12's END_FOR, and 3.13's POP_TOP after it). PRECALL and CACHE are left out. 3.12's intrinsics that 3.11 has as
//   instructions have those names. FORMAT_VALUE as in 3.12; CONVERT_VALUE has those conversions.
//   CALL: [NULL, callable, args…] or [method, self, args…] on the stack, names of keywords from the KW_NAMES before it. From 3.13
//   on [callable, NULL, args…] (kNullOnTop), and keywords have CALL_KW, whose last operand their names are.
#pragma once
#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/bytecode/object_ref.h"
#include "compiler/bytecode/opcodes.h"
#include "core/base/result.h"

namespace cutaway::bytecode {

struct Instruction {
  Op op = Op::UNKNOWN;
  uint8_t flag = 0;        ///< see above
  uint8_t raw_op = 0;      ///< CPython's own number and argument, for copying and for stack effects
  int32_t arg = 0;
  int32_t raw_arg = 0;
  int32_t target = -1;     ///< index of the instruction a jump goes to, else -1
  int32_t offset = 0;      ///< in bytes, of the instruction itself (behind its EXTENDED_ARGs): what co_positions and tracebacks use
  int32_t line = 0;        ///< 0: none
  int32_t handler = -1;    ///< index into Code::handlers of the innermost one, or -1
};

/// Where an exception goes: the stack is cut to `depth`, then the offset of the instruction is pushed where `lasti` says so, then the exception.
struct Handler {
  int32_t target = -1;     ///< index of an instruction
  int32_t depth = 0;
  bool lasti = false;
  int32_t start = 0, end = 0;   ///< instructions [start, end) it covers
};

enum class SlotKind : uint8_t { local, local_cell, cell, free };   ///< local_cell: an argument or local that MAKE_CELL wraps

/// It takes anything and asks for its truth: a TO_BOOL before it is part of it.
constexpr bool asks_truth(Op op) { return op == Op::POP_JUMP_IF_TRUE || op == Op::POP_JUMP_IF_FALSE || op == Op::UNARY_NOT; }

/// Where the NULL lies that a callable without `self` needs on the stack: since 3.13 above it, before that below.
inline constexpr bool kNullOnTop = PY_VERSION_HEX >= 0x030D0000;

class Code {
 public:
  PyCodeObject* object() const { return object_; }
  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<Handler>& handlers() const { return handlers_; }
  /// Values in the first slots when a frame begins: arguments, *args, **kwargs.
  int argument_count() const { return argument_count_; }
  int slot_count() const { return static_cast<int>(slot_kinds_.size()); }
  SlotKind slot_kind(int slot) const { return slot_kinds_[slot]; }
  const std::string& slot_name(int slot) const { return slot_names_[slot]; }
  const std::vector<std::string>& slot_names() const { return slot_names_; }
  PyObject* constant(int i) const { return PyTuple_GET_ITEM(object()->co_consts, i); }      ///< borrowed
  PyObject* name(int i) const { return PyTuple_GET_ITEM(object()->co_names, i); }           ///< borrowed
  const std::string& file() const { return file_; }
  const std::string& qualified_name() const { return qualified_name_; }
  /// Offset in bytes where it begins, its EXTENDED_ARGs included.
  int first_offset(int index) const;
  /// The second half of an instruction that is two: no frame can begin there.
  bool is_second_half(int index) const { return index > 0 && instructions_[index].offset == instructions_[index - 1].offset; }
  /// Slots that may be read before they are written when execution is just before that instruction, handlers included.
  std::vector<bool> live_before(int index) const;
  /// True where a jump of the code goes backward over this instruction, so that it may run again.
  bool in_loop(int index) const;
  /// True for code that may ask for its own variables by name or for its frame (locals(), eval(), sys._getframe()): it sees which are there.
  bool looks_at_its_frame() const;
  /// "12 LOAD_FAST 0 (x)", with the line in front where it changes: for logs and reports.
  std::string text(int index) const;
  std::string text() const;

 private:
  friend struct Decoder;
  std::vector<std::vector<bool>> find_live() const;
  PyCodeObject* object_ = nullptr;
  std::vector<Instruction> instructions_;
  std::vector<Handler> handlers_;
  std::vector<int32_t> index_of_unit_;   // by code unit; -1 for caches
  std::vector<SlotKind> slot_kinds_;
  std::vector<std::string> slot_names_;
  std::string file_, qualified_name_;
  int argument_count_ = 0;
  mutable std::vector<std::vector<bool>> live_;   // filled at the first question; the GIL is held
};

/// Reads the de-specialised bytecode. An instruction that the table does not know becomes Op::UNKNOWN. Fails on a CPython other than
/// 3.11 to 3.13.
base::Result<std::shared_ptr<const Code>> decode_code(PyCodeObject*);
/// True for the CPython that is running.
bool is_supported_python();

}  // namespace cutaway::bytecode
