// CPython's side of the frame hook (PEP 523): the only file that knows how an interpreter frame looks inside. 3.11 to 3.13.
#pragma once
#include <Python.h>

#include <functional>

#include "compiler/guards/source.h"

namespace cutaway::frames {

/// Takes what a frame returned (null: an exception is set), and returns what its caller gets.
using ResultCheck = std::function<PyObject*(PyObject*)>;
/// What to do with a frame that is about to run. Gives a new reference, null with an exception set, kRunIt, kRunItHidden or kRunItChecked.
using FrameHandler = PyObject* (*)(const guards::FrameView&, ResultCheck&);
/// Not an object: "let CPython run this frame".
inline PyObject* const kRunIt = reinterpret_cast<PyObject*>(1);
/// The same, and what it calls is not shown either.
inline PyObject* const kRunItHidden = reinterpret_cast<PyObject*>(2);

/// "Let CPython run this frame", and what comes of it goes through the check.
inline PyObject* const kRunItChecked = reinterpret_cast<PyObject*>(3);

/// The handler is asked for frames of functions (no generators, no class bodies) while the hook is installed and the thread has switched
/// it on. False when this Python has no hook that we know.
bool set_frame_handler(FrameHandler);

/// While one lives, this thread's frames are shown to the handler, or not: regions nest, the innermost decides. The first one of the
/// process installs the hook and the last one removes it, because with a hook CPython does not inline calls of Python functions.
class HookScope {
 public:
  enum class Frames { shown, hidden };
  explicit HookScope(Frames);
  ~HookScope();
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

 private:
  bool before_;
  bool counted_;
};
/// The next frame of this code on this thread is run by CPython without asking.
void run_next_natively(PyCodeObject*);

/// Per-code state: freed with the code object.
struct CodeSlot {
  virtual ~CodeSlot() = default;
  /// Tracebacks do not show its frames: they stand for C code.
  virtual bool leaves_no_trace() const { return false; }
};
CodeSlot* get_code_slot(PyCodeObject*);
void set_code_slot(PyCodeObject*, CodeSlot*);   ///< takes ownership; replaces

}  // namespace cutaway::frames
