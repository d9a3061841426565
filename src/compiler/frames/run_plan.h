// Runs a plan on a frame whose guards hold: inputs, graph, new objects, effects, ending.
#pragma once
#include <Python.h>

#include <vector>

#include "compiler/frames/plan.h"

namespace cutaway::frames {

/// What a run leaves behind for its ending.
struct Made {
  std::vector<ObjectRef> objects;   ///< one a recipe
};
/// Graph, recipes and effects. False with a Python exception set. `inputs` are the values of Plan::inputs. Frames of Python are
/// hidden from the hook meanwhile.
bool run_plan(const Plan&, const FrameView&, const std::vector<ObjectRef>& inputs, Made&);
/// What the plan does, one step a line: for logs and explain.
std::string plan_text(const Plan&);

}  // namespace cutaway::frames
