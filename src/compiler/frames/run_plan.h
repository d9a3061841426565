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
  /// beginning, which raises in the right place, inside the program's own blocks. The exception is set. What a hook on saved tensors raises, and
  /// an interrupt, does not come from an operator: it passes through.
  bool run_again = false;
};
/// While one lives, classes derived from Tensor are not asked, as inside torch._C.DisableTorchFunctionSubclass; or nothing happens.
class WithoutOverriding {
 public:
  explicit WithoutOverriding(bool is);
  ~WithoutOverriding();
  WithoutOverriding(const WithoutOverriding&) = delete;
  WithoutOverriding& operator=(const WithoutOverriding&) = delete;

 private:
  int before_ = -1;
};
/// Graph, recipes and effects. False with a Python exception set. `inputs` are the values of Plan::inputs. Frames of Python are
/// hidden from the hook meanwhile.
bool run_plan(const Plan&, const FrameView&, const std::vector<ObjectRef>& inputs, Made&);
/// Hooks on saved tensors are code of the program in the middle of operators: what they raise belongs into the blocks and after the effects of that
/// moment. False: such hooks are on, and the plan has blocks or effects, or a backend that may save other tensors; or an input has a tangent, which such a
/// backend may lose. The frame runs by CPython then.
bool may_run_now(const Plan&, const std::vector<ObjectRef>& inputs);
/// What the plan does, one step a line: for logs and explain.
std::string plan_text(const Plan&);

}  // namespace cutaway::frames
