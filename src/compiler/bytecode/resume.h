// Code objects that are made, not compiled: a stub runs the one instruction that capture could not, a resume function goes on behind it.
//
// Both keep the layout of the original: all slots of localsplus have their numbers, so the original bytecode follows a short prologue
// unchanged, with its exception and line tables shifted. Every variable of the function's own is an argument; one that is a cell gets its
// cell as the argument (MAKE_CELL does not run again); free variables stay free variables; one more, ".stack", is a tuple of the values
// on the stack. The prologue: COPY_FREE_VARS, RESUME, DELETE_FAST of what is unbound, the stack (PUSH_NULL where it held one), a jump.
// So capture meets a resume function as an ordinary function.
#pragma once
#include <Python.h>

#include <cstdint>
#include <vector>

#include "compiler/bytecode/code.h"
#include "core/base/result.h"

namespace cutaway::bytecode {

/// The state of a frame between two instructions, as far as it decides the code.
struct FrameShape {
  std::vector<bool> bound;        ///< one a slot: a value is there (false: unbound or dead)
  std::vector<bool> stack_null;   ///< one a stack entry, bottom first: true where it is CPython's NULL
};

/// Goes on at instruction `index`. Named and placed like the original, so tracebacks show the user's function and line. Of a generator's code it is
/// a generator function.
base::Result<ObjectRef> make_resume_code(const Code&, int index, const FrameShape&);
/// For a frame whose callee goes on as well: the stack ends with a function and its NULL (kNullOnTop), and `arguments` values. Calls it at the place of the
/// instruction `index`, inside the blocks around that, and goes on with the result as that instruction does (answer_use).
base::Result<ObjectRef> make_calling_resume_code(const Code&, int index, const FrameShape&, int arguments, bool of_generator = false);

/// A generator function whose generator goes on at `index`, the instruction behind the one it is suspended at. Where `is_started`, that is a
/// yield, the stack is what lies below the value sent, and the generator has to be asked once for a None before it stands there.
base::Result<ObjectRef> make_generator_code(const Code&, int index, const FrameShape&, bool is_started);

/// Runs instruction `index` and returns a tuple (values, marker): marker 0 goes on behind it, marker 1 at its jump target; values are
/// what the instruction pushed. When the instruction raises inside a try or with block, the handlers of the original code run here and
/// the stub returns what the function returns.
struct BreakStub {
  ObjectRef code;
  bool whole_stack = false;      ///< it is given the whole stack (a handler may need it), else the `popped` entries at the top
  int popped = 0;                ///< entries that the instruction takes from the top of the stack
  struct Way {
    bool exists = false;
    int target = -1;             ///< index of the instruction to go on at
    int pushed = 0;              ///< values in the answer
    bool with_null = false;      ///< a NULL is to be pushed too (LOAD_METHOD, LOAD_GLOBAL of something that is called); kNullOnTop says where
    int dropped = 0;             ///< entries that lie below and go first
  };
  Way ways[2];
};
/// Refuses instructions that cannot run on their own (inside an except block, of generators).
base::Result<BreakStub> make_break_stub(const Code&, int index, const FrameShape&);
/// For a frame whose callee breaks: the stack ends with a callable and its NULL (kNullOnTop), which is called in place of the instruction `index`.
base::Result<BreakStub> make_call_stub(const Code&, int index, const FrameShape&, bool of_generator = false);
/// The object that marks a stub's answer, by way. Borrowed.
PyObject* stub_marker(int way);

/// A function for a code of either kind. `slots` has one value a slot (cells where the slot holds a cell; null: unbound); `stack` the
/// entries, null for NULLs. `outer` is the closure of the original function (may be null): for free variables that `slots` leaves out.
/// Fills `arguments` with what to call it with. Null with a Python exception set when memory is short.
ObjectRef bind_made_code(const Code& original, PyObject* made, PyObject* globals, PyObject* outer, const std::vector<PyObject*>& slots,
                         const std::vector<PyObject*>& stack, std::vector<PyObject*>& arguments);
/// Variables of the code's own, which are arguments of made code: the first slots.
int own_slot_count(const Code&);

}  // namespace cutaway::bytecode
