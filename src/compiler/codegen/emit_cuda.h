// Loop form -> CUDA C++ text without headers, one function a kernel (two where sums of columns are split over blocks):
//   extern "C" __global__ void k3(const float* __restrict x_, float* __restrict y_)
// No fast mathematics: roundings are those that the terms say. Sums have a fixed order.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// How a kernel's text is started. The parameters are the buffers in order, then the scratch memory where there is some.
struct CudaLaunch {
  int64_t blocks = 0, splits = 1;      ///< of the grid: x and y
  int64_t threads = 0;                 ///< of a block
  int64_t scratch_bytes = 0;           ///< partial sums of columns: a second kernel, named with "_end" behind, adds them up
  int64_t end_blocks = 0;              ///< of that one
  std::vector<int64_t> alignment;      ///< by buffer: what its address must be divisible by
};
struct CudaText { std::string source; CudaLaunch launch; };

/// Why there is no text for a kernel; none when there is.
std::optional<std::string> why_no_cuda(const Kernel&);
CudaText emit_cuda(const Kernel&);

/// What all texts need before them.
std::string cuda_prelude();

}  // namespace cutaway::codegen
