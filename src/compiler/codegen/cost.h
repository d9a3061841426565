// What a kernel has to move and to compute, counted in its loop form: what its time is measured against.
#pragma once
#include <cstdint>

#include "compiler/codegen/attention.h"
#include "compiler/codegen/loops.h"
#include "compiler/codegen/product.h"

namespace cutaway::codegen {

struct Cost {
  int64_t bytes = 0;        ///< of memory that is read or written, each element once: caches are not asked
  int64_t operations = 0;   ///< an addition or a multiplication is one, a function (exp, tanh, …) kFunctionOperations; loads, stores and casts are none
};
inline constexpr int64_t kFunctionOperations = 20;

Cost cost_of(const Kernel&);
Cost cost_of(const Product&);
Cost cost_of(const ConvGradient&);
Cost cost_of(const AttentionCall&);

}  // namespace cutaway::codegen
