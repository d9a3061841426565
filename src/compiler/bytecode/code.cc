#include "compiler/bytecode/code.h"

#include <algorithm>

#include "compiler/bytecode/exception_table.h"
#include "compiler/bytecode/opcode_numbers.h"

namespace cutaway::bytecode {
namespace {

// Of co_localspluskinds; the same in 3.11 to 3.13 (Include/internal/pycore_code.h).
constexpr uint8_t kFastLocal = 0x20, kFastCell = 0x40, kFastFree = 0x80;

#if PY_VERSION_HEX >= 0x030C0000
constexpr bool kIs312 = true;   // or newer
#else
constexpr bool kIs312 = false;
#endif
constexpr bool kIs313 = PY_VERSION_HEX >= 0x030D0000;
constexpr int kCompareShift = kIs313 ? 5 : kIs312 ? 4 : 0;

std::string utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (!data) { PyErr_Clear(); return "?"; }
  return std::string(data, size);
}

// Later versions pack flags into arguments and fold instructions of 3.11 into others; this undoes it.
void normalise(Instruction& i, bool has_spec) {
  switch (i.op) {
    case Op::LOAD_GLOBAL: i.flag = i.raw_arg & 1; i.arg = i.raw_arg >> 1; break;
    case Op::LOAD_ATTR:
      if (!kIs312) break;
      if (i.raw_arg & 1) i.op = Op::LOAD_METHOD;
      i.arg = i.raw_arg >> 1;
      break;
    case Op::LOAD_SUPER_ATTR: i.flag = i.raw_arg & 3; i.arg = i.raw_arg >> 2; break;
    case Op::COMPARE_OP:
      i.arg = i.raw_arg >> kCompareShift;
      i.flag = kIs313 && (i.raw_arg & 16);
      break;
    case Op::FORMAT_VALUE: if (has_spec) i.arg = 4; break;
    case Op::CALL_INTRINSIC_1:
      switch (i.raw_arg) {   // numbers of Include/internal/pycore_intrinsics.h
        case 1: i.op = Op::PRINT_EXPR; break;
        case 2: i.op = Op::IMPORT_STAR; break;
        case 3: i.op = Op::STOPITERATION_ERROR; break;
        case 4: i.op = Op::ASYNC_GEN_WRAP; break;
        case 5: i.op = Op::UNARY_POSITIVE; break;
        case 6: i.op = Op::LIST_TO_TUPLE; break;
        default: break;
      }
      break;
    case Op::CALL_INTRINSIC_2: if (i.raw_arg == 1) i.op = Op::PREP_RERAISE_STAR; break;
    default: break;
  }
}

}  // namespace

