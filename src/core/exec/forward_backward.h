// Running a graph forward and, where something requires it, backward: what the comparison compares. (FEATURES.md section 8.)
#pragma once
#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

#include "core/base/result.h"

namespace cutaway::exec {

/// Anything that takes boxed inputs and gives outputs: a Program, a compiled graph, a Python callable.
using Runnable = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>& inputs)>;

/// True when any tensor inside requires grad.
bool requires_bwd_pass(const std::vector<c10::IValue>& outputs);
/// Sum / count of any tensor (integers too), mean of the parts of a list. Refuses by type.
base::Result<at::Tensor> reduce_to_scalar_loss(const std::vector<c10::IValue>& outputs);

struct ForwardBackwardOptions {
  bool only_forward = false;
  bool disable_clone = false;
  bool ignore_non_fp = false;
};
/// Outputs, then (unless only_forward) an empty slot for the loss, and the gradient of every input that requires one (none counts as zero).
struct RunResults {
  std::vector<c10::IValue> outputs;
  std::vector<at::Tensor> input_gradients;   ///< one a leaf input that requires grad, in order
  std::vector<at::Tensor> inputs_after;      ///< the tensors as the run left them, to see mutation
  bool ran_backward = false;
};
/// Same random state on entry every time (`seed`), the caller's random state restored on exit. Torch's exceptions pass through.
RunResults run_fwd_maybe_bwd(const Runnable&, const std::vector<c10::IValue>& inputs, const ForwardBackwardOptions& = {}, uint64_t seed = 1337);

}  // namespace cutaway::exec
