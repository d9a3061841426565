// A compiled kernel for a CUDA card, launched on torch's current stream.
#pragma once
#include "compiler/codegen/emit_cuda.h"
#include "compiler/native/cuda_driver.h"
#include "compiler/native/kernel_call.h"

namespace cutaway::native {

/// torch's current stream of a device, as the driver takes it.
void* current_cuda_stream(int device);
/// Waits for everything that the device was given.
void finish_cuda_work(int device);

/// The library must have the function (and the one with "_end" behind, where partial sums are added up).
KernelCall::Body cuda_body(const std::shared_ptr<CudaLibrary>&, const std::string& function, const codegen::CudaLaunch&, int device);

}  // namespace cutaway::native
