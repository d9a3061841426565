// Any text: the parser gives a graph or an error with a place, and what it gives prints, reads back, verifies and edits.
#include "core/ir/diff.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "tests/fuzz/fuzz_target.h"

using namespace cutaway;

CUTAWAY_FUZZ_TARGET(graph_parser) {
  base::Result<ir::Graph> parsed = ir::parse(input, "fuzz");
  if (!parsed.ok()) {
    CUTAWAY_FUZZ_REQUIRE(!parsed.error().what.empty());
    CUTAWAY_FUZZ_REQUIRE(parsed.error().place.starts_with("fuzz:"));
    return;
  }
  const ir::Graph& g = *parsed;
  const std::string printed = ir::print(g, {.header = true});
  const base::Result<ir::Graph> again = ir::parse(printed, "again");
  CUTAWAY_FUZZ_REQUIRE(again.ok());
  CUTAWAY_FUZZ_REQUIRE(ir::identical(g, *again));
  CUTAWAY_FUZZ_REQUIRE(ir::print(*again, {.header = true}) == printed);
  CUTAWAY_FUZZ_REQUIRE(ir::diff(g, *again).empty());
  CUTAWAY_FUZZ_REQUIRE(ir::digest(g) == ir::digest(*again));
  if (!ir::verify(g).empty()) return;   // edits promise something for verified graphs only

  ir::Graph edited = g;
  ir::renumber(edited, ir::Names::canonical);
  CUTAWAY_FUZZ_REQUIRE(ir::verify(edited).empty());
  CUTAWAY_FUZZ_REQUIRE(ir::digest(g) == ir::digest(edited));
  edited = g;
  ir::remove_dead_code(edited);
  ir::remove_unused_inputs(edited);
  CUTAWAY_FUZZ_REQUIRE(ir::verify(edited).empty());
  CUTAWAY_FUZZ_REQUIRE(ir::remove_dead_code(edited) == 0);
  if (!g.body.nodes.empty()) {
    const size_t last = input.size() % g.body.nodes.size();
    CUTAWAY_FUZZ_REQUIRE(ir::verify(ir::prefix(g, last)).empty());
    CUTAWAY_FUZZ_REQUIRE(ir::verify(ir::extract_subgraph(g, {last, 0})).empty());
    edited = g;
    if (!g.body.nodes[last].results.empty()) ir::replace_value_by_input(edited, g.body.nodes[last].results[0]);
    CUTAWAY_FUZZ_REQUIRE(ir::verify(edited).empty());
  }
}
