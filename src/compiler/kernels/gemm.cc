#include "compiler/kernels/gemm.h"

#include <cassert>
#include <cstdlib>
#include <memory>
#include <new>

#include "compiler/kernels/gemm_kernels.h"

namespace cutaway::kernels {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
struct Scratch {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};

const GemmBuild& best_build() {
  static const GemmBuild& best = *gemm_builds().front();
  return best;
}

template <class T>
Product<T> product_of(const Batches& batches, int64_t m, int64_t n, int64_t k, const MatrixOf<T>& a, const MatrixOf<T>& b, T* c,
                      int64_t c_row_stride, const OptionsOf<T>& options) {
  assert(m >= 0 && n >= 0 && k >= 0 && batches.count >= 0);
  return {m, n, k, a, b, c, c_row_stride, options, batches};
}

}  // namespace

const std::vector<const GemmBuild*>& gemm_builds() {
  static const std::vector<const GemmBuild*> builds = [] {
    std::vector<const GemmBuild*> out;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) out.push_back(&gemm_avx512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(&gemm_avx2);
#endif
    out.push_back(&gemm_baseline);
    return out;
  }();
  return builds;
}

void* gemm_scratch(size_t bytes) {
  thread_local Scratch scratch;
  if (scratch.bytes < bytes) {
    scratch = {};
    size_t rounded = (bytes + 4095) / 4096 * 4096;
    void* memory = std::aligned_alloc(4096, rounded);
    if (!memory) throw std::bad_alloc();
    scratch = {std::unique_ptr<void, Free>(memory), rounded};
  }
  return scratch.memory.get();
}

int64_t pack_weight(int64_t m, int64_t n, int64_t k, const MatrixOf<float>& b, float* out) { return best_build().pack_f32(m, n, k, b, out); }
int64_t pack_weight(int64_t m, int64_t n, int64_t k, const MatrixOf<double>& b, double* out) { return best_build().pack_f64(m, n, k, b, out); }

void batched_gemm(const Batches& batches, int64_t m, int64_t n, int64_t k, const MatrixOf<float>& a, const MatrixOf<float>& b, float* c,
                  int64_t c_row_stride, const OptionsOf<float>& options, const Parallel& parallel) {
  if (m == 0 || n == 0 || batches.count == 0) return;
  best_build().f32(product_of(batches, m, n, k, a, b, c, c_row_stride, options), parallel);
}

void batched_gemm(const Batches& batches, int64_t m, int64_t n, int64_t k, const MatrixOf<double>& a, const MatrixOf<double>& b, double* c,
                  int64_t c_row_stride, const OptionsOf<double>& options, const Parallel& parallel) {
  if (m == 0 || n == 0 || batches.count == 0) return;
  best_build().f64(product_of(batches, m, n, k, a, b, c, c_row_stride, options), parallel);
}

void gemm(int64_t m, int64_t n, int64_t k, const MatrixOf<float>& a, const MatrixOf<float>& b, float* c, int64_t c_row_stride,
          const OptionsOf<float>& options, const Parallel& parallel) {
  batched_gemm({}, m, n, k, a, b, c, c_row_stride, options, parallel);
}

void gemm(int64_t m, int64_t n, int64_t k, const MatrixOf<double>& a, const MatrixOf<double>& b, double* c, int64_t c_row_stride,
          const OptionsOf<double>& options, const Parallel& parallel) {
  batched_gemm({}, m, n, k, a, b, c, c_row_stride, options, parallel);
}

}  // namespace cutaway::kernels
