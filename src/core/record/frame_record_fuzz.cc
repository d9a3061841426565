// Any bytes as record.json: an Error with a place, or a record that is written the same way ever after.
#include "core/record/frame_record.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cutaway;

CUTAWAY_FUZZ_TARGET(frame_record) {
  const auto first = record::from_json(input, "record.json");
  if (!first.ok()) {
    CUTAWAY_FUZZ_REQUIRE(!first.error().what.empty());
    CUTAWAY_FUZZ_REQUIRE(first.error().place.starts_with("record.json"));
    return;
  }
  const std::string text = record::to_json(*first);
  const auto second = record::from_json(text, "record.json");
  CUTAWAY_FUZZ_REQUIRE(second.ok());
  CUTAWAY_FUZZ_REQUIRE(record::to_json(*second) == text);
  CUTAWAY_FUZZ_REQUIRE(!record::summary(*second).empty());
}
