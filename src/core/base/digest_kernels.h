// XXH3-128 compiled once for each instruction set; digest.cc picks one when the program starts. Internal to core/base.
// Every set gives the same digests: they differ in speed alone.
#pragma once
#include <cstddef>

#include "core/base/digest.h"

namespace cutaway::base::kernels {

/// The hash in one instruction set. A state is `state_bytes` of memory aligned to 64.
struct Kernel {
  const char* name;
  size_t state_bytes;
  Digest (*whole)(const void* data, size_t bytes);
  void (*reset)(void* state);
  void (*update)(void* state, const void* data, size_t bytes);
  Digest (*finish)(const void* state);
};

extern const Kernel baseline;   ///< what every machine of this architecture has (SSE2, NEON)
#if defined(__x86_64__)
extern const Kernel avx2;
#endif
/// The fastest that this machine can run.
const Kernel& best();

}  // namespace cutaway::base::kernels
