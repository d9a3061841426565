#include "compiler/capture/capture.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>
#include <torch/csrc/PyInterpreter.h>

#include <cstdint>
#include <optional>

#include "compiler/capture/break_hints.h"
#include "compiler/capture/plan/plan_builder.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/trace.h"
#include "compiler/capture/values/types.h"
#include "compiler/frames/call_log.h"
#include "compiler/frames/size_log.h"
#include "compiler/frames/stack_names.h"

namespace cutaway::capture {
namespace {

frames::CaptureResult finish(const Owners& trace, Value* result, frames::BreakReason* reason, const frames::Compile& compile) {
  frames::Plan plan;
  plan.sources = trace.guards.shared_sources();
  if (!result && !trace.interpreter.has_stopped()) {
    Value* e = trace.exceptions.raised();
    const std::string* by = trace.exceptions.doubted(e);
    const std::string error = trace.exceptions.text_of_error(e);
    plan.ending = frames::RunEagerly{{.id = by ? "raises-while-traced" : "raises", .what = by ? trace.exceptions.doubt_text(*by, e) : "the program raises " + error, .stack = trace.tracebacks.stack_of(e)},
                                     e && e->type ? e->type->tp_name : ""};
    plan.guards = trace.guards.take();
    return plan;
  }
  PlanBuilder builder(trace, plan);
  builder.enter_contexts();
  builder.remembered_calls();
  if (trace.interpreter.has_stopped()) {
    if (trace.interpreter.is_handling()) {   // what is raised later would lack the exception that is being handled now
      trace.interpreter.end_earlier(trace.interpreter.handling_since());   // CPython raises and handles it then
      throw frames::Skip{{.id = "break-in-except", .what = "the graph cannot end inside an except block"}};
    }
    if (auto step = trace.classes.listed_class()) {
      trace.interpreter.end_earlier(step);
      throw frames::Skip{{.id = "class-definition", .what = "the graph cannot end behind the definition of a class that its bases list"}};
    }
    plan.ending = builder.break_here(*reason);
  } else {
    plan.ending = frames::ReturnValue{builder.recipe(result)};
  }
  builder.add_effects();
  // What the program keeps is known now; the others are freed.
  if (!trace.interpreter.close_generators())
    throw frames::Skip{{.id = "generator-left-open", .what = "a generator is left inside a try or with block, whose end would run when it is freed", .stack = trace.frame_stack.user_stack()}};
  builder.guard_writes();
  plan.guards = trace.guards.take();
  if (!builder.compile_graph(compile)) return frames::BackendRaised{};
  return plan;
}

// Why a frame is left to Python, where that follows from a reason for which its graph had to end: the user is told that one, and what to do about it.
frames::BreakReason follows_from(const frames::BreakReason& cause, std::string id, std::string what) {
  const std::string hint = cause.hint.empty() ? std::string(hint_for(id)) : cause.hint;
  return {.id = std::move(id), .what = std::move(what), .hint = hint, .stack = cause.stack, .cause = std::make_shared<const frames::BreakReason>(cause), .raises = cause.raises};
}

// The reason speaks of one, or the code of the library's own ones runs.
bool are_weak_references_used(const Owners& trace) {
  const Frame* f = trace.frame_stack.innermost_of_user();
  return trace.values.has_described_weak_references() || trace.builtins.has_made_weak_reference() || (f && makes_weak_references(trace.values.function(f->function).globals_real));
}

// A method of what stands for numpy's arrays (_polyfills/numpy_arrays.py), which means nothing outside of a trace.
bool stands_for_array(const Owners& trace, const Frame* f) {
  PyObject* globals = trace.values.function(f->function).globals_real;
  PyObject* name = globals ? PyDict_GetItemString(globals, "__name__") : nullptr;
  return name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "cutaway._polyfills.numpy_arrays") == 0;
}

// A loop that goes on after a break: its iterator came with the stack, and Python must ask it.
bool is_loop_left_open(const Owners& trace) {
  const Frame* f = trace.frame_stack.innermost();
  if (!f || f->stack.empty() || f->code->instructions()[f->pc].op != bytecode::Op::FOR_ITER) return false;
  PyObject* cells = trace.view.function->func_closure;
  PyObject* given = cells && PyTuple_GET_SIZE(cells) ? PyCell_GET(PyTuple_GET_ITEM(cells, PyTuple_GET_SIZE(cells) - 1)) : nullptr;
  for (Py_ssize_t i = 0; given && PyTuple_Check(given) && i < PyTuple_GET_SIZE(given); ++i)
    if (PyTuple_GET_ITEM(given, i) == f->stack.back()->real) return true;
  return false;
}

frames::InternalError internal(const Owners& trace, const std::string& what, std::string backtrace) {
  PyErr_Clear();
  frames::InternalError e;
  std::vector<frames::BreakReason::Frame> stack = trace.frame_stack.user_stack();
  e.error = {.what = what};
  e.backtrace = std::move(backtrace);
  if (!stack.empty()) e.error.place = stack.back().file + ":" + std::to_string(stack.back().line);
  if (const Frame* f = trace.frame_stack.innermost(); f && f->pc < f->code->instructions().size()) {
    const bytecode::Instruction& in = f->code->instructions()[f->pc];
    e.instruction = std::string(bytecode::op_name(in.op)) + " at " + std::to_string(in.offset);
  }
  e.where = {.id = "internal-error", .what = what, .stack = std::move(stack)};
  return e;
}

/// Attempts until one holds. Each may find that the graph must end at an earlier place, or that something must be known from the beginning; the next starts over.
class Attempts {
 public:
  Attempts(const frames::FrameView& view, const bytecode::Code& code, const frames::CaptureOptions& options, const frames::Compile& compile)
      : view_(view), code_(code), options_(options), compile_(compile) {}
  frames::CaptureResult run();

