#include "compiler/kernels/attention.h"

#include "compiler/kernels/gemm_kernels.h"

namespace cutaway::kernels {

bool attend(const Attention& a, const float* q, const float* k, const float* v, const float* mask, float* out, float* logsumexp, const Parallel& parallel) {
  return gemm_builds().front()->attention(a, q, k, v, mask, out, logsumexp, parallel);
}

}  // namespace cutaway::kernels
