// Generators: suspended frames of the trace, resumed by whoever drives them.
#include "compiler/capture/effects/effects.h"
#include "compiler/capture/interpreter/interpreter.h"
#include "compiler/capture/torch/tensor_trace.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/exceptions.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/names.h"
#include "compiler/capture/values/types.h"
#include "compiler/capture/values/values.h"

namespace cutaway::capture {

Value* Interpreter::make_generator(Frame* frame) {
  Value* v = values.new_value(Kind::generator, known().generator);
  Generator& g = values.give<Generator>(v);
  g.frame = frame;
  g.made_at = frame_stack.open_frames(frame->caller).back()->step;
  frame->is_direct = false;
  frame->ending = nullptr;
  generators_.push_back(v);
  return v;
}

Value* Interpreter::run_inlined(Frame* frame) {
  Value* const handled = handled_;
  Value* r = run(frame);
  handled_ = handled;
  return r;
}

Value* Interpreter::resume_generator(Value* v, Value* sent, Value* thrown) {
  const Tail tail = endings.take_tail();
  Generator& g = body<Generator>(v);
  if (g.is_running && values.stands_for_c(g.frame->function)) stop("opaque-iterator", "an iterator is asked for an item while it makes one");   // C lets that pass
  if (g.is_running) return exceptions.raise(PyExc_ValueError, std::string(v->type->tp_name) + " already executing");
  last_return_ = values.none();
  if (g.is_done) {
    if (v->type == &PyCoro_Type) return exceptions.raise(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
    if (thrown) return exceptions.raise(thrown);
    return nullptr;
  }
  Frame* frame = g.frame;
  if (!g.is_started && sent && !values.is_constant(sent, Py_None)) return exceptions.raise(PyExc_TypeError, std::string("can't send non-None value to a just-started ") + v->type->tp_name);
  g.is_running = true;
  frame->is_direct = tail.is && v->type != &PyCoro_Type && !thrown;
  frame->ending = tail.ending;
  // A generator has its own exception that is being handled; where it has none, that of whoever resumed it shows.
  Value *const handled = handled_, *const outside = handled_outside_;
  handled_outside_ = this->handled();
  handled_ = g.handled;
  Value* r = nullptr;
  if (thrown) {
    r = throw_into(frame, thrown, g.is_started);
  } else {
    frame->stack.push_back(sent ? sent : values.none());
    g.is_started = true;
    r = run(frame);
  }
  g.is_started = true;
  g.handled = handled_;
  handled_ = handled;
  handled_outside_ = outside;
  g.is_running = false;
  if (r && frame->yielded) return r;
  g.is_done = true;
  if (!r) {
#if PY_VERSION_HEX < 0x030C0000
    if (exceptions.raised_is(PyExc_StopIteration)) {   // from 3.12 the bytecode does it
      Value* cause = exceptions.take_raised();
      Value* error = exceptions.make_exception(PyExc_RuntimeError, {values.text(std::string(v->type->tp_name) + " raised StopIteration")});
      body<Object>(error).slots.emplace_back(names().__cause__, cause);
      return exceptions.raise(error);
    }
#endif
    return nullptr;
  }
  last_return_ = r;
  return nullptr;
}

bool Interpreter::close_generators() {
  const bool stopped = std::exchange(stopped_, false);
  Value* const result = exceptions.drop_raised();
  const Stop* const stop_at = std::exchange(stop_, nullptr);
  bool clean = true;
  for (size_t i = 0; i < generators_.size() && clean; ++i) {
    Generator& g = body<Generator>(generators_[i]);
    if (!g.is_started && !g.is_done && generators_[i]->type == &PyCoro_Type) clean = false;   // Python warns that nobody awaited it
    if (g.is_kept || !g.is_started || g.is_done || g.is_running || !g.frame->pc || g.frame->code->instructions()[g.frame->pc - 1].handler < 0) continue;
    const size_t before = effects.effect_count() + tensors.node_count();
    Value* v = resume_generator(generators_[i], nullptr, exceptions.make_exception(PyExc_GeneratorExit, {}));
    if (v || (exceptions.raised() && !exceptions.raised_is(PyExc_GeneratorExit))) clean = false;
    exceptions.drop_raised();
    clean = clean && effects.effect_count() + tensors.node_count() == before;
  }
  stopped_ = stopped;
  exceptions.raise(result);
  stop_ = stop_at;
  return clean;
}

// An exception at the place where the generator is suspended.
Value* Interpreter::throw_into(Frame* frame, Value* thrown, bool is_started) {
  if (!is_started) return exceptions.raise(thrown);
  // The suspended instruction is the one before pc: a yield. Its handler is where the exception goes.
  const auto& in = frame->code->instructions()[frame->pc - 1];
  // Delegation: `yield from` gives it to the inner generator first.
  if (frame->pc >= 2 && frame->code->instructions()[frame->pc - 2].op == bytecode::Op::SEND && !frame->stack.empty()) {
    Value* inner = frame->stack.back();
    if (values.kind(inner) == Kind::generator) {
      const bool closes = PyType_IsSubtype(thrown->type, reinterpret_cast<PyTypeObject*>(PyExc_GeneratorExit));
      Value* r = resume_generator(inner, nullptr, thrown);
      if (r && !closes) return frame->yielded = r;
      if (closes) {   // the inner one is closed, then it goes on here
        if (r) exceptions.raise(PyExc_RuntimeError, "generator ignored GeneratorExit");
        else if (!exceptions.raised() || exceptions.raised_is(PyExc_GeneratorExit) || exceptions.raised_is(PyExc_StopIteration)) { exceptions.take_raised(); exceptions.raise(thrown); }
      } else if (!exceptions.raised()) {
        frame->pc = end_delegation(frame, frame->code->instructions()[frame->pc - 2]);
        return run(frame);
      }
      thrown = exceptions.take_raised();
    } else if (Kind k = inner->kind; k == Kind::object || k == Kind::opaque) {
      stop("throw-into-delegation", "an exception is thrown into a generator that delegates to another kind of object with yield from");
    }
  }
  if (in.handler < 0) return exceptions.raise(thrown);
  frame->stack.push_back(values.none());   // CPython sends it first
  const bytecode::Handler& h = frame->code->handlers()[static_cast<size_t>(in.handler)];
  frame->stack.resize(static_cast<size_t>(h.depth));
  if (h.lasti) frame->stack.push_back(values.integer(in.offset / 2));
  frame->stack.push_back(thrown);
  frame->pc = static_cast<uint32_t>(h.target);
  return run(frame);
}

}  // namespace cutaway::capture
