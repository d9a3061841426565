// The product for callers without our headers (bench/gemm.py through ctypes): plain C, and threads of an OpenMP library that the
// caller names by its entry, so that no second pool of threads comes into the process.
#include "compiler/kernels/gemm.h"

namespace {

using OpenMp = void (*)(void (*)(void*), void*, unsigned threads, unsigned flags);   // GOMP_parallel

struct Region {
  void (*body)(void*, int64_t);
  void* context;
  int64_t parts;
  int64_t next;
};

struct Pool {
  OpenMp open_mp;
  int threads;
};

void run_region(void* self, int64_t parts, void (*body)(void*, int64_t), void* context) {
  const Pool& pool = *static_cast<Pool*>(self);
  Region region{body, context, parts, 0};
  pool.open_mp([](void* shared) {
    Region& r = *static_cast<Region*>(shared);
    for (int64_t i; (i = __atomic_fetch_add(&r.next, 1, __ATOMIC_RELAXED)) < r.parts;) r.body(r.context, i);
  }, &region, static_cast<unsigned>(parts < pool.threads ? parts : pool.threads), 0);
}

}  // namespace

/// `open_mp` is GOMP_parallel of the library whose threads are used, or null for the caller's thread alone. `strides` holds those of
/// batches (A, B, C), then rows and columns of A, of B, and rows of C.
extern "C" void cutaway_gemm_f32(void* open_mp, int threads, int64_t batches, int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                                 float* c, const float* bias, const int64_t* strides) {
  using namespace cutaway::kernels;
  Pool pool{reinterpret_cast<OpenMp>(open_mp), threads};
  Options options;
  options.bias = bias;
  Parallel parallel;
  if (open_mp) parallel = {run_region, &pool, threads};
  batched_gemm({batches, strides[0], strides[1], strides[2], 0}, m, n, k, Matrix{a, strides[3], strides[4]}, Matrix{b, strides[5], strides[6]}, c, strides[7], options, parallel);
}
