// Runs a plan on a frame whose guards hold: inputs, graph, new objects, effects, ending.
#pragma once
#include <Python.h>

#include <vector>

#include "compiler/frames/plan.h"

namespace cutaway::frames {

/// What a run leaves behind for its ending.
struct Made {
  std::vector<ObjectRef> objects;   ///< one a recipe
  /// The run failed because an operator of the program raises, before anything has changed. The frame may then be run by CPython from its
  /// beginning, which raises in the right place, inside the program's own blocks. The exception is set.
  bool run_again = false;
};
/// Graph, recipes and effects. False with a Python exception set. `inputs` are the values of Plan::inputs. Frames of Python are
/// hidden from the hook meanwhile.
bool run_plan(const Plan&, const FrameView&, const std::vector<ObjectRef>& inputs, Made&);
/// What the plan does, one step a line: for logs and explain.
std::string plan_text(const Plan&);

}  // namespace cutaway::frames
