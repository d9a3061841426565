// The listing of a code object, for logs and reports.
#include <cstdio>

#include "compiler/bytecode/code.h"

namespace cutaway::bytecode {
namespace {

std::string short_repr(PyObject* o) {
  if (PyCode_Check(o)) return "<code " + std::string(PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(o)->co_name)) + ">";
  ObjectRef text = ObjectRef::steal(PyObject_Repr(o));   // constants only: no code of the user's
  const char* data = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!data) { PyErr_Clear(); return "?"; }
  std::string out = data;
  if (out.size() > 60) out = out.substr(0, 57) + "...";
  return out;
}

std::string argument_text(const Code& code, const Instruction& i) {
  const auto name = [&](int n) { return n < PyTuple_GET_SIZE(code.object()->co_names) ? std::string(PyUnicode_AsUTF8(code.name(n))) : "?"; };
  static constexpr const char* kCompare[] = {"<", "<=", "==", "!=", ">", ">="};
  static constexpr const char* kBinary[] = {"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};
  switch (i.op) {
    case Op::LOAD_CONST: case Op::RETURN_CONST: case Op::KW_NAMES: return short_repr(code.constant(i.arg));
    case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK: case Op::LOAD_FAST_AND_CLEAR: case Op::STORE_FAST: case Op::DELETE_FAST: case Op::LOAD_CLOSURE:
    case Op::LOAD_DEREF: case Op::STORE_DEREF: case Op::DELETE_DEREF: case Op::MAKE_CELL: return code.slot_name(i.arg);
    case Op::LOAD_GLOBAL: case Op::STORE_GLOBAL: case Op::DELETE_GLOBAL: case Op::LOAD_ATTR: case Op::LOAD_METHOD: case Op::LOAD_SUPER_ATTR: case Op::STORE_ATTR:
    case Op::DELETE_ATTR: case Op::IMPORT_NAME: case Op::IMPORT_FROM: case Op::LOAD_NAME: case Op::STORE_NAME: return name(i.arg);
    case Op::COMPARE_OP: return i.arg < 6 ? kCompare[i.arg] : "?";
    case Op::BINARY_OP: return i.arg < 13 ? kBinary[i.arg] : i.arg < 26 ? std::string(kBinary[i.arg - 13]) + "=" : "?";
    default: break;
  }
  if (i.target >= 0) return "to " + std::to_string(i.target < static_cast<int>(code.instructions().size()) ? code.instructions()[i.target].offset : -1);
  return {};
}

}  // namespace

std::string Code::text(int index) const {
  const Instruction& i = instructions_[index];
  char head[64];
  std::snprintf(head, sizeof head, "%4d %-22s %4d", i.offset, std::string(op_name(i.op)).c_str(), i.raw_arg);
  std::string out = head;
  if (const std::string argument = argument_text(*this, i); !argument.empty()) out += " (" + argument + ")";
  return out;
}

std::string Code::text() const {
  std::string out;
  int line = 0;
  for (int n = 0; n < static_cast<int>(instructions_.size()); ++n) {
    const bool new_line = instructions_[n].line && instructions_[n].line != line;
    if (new_line) line = instructions_[n].line;
    char head[16];
    std::snprintf(head, sizeof head, new_line ? "%5d " : "      ", line);
    out += head + text(n) + "\n";
  }
  for (const Handler& h : handlers_)
    out += "      handler: " + std::to_string(instructions_[h.start].offset) + " to " + std::to_string(instructions_[h.end - 1].offset) + " goes to " +
           std::to_string(instructions_[h.target].offset) + ", depth " + std::to_string(h.depth) + "\n";
  return out;
}

}  // namespace cutaway::bytecode
