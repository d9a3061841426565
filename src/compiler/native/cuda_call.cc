#include "compiler/native/cuda_call.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace cutaway::native {

void* current_cuda_stream(int device) {
  const c10::impl::DeviceGuardImplInterface* torch = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
  return torch->getStreamNativeHandle(torch->getStream(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device))));
}

void finish_cuda_work(int device) { c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->synchronizeDevice(static_cast<c10::DeviceIndex>(device)); }

KernelCall::Body cuda_body(const std::shared_ptr<CudaLibrary>& library, const std::string& name, const codegen::CudaLaunch& how, int device) {
  void* const function = library->find(name);
  void* const end = how.scratch_bytes ? library->find(name + "_end") : nullptr;
  const size_t count = how.alignment.size();
  return [library, function, end, how, device, count, name](void* const* buffers) {
    const CudaDriver& driver = *cuda_driver();
    const c10::DeviceGuard guard(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)));
    at::Tensor scratch;
    void* scratch_at = nullptr;
    if (end) {
      scratch = at::empty({how.scratch_bytes}, at::TensorOptions(at::kByte).device(guard.current_device()));
      scratch_at = scratch.mutable_data_ptr();
    }
    constexpr size_t kFew = 64;
    void* few[kFew];
    std::vector<void*> many;
    void** parameters = few;
    if (count + 1 > kFew) {
      many.resize(count + 1);
      parameters = many.data();
    }
    for (size_t i = 0; i < count; ++i) parameters[i] = const_cast<void**>(buffers + i);
    parameters[count] = &scratch_at;
    void* const stream = current_cuda_stream(device);
    const auto check = [&](int code) { TORCH_CHECK(code == 0, "CUDA error: ", driver.error(code), " (launching native.", name, ")"); };
    const auto threads = static_cast<unsigned>(how.threads);
    check(driver.launch(function, static_cast<unsigned>(how.blocks), static_cast<unsigned>(how.splits), 1, threads, 1, 1, 0, stream, parameters, nullptr));
    if (end) check(driver.launch(end, static_cast<unsigned>(how.end_blocks), 1, 1, threads, 1, 1, 0, stream, parameters, nullptr));
  };
}

}  // namespace cutaway::native
