#include "core/exec/random_state.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdint>
#include <mutex>

namespace cutaway::exec {

RandomStateScope::RandomStateScope(uint64_t seed) {
  auto add = [&](const at::Generator& shared) {
    at::Generator generator = shared;
    std::lock_guard lock(generator.mutex());
    before_.emplace_back(generator, generator.get_state());
    generator.set_current_seed(seed);
  };
  add(at::globalContext().defaultGenerator(at::Device(at::kCPU)));
  // Nothing here may wake CUDA's driver, not even by counting devices: a worker forks, and a driver that was awake before the fork
  // is of no use after it. Asking a device without a context for its generator would make one.
  // Fake tensors of a device that this build lacks put a guard in its place, but no allocator.
  auto* allocator = c10::impl::hasDeviceGuardImpl(at::kCUDA) ? dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(at::kCUDA)) : nullptr;
  if (!allocator || !allocator->initialized()) return;
  const auto& cuda = at::detail::getCUDAHooks();
  try {
    for (int i = 0; i < cuda.getNumGPUs(); ++i)
      if (cuda.hasPrimaryContext(static_cast<c10::DeviceIndex>(i))) add(at::globalContext().defaultGenerator(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(i))));
  } catch (const c10::Error&) {
    // The driver was awake in the process that forked this one: no program can draw numbers on a GPU here.
  }
}

RandomStateScope::~RandomStateScope() {
  for (auto& [generator, state] : before_) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace cutaway::exec
