// One case in another dtype or at another batch size, for `cutaway sweep`. Text work: the caller has the graph typed anew.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/ir/type.h"
#include "diagnosis/minify/minify.h"

namespace cutaway::flows {

struct Variation {
  std::optional<ir::DType> dtype;   ///< what floating tensors become; none: as recorded
  int64_t batch = 0;                ///< what the leading size of the first user input becomes, wherever that size stands; 0: as recorded
  bool is_any() const { return dtype || batch > 0; }
};

/// Floating inputs of another dtype, and inputs of another size, get seeded random data: recorded data does not fit them. An Error says why the case has no such form:
/// symbolic sizes, no input with a batch, inputs that share memory.
base::Status vary(minify::Case&, const Variation&);

}  // namespace cutaway::flows
