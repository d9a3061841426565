// The default generators of all devices in use, set to a seed for a while and put back: a check must not use up the user's random numbers.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace cutaway::exec {

/// Where random numbers start: a seed for every generator, or the state of some.
struct RandomStart {
  uint64_t seed = 0;
  std::vector<std::pair<at::Device, at::Tensor>> states;
  RandomStart(uint64_t seed) : seed(seed) {}   // NOLINT: most callers have a seed
};
/// The state of the default generator of each device in use, in hexadecimal digits by device: how bundles keep it.
std::map<std::string, std::string> generators_now();
/// The Error names a device or a text that is none.
base::Result<RandomStart> random_start(uint64_t seed, const std::map<std::string, std::string>& generators);

/// Sets the default generators for its lifetime. Devices whose context does not exist yet are left alone.
class RandomStateScope {
 public:
  explicit RandomStateScope(const RandomStart&);
  ~RandomStateScope();
  RandomStateScope(const RandomStateScope&) = delete;
  RandomStateScope& operator=(const RandomStateScope&) = delete;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> before_;
};

}  // namespace cutaway::exec
