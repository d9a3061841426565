// Values of small tensors that a program makes from constants alone (arange, a comparison of two masks): with them a question such
// as `if mask.all():` has an answer although tensors are fake. Internal to core/trace.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "core/trace/operator_info.h"

namespace cutaway::trace {

/// The arguments with real tensors in place of fake ones, when the values of all of them are known; else nothing.
std::optional<torch::jit::Stack> known_arguments(const OperatorInfo&, const torch::jit::Stack&);
/// Runs the operator on known arguments. Nothing is recorded and nothing is fake meanwhile.
torch::jit::Stack run_really(const c10::OperatorHandle&, torch::jit::Stack arguments);
/// Attaches values to the small fake results of an operator that was called with known arguments.
void attach_values(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack arguments, const torch::jit::Stack& results);

}  // namespace cutaway::trace
