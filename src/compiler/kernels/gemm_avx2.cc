// The product for machines with AVX2 and FMA. See gemm_avx512.cc for the order of things in this file.
#include "compiler/kernels/gemm_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace cutaway::kernels {
namespace {

constexpr int kRegisters = 16;
constexpr int kMaxRows = 6;

template <class T>
struct Vec;

template <>
struct Vec<float> {
  using Type = __m256;
  static constexpr int64_t kWidth = 8;
  static Type zero() { return _mm256_setzero_ps(); }
  static Type load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Type x) { _mm256_storeu_ps(p, x); }
  static Type broadcast(float x) { return _mm256_set1_ps(x); }
  static Type add(Type x, Type y) { return _mm256_add_ps(x, y); }
  static Type fma(Type x, Type y, Type z) { return _mm256_fmadd_ps(x, y, z); }
  static float sum(Type x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  /// Rows that are four apart share a register, so that only pieces within 128 bits have to change places.
  static void transpose(const float* in, int64_t in_stride, float* out, int64_t out_stride) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < 8; i += 4) {
      __m256 r[4];
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) {
        const float* at = in + j * in_stride + i;
        r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)), _mm_loadu_ps(at + 4 * in_stride), 1);
      }
      const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1])), high01 = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
      const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3])), high23 = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
      float* to = out + i * out_stride;
      store(to, _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23)));
      store(to + out_stride, _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23)));
      store(to + 2 * out_stride, _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23)));
      store(to + 3 * out_stride, _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23)));
    }
  }
};

template <>
struct Vec<double> {
  using Type = __m256d;
  static constexpr int64_t kWidth = 4;
  static Type zero() { return _mm256_setzero_pd(); }
  static Type load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Type x) { _mm256_storeu_pd(p, x); }
  static Type broadcast(double x) { return _mm256_set1_pd(x); }
  static Type add(Type x, Type y) { return _mm256_add_pd(x, y); }
  static Type fma(Type x, Type y, Type z) { return _mm256_fmadd_pd(x, y, z); }
  static double sum(Type x) {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  static void transpose(const double* in, int64_t in_stride, double* out, int64_t out_stride) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < 4; i += 2) {
      const double* at = in + i;
      const __m256d even = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(at)), _mm_loadu_pd(at + 2 * in_stride), 1);
      const __m256d odd = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(at + in_stride)), _mm_loadu_pd(at + 3 * in_stride), 1);
      store(out + i * out_stride, _mm256_unpacklo_pd(even, odd));
      store(out + (i + 1) * out_stride, _mm256_unpackhi_pd(even, odd));
    }
  }
};

#include "compiler/kernels/gemm_body.inc"
#include "compiler/kernels/conv_body.inc"
#include "compiler/kernels/attention_body.inc"

}  // namespace

const GemmBuild gemm_avx2 = {"avx2", multiply<float>, multiply<double>, pack_whole<float>, pack_whole<double>, kConvF32, kConvF64, attend_all};

}  // namespace cutaway::kernels
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
