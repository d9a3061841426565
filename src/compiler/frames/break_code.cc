#include "compiler/frames/break_code.h"

#include <algorithm>

#include "compiler/bytecode/stack_use.h"
#include "compiler/guards/tensor_object.h"

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

bool is_generator(const PyCodeObject* code) { return (code->co_flags & CO_GENERATOR) != 0; }

// super() without arguments reads the first argument from the frame, not by an instruction: it must be there, although it looks dead.
bool super_needs_first_argument(const bytecode::Code& code) {
  if (code.argument_count() == 0 || std::none_of(code.slot_names().begin(), code.slot_names().end(), [](const std::string& n) { return n == "__class__"; })) return false;
  return std::none_of(code.instructions().begin(), code.instructions().end(),
                      [](const bytecode::Instruction& i) { return (i.op == bytecode::Op::STORE_FAST || i.op == bytecode::Op::DELETE_FAST) && i.arg == 0; });
}

// In the order of ".stack": the top first, without NULLs. The top may be the function that is called with its NULL, and its variables.
std::vector<StackName> stack_names(const Root& root, int index, PyObject* called, int arguments, const bytecode::FrameShape& shape) {
  const int entries = static_cast<int>(shape.stack_null.size()), own = arguments < 0 ? entries : entries - arguments - 2;
  const bytecode::Instruction& in = root.code->instructions()[static_cast<size_t>(index)];
  const bool of_generator = called && is_generator(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(called)));
  int taken = 0, null_below = 0;   // what the instruction has taken from the stack; a NULL that belongs to its answer
  if (arguments >= 0) {
    const auto use = bytecode::stack_use(in);
    const auto answer = bytecode::answer_use(in, index, of_generator);
    taken = in.op == bytecode::Op::FOR_ITER && !of_generator ? 0 : use ? use->popped : bytecode::operands_while_calling(in, of_generator);
    null_below = !bytecode::kNullOnTop && answer && answer->with_null ? 1 : 0;
  }
  const int below = std::max(own - null_below, 0);
  std::vector<StackName> all = names_on_stack(*root.code, index, below + taken, below);
  all.resize(static_cast<size_t>(std::max(own, 0)));
  if (called && arguments >= 0) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(called));
    const std::string function = PyUnicode_AsUTF8(code->co_qualname);
    all.insert(all.end(), 2, {function, false});   // one of the two is the NULL
    for (int i = 0; i < arguments; ++i) all.push_back({name_in({PyUnicode_AsUTF8(PyTuple_GET_ITEM(code->co_localsplusnames, i)), true}, function), true});
  }
  std::vector<StackName> out;
  for (int i = entries - 1; i >= 0; --i)
    if (!shape.stack_null[static_cast<size_t>(i)] && i < static_cast<int>(all.size())) out.push_back(all[static_cast<size_t>(i)]);
  return out;
}

// `called`: the function that is called first, with so many arguments. One code a callee, so that each has entries of its own.
base::Result<ObjectRef> resume_code(const Root& root, int index, PyObject* called, int arguments, const bytecode::FrameShape& shape, bool is_hidden, const BreakReason& reason) {
  CodeState& state = state_of(root.object);
  std::vector<bool> flags = shape.bound;
  flags.insert(flags.end(), shape.stack_null.begin(), shape.stack_null.end());
  flags.push_back(true);   // tells "no stack" from "an unbound slot more"
  ObjectRef& found = state.resumes[{index, called ? PyFunction_GET_CODE(called) : nullptr, arguments, std::move(flags)}];
  if (found) return found;
  const bool of_generator = called && is_generator(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(called)));
  CUTAWAY_TRY_ASSIGN(ObjectRef made, arguments < 0 ? bytecode::make_resume_code(*root.code, index, shape) : bytecode::make_calling_resume_code(*root.code, index, shape, arguments, of_generator));
  CodeState& fresh = state_of(reinterpret_cast<PyCodeObject*>(made.get()));
  fresh.root = root.object;
  fresh.is_hidden = is_hidden;
  CUTAWAY_TRY_ASSIGN(auto decoded, bytecode::decode_code(reinterpret_cast<PyCodeObject*>(made.get())));
  fresh.prologue = static_cast<int>(decoded->instructions().size() - root.code->instructions().size());
  if (arguments >= 0) fresh.call = index;
  fresh.left_by = reason.cause ? reason.cause : std::make_shared<const BreakReason>(reason);
  fresh.stack_names = stack_names(root, index, called, arguments, shape);
  found = made;
  return made;
}

