// The product for any machine: vectors of 16 bytes in the compiler's own extension, products and sums rounded apart.
#include <utility>

#include "compiler/kernels/gemm_kernels.h"

namespace cutaway::kernels {
namespace {

constexpr int kRegisters = 16;
constexpr int kMaxRows = 4;      // one register more for each product, which is not fused with its sum

template <class T>
struct Vec {
  typedef T Type __attribute__((vector_size(16)));
  static constexpr int64_t kWidth = 16 / sizeof(T);
  static Type zero() { return Type{}; }
  static Type load(const T* p) {
    Type x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(T* p, Type x) { __builtin_memcpy(p, &x, sizeof x); }
  static Type broadcast(T x) { return x - Type{}; }     // not Type{} + x, which would turn -0 into 0
  static Type add(Type x, Type y) { return x + y; }
  static Type fma(Type x, Type y, Type z) { return x * y + z; }
  static T sum(Type x) {
    T out[kWidth];
    __builtin_memcpy(out, &x, sizeof x);
    for (int64_t half = kWidth / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i) out[i] += out[i + half];
    return out[0];
  }
  static void transpose(const T* in, int64_t in_stride, T* out, int64_t out_stride) {
    for (int64_t i = 0; i < kWidth; ++i)
      for (int64_t j = 0; j < kWidth; ++j) out[i * out_stride + j] = in[j * in_stride + i];
  }
};

#include "compiler/kernels/gemm_body.inc"
#include "compiler/kernels/conv_body.inc"
#include "compiler/kernels/attention_body.inc"

}  // namespace

const GemmBuild gemm_baseline = {"baseline", multiply<float>, multiply<double>, pack_whole<float>, pack_whole<double>, kConvF32, kConvF64, attend_all};

}  // namespace cutaway::kernels
