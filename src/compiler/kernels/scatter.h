// Additions at places that indices name: gradients of embeddings, of indexing and of gather. One place gets its summands in the order of memory, for any
// number of threads: threads share columns, never places.
#pragma once
#include <cstdint>

namespace cutaway::kernels {

constexpr int kMostScatterDims = 8;

/// target[sum of i * target_stride + index * row] += source[sum of i * source_stride], for all i in `sizes`, the last dimension running fastest.
/// The index is read at sum of i * index_stride. Dimensions are up to kMostScatterDims, at least one.
struct ScatterAdd {
  int dims = 1;
  int64_t sizes[kMostScatterDims], index_strides[kMostScatterDims], source_strides[kMostScatterDims], target_strides[kMostScatterDims];
  int64_t limit = 0;        ///< indices below 0, or from this on, are out of range
  int64_t row = 0;          ///< how far apart two indices' places are
  int64_t skip = INT64_MIN; ///< an index that adds nothing
  bool wraps = false;       ///< negative indices count from the end
};

/// The columns [first, past) of the last dimension. False when an index is out of range; what was added until then is of no use.
template <class T> bool scatter_add(const ScatterAdd&, const int64_t* index, const T* source, T* target, int64_t first, int64_t past);
extern template bool scatter_add<float>(const ScatterAdd&, const int64_t*, const float*, float*, int64_t, int64_t);
extern template bool scatter_add<double>(const ScatterAdd&, const int64_t*, const double*, double*, int64_t, int64_t);

}  // namespace cutaway::kernels