PyCodeObject* code_of(const OpenFrame& f, PyCodeObject* own) { return f.is_original ? state_of(own).root : f.code ? reinterpret_cast<PyCodeObject*>(f.code.get()) : own; }

/// The instruction of the original code that the frame stands at; -1: none, it is in the prologue.
int original_instruction(const OpenFrame& f, PyCodeObject* code, const Root& root, bool is_call) {
  if (f.instruction >= root.prologue) return f.instruction - root.prologue;
  const int call = state_of(code).call;
  if (is_call || call < 0) return call;
  // The truth of what the callee answered is asked there: the instruction that it goes on at does the same.
  const auto made = bytecode::decode_code(code);
  const auto use = bytecode::answer_use(root.code->instructions()[static_cast<size_t>(call)], call, false);
  const bool asks_truth = made.ok() && (*made)->instructions()[static_cast<size_t>(f.instruction)].op == bytecode::Op::TO_BOOL;
  return asks_truth && use && bytecode::asks_truth(root.code->instructions()[static_cast<size_t>(use->target)].op) ? use->target : -1;
}

bytecode::FrameShape shape_of(const OpenFrame& f, const Root& root) {
  bytecode::FrameShape shape;
  for (int s = 0; s < root.code->slot_count(); ++s) shape.bound.push_back(s < static_cast<int>(f.locals.size()) && f.locals[s] != kNull);
  if (super_needs_first_argument(*root.code)) shape.bound[0] = true;
  for (RecipeId r : f.stack) shape.stack_null.push_back(r == kNull);
  return shape;
}

// A callable with its NULL.
template <class T> void push_with_null(std::vector<T>& stack, T null, T value) {
  if (bytecode::kNullOnTop) std::swap(null, value);
  stack.push_back(null);
  stack.push_back(value);
}

/// A frame behind a break while it is being crossed.
struct Level {
  Root root;
  int index = -1;                        // of the original code
  PyObject *globals = nullptr, *closure = nullptr;
  bool is_hidden = false;
  std::vector<PyObject*> slots, stack;   // borrowed from what the plan made
  bytecode::FrameShape shape;
};

/// Crossing one break: frames call their stubs from the outermost to the innermost.
struct Crossing {
  const Entry& entry;
  std::vector<Level> levels;
  // Which frame goes on, by which way, with which values: the innermost, or one around it whose callee ended in the stub by a handler.
  size_t at = 0;
  int way = 0;
  ObjectRef values;

  ObjectRef run(size_t number);
  Continuation go_on();
};

struct InnerCall { Crossing* crossing; size_t number; };   // crossing: null once the stub has returned
constexpr const char* kInnerCall = "cutaway.inner_call";

PyObject* call_inner(PyObject* self, PyObject*) {
  auto* inner = static_cast<InnerCall*>(PyCapsule_GetPointer(self, kInnerCall));
  if (!inner || !inner->crossing) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "cutaway: a frame that has ended was called again");
    return nullptr;
  }
  return inner->crossing->run(inner->number).release();
}
PyMethodDef inner_method = {"inner", call_inner, METH_NOARGS, nullptr};

// A generator out of which a StopIteration comes raises another exception.
void end_generator_by_error() {
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  ObjectRef error = ObjectRef::steal(PyObject_CallFunction(PyExc_RuntimeError, "s", "generator raised StopIteration"));
  if (!error) { Py_XDECREF(value); return; }
  PyException_SetCause(error.get(), Py_NewRef(value));
  PyException_SetContext(error.get(), value);
  PyErr_SetObject(PyExc_RuntimeError, error.get());
}

