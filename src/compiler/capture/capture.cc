#include "compiler/capture/capture.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>
#include <torch/csrc/PyInterpreter.h>

#include <cstdint>
#include <optional>

#include "compiler/capture/break_hints.h"
#include "compiler/capture/effects/plan_builder.h"
#include "compiler/capture/torch/torch_calls.h"
#include "compiler/capture/trace.h"
#include "compiler/capture/values/types.h"
#include "compiler/frames/call_log.h"
#include "compiler/frames/stack_names.h"

namespace cutaway::capture {
namespace {

frames::CaptureResult finish(Trace& trace, Value* result, frames::BreakReason* reason, const frames::Compile& compile) {
  frames::Plan plan;
  plan.sources = trace.sources_;
  if (!result && !trace.has_stopped()) {
    Value* e = trace.raised();
    const std::string* by = trace.doubted(e);
    const std::string error = trace.text_of_error(e);
    plan.ending = frames::RunEagerly{{.id = by ? "raises-while-traced" : "raises", .what = by ? trace.doubt_text(*by, e) : "the program raises " + error, .stack = trace.stack_of(e)},
                                     e && e->type ? e->type->tp_name : ""};
    plan.guards = std::move(trace.guards);
    return plan;
  }
  PlanBuilder builder(trace, plan);
  builder.enter_contexts();
  builder.remembered_calls();
  if (trace.has_stopped()) {
    if (trace.is_handling()) {   // what is raised later would lack the exception that is being handled now
      trace.earlier_stop = trace.handling_since();   // CPython raises and handles it then
      throw frames::Skip{{.id = "break-in-except", .what = "the graph cannot end inside an except block"}};
    }
    if (auto step = trace.listed_class()) {
      trace.earlier_stop = step;
      throw frames::Skip{{.id = "class-definition", .what = "the graph cannot end behind the definition of a class that its bases list"}};
    }
    plan.ending = builder.break_here(*reason);
  } else {
    plan.ending = frames::ReturnValue{builder.recipe(result)};
  }
  builder.add_effects();
  // What the program keeps is known now; the others are freed.
  if (!trace.close_generators())
    throw frames::Skip{{.id = "generator-left-open", .what = "a generator is left inside a try or with block, whose end would run when it is freed", .stack = trace.user_stack()}};
  builder.guard_writes();
  plan.guards = std::move(trace.guards);
  if (!builder.compile_graph(compile)) return frames::BackendRaised{};
  return plan;
}

// Why a frame is left to Python, where that follows from a reason for which its graph had to end: the user is told that one, and what to do about it.
frames::BreakReason follows_from(const frames::BreakReason& cause, std::string id, std::string what) {
  const std::string hint = cause.hint.empty() ? std::string(hint_for(id)) : cause.hint;
  return {.id = std::move(id), .what = std::move(what), .hint = hint, .stack = cause.stack, .cause = std::make_shared<const frames::BreakReason>(cause), .raises = cause.raises};
}

// A loop that goes on after a break: its iterator came with the stack, and Python must ask it.
bool is_loop_left_open(Trace& trace) {
  const Frame* f = trace.innermost();
  if (!f || f->stack.empty() || f->code->instructions()[f->pc].op != bytecode::Op::FOR_ITER) return false;
  PyObject* cells = trace.view.function->func_closure;
  PyObject* given = cells && PyTuple_GET_SIZE(cells) ? PyCell_GET(PyTuple_GET_ITEM(cells, PyTuple_GET_SIZE(cells) - 1)) : nullptr;
  for (Py_ssize_t i = 0; given && PyTuple_Check(given) && i < PyTuple_GET_SIZE(given); ++i)
    if (PyTuple_GET_ITEM(given, i) == f->stack.back()->real) return true;
  return false;
}

frames::InternalError internal(Trace& trace, const std::string& what, std::string backtrace) {
  PyErr_Clear();
  frames::InternalError e;
  std::vector<frames::BreakReason::Frame> stack = trace.user_stack();
  e.error = {.what = what};
  e.backtrace = std::move(backtrace);
  if (!stack.empty()) e.error.place = stack.back().file + ":" + std::to_string(stack.back().line);
  if (const Frame* f = trace.innermost(); f && f->pc < f->code->instructions().size()) {
    const bytecode::Instruction& in = f->code->instructions()[f->pc];
    e.instruction = std::string(bytecode::op_name(in.op)) + " at " + std::to_string(in.offset);
  }
  e.where = {.id = "internal-error", .what = what, .stack = std::move(stack)};
  return e;
}

}  // namespace

frames::CaptureResult capture_frame(const frames::FrameView& view, const bytecode::Code& code, const frames::CaptureOptions& options, const frames::Compile& compile) {
  constexpr int kMostAttempts = 8;   // places to end the graph at that are tried
  std::optional<Stop> stop;
  std::vector<uint64_t> outer_stops;   // the calls around the place of the break: where to end the graph when the frames inside cannot go on
  frames::BreakReason reason;
  bool bare = false;
  ClassData class_data;
  // A mode of the user's would run while capturing, at every call of torch's. Devices as contexts are torch's own.
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i) {
    PyObject* mode = at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter());
    if (std::string_view(Py_TYPE(mode)->tp_name) != "DeviceContext") return frames::Skip{{.id = "function-mode", .what = "a TorchFunctionMode is active"}};
  }
  for (int attempt = 0;; ++attempt) {
    frames::begin_call_log();
    Trace trace(options, view, code, stop ? &*stop : nullptr, class_data);
    try {
      if (bare) trace.torch_calls().make_all_bare();
      (void)Trace::keys_were_compared();
      Value* result = trace.run_outermost();
      if (Trace::keys_were_compared()) return frames::Skip{{.id = "hash-of-a-class", .what = "a key is compared with one of another class, and the hashes of both are the same", .stack = trace.user_stack()}};
      return finish(trace, result, &reason, compile);
    } catch (const RestartBare&) {
      PyErr_Clear();
      bare = true;
      --attempt;
    } catch (const StartOver&) {
      PyErr_Clear();
      --attempt;   // each finds one more, and there are as many as the program has stores
    } catch (const Break& b) {
      PyErr_Clear();
      frames::BreakReason found{.id = b.id, .what = b.what, .hint = b.hint.empty() ? std::string(hint_for(b.id)) : b.hint, .stack = trace.user_stack(), .raises = trace.torch_calls().breaks_raise()};
      if (const auto before = frames::left_by(view.code); before && b.id == "opaque-iterator" && is_loop_left_open(trace)) {
        std::vector<frames::BreakReason::Frame> here = std::move(found.stack);
        found = follows_from(*before, b.id, "Python asks the iterator of a loop that was open at an earlier break for the next item");
        found.stack = std::move(here);
        found.raises = trace.torch_calls().breaks_raise();
      }
      if (*found.raises) return frames::Skip{std::move(found)};   // the session raises it
      if (stop) return frames::Skip{follows_from(found, "trace-differs", "the code ran differently when it was captured a second time")};
      // What is behind the break would let go of variables that nobody reads any more; weak references tell that.
      const auto is_weak = [](const std::string& text) { return text.find("weakref") != std::string::npos || text.find("weak reference") != std::string::npos || text.find("WeakSet") != std::string::npos; };
      if (is_weak(found.what) || (!found.stack.empty() && is_weak(found.stack.back().file))) 
        return frames::Skip{follows_from(found, "weak-reference", "the graph cannot end where weak references are used: they show when variables are freed")};
      if (code.looks_at_its_frame())
        return frames::Skip{follows_from(found, "looks-at-its-frame", "the graph cannot end in a function that may look at its own frame or local variables")};
      for (const Frame* f : trace.open_frames()) {
        outer_stops.push_back(f->step);
        if (options.outermost_only) break;
      }
      if (outer_stops.empty()) return frames::Skip{std::move(found)};
      stop = Stop{outer_stops.back()};
      outer_stops.pop_back();
      reason = std::move(found);
    } catch (frames::Skip& s) {
      PyErr_Clear();
      if (s.reason.hint.empty()) s.reason.hint = hint_for(s.reason.id);
      if (!s.reason.raises) s.reason.raises = trace.torch_calls().breaks_raise();
      if (!stop && trace.earlier_stop && s.reason.id == "stand-in") {
        stop = Stop{*trace.earlier_stop};   // CPython makes it
        reason = s.reason;
        continue;
      }
      if (!stop || s.reason.id == "deep-recursion" || s.reason.id == "too-long") return std::move(s);
      // The graph may still end earlier: before the value was made that stands in the way, or at a call further out.
      debug::say(options.sink, "breaks", debug::Level::debug, "the graph ends further out: " + s.reason.what);
      if (trace.earlier_stop && *trace.earlier_stop < stop->step) {
        stop->step = *trace.earlier_stop;
        std::erase_if(outer_stops, [&](uint64_t o) { return o >= stop->step; });
      } else if (!outer_stops.empty()) {
        stop->step = attempt + 2 < kMostAttempts ? outer_stops.back() : outer_stops.front();
        std::erase_if(outer_stops, [&](uint64_t o) { return o >= stop->step; });
      } else {
        return frames::Skip{follows_from(reason, s.reason.id, s.reason.what)};
      }
      if (attempt == kMostAttempts) return frames::Skip{follows_from(reason, s.reason.id, s.reason.what)};
    } catch (const c10::Error& e) {
      return internal(trace, e.what_without_backtrace(), options.verbose ? e.backtrace() ? e.backtrace()->get() : c10::get_backtrace() : "");
    } catch (const std::exception& e) {
      return internal(trace, e.what(), options.verbose ? c10::get_backtrace() : "");   // of the place that caught it: the standard library keeps no other
    }
  }
}

}  // namespace cutaway::capture
