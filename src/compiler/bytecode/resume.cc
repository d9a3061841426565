#include "compiler/bytecode/resume.h"

#include <algorithm>
#include <string>

#include "compiler/bytecode/exception_table.h"
#include "compiler/bytecode/location_table.h"
#include "compiler/bytecode/opcode_numbers.h"
#include "compiler/bytecode/stack_use.h"

namespace cutaway::bytecode {
namespace {

/// Code units in a row, as CPython stores them.
class Assembler {
 public:
  bool emit(std::string_view name, int argument = 0) {
    const auto number = opcode_number(name);
    if (!number) { missing_ = std::string(name); return false; }
    emit(*number, argument);
    return true;
  }
  void emit(uint8_t number, int argument) {
    for (int shift = 24; shift > 0; shift -= 8)
      if (argument >> shift) unit(*opcode_number("EXTENDED_ARG"), (argument >> shift) & 255);
    unit(number, argument & 255);
    for (int i = 0; i < (*opcode_rows())[number].caches; ++i) unit(0, 0);
  }
  /// Makes room for the argument of a short jump that is not known yet; gives its place.
  int emit_jump(uint8_t number) { emit(number, 0); return units() - 1 - (*opcode_rows())[number].caches; }
  void land(int jump, int caches) { bytes_[2 * jump + 1] = static_cast<char>(units() - (jump + 1 + caches)); }
  int units() const { return static_cast<int>(bytes_.size() / 2); }
  const std::string& bytes() const { return bytes_; }
  const std::string& missing() const { return missing_; }

