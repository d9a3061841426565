// Additions at places that indices name: not loops of ours, but a call of the hand-written kernel, which keeps the order of additions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// result = base (or zeros); result[..., index[i], ...] += source[i]. Strides have one entry a dimension of the source.
struct Scatter {
  std::string name;                  ///< "s3": the call in the fused graph is native.s3
  std::vector<Buffer> buffers;       ///< index and source, perhaps the base, then the one that it writes
  ir::DType dtype = ir::DType::f32;  ///< f32 or f64
  std::vector<int64_t> sizes, index_strides, source_strides, target_strides;
  int64_t index_offset = 0, source_offset = 0, base_offset = 0;
  uint32_t index = 0, source = 0, target = 0;   ///< into buffers
  std::optional<uint32_t> base;                 ///< none: zeros
  int64_t limit = 0, row = 0, skip = INT64_MIN, elements = 0;   ///< elements: of the result
  bool wraps = false;
  /// "s3: 128 x 256 into 256000 f32"
  std::string text() const;
};

/// None for what stays torch's: other dtypes, indices that are not i64, several indices, results that are not laid out row after row.
std::optional<Scatter> scatter_of(const ir::Graph&, const Origins&, const ir::Node&);

}  // namespace cutaway::codegen