// Gives what the frame returned, or None where it goes on; then `at` is that frame or one inside it.
ObjectRef Crossing::run(size_t number) {
  Level& level = levels[number];
  const bytecode::BreakStub& stub = entry.stubs[number];
  const bool is_innermost = number + 1 == levels.size();
  if (level.is_hidden && !is_innermost && !stub.whole_stack) {   // it has no frame where it only hands on
    ObjectRef answer = run(number + 1);
    if (!answer) return {};
    if (at == levels.size()) {
      values = ObjectRef::steal(PyTuple_Pack(1, answer.get()));
      if (!values) return {};
      at = number;
      way = 0;
    }
    return ObjectRef::borrow(Py_None);
  }
  std::vector<PyObject*> stack = level.stack, arguments;
  ObjectRef capsule, inner;
  InnerCall call{this, number + 1};
  if (!is_innermost) {
    capsule = ObjectRef::steal(PyCapsule_New(&call, kInnerCall, nullptr));
    inner = capsule ? ObjectRef::steal(PyCFunction_New(&inner_method, capsule.get())) : ObjectRef();
    if (!inner) return {};
    push_with_null<PyObject*>(stack, nullptr, inner.get());
  }
  const std::vector<PyObject*> given(stub.whole_stack ? stack.begin() : stack.end() - stub.popped, stack.end());
  ObjectRef function = bytecode::bind_made_code(*level.root.code, stub.code.get(), level.globals, level.closure, level.slots, given, arguments);
  if (!function) return {};
  ObjectRef answer = ObjectRef::steal(PyObject_Vectorcall(function.get(), arguments.data(), arguments.size(), nullptr));
  call.crossing = nullptr;
  if (!answer) {
    if (is_generator(level.root.object)) end_generator_by_error();
    return {};
  }
  int w = -1;
  if (PyTuple_CheckExact(answer.get()) && PyTuple_GET_SIZE(answer.get()) == 2)
    for (int k = 0; k < 2; ++k)
      if (PyTuple_GET_ITEM(answer.get(), 1) == bytecode::stub_marker(k)) w = k;
  if (w < 0) {   // a handler caught the exception, and the function has returned
    at = levels.size();
    return answer;
  }
  if (is_innermost || at == levels.size()) {
    at = number;
    way = w;
    values = ObjectRef::borrow(PyTuple_GET_ITEM(answer.get(), 0));
  }
  return ObjectRef::borrow(Py_None);
}

void keep_live(const Level& level, int index, std::vector<bool>& bound) {
  const std::vector<bool> live = level.root.code->live_before(index);
  const bool needs_first = super_needs_first_argument(*level.root.code);
  for (size_t s = 0; s < bound.size(); ++s) bound[s] = bound[s] && (live[s] || (s == 0 && needs_first) || (level.slots[s] && acts_when_freed(level.slots[s])));
}

// The function of the frame that goes on, and around it those of its callers, each of which calls the one before.
Continuation Crossing::go_on() {
  Continuation out;
  std::vector<PyObject*> arguments;
  for (size_t number = at + 1; number-- > 0;) {
    Level& level = levels[number];
    const bytecode::BreakStub& stub = entry.stubs[number];
    bytecode::FrameShape shape = level.shape;
    std::vector<PyObject*> stack = level.stack, slots = level.slots;
    int target = level.index, count = -1;
    if (number == at) {
      const bytecode::BreakStub::Way& w = stub.ways[way];
      if (number + 1 == levels.size()) {   // else the call's operands are not there
        stack.resize(stack.size() - stub.popped);
        shape.stack_null.resize(stack.size());
      }
      for (int i = 0; i < w.dropped; ++i) { stack.pop_back(); shape.stack_null.pop_back(); }
      const auto push_null = [&](bool is_here) { if (w.with_null && is_here) { stack.push_back(nullptr); shape.stack_null.push_back(true); } };
      push_null(!bytecode::kNullOnTop);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values.get()); ++i) { stack.push_back(PyTuple_GET_ITEM(values.get(), i)); shape.stack_null.push_back(false); }
      push_null(bytecode::kNullOnTop);
      target = w.target;
      keep_live(level, target, shape.bound);
    } else {
      count = static_cast<int>(out.arguments.size());
      if (stub.ways[0].with_null && !bytecode::kNullOnTop) { stack.push_back(nullptr); shape.stack_null.push_back(true); }
      push_with_null<PyObject*>(stack, nullptr, out.function.get());
      for (const ObjectRef& a : out.arguments) stack.push_back(a.get());
      push_with_null(shape.stack_null, true, false);
      shape.stack_null.insert(shape.stack_null.end(), out.arguments.size(), false);
      std::vector<bool> jumped = shape.bound;
      keep_live(level, stub.ways[0].target, shape.bound);
      if (stub.ways[1].exists) {
        keep_live(level, stub.ways[1].target, jumped);
        for (size_t s = 0; s < jumped.size(); ++s) shape.bound[s] = shape.bound[s] || jumped[s];
      }
      const int handler = level.root.code->instructions()[target].handler;
      if (handler >= 0) {   // what its blocks need, should the callee raise
        std::vector<bool> more = level.shape.bound;
        keep_live(level, level.root.code->handlers()[handler].target, more);
        for (size_t s = 0; s < more.size(); ++s) shape.bound[s] = shape.bound[s] || more[s];
      }
    }
    const int own = bytecode::own_slot_count(*level.root.code);
    for (int s = 0; s < own; ++s)
      if (!shape.bound[s]) slots[s] = nullptr;
    auto code = resume_code(level.root, target, number == at ? nullptr : out.function.get(), count, shape, level.is_hidden, std::get<Break>(entry.plan.ending).reason);
    if (!code.ok()) { PyErr_SetString(PyExc_SystemError, code.error().text().c_str()); return {}; }
    ObjectRef function = bytecode::bind_made_code(*level.root.code, code->get(), level.globals, level.closure, slots, stack, arguments);
    if (!function) return {};
    std::vector<ObjectRef> kept;
    for (PyObject* a : arguments) kept.push_back(ObjectRef::borrow(a));
    out.function = std::move(function);
    out.arguments = std::move(kept);
  }
  return out;
}

}  // namespace