 private:
  void unit(int op, int argument) { bytes_.push_back(static_cast<char>(op)); bytes_.push_back(static_cast<char>(argument)); }
  std::string bytes_, missing_;
};

ObjectRef take(PyObject* o) { return ObjectRef::steal(o); }

ObjectRef names_tuple(const std::vector<std::string>& names) {
  ObjectRef t = take(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
  for (size_t i = 0; i < names.size(); ++i) PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), PyUnicode_InternFromString(names[i].c_str()));
  return t;
}

/// Everything of the new code that is not the original's.
struct Parts {
  Assembler prologue;
  std::string locations;
  std::vector<ExceptionEntry> handlers;   // in the prologue
  std::vector<ObjectRef> constants;       // behind the original's
  int stack_size = 0;
  bool with_body = true;
  bool is_generator = false;
  bool is_stub = false;                   // a plain function, whatever the original is
};

int add_constant(const Code& code, Parts& parts, PyObject* object) {
  parts.constants.push_back(ObjectRef::borrow(object));
  return static_cast<int>(PyTuple_GET_SIZE(code.object()->co_consts) + parts.constants.size()) - 1;
}

// The tuple ".stack" holds the entries that are no NULL, the top first, so that UNPACK_SEQUENCE leaves them in order.
void emit_entry(const Code& code, const FrameShape& shape, size_t first_entry, Parts& parts) {
  Assembler& a = parts.prologue;
  const int locals = own_slot_count(code);
  a.emit("COPY_FREE_VARS", code.slot_count() - locals + 1);
  if (parts.is_generator) {
    a.emit("RETURN_GENERATOR");
    a.emit("POP_TOP");
  }
  a.emit("RESUME", 0);
  for (int s = 0; s < locals; ++s)
    if (!shape.bound[s]) a.emit("DELETE_FAST", s);
  const size_t entries = shape.stack_null.size();
  const auto nulls = std::count(shape.stack_null.begin() + static_cast<std::ptrdiff_t>(first_entry), shape.stack_null.end(), true);
  int values = static_cast<int>(entries - first_entry) - static_cast<int>(nulls);
  if (!values && !nulls) return;
  if (!nulls) {
    a.emit("LOAD_DEREF", code.slot_count());
    a.emit("UNPACK_SEQUENCE", values);
    a.emit("DELETE_DEREF", code.slot_count());   // the values live as long as the stack holds them, not as long as a traceback holds the frame
    return;
  }
  for (size_t e = first_entry; e < entries; ++e) {
    if (shape.stack_null[e]) { a.emit("PUSH_NULL"); continue; }
    ObjectRef index = take(PyLong_FromLong(--values));
    a.emit("LOAD_DEREF", code.slot_count());
    a.emit("LOAD_CONST", add_constant(code, parts, index.get()));
    a.emit("BINARY_SUBSCR");
  }
  if (entries - first_entry > static_cast<size_t>(nulls)) a.emit("DELETE_DEREF", code.slot_count());
}

base::Result<ObjectRef> assemble(const Code& code, Parts parts) {
  PyCodeObject* original = code.object();
  if (!parts.prologue.missing().empty()) return base::Error{.what = "this Python has no instruction " + parts.prologue.missing()};
  const int shift = parts.prologue.units();
  std::string bytes = parts.prologue.bytes();
  std::vector<ExceptionEntry> table = parts.handlers;
  std::string locations = parts.locations;
  if (parts.with_body) {
    ObjectRef body = take(PyCode_GetCode(original));
    if (!body) { PyErr_Clear(); return base::Error{.what = "the bytecode of a code object cannot be read"}; }
    bytes.append(PyBytes_AS_STRING(body.get()), PyBytes_GET_SIZE(body.get()));
    for (ExceptionEntry e : read_exception_table(original)) {
      e.start += shift; e.end += shift; e.target += shift;
      table.push_back(e);
    }
    locations.append(PyBytes_AS_STRING(original->co_linetable), PyBytes_GET_SIZE(original->co_linetable));
  }
  const int locals = own_slot_count(code);
  std::vector<std::string> variables, cells, frees;
  for (int s = 0; s < code.slot_count(); ++s) {
    (s < locals ? variables : frees).push_back(code.slot_name(s));
    if (code.slot_kind(s) == SlotKind::local_cell || code.slot_kind(s) == SlotKind::cell) cells.push_back(code.slot_name(s));
  }
  frees.push_back(".stack");
  const Py_ssize_t kept = PyTuple_GET_SIZE(original->co_consts);
  ObjectRef constants = take(PyTuple_New(kept + static_cast<Py_ssize_t>(parts.constants.size())));
  for (Py_ssize_t i = 0; i < kept; ++i) PyTuple_SET_ITEM(constants.get(), i, Py_NewRef(PyTuple_GET_ITEM(original->co_consts, i)));
  for (size_t i = 0; i < parts.constants.size(); ++i) PyTuple_SET_ITEM(constants.get(), kept + static_cast<Py_ssize_t>(i), parts.constants[i].release());
  const std::string exceptions = write_exception_table(table);
  ObjectRef keywords = take(Py_BuildValue(
      "{s:y#,s:y#,s:y#,s:O,s:N,s:N,s:N,s:i,s:i,s:i,s:i,s:i,s:i}", "co_code", bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "co_exceptiontable",
      exceptions.data(), static_cast<Py_ssize_t>(exceptions.size()), "co_linetable", locations.data(), static_cast<Py_ssize_t>(locations.size()), "co_consts",
      constants.get(), "co_varnames", names_tuple(variables).release(), "co_cellvars", names_tuple(cells).release(), "co_freevars",
      names_tuple(frees).release(), "co_nlocals", locals, "co_argcount", locals, "co_posonlyargcount", locals, "co_kwonlyargcount", 0, "co_flags",
      original->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS | (parts.is_stub ? CO_GENERATOR : 0)), "co_stacksize", original->co_stacksize + parts.stack_size + 4));
  ObjectRef replace = take(PyObject_GetAttrString(reinterpret_cast<PyObject*>(original), "replace"));
  ObjectRef none = take(PyTuple_New(0));
  ObjectRef made = keywords && replace && none ? take(PyObject_Call(replace.get(), none.get(), keywords.get())) : ObjectRef();
  if (made) return made;
  ObjectRef type, value, trace;
  PyObject *t = nullptr, *v = nullptr, *b = nullptr;
  PyErr_Fetch(&t, &v, &b);
  type = take(t); value = take(v); trace = take(b);
  ObjectRef text = value ? take(PyObject_Str(value.get())) : ObjectRef();
  std::string because = text && PyUnicode_AsUTF8(text.get()) ? PyUnicode_AsUTF8(text.get()) : "unknown";
  PyErr_Clear();
  return base::Error{.what = "a resume function for " + code.qualified_name() + " could not be made", .because = because};
}

SourceSpan span_of(const Code& code, const Instruction& i) {
  SourceSpan span;
  PyCode_Addr2Location(code.object(), i.offset, &span.line, &span.column, &span.end_line, &span.end_column);
  return span;
}

base::Status check_shape(const Code& code, int index, const FrameShape& shape) {
  if (index < 0 || index >= static_cast<int>(code.instructions().size()) || code.is_second_half(index) || static_cast<int>(shape.bound.size()) != code.slot_count())
    return base::Error{.what = "no such place in " + code.qualified_name()};
  return {};
}

