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

/// What is there before anything is added, of some elements.
template <class T> void begin(const codegen::Scatter& s, void* const* buffers, int64_t first, int64_t count) {
  T* target = static_cast<T*>(buffers[s.target]) + first;
  if (s.base) std::memcpy(target, static_cast<const T*>(buffers[*s.base]) + s.base_offset + first, sizeof(T) * static_cast<size_t>(count));
  else std::memset(target, 0, sizeof(T) * static_cast<size_t>(count));
}

template <class T> void add(const codegen::Scatter& s, const kernels::ScatterAdd& how, void* const* buffers) {
  T* target = static_cast<T*>(buffers[s.target]);
  const int64_t* index = static_cast<const int64_t*>(buffers[s.index]) + s.index_offset;
  const T* source = static_cast<const T*>(buffers[s.source]) + s.source_offset;
  const int last = how.dims - 1;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= how.sizes[d];
  std::atomic<bool> bad{false};
  const auto run = [&](int64_t first, int64_t past) {
    if (!kernels::scatter_add<T>(how, index, source, target, first, past)) bad = true;
  };
  // Columns of one row go to different places: threads may share them. Elements with indices of their own may not, but what the first dimension separates (planes of a pool) may:
  // a part is cleared and added to while it lies in a cache.
  const bool can_share = how.index_strides[last] == 0 && how.target_strides[last] != 0;
  const bool has_parts = !can_share && last > 0 && how.target_strides[0] != 0 && how.target_strides[0] * how.sizes[0] == s.elements;
  if (has_parts) {
    const int64_t part = how.target_strides[0];
    at::parallel_for(0, how.sizes[0], std::max<int64_t>(1, kGrain / std::max<int64_t>(1, part)), [&](int64_t first, int64_t past) {
      kernels::ScatterAdd one = how;
      one.sizes[0] = 1;
      for (int64_t i = first; i < past; ++i) {
        begin<T>(s, buffers, i * part, part);
        if (!kernels::scatter_add<T>(one, index + i * how.index_strides[0], source + i * how.source_strides[0], target + i * part, 0, how.sizes[last])) bad = true;
      }
    });
  } else {
    begin<T>(s, buffers, 0, s.elements);
    if (can_share) at::parallel_for(0, how.sizes[last], std::max<int64_t>(16, kGrain / std::max<int64_t>(1, rows)), run);
    else run(0, how.sizes[last]);
  }
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
