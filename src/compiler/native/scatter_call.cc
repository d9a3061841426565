// Additions at places that indices name, spread over torch's threads.
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "compiler/kernels/scatter.h"
#include "compiler/native/kernel_call.h"

namespace cutaway::native {
namespace {

constexpr int64_t kGrain = 32768;   ///< elements for which a thread is worth waking

template <class T> void add(const codegen::Scatter& s, const kernels::ScatterAdd& how, void* const* buffers) {
  T* target = static_cast<T*>(buffers[s.target]);
  if (s.base) std::memcpy(target, static_cast<const T*>(buffers[*s.base]) + s.base_offset, sizeof(T) * static_cast<size_t>(s.elements));
  else std::memset(target, 0, sizeof(T) * static_cast<size_t>(s.elements));
  const int64_t* index = static_cast<const int64_t*>(buffers[s.index]) + s.index_offset;
  const T* source = static_cast<const T*>(buffers[s.source]) + s.source_offset;
  const int last = how.dims - 1;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= how.sizes[d];
  std::atomic<bool> bad{false};
  const auto run = [&](int64_t first, int64_t past) {
    if (!kernels::scatter_add<T>(how, index, source, target, first, past)) bad = true;
  };
  // Columns of one row go to different places: threads may share them. Elements with indices of their own may not.
  const bool can_share = how.index_strides[last] == 0 && how.target_strides[last] != 0;
  if (can_share) at::parallel_for(0, how.sizes[last], std::max<int64_t>(16, kGrain / std::max<int64_t>(1, rows)), run);
  else run(0, how.sizes[last]);
  if (bad) *static_cast<int*>(buffers[s.buffers.size() + 1]) = 1;
}

}  // namespace

KernelCall::Body scatter_body(const codegen::Scatter& s) {
  kernels::ScatterAdd how;
  how.dims = static_cast<int>(s.sizes.size());
  std::ranges::copy(s.sizes, how.sizes);
  std::ranges::copy(s.index_strides, how.index_strides);
  std::ranges::copy(s.source_strides, how.source_strides);
  std::ranges::copy(s.target_strides, how.target_strides);
  how.limit = s.limit;
  how.row = s.row;
  how.skip = s.skip;
  how.wraps = s.wraps;
  return [s, how](void* const* buffers) {
    if (s.dtype == ir::DType::f32) add<float>(s, how, buffers);
    else add<double>(s, how, buffers);
  };
}

}  // namespace cutaway::native