bool is_generator(const Code& code) { return (code.object()->co_flags & CO_GENERATOR) != 0; }

// Since 3.13 jumps and `not` take True and False alone.
void emit_truth(Assembler& a) {
  if (opcode_number("TO_BOOL")) a.emit("TO_BOOL");
}

/// What the instruction does with the answer on the top. Gives the place of a jump that is to land where its other way begins; -1: there is one way.
int emit_use(const Code& code, Parts& parts, const AnswerUse& use) {
  using What = AnswerUse::What;
  Assembler& a = parts.prologue;
  const auto jump_if = [&](bool truth) {
    const auto old = opcode_number(truth ? "POP_JUMP_FORWARD_IF_TRUE" : "POP_JUMP_FORWARD_IF_FALSE");
    return a.emit_jump(old ? *old : *opcode_number(truth ? "POP_JUMP_IF_TRUE" : "POP_JUMP_IF_FALSE"));
  };
  switch (use.what) {
    case What::push: return -1;
    case What::truth: emit_truth(a); return -1;
    case What::drop: a.emit("POP_TOP"); return -1;
    case What::invert: emit_truth(a); a.emit("UNARY_NOT"); return -1;
    case What::send: a.emit("LOAD_CONST", add_constant(code, parts, Py_None)); return -1;
    case What::end_loop:
      a.emit("COPY", 1);
      a.emit("LOAD_CONST", add_constant(code, parts, end_marker()));
      a.emit("IS_OP", 0);
      return jump_if(true);
    case What::jump_if_true: emit_truth(a); return jump_if(true);
    case What::jump_if_false: emit_truth(a); return jump_if(false);
  }
  return -1;
}
int caches_of_jump() {
  const auto old = opcode_number("POP_JUMP_FORWARD_IF_TRUE");
  return (*opcode_rows())[old ? *old : *opcode_number("POP_JUMP_IF_TRUE")].caches;
}

void emit_answer(const Code& code, Parts& parts, int values, int way, int leftover, bool leftover_has_null) {
  Assembler& a = parts.prologue;
  a.emit("BUILD_TUPLE", values);
  a.emit("LOAD_CONST", add_constant(code, parts, stub_marker(way)));
  a.emit("BUILD_TUPLE", 2);
  // What lies below goes with the frame; popping a NULL would crash.
  if (!leftover_has_null)
    for (int i = 0; i < leftover; ++i) { a.emit("SWAP", 2); a.emit("POP_TOP"); }
  a.emit("RETURN_VALUE");
}

}  // namespace

int own_slot_count(const Code& code) {
  int n = 0;
  while (n < code.slot_count() && code.slot_kind(n) != SlotKind::free) ++n;
  return n;
}

PyObject* stub_marker(int way) {
  static PyObject* markers[2] = {PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)),
                                 PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))};
  return markers[way];
}

base::Result<ObjectRef> make_resume_code(const Code& code, int index, const FrameShape& shape) {
  CUTAWAY_TRY(check_shape(code, index, shape));
  Parts parts;
  parts.is_generator = is_generator(code);
  emit_entry(code, shape, 0, parts);
  parts.prologue.emit("JUMP_FORWARD", code.first_offset(index) / 2);
  parts.stack_size = static_cast<int>(shape.stack_null.size());
  int line = code.object()->co_firstlineno;
  append_location(parts.locations, parts.prologue.units(), {}, line);
  return assemble(code, std::move(parts));
}