struct Decoder {
  static base::Status fill(Code& out, PyCodeObject* object) {
    const auto* rows = opcode_rows();
    if (!rows) return base::Error{.what = "the interpreter's opcode table cannot be read"};
    ObjectRef bytes = ObjectRef::steal(PyCode_GetCode(object));
    if (!bytes) { PyErr_Clear(); return base::Error{.what = "the bytecode of a code object cannot be read"}; }
    out.object_ = object;
    out.file_ = utf8(object->co_filename);
    out.qualified_name_ = utf8(object->co_qualname);
    out.argument_count_ = object->co_argcount + object->co_kwonlyargcount + !!(object->co_flags & CO_VARARGS) + !!(object->co_flags & CO_VARKEYWORDS);
    const char* kinds = PyBytes_AS_STRING(object->co_localspluskinds);
    for (int i = 0; i < object->co_nlocalsplus; ++i) {
      const auto kind = static_cast<uint8_t>(kinds[i]);
      out.slot_kinds_.push_back(kind & kFastFree ? SlotKind::free : !(kind & kFastCell) ? SlotKind::local : kind & kFastLocal ? SlotKind::local_cell : SlotKind::cell);
      out.slot_names_.push_back(utf8(PyTuple_GET_ITEM(object->co_localsplusnames, i)));
    }
    read_instructions(out, *rows, reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes.get())), PyBytes_GET_SIZE(bytes.get()));
    read_handlers(out);
    return {};
  }

  static void read_instructions(Code& out, const std::array<OpcodeRow, 256>& rows, const uint8_t* code, Py_ssize_t size) {
    const Py_ssize_t units = size / 2;
    out.index_of_unit_.assign(units + 1, -1);
    std::vector<int32_t> target_unit;
    uint32_t extended = 0;
    Py_ssize_t first = -1;   // where the EXTENDED_ARGs of the instruction began
    const uint8_t extended_arg = *opcode_number("EXTENDED_ARG");
    const auto to_bool = opcode_number("TO_BOOL"), format_with_spec = opcode_number("FORMAT_WITH_SPEC");
    const auto asks_truth_next = [&](Py_ssize_t unit) {
      while (unit < units && code[2 * unit] == extended_arg) ++unit;
      return unit < units && asks_truth(rows[code[2 * unit]].op);
    };
    int32_t truth_offset = -1;   // of a TO_BOOL that is part of the next instruction
    for (Py_ssize_t unit = 0; unit < units; ++unit) {
      const uint8_t number = code[2 * unit];
      const OpcodeRow& row = rows[number];
      if (first < 0) first = unit;
      if (number == to_bool && asks_truth_next(unit + 1 + row.caches)) {
        truth_offset = static_cast<int32_t>(2 * unit);
        unit += row.caches;
        continue;
      }
      if (number == extended_arg) { extended = (extended | code[2 * unit + 1]) << 8; continue; }
      const int32_t argument = static_cast<int32_t>(extended | code[2 * unit + 1]);
      extended = 0;
      if (!row.left_out) {
        Instruction i;
        i.op = row.op;
        i.raw_op = number;
        i.raw_arg = i.arg = row.takes_argument ? argument : 0;
        i.offset = truth_offset >= 0 ? truth_offset : static_cast<int32_t>(2 * unit);   // what may raise is the TO_BOOL
        truth_offset = -1;
        i.line = std::max(0, PyCode_Addr2Line(out.object_, i.offset));
        if (row.second != Op::UNKNOWN) i.arg = argument >> 4;
        normalise(i, number == format_with_spec);
        const int32_t next = static_cast<int32_t>(unit + 1 + row.caches);
        target_unit.push_back(row.jump == Direction::none ? -1 : row.jump == Direction::forward ? next + argument : next - argument);
        const auto index = static_cast<int32_t>(out.instructions_.size());
        for (Py_ssize_t u = first; u <= unit; ++u) out.index_of_unit_[u] = index;
        out.instructions_.push_back(i);
        if (row.second != Op::UNKNOWN) {
          i.op = row.second;
          i.arg = argument & 15;
          target_unit.push_back(-1);
          out.instructions_.push_back(i);
        }
      } else {
        // A jump to something left out (PRECALL) goes to what follows it.
        for (Py_ssize_t u = first; u <= unit; ++u) out.index_of_unit_[u] = static_cast<int32_t>(out.instructions_.size());
      }
      first = -1;
      unit += row.caches;
    }
    out.index_of_unit_[units] = static_cast<int32_t>(out.instructions_.size());
    for (size_t n = 0; n < target_unit.size(); ++n) {
      if (target_unit[n] < 0 || target_unit[n] > units) continue;
      Instruction& i = out.instructions_[n];
      i.target = out.index_of_unit_[target_unit[n]];
      // 3.12: the end of an iterator goes behind END_FOR, which is there for generators alone, 3.13 behind the POP_TOP that follows it too.
      if (i.op == Op::FOR_ITER && i.target >= 0 && out.instructions_[i.target].op == Op::END_FOR) i.target += kIs313 ? 2 : 1;
    }
    // 3.13 loads a cell like any other variable.
    for (Instruction& i : out.instructions_)
      if (i.op == Op::LOAD_FAST && out.slot_kinds_[i.arg] != SlotKind::local) i.op = Op::LOAD_CLOSURE;
  }

  static void read_handlers(Code& out) {
    for (const ExceptionEntry& e : read_exception_table(out.object_)) {
      Handler h;
      h.target = out.index_of_unit_[e.target];
      h.depth = e.depth;
      h.lasti = e.lasti;
      const auto at = [&](int offset) { return [offset](const Instruction& i) { return i.offset < offset; }; };
      const auto& list = out.instructions_;
      h.start = static_cast<int32_t>(std::partition_point(list.begin(), list.end(), at(2 * e.start)) - list.begin());
      h.end = static_cast<int32_t>(std::partition_point(list.begin(), list.end(), at(2 * e.end)) - list.begin());
      for (int32_t i = h.start; i < h.end; ++i) out.instructions_[i].handler = static_cast<int32_t>(out.handlers_.size());
      out.handlers_.push_back(h);
    }
    // The truth of what a comparison answered is asked by the jump or `not` after it here, by the comparison there.
    for (size_t i = 0; i + 1 < out.instructions_.size(); ++i)
      if (out.instructions_[i].op == Op::COMPARE_OP && out.instructions_[i].flag && asks_truth(out.instructions_[i + 1].op)) out.instructions_[i + 1].handler = out.instructions_[i].handler;
  }
};

