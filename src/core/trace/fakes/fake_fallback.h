// Runs one operator on fake tensors. Internal to core/trace.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "core/trace/fakes/operator_info.h"

namespace cutaway::trace {
/// Arguments on the stack become results. True for `handles_as_fake` must hold.
void run_fake(const c10::OperatorHandle&, const OperatorInfo&, torch::jit::Stack*);
/// Whether this call belongs to fake tensors: one is among the arguments, or FakeMode is on and it is not a question about real data.
bool handles_as_fake(const OperatorInfo&, const torch::jit::Stack&);
}  // namespace cutaway::trace
