// Convolutions of the native backend in two dimensions, without groups: forward with an epilogue a tile, and both gradients. They run on the
// product's tiles: the weight is read in place (its rows are the product's), and what a window of the input covers is packed a panel at a time,
// from a copy with its zeros around it. Nothing is kept across calls but scratch memory. docs/notes/native_conv.md has measurements.
#pragma once
#include <cstdint>

#include "compiler/kernels/gemm.h"

namespace cutaway::kernels {

/// Sizes are positive; the windows of all results lie inside the padded input.
struct Convolution {
  int64_t batch = 1, channels = 1, height = 1, width = 1;      ///< of the input
  int64_t outputs = 1, out_height = 1, out_width = 1;          ///< channels, rows and columns of the result
  int64_t window_height = 1, window_width = 1;
  int64_t step_y = 1, step_x = 1, pad_y = 0, pad_x = 0, dilation_y = 1, dilation_x = 1;
  int64_t x_strides[4] = {};                                   ///< of the input: batch, channel, row, column; any

  int64_t taps() const { return channels * window_height * window_width; }   ///< of one result: what is summed up
  int64_t positions() const { return out_height * out_width; }
};

template <class T>
struct ConvolutionEpilogue {
  EpilogueOf<T> run = nullptr;       ///< as of a product: matrix `batch` has a row a channel and a column a position
  const void* context = nullptr;
};

/// out[batch, outputs, positions], each after the other = windows of x times weight[outputs, taps] (its taps side by side), and one number of
/// `bias` a channel (or null). `out` may overlap nothing. Sums do not depend on the number of threads.
void convolve(const Convolution&, const float* x, const float* weight, const float* bias, float* out, const ConvolutionEpilogue<float>& = {}, const Parallel& = {});
void convolve(const Convolution&, const double* x, const double* weight, const double* bias, double* out, const ConvolutionEpilogue<double>& = {}, const Parallel& = {});

/// The gradient of the input, laid out as [batch, channels, height, width] without gaps, from that of the result, which has none either.
void convolve_back(const Convolution&, const float* grad, const float* weight, float* grad_x, const Parallel& = {});
void convolve_back(const Convolution&, const double* grad, const double* weight, double* grad_x, const Parallel& = {});

/// The gradient of the weight [outputs, taps].
void convolve_weight(const Convolution&, const float* grad, const float* x, float* grad_weight, const Parallel& = {});
void convolve_weight(const Convolution&, const double* grad, const double* x, double* grad_weight, const Parallel& = {});

}  // namespace cutaway::kernels