bool acts_when_freed(PyObject* o) {
  if (PyCell_Check(o)) return PyCell_GET(o) && acts_when_freed(PyCell_GET(o));
  PyTypeObject* type = Py_TYPE(o);
  if (PyType_Check(o) || PyModule_Check(o) || PyFunction_Check(o) || guards::is_tensor(o)) return false;
  if (type->tp_finalize || type->tp_del) return true;
  if (!PyType_SUPPORTS_WEAKREFS(type)) return false;
  for (auto* r = *reinterpret_cast<PyWeakReference**>(PyObject_GET_WEAKREFS_LISTPTR(o)); r; r = r->wr_next)
    if (r->wr_callback) return true;
  return false;
}

base::Status prepare_break(Entry& entry, PyCodeObject* own) {
  Break& b = std::get<Break>(entry.plan.ending);
  for (size_t n = 0; n < b.frames.size(); ++n) {
    OpenFrame& f = b.frames[n];
    if (f.code && f.code.get() == reinterpret_cast<PyObject*>(state_of(own).root)) {   // a recursion
      f.code = {};
      f.is_original = true;
    }
    PyCodeObject* code = code_of(f, own);
    CUTAWAY_TRY_ASSIGN(const Root root, root_of(code));
    const bool is_call = n + 1 < b.frames.size();
    const int index = original_instruction(f, code, root, is_call);
    if (index < 0) return base::Error{.what = "a break inside the prologue of a resume function"};
    bytecode::FrameShape shape = shape_of(f, root);
    if (is_call) {
      push_with_null(shape.stack_null, true, false);
    }
    CUTAWAY_TRY_ASSIGN(auto stub, is_call ? bytecode::make_call_stub(*root.code, index, shape, is_generator(code_of(b.frames[n + 1], own))) : bytecode::make_break_stub(*root.code, index, shape));
    CodeState& state = state_of(reinterpret_cast<PyCodeObject*>(stub.code.get()));
    state.is_stub = true;
    state.is_hidden = f.is_hidden;
    entry.stubs.push_back(std::move(stub));
  }
  return {};
}

Continuation cross_break(const Entry& entry, const FrameView& frame, const std::vector<ObjectRef>& made) {
  const Break& b = std::get<Break>(entry.plan.ending);
  Crossing crossing{entry, {}, 0, 0, {}};
  crossing.at = b.frames.size();
  for (size_t n = 0; n < b.frames.size(); ++n) {
    const OpenFrame& f = b.frames[n];
    PyCodeObject* object = code_of(f, frame.code);
    auto root = root_of(object);
    if (!root.ok()) { PyErr_SetString(PyExc_SystemError, root.error().text().c_str()); return {}; }
    Level level{std::move(*root), 0, nullptr, nullptr, {}, {}, {}};
    const bytecode::Code& code = *level.root.code;
    level.index = original_instruction(f, object, level.root, n + 1 < b.frames.size());
    level.globals = f.globals ? f.globals.get() : frame.function->func_globals;
    level.shape = shape_of(f, level.root);
    level.is_hidden = f.is_hidden;
    level.slots.assign(code.slot_count(), nullptr);
    for (int s = 0; s < code.slot_count() && s < static_cast<int>(f.locals.size()); ++s)
      if (f.locals[s] != kNull) level.slots[s] = made[f.locals[s]].get();
    if (n == 0) {
      // A made function has the original's free variables, and `.stack` behind them.
      level.closure = frame.function->func_closure;
      if (!level.slots.empty() && !level.slots[0] && frame.slot_count > 0 && super_needs_first_argument(code)) level.slots[0] = frame.slots[0];
    }
    for (RecipeId r : f.stack) level.stack.push_back(r == kNull ? nullptr : made[r].get());
    crossing.levels.push_back(std::move(level));
  }
  ObjectRef answer = crossing.run(0);
  if (!answer) return {};
  if (crossing.at == crossing.levels.size()) {
    Continuation done;
    done.answer = std::move(answer);
    return done;
  }
  return crossing.go_on();
}

}  // namespace cutaway::frames
