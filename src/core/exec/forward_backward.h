// Running a graph forward and, where something requires it, backward: what the comparison compares.
// For values of torch's own kinds; Python models, whose outputs may be of any class, have their own run in the Python package.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/exec/interpreter.h"
#include "core/exec/random_state.h"
#include "core/exec/region_state.h"

namespace cutaway::exec {

/// Anything that takes boxed inputs and gives outputs: a Program, a compiled graph, a Python callable.
using Runnable = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>& inputs)>;
/// Refers to the program, which must outlive it.
Runnable runnable(const Program&);

/// True when any tensor inside requires grad.
bool requires_bwd_pass(const std::vector<c10::IValue>& outputs);
/// Sum / count of any tensor (integers too), mean of the parts of a list, a tuple or a dict. Refuses by type.
base::Result<at::Tensor> reduce_to_scalar_loss(const std::vector<c10::IValue>& outputs);

/// What backward starts from.
enum class Loss : uint8_t {
  /// Each output is given a gradient of its own: fixed numbers of -7/4 to 7/4, none of them 0, by the output's position, which every dtype holds
  /// exactly. A mean would have no gradient behind a softmax, and hardly one for a large output.
  cotangents,
  mean,   ///< reduce_to_scalar_loss, as torch's debugger does
};
struct ForwardBackwardOptions {
  bool only_forward = false;
  Loss loss = Loss::cotangents;
  bool disable_clone = false;   ///< runs on the inputs themselves: they may be changed, and their gradients are
  std::optional<StateSetting> backward_state;   ///< around the backward pass; none: as around the call
  /// Tensors that the function holds itself (parameters and buffers of a module): they count as further inputs, and are as before afterwards.
  std::vector<at::Tensor> held;
  bool ignore_non_fp = false;   ///< outputs that are not floating point or complex tensors are left out of the results
};
/// What a run did, to be compared with another run.
struct RunResults {
  std::vector<c10::IValue> outputs;
  std::vector<at::Tensor> input_gradients;   ///< one an input tensor that requires grad, in order; none counts as zero. Empty with only_forward
  std::vector<at::Tensor> inputs_after;      ///< every input tensor as the run left it, in order, to see mutation
  std::vector<size_t> gradient_of, input_of; ///< the position of the input that each of those two belongs to
  bool ran_backward = false;
};
/// The gradient that output number `position` (counting tensors inside of lists too) is given: a contiguous tensor of its sizes and dtype.
at::Tensor cotangent(const at::Tensor& output, size_t position);
/// Runs on clones that keep aliases, with gradients cleared first. Backward runs when an output requires it; parts of the outputs that are no
/// tensors (sizes, none) do not count there, and of a complex mean the sum of both parts is taken. Same random state on
/// entry every time (`start`), the caller's random state restored on exit. Torch's exceptions pass through. In a Python process the
/// caller must not hold the GIL: autograd's threads may need it.
RunResults run_fwd_maybe_bwd(const Runnable&, const std::vector<c10::IValue>& inputs, const ForwardBackwardOptions& = {}, const RandomStart& start = 1337);

/// The results as one list in torch's order: the outputs (a tuple), an empty slot for the loss, and tuples of the gradients of parameters,
/// the parameters, the buffers, and the gradients of the other inputs. `kinds` are the inputs of the graph that ran.
std::vector<c10::IValue> collect_results(const RunResults&, const std::vector<c10::IValue>& inputs, const std::vector<ir::Input>& kinds);

}  // namespace cutaway::exec
