// Random numbers: not loops of ours, but a call that draws from torch's generator the words that eager would draw, in the same order.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

struct Draw {
  enum class Kind : uint8_t { bernoulli, uniform };
  std::string name;              ///< "r3": the call in the fused graph is native.r3
  Kind kind = Kind::bernoulli;
  double p = 0;                  ///< bernoulli: how probable a 1 is
  int64_t count = 0;             ///< elements, in the order of memory
  ir::DType dtype = ir::DType::f32;
  std::vector<Buffer> buffers;   ///< the one that it writes
  /// "r3: 32768 x bernoulli 0.9 f32"
  std::string text() const;
};

/// None for what stays torch's: another generator than the default one, dtypes whose numbers torch draws otherwise.
std::optional<Draw> draw_of(const ir::Graph&, const ir::Node&);

}  // namespace cutaway::codegen
