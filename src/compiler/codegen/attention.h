// Attention for the hand-written kernel: which calls of torch's flash attention it takes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

struct AttentionCall {
  std::string name;                  ///< "a3": the call in the fused graph is native.a3
  std::vector<Buffer> buffers;
  int64_t batch = 1, heads = 1, rows = 1, keys = 1, width = 1;
  double scale = 1;
  bool is_causal = false;
  struct Operand { uint32_t buffer = 0; int64_t offset = 0; int64_t strides[4] = {}; };   ///< batch, head, row, column
  Operand q, k, v, out, logsumexp;
  std::optional<Operand> mask;
  std::vector<ir::ValueId> results;
  std::string text() const;
};

/// None for what stays torch's: dropout, other dtypes, heads that share keys, causal rows beside another number of keys, very wide or long ones.
std::optional<AttentionCall> attention_of(const ir::Graph&, const Origins&, const ir::Node&);

}  // namespace cutaway::codegen
