// What this machine can do at most, measured once and kept beside compiled code: how fast memory is copied and how many multiplications and additions are done.
#pragma once
#include "core/base/result.h"

namespace cutaway::native {

struct MachineLimits {
  double bytes_per_s = 0;        ///< read and written, by a copy that no cache holds
  double operations_per_s = 0;   ///< float32, a fused multiply-add counts as two
  int threads = 1;               ///< torch's, at that time
};
/// Found once a process; takes about half a second the first time on a machine. The Error: there is no compiler.
const base::Result<MachineLimits>& machine_limits();

}  // namespace cutaway::native