int Code::first_offset(int index) const {
  int unit = instructions_[index].offset / 2;
  while (unit > 0 && index_of_unit_[unit - 1] == index) --unit;
  return 2 * unit;
}

bool Code::in_loop(int index) const {
  for (int i = index; i < static_cast<int>(instructions_.size()); ++i)
    if (instructions_[i].target >= 0 && instructions_[i].target <= index) return true;
  return false;
}

bool Code::looks_at_its_frame() const {
  for (const Instruction& i : instructions_) {
    const bool is_attribute = i.op == Op::LOAD_ATTR || i.op == Op::LOAD_METHOD || i.op == Op::IMPORT_FROM;
    if (i.op != Op::LOAD_GLOBAL && !is_attribute) continue;
    const char* name = PyUnicode_AsUTF8(this->name(i.arg));
    if (!name) { PyErr_Clear(); continue; }
    const std::string_view text = name;
    if (text == "_getframe" || text == "currentframe") return true;
    if (!is_attribute && (text == "locals" || text == "vars" || text == "eval" || text == "exec" || text == "dir")) return true;
  }
  return false;
}

bool is_supported_python() {
  static const bool answer = [] {
    const unsigned long version = Py_Version >> 16;   // of the process, not of the headers
    return version >= 0x030B && version <= 0x030D && version == (PY_VERSION_HEX >> 16);
  }();
  return answer;
}

namespace {
void free_code(void* extra) { delete static_cast<std::shared_ptr<const Code>*>(extra); }
#if PY_VERSION_HEX >= 0x030C0000
const auto get_extra = PyUnstable_Code_GetExtra;
const auto set_extra = PyUnstable_Code_SetExtra;
const auto request_index = PyUnstable_Eval_RequestCodeExtraIndex;
#else
const auto get_extra = _PyCode_GetExtra;
const auto set_extra = _PyCode_SetExtra;
const auto request_index = _PyEval_RequestCodeExtraIndex;
#endif
}  // namespace

base::Result<std::shared_ptr<const Code>> decode_code(PyCodeObject* object) {
  if (!is_supported_python())
    return base::Error{.what = "bytecode of Python " + std::string(Py_GetVersion()).substr(0, 6) + " is not known", .because = "3.11 to 3.13 are"};
  static const Py_ssize_t index = request_index(&free_code);
  void* extra = nullptr;
  if (index >= 0 && get_extra(reinterpret_cast<PyObject*>(object), index, &extra) == 0 && extra)
    return *static_cast<std::shared_ptr<const Code>*>(extra);
  auto code = std::make_shared<Code>();
  CUTAWAY_TRY(Decoder::fill(*code, object));
  if (index >= 0) set_extra(reinterpret_cast<PyObject*>(object), index, new std::shared_ptr<const Code>(code));
  return std::shared_ptr<const Code>(code);
}

}  // namespace cutaway::bytecode
