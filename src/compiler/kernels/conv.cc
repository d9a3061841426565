#include "compiler/kernels/conv.h"

#include "compiler/kernels/gemm_kernels.h"

namespace cutaway::kernels {
namespace {

const GemmBuild& best_of_convolutions() { return *gemm_builds().front(); }

}  // namespace

void convolve(const Convolution& c, const float* x, const float* weight, const float* bias, float* out, const ConvolutionEpilogue<float>& epilogue, const Parallel& parallel) {
  best_of_convolutions().conv_f32.forward(c, x, weight, bias, out, epilogue, parallel);
}
void convolve(const Convolution& c, const double* x, const double* weight, const double* bias, double* out, const ConvolutionEpilogue<double>& epilogue, const Parallel& parallel) {
  best_of_convolutions().conv_f64.forward(c, x, weight, bias, out, epilogue, parallel);
}
void convolve_back(const Convolution& c, const float* grad, const float* weight, float* grad_x, const Parallel& parallel) {
  best_of_convolutions().conv_f32.backward(c, grad, weight, grad_x, parallel);
}
void convolve_back(const Convolution& c, const double* grad, const double* weight, double* grad_x, const Parallel& parallel) {
  best_of_convolutions().conv_f64.backward(c, grad, weight, grad_x, parallel);
}
void convolve_weight(const Convolution& c, const float* grad, const float* x, float* grad_weight, const Parallel& parallel) {
  best_of_convolutions().conv_f32.to_weight(c, grad, x, grad_weight, parallel);
}
void convolve_weight(const Convolution& c, const double* grad, const double* x, double* grad_weight, const Parallel& parallel) {
  best_of_convolutions().conv_f64.to_weight(c, grad, x, grad_weight, parallel);
}

}  // namespace cutaway::kernels
