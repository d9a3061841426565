// Any bytes as manifest.json: an Error, or a manifest that is written the same way ever after.
#include "core/bundle/bundle.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cutaway;

CUTAWAY_FUZZ_TARGET(manifest) {
  const auto first = bundle::manifest_from_json(input, "manifest.json");
  if (!first.ok()) {
    CUTAWAY_FUZZ_REQUIRE(!first.error().what.empty());
    CUTAWAY_FUZZ_REQUIRE(first.error().place.starts_with("manifest.json"));
    return;
  }
  const std::string text = bundle::manifest_to_json(first->manifest, first->graph_digest);
  const auto second = bundle::manifest_from_json(text, "manifest.json");
  CUTAWAY_FUZZ_REQUIRE(second.ok());
  CUTAWAY_FUZZ_REQUIRE(bundle::manifest_to_json(second->manifest, second->graph_digest) == text);
}
