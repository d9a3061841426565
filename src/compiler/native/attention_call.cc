// Attention on torch's threads.
#include <ATen/Parallel.h>

#include <algorithm>

#include "compiler/kernels/attention.h"
#include "compiler/native/kernel_call.h"

namespace cutaway::native {

KernelCall::Body attention_body(const codegen::AttentionCall& call) {
  kernels::Attention a;
  a.batch = call.batch;
  a.heads = call.heads;
  a.rows = call.rows;
  a.keys = call.keys;
  a.width = call.width;
  a.scale = static_cast<float>(call.scale);
  a.is_causal = call.is_causal;
  std::ranges::copy(call.q.strides, a.q);
  std::ranges::copy(call.k.strides, a.k);
  std::ranges::copy(call.v.strides, a.v);
  std::ranges::copy(call.out.strides, a.out);
  if (call.mask) std::ranges::copy(call.mask->strides, a.mask);
  std::copy_n(call.logsumexp.strides, 3, a.logsumexp);
  return [call, a](void* const* buffers) {
    const auto at = [&](const codegen::AttentionCall::Operand& o) { return static_cast<float*>(buffers[o.buffer]) + o.offset; };
    const kernels::Parallel parallel{spread_over_threads, nullptr, at::in_parallel_region() ? 1 : at::get_num_threads()};
    if (!kernels::attend(a, at(call.q), at(call.k), at(call.v), call.mask ? at(*call.mask) : nullptr, at(call.out), at(call.logsumexp), parallel)) *static_cast<int*>(buffers[call.buffers.size() + 1]) = 1;   // torch's operator runs
  };
}

}  // namespace cutaway::native
