// Tracebacks as the captured code sees them: an entry for each interpreted frame that an exception passed through.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"

namespace cutaway::capture {

class Tracebacks : protected Owners {
 public:
  explicit Tracebacks(const Owners& owners) : Owners(owners) {}
  Tracebacks(const Tracebacks&) = delete;
  Tracebacks& operator=(const Tracebacks&) = delete;

  /// An entry of a traceback, that of the outer frame first.
  struct TracebackEntry { Frame* frame; uint32_t pc; TracebackEntry* next; Value* shown; };
  void note_traceback(Value* exception, Frame* frame);
  std::vector<frames::BreakReason::Frame> stack_of(Value* exception);   ///< where it was raised
  Value* traceback_of(Value* exception);               ///< what __traceback__ is
  std::optional<uint64_t> raised_at(Value* exception) const;   ///< the first step that raised it; none where it has no traceback
  bool set_traceback(Value* exception, Value* traceback);
  bool is_traceback(const Value* v) const { return v->kind == Kind::object && !v->real && (v->type == &PyTraceBack_Type || v->type == &PyFrame_Type); }   ///< or a frame of one
  Value* traceback_attribute(Value* v, PyObject* name);
  Value* clear_frame(Value* v);

 private:
  Value* show_traceback(TracebackEntry* entry);

  std::deque<TracebackEntry> traceback_entries_;
  std::unordered_map<const Value*, uint64_t> raised_at_;
  std::unordered_map<Value*, TracebackEntry*> tracebacks_, shown_tracebacks_;   ///< of exceptions; of objects that the program has
  std::unordered_map<Frame*, Value*> frames_of_tracebacks_;
  std::unordered_map<Value*, Frame*> shown_frames_;
};

}  // namespace cutaway::capture