base::Result<ObjectRef> make_calling_resume_code(const Code& code, int index, const FrameShape& shape, int arguments, bool of_generator) {
  CUTAWAY_TRY(check_shape(code, index, shape));
  const auto use = answer_use(code.instructions()[index], index, of_generator);
  if (!use || use->target >= static_cast<int>(code.instructions().size())) return base::Error{.what = std::string(op_name(code.instructions()[index].op)) + " calls nothing that can go on"};
  Parts parts;
  Assembler& a = parts.prologue;
  parts.is_generator = is_generator(code);
  emit_entry(code, shape, 0, parts);
  const int begin = a.units();
  a.emit("CALL", arguments);
  const int other = emit_use(code, parts, *use);
  const int end = a.units();   // a truth that is asked may raise like the call
  if (kNullOnTop && use->with_null) a.emit("PUSH_NULL");
  const bool pops = use->what == AnswerUse::What::jump_if_true || use->what == AnswerUse::What::jump_if_false;
  if (pops) a.emit("POP_TOP");
  if (other >= 0) {
    Assembler tail;   // the two jumps to the original's code lie behind each other: how long the second is decides how far the first goes
    if (!pops) { tail.emit("POP_TOP"); tail.emit("POP_TOP"); }
    tail.emit("JUMP_FORWARD", code.first_offset(use->other) / 2);
    a.emit("JUMP_FORWARD", code.first_offset(use->target) / 2 + tail.units());
    a.land(other, caches_of_jump());
    if (!pops) { a.emit("POP_TOP"); a.emit("POP_TOP"); }
    a.emit("JUMP_FORWARD", code.first_offset(use->other) / 2);
  } else {
    a.emit("JUMP_FORWARD", code.first_offset(use->target) / 2);
  }
  parts.stack_size = static_cast<int>(shape.stack_null.size());
  const Instruction& i = code.instructions()[index];
  if (i.handler >= 0) {
    const Handler& h = code.handlers()[i.handler];
    parts.handlers.push_back({begin, end, a.units() + code.first_offset(h.target) / 2, h.depth, h.lasti});
  }
  int line = code.object()->co_firstlineno;
  append_location(parts.locations, begin, {}, line);
  append_location(parts.locations, end - begin, span_of(code, i), line);
  append_location(parts.locations, a.units() - end, {code.object()->co_firstlineno, code.object()->co_firstlineno, -1, -1}, line);   // back to where the original's table begins
  return assemble(code, std::move(parts));
}

base::Result<ObjectRef> make_generator_code(const Code& code, int index, const FrameShape& shape, bool is_started) {
  CUTAWAY_TRY(check_shape(code, index, shape));
  Parts parts;
  Assembler& a = parts.prologue;
  parts.is_generator = true;
  emit_entry(code, shape, 0, parts);
  const int begin = a.units();
  int target = index, after = 0, send = 0;
  bool is_delegation = false;
  if (!is_started) {
    if (code.instructions()[index].op != Op::POP_TOP) return base::Error{.what = "the generator does not begin as generators do"};
    ++target;   // what is sent first was popped already
  } else {
    if (index < 1 || code.instructions()[index - 1].op != Op::YIELD_VALUE || code.instructions()[index].op != Op::RESUME) return base::Error{.what = "the generator is not suspended at a yield"};
    a.emit("LOAD_CONST", add_constant(code, parts, Py_None));
    const Instruction& yield = code.instructions()[index - 1];
#if PY_VERSION_HEX < 0x030C0000
    // When what it delegates to ends by an exception that is thrown in, 3.11 reads where to go on from the SEND before the yield. Nobody runs this one.
    const Instruction* before = index > 1 ? &code.instructions()[index - 2] : nullptr;
    is_delegation = before && before->op == Op::SEND && before->target >= 0;
    if (is_delegation) {
      after = before->target;
      a.emit("JUMP_FORWARD", 1);
      send = a.emit_jump(before->raw_op);
    }
#endif
    a.emit(yield.raw_op, yield.raw_arg);
    a.emit(code.instructions()[index].raw_op, code.instructions()[index].raw_arg);   // its argument tells a yield from a delegation
    ++target;
  }
  int end = a.units();
  if (is_delegation) {
    Assembler tail;   // behind the jump back into the delegation: the one to what follows it
    tail.emit("JUMP_FORWARD", code.first_offset(after) / 2);
    a.emit("JUMP_FORWARD", code.first_offset(target) / 2 + tail.units());
    end = a.units();   // an exception that goes on is raised there
    a.land(send, 0);
    a.emit("JUMP_FORWARD", code.first_offset(after) / 2);
  } else {
    a.emit("JUMP_FORWARD", code.first_offset(target) / 2);
  }
  parts.stack_size = static_cast<int>(shape.stack_null.size()) + 1;
  const Instruction& at = code.instructions()[is_started ? index - 1 : index];
  if (is_started && at.handler >= 0) {
    const Handler& h = code.handlers()[at.handler];
    parts.handlers.push_back({begin, end, a.units() + code.first_offset(h.target) / 2, h.depth, h.lasti});
  }
  int line = code.object()->co_firstlineno;
  append_location(parts.locations, begin, {}, line);
  append_location(parts.locations, end - begin, span_of(code, at), line);
  append_location(parts.locations, a.units() - end, {code.object()->co_firstlineno, code.object()->co_firstlineno, -1, -1}, line);
  return assemble(code, std::move(parts));
}

