// Running a graph forward and, where something requires it, backward: what the comparison compares.
// For values of torch's own kinds; Python models, whose outputs may be of any class, have their own run in the Python package.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/exec/interpreter.h"

namespace cutaway::exec {

/// Anything that takes boxed inputs and gives outputs: a Program, a compiled graph, a Python callable.
using Runnable = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>& inputs)>;
/// Refers to the program, which must outlive it.
Runnable runnable(const Program&);

/// True when any tensor inside requires grad.
bool requires_bwd_pass(const std::vector<c10::IValue>& outputs);
/// Sum / count of any tensor (integers too), mean of the parts of a list, a tuple or a dict. Refuses by type.
base::Result<at::Tensor> reduce_to_scalar_loss(const std::vector<c10::IValue>& outputs);

struct ForwardBackwardOptions {
  bool only_forward = false;
  bool disable_clone = false;   ///< runs on the inputs themselves: they may be changed, and their gradients are
  bool ignore_non_fp = false;   ///< outputs that are not floating point or complex tensors are left out of the results
};
/// What a run did, to be compared with another run.
struct RunResults {
  std::vector<c10::IValue> outputs;
  std::vector<at::Tensor> input_gradients;   ///< one an input tensor that requires grad, in order; none counts as zero. Empty with only_forward
  std::vector<at::Tensor> inputs_after;      ///< every input tensor as the run left it, in order, to see mutation
  bool ran_backward = false;
};
/// Runs on clones that keep aliases, with gradients cleared first. Backward of the scalar loss runs when an output requires it; parts of the
/// outputs that are no tensors (sizes, none) do not count there, and of a complex loss the sum of both parts is taken. Same random state on
/// entry every time (`seed`), the caller's random state restored on exit. Torch's exceptions pass through. In a Python process the
/// caller must not hold the GIL: autograd's threads may need it.
RunResults run_fwd_maybe_bwd(const Runnable&, const std::vector<c10::IValue>& inputs, const ForwardBackwardOptions& = {}, uint64_t seed = 1337);

/// The results as one list in torch's order: the outputs (a tuple), an empty slot for the loss, and tuples of the gradients of parameters,
/// the parameters, the buffers, and the gradients of the other inputs. `kinds` are the inputs of the graph that ran.
std::vector<c10::IValue> collect_results(const RunResults&, const std::vector<c10::IValue>& inputs, const std::vector<ir::Input>& kinds);

}  // namespace cutaway::exec
