#include "core/exec/random_state.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

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
  if (!at::hasCUDA()) return;
  const auto& cuda = at::detail::getCUDAHooks();
  for (int i = 0; i < cuda.getNumGPUs(); ++i)   // asking a device without a context for its generator would make one
    if (cuda.hasPrimaryContext(static_cast<c10::DeviceIndex>(i))) add(at::globalContext().defaultGenerator(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(i))));
}

RandomStateScope::~RandomStateScope() {
  for (auto& [generator, state] : before_) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace cutaway::exec