 private:
  using Answer = std::optional<frames::CaptureResult>;   // none: another attempt, as the members say by now
  Answer attempt();
  Answer end_before(Trace& trace, const EndOfGraph& end);         ///< the graph cannot hold the current instruction
  Answer end_further_out(Trace& trace, frames::Skip skip);        ///< the frame could not be captured up to there
  void stop_at(uint64_t step) {
    stop_ = Stop{step};
    std::erase_if(outer_stops_, [&](uint64_t o) { return o >= step; });
  }

  static constexpr int kMostAttempts = 8;   // places to end the graph at that are tried
  const frames::FrameView& view_;
  const bytecode::Code& code_;
  const frames::CaptureOptions& options_;
  const frames::Compile& compile_;
  int tried_ = 0;
  std::optional<Stop> stop_;             // where the graph ends, as far as it is known
  std::vector<uint64_t> outer_stops_;    // the calls around that place: where to end the graph when the frames inside cannot go on
  frames::BreakReason reason_;           // why it ends there
  bool is_bare_ = false;                 // see RestartBare
  ClassData class_data_;
};

frames::CaptureResult Attempts::run() {
  for (;; ++tried_)
    if (Answer answer = attempt()) return std::move(*answer);
}

Attempts::Answer Attempts::attempt() {
  frames::begin_call_log();
  Trace trace(options_, view_, code_, stop_ ? &*stop_ : nullptr, class_data_);
  struct Count {   // however the attempt ends
    const Trace& trace;
    ~Count() { if (frames::SizeLog* log = frames::size_log()) log->instructions += trace.interpreter.steps(); }
  } const count{trace};
  try {
    if (is_bare_) trace.torch_calls.make_all_bare();
    Value* result = trace.interpreter.run_outermost();
    if (trace.mappings.keys_were_compared())
      return frames::Skip{{.id = "hash-of-a-class", .what = "a key is compared with one of another class, and the hashes of both are the same", .stack = trace.frame_stack.user_stack()}};
    return finish(trace, result, &reason_, compile_);
  } catch (const RestartBare&) {
    PyErr_Clear();
    is_bare_ = true;
    --tried_;
    return std::nullopt;
  } catch (const StartOver&) {
    PyErr_Clear();
    --tried_;   // each finds one more, and there are as many as the program has stores
    return std::nullopt;
  } catch (const EndOfGraph& end) {
    PyErr_Clear();
    return end_before(trace, end);
  } catch (frames::Skip& skip) {
    PyErr_Clear();
    return end_further_out(trace, std::move(skip));
  } catch (const trace::DataDependentError& e) {   // a size that follows from data was asked for
    PyErr_Clear();
    return end_before(trace, EndOfGraph{"data-dependent-operator", e.what_without_backtrace(), {}});
  } catch (const c10::Error& e) {
    return internal(trace, e.what_without_backtrace(), options_.verbose ? e.backtrace() ? e.backtrace()->get() : c10::get_backtrace() : "");
  } catch (const std::exception& e) {
    return internal(trace, e.what(), options_.verbose ? c10::get_backtrace() : "");   // of the place that caught it: the standard library keeps no other
  }
}

Attempts::Answer Attempts::end_before(Trace& trace, const EndOfGraph& end) {
  frames::BreakReason found{.id = end.id, .what = end.what, .hint = end.hint.empty() ? std::string(hint_for(end.id)) : end.hint, .stack = trace.frame_stack.user_stack(), .raises = trace.torch_calls.breaks_raise()};
  if (const auto before = frames::left_by(view_.code); before && end.id == "opaque-iterator" && is_loop_left_open(trace)) {
    std::vector<frames::BreakReason::Frame> here = std::move(found.stack);
    found = follows_from(*before, end.id, "Python asks the iterator of a loop that was open at an earlier break for the next item");
    found.stack = std::move(here);
    found.raises = trace.torch_calls.breaks_raise();
  }
  if (*found.raises) return frames::Skip{std::move(found)};   // the session raises it
  if (stop_) return frames::Skip{follows_from(found, "trace-differs", "the code ran differently when it was captured a second time")};
  // What goes on after the break lets go of variables that nobody reads any more; weak references show that.
  if (are_weak_references_used(trace))
    return frames::Skip{follows_from(found, "weak-reference", "the graph cannot end where weak references are used: they show when variables are freed")};
  if (code_.looks_at_its_frame())
    return frames::Skip{follows_from(found, "looks-at-its-frame", "the graph cannot end in a function that may look at its own frame or local variables")};
  for (const Frame* f : trace.frame_stack.open_frames()) {
    if (stands_for_array(trace, f)) break;   // Python has the array itself
    outer_stops_.push_back(f->step);
    if (options_.outermost_only) break;
  }
  if (outer_stops_.empty()) return frames::Skip{std::move(found)};
  stop_ = Stop{outer_stops_.back()};
  outer_stops_.pop_back();
  reason_ = std::move(found);
  return std::nullopt;
}

Attempts::Answer Attempts::end_further_out(Trace& trace, frames::Skip skip) {
  using Remedy = frames::BreakReason::Remedy;
  if (skip.reason.hint.empty()) skip.reason.hint = hint_for(skip.reason.id);
  if (!skip.reason.raises) skip.reason.raises = trace.torch_calls.breaks_raise();
  const std::optional<uint64_t> earlier = trace.interpreter.earlier_stop();
  if (!stop_ && earlier && skip.reason.remedy == Remedy::end_before_made) {
    stop_ = Stop{*earlier};   // CPython makes it
    reason_ = std::move(skip.reason);
    return std::nullopt;
  }
  if (!stop_ || skip.reason.remedy == Remedy::none) return skip;
  // The graph may still end earlier: before the value was made that stands in the way, or at a call further out.
  debug::say(options_.sink, "breaks", debug::Level::debug, "the graph ends further out: " + skip.reason.what);
  const frames::Skip none_holds{follows_from(reason_, skip.reason.id, skip.reason.what)};
  if (earlier && *earlier < stop_->step) stop_at(*earlier);
  else if (!outer_stops_.empty()) stop_at(tried_ + 2 < kMostAttempts ? outer_stops_.back() : outer_stops_.front());
  else return none_holds;
  if (tried_ == kMostAttempts) return none_holds;
  return std::nullopt;
}

}  // namespace

frames::CaptureResult capture_frame(const frames::FrameView& view, const bytecode::Code& code, const frames::CaptureOptions& options, const frames::Compile& compile) {
  // A mode of the user would run while capturing, at every call of torch. Devices as contexts are torch's own.
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i) {
    PyObject* mode = at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter());
    if (std::string_view(Py_TYPE(mode)->tp_name) != "DeviceContext") return frames::Skip{{.id = "function-mode", .what = "a TorchFunctionMode is active"}};
  }
  return Attempts(view, code, options, compile).run();
}

}  // namespace cutaway::capture
