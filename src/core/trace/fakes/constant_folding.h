// Values of tensors that a program makes from constants alone (arange, a comparison of two masks): with them a question such as
// `if mask.all():` has an answer although tensors are fake. A value is worked out when it is asked for; until then the tensor only
// remembers the call that made it. Internal to core/trace.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <optional>

#include "core/trace/fakes/operator_info.h"

namespace cutaway::trace {

/// A call whose arguments are constants, or results of such calls.
class KnownCall {
 public:
  KnownCall(const c10::OperatorHandle& op, torch::jit::Stack arguments, uint32_t depth) : op_(op), arguments_(std::move(arguments)), depth_(depth) {}
  /// Result `index`, lists taken apart; undefined when it cannot be worked out: an argument was written to, or is too large.
  at::Tensor result(size_t index);
  uint32_t depth() const { return depth_; }

 private:
  void work_out();
  c10::OperatorHandle op_;
  torch::jit::Stack arguments_;
  std::vector<at::Tensor> results_;
  uint32_t depth_ = 0;
  bool is_done_ = false;
};

/// Whether the values of all tensors among the arguments can be known.
bool are_known(const OperatorInfo&, const torch::jit::Stack&);
/// The arguments with real tensors in place of fake ones; nothing when one cannot be worked out.
std::optional<torch::jit::Stack> known_arguments(const torch::jit::Stack& arguments);
/// Runs the operator on known arguments. Nothing is recorded and nothing is fake meanwhile.
torch::jit::Stack run_really(const c10::OperatorHandle&, torch::jit::Stack arguments);
/// The results remember the call that made them; its arguments must be known.
void remember_call(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack arguments, const torch::jit::Stack& results);

}  // namespace cutaway::trace
