// The code objects of a break: the stub for its instruction and the functions that go on after it, made once an entry.
#pragma once
#include <vector>

#include "compiler/frames/code_state.h"
#include "core/base/result.h"

namespace cutaway::frames {

/// Fills the entry's stubs. `code` is the frame's, possibly itself made.
base::Status prepare_break(Entry&, PyCodeObject* code);

/// The rest of a frame: a function to call, or its answer.
struct Continuation {
  ObjectRef answer;                    ///< the frame is done
  ObjectRef function;                  ///< else: call this …
  std::vector<ObjectRef> arguments;    ///< … with these
};
/// Runs the stubs, each called by that of the frame around it, on what the plan made; what goes on after them is one function again, which
/// calls that of the frame inside it. Null answer and function with a Python exception set: the instruction raised.
/// Whether its end can be noticed (__del__, a suspended generator, a file, weakref.finalize): a variable that holds it keeps it until the frame ends, although nobody reads it any more.
bool acts_when_freed(PyObject*);
Continuation cross_break(const Entry&, const FrameView&, const std::vector<ObjectRef>& made);

}  // namespace cutaway::frames
