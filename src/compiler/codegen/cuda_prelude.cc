#include "compiler/codegen/emit_cuda.h"

namespace cutaway::codegen {
namespace {

constexpr const char* kCudaText = R"(
#define INLINE static __device__ __forceinline__
typedef unsigned short half_bits;                              // half, as bits
struct bf16_bits { unsigned short bits; };                     // bfloat16, as bits
#define F32_INF __int_as_float(0x7f800000)
#define F32_NAN __int_as_float(0x7fc00000)
#define F64_INF __longlong_as_double(0x7ff0000000000000ll)
#define F64_NAN __longlong_as_double(0x7ff8000000000000ll)

/// Neighbours in memory, read and written at once.
template <class T, int V> struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Vec { T at[V]; };
template <int V, class T> INLINE Vec<T, V> read(const T* p) { return *reinterpret_cast<const Vec<T, V>*>(p); }
template <int V, class T> INLINE Vec<T, V> read_if(bool holds, const T* p) {
  Vec<T, V> none = {};
  return holds ? *reinterpret_cast<const Vec<T, V>*>(p) : none;
}
template <int V, class T> INLINE void write(T* p, const Vec<T, V>& v) { *reinterpret_cast<Vec<T, V>*>(p) = v; }

INLINE float number(bf16_bits h) { return __int_as_float((unsigned)h.bits << 16); }
INLINE float number(half_bits h) { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
INLINE float number(float x) { return x; }
INLINE double number(double x) { return x; }
INLINE long number(long x) { return x; }
INLINE int number(int x) { return x; }
INLINE int number(short x) { return x; }
INLINE int number(signed char x) { return x; }
INLINE int number(unsigned char x) { return x; }
INLINE bool number(bool x) { return x; }
template <class T> INLINE T memory(T x) { return x; }
INLINE half_bits memory_f16(float x) { half_bits h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
INLINE bf16_bits memory_bf16(float x) {
#if __CUDA_ARCH__ >= 800
  bf16_bits h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
#else
  const unsigned u = __float_as_uint(x), near = u + 0x7fffu + ((u >> 16) & 1u);
  return {(unsigned short)(x != x ? 0x7fffu : near >> 16)};
#endif
}
INLINE float round_bf16(float x) { return number(memory_bf16(x)); }
INLINE float round_f16(float x) { return number(memory_f16(x)); }

template <class T> INLINE T maximum(T a, T b) { return a > b || a != a ? a : b; }    // what is not a number stays
template <class T> INLINE T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> INLINE T fmaximum(T a, T b) { return a >= b || b != b ? a : b; }
template <class T> INLINE T fminimum(T a, T b) { return a <= b || b != b ? a : b; }
template <class T> INLINE T sign(T x) { return T(x > T(0)) - T(x < T(0)); }
INLINE float absolute(float x) { return fabsf(x); }
INLINE double absolute(double x) { return fabs(x); }
INLINE int absolute(int x) { return x < 0 ? -x : x; }
INLINE long absolute(long x) { return x < 0 ? -x : x; }
INLINE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
INLINE double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// For kernels that give halves and bfloat16 alone: errors are below 1e-5 of the value, which their roundings hide.
INLINE float quick_exp(float x) { float y; asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f)); return y; }
INLINE float quick_reciprocal(float x) { float y; asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float quick_rsqrt(float x) { float y; asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float quick_sigmoid(float x) { return quick_reciprocal(1.0f + quick_exp(-x)); }
/// 1 + erf(x), by erfc(z) = exp(-z z) t p(t), t = 1 / (1 + 0.55 z): nothing is lost where erf(x) is nearly -1.
INLINE float quick_erf_plus_one(float x) {
  const float z = fabsf(x), t = quick_reciprocal(1.0f + 0.55f * z);
  float p = fmaf(0.0988496020f, t, -0.301855922f);
  p = fmaf(p, t, 0.177184731f);
  p = fmaf(p, t, 0.138614610f);
  p = fmaf(p, t, 0.266719401f);
  p = fmaf(p, t, 0.310187638f);
  p = fmaf(p, t, 0.310304165f);
  const float complement = p * t * quick_exp(-z * z);
  return x < 0.0f ? complement : 2.0f - complement;
}

/// An index that is out of range ends the program's work on the card, as it does in torch's own kernels; the message has the line that asked.
#ifndef __CUDACC_RTC__
extern "C" __device__ void __assertfail(const void*, const void*, unsigned int, const void*, size_t);
#endif
INLINE long index_of(long i, long n, const char* what, const char* file, unsigned line, const char* function) {
  if (i < 0 || i >= n) __assertfail(what, file, line, function, 1);
  return i;
}
INLINE long index_wrapped_of(long i, long n, const char* what, const char* file, unsigned line, const char* function) { return index_of(i < 0 ? i + n : i, n, what, file, line, function); }

struct Sum { template <class T> INLINE T of(T a, T b) { return a + b; } };
struct Product { template <class T> INLINE T of(T a, T b) { return a * b; } };
struct Max { template <class T> INLINE T of(T a, T b) { return maximum(a, b); } };
struct Min { template <class T> INLINE T of(T a, T b) { return minimum(a, b); } };
struct Any { template <class T> INLINE T of(T a, T b) { return a | b; } };
struct All { template <class T> INLINE T of(T a, T b) { return a & b; } };

/// A block's part of a copy: V vectors of 16 bytes a thread.
template <int T, int V> INLINE void copy_part(const char* __restrict from, char* __restrict to, long part, long bytes) {
  Vec<unsigned int, 4> at[V];
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (const long i = ((part * V + v) * T + threadIdx.x) * 16; i < bytes) at[v] = *reinterpret_cast<const Vec<unsigned int, 4>*>(from + i);
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (const long i = ((part * V + v) * T + threadIdx.x) * 16; i < bytes) *reinterpret_cast<Vec<unsigned int, 4>*>(to + i) = at[v];
}
/// [n, C, P] becomes [n, P, C]: D channels of N of the first dimension a block, through shared memory, so that neighbours are read and written together.
template <class T, int C, int P, int D, int N> INLINE void channels_last(const char* __restrict from, char* __restrict to, long part, long count, T* tile) {
  constexpr int BLOCKS = (C + D - 1) / D;   // of one of the first dimension
  const long n = part / BLOCKS * N;
  const int first = (int)(part % BLOCKS) * D, channels = first + D < C ? D : C - first, many = (int)(n + N < count / (C * P) ? N : count / (C * P) - n), one = channels * P;
  const T* const x = reinterpret_cast<const T*>(from) + n * (C * P) + first * P;
  T* const y = reinterpret_cast<T*>(to) + n * (C * P) + first;
  for (int i = threadIdx.x; i < many * one; i += blockDim.x) tile[i] = x[i / one * (C * P) + i % one];
  __syncthreads();
  for (int i = threadIdx.x; i < many * one; i += blockDim.x) {
    const int in_one = i % one, place = in_one / channels, channel = in_one % channels;
    y[(long)(i / one) * (C * P) + place * C + channel] = tile[i - in_one + channel * P + place];
  }
}
/// The same where there are few channels and many places: E elements of the result a block.
template <class T, int C, int P, int E> INLINE void few_channels_last(const char* __restrict from, char* __restrict to, long part, long count) {
  const T* const x = reinterpret_cast<const T*>(from);
  T* const y = reinterpret_cast<T*>(to);
  const long begin = part * E, end = begin + E < count ? begin + E : count;
#pragma unroll 4
  for (long i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const unsigned in_one = (unsigned)(i % (C * P)), place = in_one / C, channel = in_one % C;
    y[i] = x[i - in_one + channel * P + place];
  }
}

/// C[M, N] = A[M, K] B[N, K] + bias[N], a tile of 16 x 16 a block. Four groups of 64 threads take a quarter of the steps each, a thread 2 x 2 elements; the quarters
/// are added in a fixed order. While S steps are multiplied the next ones are on their way from memory.
template <int M, int N, int K, int LA, int LB, int S, bool B> INLINE void small_product(const float* __restrict a, const float* __restrict b, const float* __restrict bias, float* __restrict c) {
  constexpr int W = S + 4, V = 32 * S / 1024, Q = S / 4, TILES = (N + 15) / 16;   // W: rows in shared memory, so that eight neighbours lie in different banks
  __shared__ __align__(16) float memory[32 * W];
  const int first = (int)blockIdx.x / TILES * 16, column = (int)blockIdx.x % TILES * 16, t = threadIdx.x, group = t / 64, x = t % 8, y = t % 64 / 8;
  Vec<float, 4> next[V];
  float sum[2][2] = {};
  for (int k = -S; k < K; k += S) {
    if (k >= 0) {
      if (k) __syncthreads();   // everybody has read what lies there
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const int i = v * 256 + t;
        write<4>(memory + i / Q * W + i % Q * 4, next[v]);
      }
      __syncthreads();
    }
    if (k + S < K) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const int i = v * 256 + t, row = i / Q, step = k + S + i % Q * 4;
        Vec<float, 4> none = {};
        if (row < 16) next[v] = first + row < M && step < K ? read<4>(a + (first + row) * LA + step) : none;
        else next[v] = column + row - 16 < N && step < K ? read<4>(b + (column + row - 16) * LB + step) : none;
      }
    }
    if (k < 0) continue;
#pragma unroll 4
    for (int i = group * Q; i < group * Q + Q; i += 4) {
      const Vec<float, 4> a0 = read<4>(memory + y * W + i), a1 = read<4>(memory + (y + 8) * W + i), b0 = read<4>(memory + (16 + x) * W + i), b1 = read<4>(memory + (24 + x) * W + i);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sum[0][0] = fmaf(a0.at[e], b0.at[e], sum[0][0]);
        sum[0][1] = fmaf(a0.at[e], b1.at[e], sum[0][1]);
        sum[1][0] = fmaf(a1.at[e], b0.at[e], sum[1][0]);
        sum[1][1] = fmaf(a1.at[e], b1.at[e], sum[1][1]);
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) memory[group * 256 + (y + i / 2 * 8) * 16 + x + i % 2 * 8] = sum[i / 2][i % 2];
  __syncthreads();
  const int row = first + t / 16, place = column + t % 16;
  if (row >= M || place >= N) return;
  float all = (memory[t] + memory[256 + t]) + (memory[512 + t] + memory[768 + t]);
  if (B) all = all + bias[place];
  c[row * N + place] = all;
}

/// Of the T threads that share a row; all of them get it. The order is fixed. `parts` is one for each warp.
template <class F, int T, class X> INLINE X row_fold(X x, X* parts) {
#pragma unroll
  for (int far = (T < 32 ? T : 32) / 2; far; far /= 2) x = F::of(x, X(__shfl_xor_sync(0xffffffffu, x, far)));
  if (T <= 32) return x;
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = parts[0];
#pragma unroll
  for (int w = 1; w < T / 32; ++w) x = F::of(x, parts[w]);
  return x;
}
)";

}  // namespace

std::string cuda_prelude() { return kCudaText + 1; }

}  // namespace cutaway::codegen
