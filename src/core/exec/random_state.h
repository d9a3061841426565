// The default generators of all devices in use, set to a seed for a while and put back: a check must not use up the user's random numbers.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace cutaway::exec {

/// Seeds the default generators for its lifetime. Devices whose context does not exist yet are left alone.
class RandomStateScope {
 public:
  explicit RandomStateScope(uint64_t seed);
  ~RandomStateScope();
  RandomStateScope(const RandomStateScope&) = delete;
  RandomStateScope& operator=(const RandomStateScope&) = delete;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> before_;
};

}  // namespace cutaway::exec