namespace {
base::Result<BreakStub> make_stub(const Code& code, int index, const FrameShape& shape, std::optional<StackUse> use, std::optional<AnswerUse> answer);
}

base::Result<BreakStub> make_break_stub(const Code& code, int index, const FrameShape& shape) {
  CUTAWAY_TRY(check_shape(code, index, shape));
  return make_stub(code, index, shape, stack_use(code.instructions()[index]), std::nullopt);
}

base::Result<BreakStub> make_call_stub(const Code& code, int index, const FrameShape& shape, bool of_generator) {
  CUTAWAY_TRY(check_shape(code, index, shape));
  const auto use = answer_use(code.instructions()[index], index, of_generator);
  if (!use) return base::Error{.what = std::string(op_name(code.instructions()[index].op)) + " calls nothing that can go on"};
  using What = AnswerUse::What;
  const bool pops = use->what == What::drop || use->what == What::jump_if_true || use->what == What::jump_if_false;
  return make_stub(code, index, shape, StackUse{2, pops ? 0 : use->what == What::send ? 2 : 1, use->other >= 0 ? 0 : -1, use->with_null}, use);
}

namespace {
base::Result<BreakStub> make_stub(const Code& code, int index, const FrameShape& shape, std::optional<StackUse> use, std::optional<AnswerUse> answer) {
  const Instruction& i = code.instructions()[index];
  if (!use) return base::Error{.what = std::string(op_name(i.op)) + " cannot run on its own"};
  const auto entries = static_cast<int>(shape.stack_null.size());
  if (use->popped > entries) return base::Error{.what = std::string(op_name(i.op)) + " needs more than the stack holds"};
  BreakStub stub;
  stub.popped = use->popped;
  stub.whole_stack = i.handler >= 0;
  const int given = stub.whole_stack ? entries : use->popped;
  const int below = given - use->popped;
  bool below_has_null = false;
  for (int e = entries - given; e < entries - use->popped; ++e) below_has_null |= shape.stack_null[e];
  if (use->pushed >= 0) stub.ways[0] = {true, answer ? answer->target : index + 1, use->pushed, use->with_null};
  if (use->pushed_on_jump >= 0) stub.ways[1] = {true, i.target, use->pushed_on_jump, false};
  if (answer && answer->what == AnswerUse::What::end_loop) stub.ways[1].dropped = 1;
  if (answer && (answer->what == AnswerUse::What::jump_if_true || answer->what == AnswerUse::What::jump_if_false)) stub.ways[0].dropped = 1;
  if (is_generator(code) && i.handler >= 0) return base::Error{.what = "a generator cannot go on inside a block: its handlers may yield"};

  Parts parts;
  parts.with_body = stub.whole_stack;
  parts.is_stub = true;
  parts.stack_size = entries + std::max(use->pushed, use->popped) + 2;
  Assembler& a = parts.prologue;
  emit_entry(code, shape, entries - given, parts);
  const int begin = a.units();
  if (!answer && i.op == Op::CALL && index > 0 && code.instructions()[index - 1].op == Op::KW_NAMES) a.emit(code.instructions()[index - 1].raw_op, code.instructions()[index - 1].raw_arg);
  int jump = -1, caches = 0;
  if (answer) {
    a.emit("CALL", 0);
    jump = emit_use(code, parts, *answer);
    caches = caches_of_jump();
  } else if (use->pushed_on_jump >= 0) {
    // Jumps of the copy lead forward, to the other answer.
    static constexpr struct { Op op; const char* old_name; const char* name; } kJumps[] = {
        {Op::POP_JUMP_IF_TRUE, "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_IF_TRUE"}, {Op::POP_JUMP_IF_FALSE, "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_IF_FALSE"},
        {Op::POP_JUMP_IF_NONE, "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_IF_NONE"},
        {Op::POP_JUMP_IF_NOT_NONE, "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_IF_NOT_NONE"},
        {Op::JUMP_IF_TRUE_OR_POP, "JUMP_IF_TRUE_OR_POP", ""}, {Op::JUMP_IF_FALSE_OR_POP, "JUMP_IF_FALSE_OR_POP", ""}, {Op::FOR_ITER, "FOR_ITER", ""}};
    for (const auto& row : kJumps) {
      if (row.op != i.op) continue;
      const auto number = opcode_number(row.old_name) ? opcode_number(row.old_name) : opcode_number(row.name);
      if (!number) return base::Error{.what = std::string(op_name(i.op)) + " has no spelling in this Python"};
      if (i.op == Op::POP_JUMP_IF_TRUE || i.op == Op::POP_JUMP_IF_FALSE) emit_truth(a);
      jump = a.emit_jump(*number);
      caches = (*opcode_rows())[*number].caches;
    }
  } else if (i.op == Op::LOAD_METHOD) {
    if (opcode_number("LOAD_METHOD")) a.emit("LOAD_ATTR", i.arg);   // 3.11: the attribute itself, called without self, is the same call
    else a.emit("LOAD_ATTR", i.arg << 1);
  } else if (i.op == Op::UNARY_NOT) {
    emit_truth(a);
    a.emit("UNARY_NOT");
  } else if (i.op == Op::LOAD_GLOBAL) {
    a.emit(i.raw_op, i.arg << 1);
  } else if (i.op == Op::LOAD_SUPER_ATTR) {
    a.emit(i.raw_op, i.raw_arg & ~1);
  } else {
    a.emit(i.raw_op, i.raw_arg);
  }
  const int end = a.units();
  if (stub.ways[0].exists) emit_answer(code, parts, use->pushed, 0, below, below_has_null);
  if (jump >= 0) {
    a.land(jump, caches);
    if (!answer && i.op == Op::FOR_ITER) {   // 3.12 jumps to an END_FOR and skips it, 3.13 also the POP_TOP after it
      if (opcode_number("END_FOR")) a.emit("END_FOR");
      if (PY_VERSION_HEX >= 0x030D0000) a.emit("POP_TOP");
    }
    if (answer && answer->what == AnswerUse::What::end_loop) a.emit("POP_TOP");
    emit_answer(code, parts, use->pushed_on_jump, 1, below, below_has_null);
  }
  if (stub.whole_stack) {
    const Handler& h = code.handlers()[i.handler];
    parts.handlers.push_back({begin, end, a.units() + 1 + code.first_offset(h.target) / 2, h.depth, h.lasti});
    a.emit("NOP");   // carries the table of lines back to where the original's begins
  }
  const SourceSpan span = span_of(code, i);
  int line = code.object()->co_firstlineno;
  append_location(parts.locations, begin, {}, line);
  const int tail = stub.whole_stack ? 1 : 0;
  append_location(parts.locations, a.units() - begin - tail, span, line);
  if (tail) append_location(parts.locations, 1, {code.object()->co_firstlineno, code.object()->co_firstlineno, -1, -1}, line);
  CUTAWAY_TRY_ASSIGN(stub.code, assemble(code, std::move(parts)));
  return stub;
}
}  // namespace

