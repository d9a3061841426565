// Any bytes as a tensor record: an Error, or a record that reads back equal and whose view stays inside its storage.
#include "core/bundle/tensor_record.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cutaway;

CUTAWAY_FUZZ_TARGET(tensor_record) {
  const auto record = bundle::TensorRecord::from_json(input, "t.json");
  if (!record.ok()) {
    CUTAWAY_FUZZ_REQUIRE(record.error().place.starts_with("t.json"));
    return;
  }
  const auto again = bundle::TensorRecord::from_json(record->to_json(), "t.json");
  CUTAWAY_FUZZ_REQUIRE(again.ok() && *again == *record && differing_fields(*again, *record).empty());
  if (record->storage.is_none()) return;
  // In 128 bits, where nothing can overflow: the last byte lies in the storage.
  __int128 last = record->storage_offset;
  bool is_empty = false;
  for (size_t d = 0; d < record->sizes.size(); ++d) {
    is_empty = is_empty || record->sizes[d] == 0;
    last += static_cast<__int128>(record->sizes[d] - 1) * record->strides[d];
  }
  CUTAWAY_FUZZ_REQUIRE(is_empty || (last + 1) * ir::dtype_bytes(record->dtype) <= static_cast<__int128>(record->storage_bytes));
}
