// Convolutions of a program as the hand-written kernels take them.
#pragma once
#include "compiler/codegen/convolution.h"
#include "compiler/kernels/conv.h"

namespace cutaway::native {

kernels::Convolution conv_shape(const codegen::Window&, int64_t batch, int64_t outputs);

}  // namespace cutaway::native
