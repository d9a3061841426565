// The CUDA driver and NVRTC, opened by name at run time: a build needs no toolkit, and a machine without a card gets a message.
// Main functions: driver, compiler, compile_cuda and CudaLibrary::load.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/generate.h"
#include "core/base/result.h"
#include "core/debug/events.h"

namespace cutaway::native {

/// The few functions of libcuda.so.1 that are needed, with types of our own. All give 0 when they succeed.
struct CudaDriver {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char*, int, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*context_current)(void**) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*primary_retain)(void** context, int device) = nullptr;
  int (*module_load)(void** module, const void* image) = nullptr;
  int (*module_function)(void** function, void* module, const char* name) = nullptr;
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, void* stream, void** parameters, void** extra) = nullptr;
  int (*copy)(uint64_t to, uint64_t from, size_t bytes, void* stream) = nullptr;
  int (*is_capturing)(void* stream, int* status) = nullptr;
  int (*error_string)(int, const char**) = nullptr;

  std::string error(int code) const;
};
/// Opened and initialised once. The Error says that there is no driver, or no card.
const base::Result<CudaDriver>& cuda_driver();

/// "cuda:0: NVIDIA H200 (9.0)", one for each card; empty without a driver.
std::vector<std::string> cuda_devices();
/// 90 for compute capability 9.0.
base::Result<int> cuda_architecture(int device);

/// NVRTC's version, "13.0"; the Error says where it was looked for. $CUTAWAY_NVRTC names a library to use.
const base::Result<std::string>& nvrtc_version();
/// Text to machine code for an architecture, from the cache or compiled now. Needs no card.
base::Result<std::string> compile_cuda(const std::string& source, int architecture, debug::Sink*, bool* is_new = nullptr);

/// The CUDA kernels of a program, loaded on a device. Texts that are loaded once stay: a kernel may be running.
class CudaLibrary {
 public:
  /// Compiles in several threads.
  static base::Result<std::shared_ptr<CudaLibrary>> load(const codegen::Program&, int device, debug::Sink*);
  /// Null when there is no such function.
  void* find(const std::string& function) const;
  int64_t compiled_anew() const { return compiled_anew_; }

 private:
  std::unordered_map<std::string, void*> functions_;
  int64_t compiled_anew_ = 0;
};

}  // namespace cutaway::native
