#include <doctest/doctest.h>

#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "diagnosis/generate/random_graph.h"

namespace cutaway::generate::random_graph_test {

TEST_CASE("a seed is a graph, and another seed another one") {
  const RandomCase once = random_case({.seed = 7}), again = random_case({.seed = 7}), other = random_case({.seed = 8});
  CHECK(ir::identical(once.graph, again.graph));
  CHECK(once.manifest == again.manifest);
  CHECK(ir::digest(once.graph) != ir::digest(other.graph));
}

TEST_CASE("random graphs are well formed, read back equal and have an input record for every input") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomCase c = random_case({.seed = seed, .nodes = 20});
    CAPTURE(seed);
    const auto problems = ir::verify(c.graph);
    REQUIRE_MESSAGE(problems.empty(), ir::print(c.graph));
    auto parsed = ir::parse(ir::print(c.graph), "random");
    REQUIRE(parsed.ok());
    CHECK(ir::identical(*parsed, c.graph));
    CHECK(c.manifest.inputs.size() == c.graph.inputs.size());
    CHECK(!c.graph.body.outputs.empty());
    CHECK(c.graph.body.nodes.size() >= 20);
  }
}

TEST_CASE("neighbouring seeds do not draw the same operators one step apart") {
  int shared = 0, compared = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto a = random_case({.seed = seed}).graph.body.nodes, b = random_case({.seed = seed + 1}).graph.body.nodes;
    for (size_t i = 1; i < a.size() && i < b.size(); ++i, ++compared) shared += a[i].target == b[i - 1].target;
  }
  CHECK(shared * 5 < compared);
}

TEST_CASE("every operator occurs") {
  std::vector<std::string> missing = random_operators();
  for (uint64_t seed = 0; seed < 600 && !missing.empty(); ++seed)
    for (const ir::Node& n : random_case({.seed = seed}).graph.body.nodes) std::erase(missing, n.target);
  CHECK(missing == std::vector<std::string>{});
}

}  // namespace cutaway::generate::random_graph_test
