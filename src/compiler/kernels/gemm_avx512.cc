// The product for machines with AVX-512. Standard headers come before the target is raised, so that their inline functions keep
// the baseline's instructions; everything else is in an anonymous namespace, so that no other build links to it.
#include "compiler/kernels/gemm_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"   // GCC 12 takes its own _mm512_undefined_ps for a mistake
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#endif

namespace cutaway::kernels {
namespace {

constexpr int kRegisters = 32;
constexpr int kMaxRows = 14;

template <class T>
struct Vec;

template <>
struct Vec<float> {
  using Type = __m512;
  static constexpr int64_t kWidth = 16;
  static Type zero() { return _mm512_setzero_ps(); }
  static Type load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Type x) { _mm512_storeu_ps(p, x); }
  static Type broadcast(float x) { return _mm512_set1_ps(x); }
  static Type add(Type x, Type y) { return _mm512_add_ps(x, y); }
  static Type fma(Type x, Type y, Type z) { return _mm512_fmadd_ps(x, y, z); }
  static float sum(Type x) { return _mm512_reduce_add_ps(x); }
  /// Each row is read once, as a whole line: rows of a weight often lie in the same few lines of L1.
  static void transpose(const float* in, int64_t in_stride, float* out, int64_t out_stride) {
    __m512 r[16], q[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = load(in + i * in_stride);
    // Rows i, i+4, i+8, i+12: piece j of each (4 elements) into register 4 i + j.
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512 low1 = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x44), high1 = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xee);
      const __m512 low2 = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x44), high2 = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xee);
      q[4 * i] = _mm512_shuffle_f32x4(low1, low2, 0x88);
      q[4 * i + 1] = _mm512_shuffle_f32x4(low1, low2, 0xdd);
      q[4 * i + 2] = _mm512_shuffle_f32x4(high1, high2, 0x88);
      q[4 * i + 3] = _mm512_shuffle_f32x4(high1, high2, 0xdd);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(q[j], q[j + 4])), high01 = _mm512_castps_pd(_mm512_unpackhi_ps(q[j], q[j + 4]));
      const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(q[j + 8], q[j + 12])), high23 = _mm512_castps_pd(_mm512_unpackhi_ps(q[j + 8], q[j + 12]));
      float* to = out + 4 * j * out_stride;
      store(to, _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23)));
      store(to + out_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23)));
      store(to + 2 * out_stride, _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23)));
      store(to + 3 * out_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23)));
    }
  }
};

template <>
struct Vec<double> {
  using Type = __m512d;
  static constexpr int64_t kWidth = 8;
  static Type zero() { return _mm512_setzero_pd(); }
  static Type load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Type x) { _mm512_storeu_pd(p, x); }
  static Type broadcast(double x) { return _mm512_set1_pd(x); }
  static Type add(Type x, Type y) { return _mm512_add_pd(x, y); }
  static Type fma(Type x, Type y, Type z) { return _mm512_fmadd_pd(x, y, z); }
  static double sum(Type x) { return _mm512_reduce_add_pd(x); }
  static void transpose(const double* in, int64_t in_stride, double* out, int64_t out_stride) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < 8; i += 2) {
      __m512d r[2];
#pragma GCC unroll 2
      for (int64_t j = 0; j < 2; ++j) {
        const double* at = in + j * in_stride + i;
        r[j] = _mm512_castpd128_pd512(_mm_loadu_pd(at));
        r[j] = _mm512_insertf64x2(r[j], _mm_loadu_pd(at + 2 * in_stride), 1);
        r[j] = _mm512_insertf64x2(r[j], _mm_loadu_pd(at + 4 * in_stride), 2);
        r[j] = _mm512_insertf64x2(r[j], _mm_loadu_pd(at + 6 * in_stride), 3);
      }
      store(out + i * out_stride, _mm512_unpacklo_pd(r[0], r[1]));
      store(out + (i + 1) * out_stride, _mm512_unpackhi_pd(r[0], r[1]));
    }
  }
};

#include "compiler/kernels/gemm_body.inc"
#include "compiler/kernels/conv_body.inc"
#include "compiler/kernels/attention_body.inc"

}  // namespace

const GemmBuild gemm_avx512 = {"avx512", multiply<float>, multiply<double>, pack_whole<float>, pack_whole<double>, kConvF32, kConvF64, attend_all};

}  // namespace cutaway::kernels
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
