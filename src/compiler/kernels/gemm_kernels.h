// One build of the product an instruction set. Internal to compiler/kernels: gemm.cc chooses, tests run them all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/kernels/attention.h"
#include "compiler/kernels/conv.h"
#include "compiler/kernels/gemm.h"

namespace cutaway::kernels {

/// A product as the builds see it: sizes are positive (k may be 0), options and batches are filled in.
template <class T>
struct Product {
  int64_t m, n, k;
  MatrixOf<T> a, b;
  T* c;
  int64_t c_row_stride;
  OptionsOf<T> options;
  Batches batches;
};

template <class T>
struct ConvBuildOf {
  void (*forward)(const Convolution&, const T* x, const T* weight, const T* bias, T* out, const ConvolutionEpilogue<T>&, const Parallel&);
  void (*backward)(const Convolution&, const T* grad, const T* weight, T* grad_x, const Parallel&);
  void (*to_weight)(const Convolution&, const T* grad, const T* x, T* grad_weight, const Parallel&);
};

struct GemmBuild {
  const char* name;
  void (*f32)(const Product<float>&, const Parallel&);
  void (*f64)(const Product<double>&, const Parallel&);
  int64_t (*pack_f32)(int64_t m, int64_t n, int64_t k, const MatrixOf<float>& b, float* out);
  int64_t (*pack_f64)(int64_t m, int64_t n, int64_t k, const MatrixOf<double>& b, double* out);
  ConvBuildOf<float> conv_f32;
  ConvBuildOf<double> conv_f64;
  bool (*attention)(const Attention&, const float* q, const float* k, const float* v, const float* mask, float* out, float* logsumexp, const Parallel&);
};

extern const GemmBuild gemm_baseline;
#if defined(__x86_64__)
extern const GemmBuild gemm_avx2;
extern const GemmBuild gemm_avx512;
#endif

/// The builds that this machine can run, the best one first.
const std::vector<const GemmBuild*>& gemm_builds();

/// At least `bytes` bytes that belong to the calling thread, aligned to a page; the next call on this thread may give the same ones.
void* gemm_scratch(size_t bytes);

}  // namespace cutaway::kernels
