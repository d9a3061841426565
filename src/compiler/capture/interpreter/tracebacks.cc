// Tracebacks as the program sees them: an entry for each interpreted frame that an exception passed through. The interpreter notes them; objects are made
// when the program asks. They live as long as the trace: where one leaves it, the graph ends before the exception is raised.
#include "compiler/capture/interpreter/tracebacks.h"

#include <string_view>

#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/interpreter/namespaces.h"
#include "compiler/capture/protocols/attributes.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/guard_log.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"
#include "compiler/guards/source.h"

namespace cutaway::capture {

namespace {
bool is_exception(const Value* v) { return v->kind == Kind::object && PyType_IsSubtype(v->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)); }

int line_of(const Frame* frame, uint32_t pc) {
  int line = 0;
  for (int i = static_cast<int>(pc); i >= 0 && !line; --i) line = frame->code->instructions()[static_cast<size_t>(i)].line;
  return line;
}
}  // namespace

/// As CPython does it: every frame adds itself in front, but for one that raises again what it handles.
void Tracebacks::note_traceback(Value* exception, Frame* frame) {
  if (!is_exception(exception) || exception->real || values.stands_for_c(frame->function)) return;
  raised_at_.try_emplace(exception, frame_stack.open_frames(frame).back()->step);
  TracebackEntry*& first = tracebacks_[exception];
  first = &traceback_entries_.emplace_back(TracebackEntry{frame, frame->pc, first, nullptr});
}

std::optional<uint64_t> Tracebacks::raised_at(Value* exception) const {
  const auto it = raised_at_.find(exception);
  return it == raised_at_.end() || !tracebacks_.contains(exception) ? std::nullopt : std::optional(it->second);
}

std::vector<frames::BreakReason::Frame> Tracebacks::stack_of(Value* exception) {
  std::vector<frames::BreakReason::Frame> all;
  const auto it = tracebacks_.find(exception);
  for (const TracebackEntry* e = it == tracebacks_.end() ? nullptr : it->second; e; e = e->next)
    all.push_back({e->frame->code->file(), line_of(e->frame, e->pc), e->frame->code->qualified_name(), {}});
  return all.empty() ? frame_stack.user_stack() : all;
}

Value* Tracebacks::show_traceback(TracebackEntry* entry) {
  if (!entry) return values.none();
  if (!entry->shown) {
    entry->shown = values.new_value(Kind::object, &PyTraceBack_Type);
    values.give<Object>(entry->shown);
    shown_tracebacks_.emplace(entry->shown, entry);
  }
  return entry->shown;
}

Value* Tracebacks::traceback_of(Value* exception) {
  values.force(exception);
  if (exception->real) return values.new_value(Kind::opaque, &PyTraceBack_Type);
  const auto it = tracebacks_.find(exception);
  return it == tracebacks_.end() ? values.none() : show_traceback(it->second);
}

bool Tracebacks::set_traceback(Value* exception, Value* traceback) {
  values.force(exception);
  values.force(traceback);
  if (exception->real) stop("exception-attribute", "the traceback of an exception that existed before the call is set");
  if (values.is_constant(traceback, Py_None)) {
    tracebacks_.erase(exception);
    return true;
  }
  if (const auto it = shown_tracebacks_.find(traceback); it != shown_tracebacks_.end()) {
    tracebacks_[exception] = it->second;
    return true;
  }
  if (traceback->type == &PyTraceBack_Type || traceback->kind == Kind::opaque) stop("exception-attribute", "a traceback that existed before the call is given to an exception");
  exceptions.raise(PyExc_TypeError, "__traceback__ must be a traceback or None");
  return false;
}

/// What the program asks of a traceback, or of the frame of one.
Value* Tracebacks::traceback_attribute(Value* v, PyObject* name) {
  const std::string_view what = PyUnicode_AsUTF8(name);
  if (name == names().__class__) return values.wrap_constant_object(reinterpret_cast<PyObject*>(v->type));
  if (v->type == &PyTraceBack_Type) {
    const TracebackEntry* entry = shown_tracebacks_.at(v);
    if (what == "tb_next") return show_traceback(entry->next);
    if (what == "tb_lineno") return values.integer(line_of(entry->frame, entry->pc));
    if (what == "tb_frame") {
      Value*& shown = frames_of_tracebacks_[entry->frame];
      if (!shown) {
        shown = values.new_value(Kind::object, &PyFrame_Type);
        values.give<Object>(shown);
        shown_frames_.emplace(shown, entry->frame);
      }
      return shown;
    }
  } else {
    Frame* frame = shown_frames_.at(v);
    if (what == "f_code") return values.constant(reinterpret_cast<PyObject*>(frame->code->object()));
    if (what == "f_lineno") return values.integer(line_of(frame, frame->pc));
    if (what == "f_globals") return namespaces.globals_of(body<Function>(frame->function));
    if (what == "clear") return values.bind_c_method(attributes.lookup_type(v->type, name), v);
  }
  if (!attributes.lookup_type(v->type, name)) return attributes.raise_no_attribute(v, name);
  stop("exception-attribute", std::string("the attribute ") + std::string(what) + " of a " + (v->type == &PyTraceBack_Type ? "traceback" : "frame") + " is read");
}

/// frame.clear(): a frame that has ended lets go of its variables, which nobody sees here; one that runs refuses.
Value* Tracebacks::clear_frame(Value* v) {
  Frame* cleared = shown_frames_.at(v);
  for (const Frame* f = frame_stack.innermost(); f; f = f->caller)
    if (f == cleared) return exceptions.raise(PyExc_RuntimeError, "cannot clear an executing frame");
  for (Value* g : interpreter.generators())
    if (!g->real && body<Generator>(g).frame == cleared && !body<Generator>(g).is_done) stop("exception-attribute", "the frame of a suspended generator is cleared");
  return values.none();
}

Value* Interpreter::none_handled_outside(const std::string& what) {
  const auto* source = guards.sources().handled_exception();
  const guards::ObjectRef now = guards::read_source(*source, view);
  if (now.get() != Py_None) stop("handled-outside", what + ", and a caller of the compiled function is inside an except block");
  return values.force(values.wrap(Py_None, source));
}

}  // namespace cutaway::capture
