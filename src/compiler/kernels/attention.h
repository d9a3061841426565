// Scaled dot-product attention of the native backend, forward, float32: scores, softmax and the weighted sum of values for a few rows at a time, so
// that scores never leave the cache. No dropout.
#pragma once
#include <cstdint>

#include "compiler/kernels/gemm.h"

namespace cutaway::kernels {

/// Strides are those of batch, head, row and column. Sizes are positive; width is at most kMostAttentionWidth.
struct Attention {
  int64_t batch = 1, heads = 1, rows = 1, keys = 1, width = 1;
  int64_t q[4] = {}, k[4] = {}, v[4] = {}, out[4] = {};
  int64_t mask[4] = {};           ///< 0 where it is repeated
  int64_t logsumexp[3] = {};      ///< batch, head, row
  float scale = 1;
  bool is_causal = false;         ///< row i sees keys 0 to i; rows = keys
};
constexpr int64_t kMostAttentionWidth = 256;

/// out = softmax(scale q k^T + mask) v; `mask` may be null. False: some row has no finite largest score or sum (all of it is masked, NaN, infinities),
/// or a value is not finite where causal rows skip it; what was written then means nothing. Sums do not depend on the number of threads.
bool attend(const Attention&, const float* q, const float* k, const float* v, const float* mask, float* out, float* logsumexp, const Parallel& = {});

}  // namespace cutaway::kernels
