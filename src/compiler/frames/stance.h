// What torch.compiler.set_stance and torch._dynamo.error_on_graph_break say at this moment. Torch keeps both in variables of its Python modules, which are
// read here; what follows from them is decided where a frame is run or compiled (session.cc) and where a graph ends (capture).
#pragma once
#include <Python.h>

#include <cstdint>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::frames {

struct Stance {
  enum class Kind : uint8_t {
    compile,              ///< "default"
    force_eager,          ///< nothing is compiled, and nothing that was compiled is used
    eager_on_recompile,   ///< what was compiled is used where its guards hold; everything else runs eagerly
    fail_on_recompile,    ///< the same, but where something would have to be compiled an exception is raised
    eager_first,          ///< the first call of a function runs eagerly, later ones are compiled: "eager_then_compile" and its like
  };
  Kind kind = Kind::compile;
  bytecode::ObjectRef backend;   ///< force_backend: takes the place of every compiled function's own; may be empty
};
/// With the GIL. A stance that we do not know counts as force_eager: eager is always right.
const Stance& current_stance();

/// The dictionary in which torch keeps the switch of error_on_graph_break, and the switch's name there. Null while nobody has imported torch._dynamo.
PyObject* break_switch_home();
inline constexpr const char* kBreakSwitch = "_error_on_graph_break";
/// Must a graph break raise, as far as code outside of compiled functions says?
bool breaks_raise_now();

}  // namespace cutaway::frames
