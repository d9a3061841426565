// Errors that only real kernels raise: shape inference has passed the call, and the kernel refuses its dtypes, the memory that it would write
// to, or the values that it finds. Whoever runs operators at another time or in another form than the program does asks here first.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace cutaway::trace {

/// Whether the operator may raise on these arguments, which are the last of the stack: real, fake or meta tensors. Errors of shapes do not
/// count, nor does memory that runs out. What is not known counts as one that may.
bool may_raise(const c10::OperatorHandle&, const torch::jit::Stack&);

/// Whether it writes to memory that two elements of a tensor share, or of which it reads other elements: kernels refuse most of these calls, and what
/// the others do depends on the order in which they write.
bool writes_shared_memory(const c10::OperatorHandle&, const torch::jit::Stack&);

}  // namespace cutaway::trace
