// What it takes to rebuild a tensor around a stored storage, as data: no libtorch. JSON both ways.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/base/result.h"
#include "core/ir/type.h"

namespace cutaway::bundle {

/// Metadata of one tensor; several records may name one storage, which is how views and aliases survive.
struct TensorRecord {
  ir::DType dtype = ir::DType::f32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;        ///< in elements
  int64_t storage_offset = 0;          ///< in elements
  ir::Device device;
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_conj = false;
  bool is_neg = false;
  bool is_zero = false;                ///< torch's zero tensor, which has no memory: what autograd gives for "no gradient" of some operators
  bool is_parameter = false;           ///< torch.nn.Parameter on the Python side
  base::Digest storage;                ///< none: metadata only
  uint64_t storage_bytes = 0;
  /// Which storage, for records that have no data but still share one: equal numbers share. -1: not said.
  int64_t storage_id = -1;
  bool operator==(const TensorRecord&) const = default;

  ir::TensorType type() const;
  std::string to_json() const;
  /// Rejects unknown fields, negative or overflowing sizes, and a view that leaves its storage.
  static base::Result<TensorRecord> from_json(std::string_view text, std::string_view place);
};

/// The fields in which two records differ, as "sizes [2, 3] != [3, 2]"; storages compared by digest, last.
std::vector<std::string> differing_fields(const TensorRecord& a, const TensorRecord& b);

}  // namespace cutaway::bundle
