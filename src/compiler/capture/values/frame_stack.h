// The frames that are being interpreted, from the captured one to the innermost, and the questions about the current place: stack, line, where a graph may end.
#pragma once
#include <Python.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "compiler/bytecode/code.h"
#include "compiler/capture/values/owners.h"
#include "compiler/capture/values/value.h"
#include "compiler/frames/plan.h"
#include "core/ir/graph.h"

namespace cutaway::capture {

struct Ending;   // endings.h

/// An interpreted frame. Kept by the arena, since a generator's outlives its call.
struct Frame {
  Value* function = nullptr;
  const bytecode::Code* code = nullptr;
  std::vector<Value*> locals;        ///< localsplus: locals, cells, free variables; null: unbound
  std::vector<Value*> stack;
  uint32_t pc = 0;                   ///< index of the instruction
  PyObject* keyword_names = nullptr; ///< KW_NAMES for the next CALL
  Frame* caller = nullptr;
  Value* yielded = nullptr;
  Value* names = nullptr;            ///< the namespace of a class body or of text; null for functions
  Value* shown_locals = nullptr;     ///< what locals() returned
  int depth = 0;
  uint64_t step = 0;                 ///< number of its current instruction among all
  /// Its result is the result of the instruction in its caller, after `ending`: it can go on after a break.
  bool is_direct = false;
  const Ending* ending = nullptr;
};

class FrameStack : protected Owners {
 public:
  explicit FrameStack(const Owners& owners) : Owners(owners) {}
  FrameStack(const FrameStack&) = delete;
  FrameStack& operator=(const FrameStack&) = delete;

  Frame* make_frame(Value* function);
  ir::Location location();
  Frame* outermost() { return outermost_; }
  void set_outermost(Frame* f) { outermost_ = f; }
  /// Frames that can go on after a break, outermost first: the frame, its inlined call, the call inside that, …
  std::vector<Frame*> open_frames() const { return open_frames(current_); }
  std::vector<Frame*> open_frames(Frame* innermost) const;
  uint64_t step_now() const;                           ///< of the innermost instruction that the graph may end before
  Frame* innermost() const { return current_; }
  Frame* innermost_of_user() const;                    ///< the last of user_stack(): no function of ours that stands for C code
  std::vector<frames::BreakReason::Frame> user_stack();
  void label_stack(Value* f, const char* function);

 private:
  friend class EnteredFrame;
  std::deque<Frame> frame_bodies_;
  std::vector<std::shared_ptr<const bytecode::Code>> codes_;
  Frame* outermost_ = nullptr;
  Frame* current_ = nullptr;
};

/// The frame is the innermost one for as long as this lives. It stays so where a C++ exception ends it: the place of that is known then.
class EnteredFrame {
 public:
  EnteredFrame(FrameStack& stack, Frame* frame) : stack_(stack), before_(stack.current_) { stack.current_ = frame; }
  ~EnteredFrame() { if (!std::uncaught_exceptions()) stack_.current_ = before_; }
  EnteredFrame(const EnteredFrame&) = delete;
  EnteredFrame& operator=(const EnteredFrame&) = delete;

 private:
  FrameStack& stack_;
  Frame* before_;
};

}  // namespace cutaway::capture
