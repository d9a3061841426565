// XXH3-128 for machines with AVX2. Standard headers come before the target is raised, so that their inline functions keep
// the baseline's instructions.
#include "core/base/digest_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

namespace cutaway::base::kernels {
#include "core/base/digest_kernel_body.inc"
}  // namespace cutaway::base::kernels
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace cutaway::base::kernels {
const Kernel avx2 = {"avx2", sizeof(XXH3_state_t), whole, reset, update, finish};
}
#endif