ObjectRef bind_made_code(const Code& original, PyObject* made, PyObject* globals, PyObject* outer, const std::vector<PyObject*>& slots,
                         const std::vector<PyObject*>& stack, std::vector<PyObject*>& arguments) {
  const int locals = own_slot_count(original), others = original.slot_count() - locals;
  arguments.clear();
  for (int s = 0; s < locals; ++s) arguments.push_back(slots[s] ? slots[s] : Py_None);
  ObjectRef closure = take(PyTuple_New(others + 1));
  if (!closure) return {};
  const int outer_count = outer ? static_cast<int>(PyTuple_GET_SIZE(outer)) : 0;
  for (int s = locals; s < original.slot_count(); ++s) {
    PyObject* cell = slots[s];
    const int free = s - (original.slot_count() - original.object()->co_nfreevars);
    if (!cell && original.slot_kind(s) == SlotKind::free && free < outer_count) cell = PyTuple_GET_ITEM(outer, free);
    PyTuple_SET_ITEM(closure.get(), s - locals, cell ? Py_NewRef(cell) : PyCell_New(nullptr));
  }
  Py_ssize_t values = 0;
  for (PyObject* o : stack) values += o != nullptr;
  ObjectRef packed = take(PyTuple_New(values));
  if (!packed) return {};
  for (PyObject* o : stack)
    if (o) PyTuple_SET_ITEM(packed.get(), --values, Py_NewRef(o));
  PyTuple_SET_ITEM(closure.get(), others, PyCell_New(packed.get()));
  ObjectRef result = take(PyFunction_New(made, globals));
  if (!result || PyFunction_SetClosure(result.get(), closure.get()) < 0) return {};
  return result;
}

}  // namespace cutaway::bytecode
