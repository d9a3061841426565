#include "compiler/frames/break_code.h"

#include <algorithm>
#include <cstring>

namespace cutaway::frames {
namespace {

struct Root {
  PyCodeObject* object = nullptr;
  std::shared_ptr<const bytecode::Code> code;
  int prologue = 0;
};
base::Result<Root> root_of(PyCodeObject* code) {
  Root root{code, nullptr, 0};
  const CodeState& state = state_of(code);
  if (state.root) {
    root.object = state.root;
    root.prologue = state.prologue;
  }
  CUTAWAY_TRY_ASSIGN(root.code, bytecode::decode_code(root.object));
  return root;
}

// Code that asks for its own variables by name sees all of them, dead ones too.
bool looks_at_its_frame(PyCodeObject* code) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(code->co_names, i));
    if (!name) { PyErr_Clear(); continue; }
    for (const char* w : {"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"})
      if (std::strcmp(name, w) == 0) return true;
  }
  return false;
}

// super() without arguments reads the first argument from the frame, not by an instruction: it must be there, although it looks dead.
bool super_needs_first_argument(const bytecode::Code& code) {
  if (code.argument_count() == 0 || std::none_of(code.slot_names().begin(), code.slot_names().end(), [](const std::string& n) { return n == "__class__"; })) return false;
  return std::none_of(code.instructions().begin(), code.instructions().end(),
                      [](const bytecode::Instruction& i) { return (i.op == bytecode::Op::STORE_FAST || i.op == bytecode::Op::DELETE_FAST) && i.arg == 0; });
}

base::Result<ObjectRef> resume_code(const Root& root, int index, const bytecode::FrameShape& shape) {
  CodeState& state = state_of(root.object);
  std::vector<bool> flags = shape.bound;
  flags.insert(flags.end(), shape.stack_null.begin(), shape.stack_null.end());
  flags.push_back(true);   // tells "no stack" from "an unbound slot more"
  ObjectRef& found = state.resumes[{index, std::move(flags)}];
  if (found) return found;
  CUTAWAY_TRY_ASSIGN(ObjectRef made, bytecode::make_resume_code(*root.code, index, shape));
  CodeState& fresh = state_of(reinterpret_cast<PyCodeObject*>(made.get()));
  fresh.root = root.object;
  CUTAWAY_TRY_ASSIGN(auto decoded, bytecode::decode_code(reinterpret_cast<PyCodeObject*>(made.get())));
  fresh.prologue = static_cast<int>(decoded->instructions().size() - root.code->instructions().size());
  found = made;
  return made;
}

}  // namespace

base::Status prepare_break(Entry& entry, PyCodeObject* code) {
  const Break& b = std::get<Break>(entry.plan.ending);
  CUTAWAY_TRY_ASSIGN(const Root root, root_of(code));
  const int index = b.instruction - root.prologue;
  if (index < 0) return base::Error{.what = "a break inside the prologue of a resume function"};
  const int slots = root.code->slot_count();
  bytecode::FrameShape shape;
  for (int s = 0; s < slots; ++s) shape.bound.push_back(s < static_cast<int>(b.locals.size()) && b.locals[s] != kNull);
  const bool needs_first = super_needs_first_argument(*root.code);
  if (needs_first) shape.bound[0] = true;
  for (RecipeId r : b.stack) shape.stack_null.push_back(r == kNull);
  CUTAWAY_TRY_ASSIGN(entry.stub, bytecode::make_break_stub(*root.code, index, shape));
  state_of(reinterpret_cast<PyCodeObject*>(entry.stub.code.get())).is_stub = true;
  for (int w = 0; w < 2; ++w) {
    const auto& way = entry.stub.ways[w];
    if (!way.exists) continue;
    bytecode::FrameShape next = shape;
    next.stack_null.resize(shape.stack_null.size() - entry.stub.popped);
    if (way.null_below) next.stack_null.push_back(true);
    next.stack_null.insert(next.stack_null.end(), way.pushed, false);
    if (!looks_at_its_frame(root.object)) {
      const std::vector<bool> live = root.code->live_before(way.target);
      for (int s = 0; s < slots; ++s) next.bound[s] = next.bound[s] && (live[s] || (s == 0 && needs_first));
    }
    CUTAWAY_TRY_ASSIGN(entry.ways[w].code, resume_code(root, way.target, next));
    entry.ways[w].bound = next.bound;
  }
  return {};
}

Continuation cross_break(const Entry& entry, const FrameView& frame, const std::vector<ObjectRef>& made) {
  Continuation out;
  const Break& b = std::get<Break>(entry.plan.ending);
  auto root = root_of(frame.code);
  if (!root.ok()) { PyErr_SetString(PyExc_SystemError, root.error().text().c_str()); return out; }
  const bytecode::Code& code = *root->code;
  const bool is_made = root->object != frame.code;
  std::vector<PyObject*> slots(code.slot_count(), nullptr), stack;
  int locals = 0;
  while (locals < code.slot_count() && (code.slot_kind(locals) == bytecode::SlotKind::local || code.slot_kind(locals) == bytecode::SlotKind::local_cell)) ++locals;
  for (int s = 0; s < code.slot_count(); ++s) {
    if (s < static_cast<int>(b.locals.size()) && b.locals[s] != kNull) slots[s] = made[b.locals[s]].get();
    else if (s >= locals && is_made && frame.function->func_closure && s - locals < PyTuple_GET_SIZE(frame.function->func_closure))
      slots[s] = PyTuple_GET_ITEM(frame.function->func_closure, s - locals);
  }
  if (!slots.empty() && !slots[0] && frame.slot_count > 0 && super_needs_first_argument(code)) slots[0] = frame.slots[0];
  for (RecipeId r : b.stack) stack.push_back(r == kNull ? nullptr : made[r].get());
  std::vector<PyObject*> arguments;
  const std::vector<PyObject*> given(entry.stub.whole_stack ? stack.begin() : stack.end() - entry.stub.popped, stack.end());
  ObjectRef stub = bytecode::bind_made_code(code, entry.stub.code.get(), frame.function, slots, given, arguments);
  if (!stub) return out;
  ObjectRef answer = ObjectRef::steal(PyObject_Vectorcall(stub.get(), arguments.data(), arguments.size(), nullptr));
  if (!answer) return out;
  int w = -1;
  if (PyTuple_CheckExact(answer.get()) && PyTuple_GET_SIZE(answer.get()) == 2)
    for (int k = 0; k < 2; ++k)
      if (PyTuple_GET_ITEM(answer.get(), 1) == bytecode::stub_marker(k)) w = k;
  if (w < 0) { out.answer = answer; return out; }   // a handler caught the exception, and the function has returned
  stack.resize(stack.size() - entry.stub.popped);
  if (entry.stub.ways[w].null_below) stack.push_back(nullptr);
  PyObject* values = PyTuple_GET_ITEM(answer.get(), 0);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) stack.push_back(PyTuple_GET_ITEM(values, i));
  for (int s = 0; s < locals; ++s)
    if (!entry.ways[w].bound[s]) slots[s] = nullptr;
  out.function = bytecode::bind_made_code(code, entry.ways[w].code.get(), frame.function, slots, stack, arguments);
  if (!out.function) return out;
  for (PyObject* a : arguments) out.arguments.push_back(ObjectRef::borrow(a));
  return out;
}

}  // namespace cutaway::frames
