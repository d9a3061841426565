#include "core/ir/edit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "core/ir/diff.h"
#include "core/ir/text.h"
#include "tests/support/random_graph.h"
#include "tests/support/toy_interpreter.h"

namespace edit_test {

using namespace cutaway;
using testing::RandomGraph;
using testing::ToyInterpreter;
using testing::ToySchemas;

namespace {

constexpr uint64_t kSeeds = 300;

std::vector<uint64_t> numbers(size_t n) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i < n; ++i) out.push_back(1000 + i);
  return out;
}
std::vector<uint64_t> run(const ir::Graph& g) { return ToyInterpreter(g).run(numbers(g.inputs.size())); }
void require_verified(const ir::Graph& g) {
  for (const base::Error& e : ir::verify(g)) FAIL(e.text());
}
ir::Graph read(std::string_view text) {
  base::Result<ir::Graph> g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), g.error().text());
  return *std::move(g);
}

}  // namespace

TEST_CASE("dead code goes, effects stay, the meaning stays") {
  const ToySchemas schemas;
  size_t total = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const ir::Graph before = RandomGraph(seed, {.nodes = 20}).make();
    ir::Graph g = before;
    const size_t removed = ir::remove_dead_code(g, &schemas);
    total += removed;
    require_verified(g);
    REQUIRE(run(g) == run(before));
    REQUIRE(ir::remove_dead_code(g, &schemas) == 0);   // one sweep is the fixed point
    // Nothing that is left could go: every node without effects is used.
    std::vector<bool> used(g.values.size(), false);
    const auto mark = [&](ir::ValueId id) { used[id] = true; };
    ir::for_each_node(g.body, [&](const ir::Node& n) {
      ir::for_each_use(n, mark);
      for (const ir::Block& r : n.regions) for (const ir::Argument& a : r.outputs) ir::for_each_value(a, mark);
    });
    for (const ir::Argument& a : g.body.outputs) ir::for_each_value(a, mark);
    ir::for_each_node(g.body, [&](const ir::Node& n) {
      const bool is_used = std::any_of(n.results.begin(), n.results.end(), [&](ir::ValueId id) { return used[id]; });
      REQUIRE((is_used || ir::has_effects(n, &schemas)));
    });
  }
  CHECK(total > 100);
}

TEST_CASE("unused inputs go, and the others keep their places") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const ir::Graph before = RandomGraph(seed, {.nodes = 4}).make();
    ir::Graph g = before;
    const std::vector<size_t> stay = ir::remove_unused_inputs(g);
    require_verified(g);
    REQUIRE(stay.size() == g.inputs.size());
    std::vector<uint64_t> inputs;
    for (size_t i : stay) inputs.push_back(numbers(before.inputs.size())[i]);
    REQUIRE(ToyInterpreter(g).run(inputs) == run(before));
    REQUIRE(ir::remove_unused_inputs(g).size() == g.inputs.size());
  }
}

TEST_CASE("outputs are chosen by position") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ir::Graph g = RandomGraph(seed, {}).make();
    if (g.body.outputs.size() < 2) continue;
    const std::vector<uint64_t> all = run(g);
    ir::keep_outputs(g, {1, 0, 1});
    require_verified(g);
    REQUIRE(run(g) == std::vector<uint64_t>{all[1], all[0], all[1]});
  }
}

TEST_CASE("a value that becomes an input keeps the meaning when it is fed what it was") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const ir::Graph before = RandomGraph(seed, {.nodes = 10, .effects = false}).make();
    ToyInterpreter reference(before);
    const std::vector<uint64_t> expected = reference.run(numbers(before.inputs.size()));
    for (const ir::Node& n : before.body.nodes)
      for (ir::ValueId id : n.results) {
        ir::Graph g = before;
        REQUIRE(ir::replace_value_by_input(g, id) == id);
        require_verified(g);
        REQUIRE(g.inputs.size() == before.inputs.size() + 1);
        std::vector<uint64_t> inputs = numbers(before.inputs.size());
        inputs.push_back(reference.at_end(id));
        REQUIRE(ToyInterpreter(g).run(inputs) == expected);
        REQUIRE(ir::replace_value_by_input(g, id) == id);
        REQUIRE(g.inputs.size() == before.inputs.size() + 1);
      }
  }
  ir::Graph g = read("graph f(%x: f32[2]) {\n  %y: f32[2] = aten.add_.Tensor(%x, 1)\n  [%a: f32[1], %b: f32[1]] = aten.split(%x, 1)\n  %r: f32[2] = scope {\n    %c: f32[2] = aten.neg(%a)\n    yield (%c)\n  }\n  return (%x, %y, %a, %b)\n}\n");
  ir::replace_value_by_input(g, g.body.nodes[0].results[0]);   // writes to %x: the node must stay
  ir::replace_value_by_input(g, g.body.nodes[1].results[1]);   // %a is still used
  CHECK(ir::print(g) == "graph f(%x: f32[2], %y: f32[2], %b: f32[1]) {\n  %y_1: f32[2] = aten.add_.Tensor(%x, 1)\n  [%a: f32[1], %b_1: f32[1]] = aten.split(%x, 1)\n  %r: f32[2] = scope {\n    %c: f32[2] = aten.neg(%a)\n    yield (%c)\n  }\n  return (%x, %y, %a, %b)\n}\n");
  CHECK(ir::replace_value_by_input(g, g.body.nodes[2].regions[0].nodes[0].results[0]) == ir::kNoValue);
}

TEST_CASE("uses move from one value to another") {
  ir::Graph g = read("graph f(%x: f32[2], %y: f32[2]) {\n  %r: f32[2] = scope {\n    %c: f32[2] = aten.neg(%x, [%x])\n    yield (%x)\n  }\n  return ((%x,), %r)\n}\n");
  ir::replace_uses(g, 0, 1);
  CHECK(ir::print(g) == "graph f(%x: f32[2], %y: f32[2]) {\n  %r: f32[2] = scope {\n    %c: f32[2] = aten.neg(%y, [%y])\n    yield (%y)\n  }\n  return ((%y,), %r)\n}\n");
}

TEST_CASE("a subgraph fed what it needs gives what it gave") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    RandomGraph random(seed, {.nodes = 12, .effects = false});
    const ir::Graph g = random.make();
    ToyInterpreter reference(g);
    reference.run(numbers(g.inputs.size()));
    std::vector<size_t> positions;
    for (size_t i = 0; i < g.body.nodes.size(); ++i)
      if (random.chance(2)) positions.push_back(g.body.nodes.size() - 1 - i);   // any order is accepted
    std::vector<ir::ValueId> lifted, produced;
    const ir::Graph sub = ir::extract_subgraph(g, positions, &lifted, &produced);
    require_verified(sub);
    REQUIRE(sub.body.nodes.size() == positions.size());
    REQUIRE(sub.inputs.size() == lifted.size());
    std::vector<uint64_t> inputs, expected;
    for (ir::ValueId id : lifted) inputs.push_back(reference.at_end(id));
    for (ir::ValueId id : produced) expected.push_back(reference.at_end(id));
    REQUIRE(ToyInterpreter(sub).run(inputs) == expected);
  }
}

TEST_CASE("a prefix takes the same inputs and gives what the rest used") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const ir::Graph g = RandomGraph(seed, {.nodes = 8, .effects = false}).make();
    ToyInterpreter reference(g);
    reference.run(numbers(g.inputs.size()));
    for (size_t last = 0; last < g.body.nodes.size(); ++last) {
      const ir::Graph p = ir::prefix(g, last);
      require_verified(p);
      REQUIRE(p.inputs.size() == g.inputs.size());
      REQUIRE(!p.body.outputs.empty());
      // Every output is a value of the whole graph: the one with its name.
      std::vector<uint64_t> expected;
      for (const ir::Argument& a : p.body.outputs)
        for (ir::ValueId id = 0; id < g.values.size(); ++id)
          if (g.value(id).name == p.value(a.as<ir::ValueRef>()->id).name) expected.push_back(reference.at_end(id));
      REQUIRE(run(p) == expected);
    }
  }
}

TEST_CASE("renumbering keeps everything but ids and names") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const ir::Graph before = RandomGraph(seed, {}).make();
    ir::Graph kept = before, canonical = before;
    kept.add_value("unused", {});
    ir::renumber(kept, ir::Names::keep);
    REQUIRE(ir::identical(kept, before));
    ir::renumber(canonical, ir::Names::canonical);
    require_verified(canonical);
    REQUIRE(run(canonical) == run(before));
    for (size_t i = 0; i < canonical.values.size(); ++i) REQUIRE(canonical.values[i].name == std::to_string(i));
  }
}

TEST_CASE("the digest sees everything but names and locations") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    RandomGraph random(seed, {.nodes = 10});
    const ir::Graph before = random.make();
    ir::Graph same = before;
    same.name = "another";
    same.locations.clear();
    ir::for_each_node(same.body, [](ir::Node& n) { n.location = ir::kNoLocation; });
    for (ir::ValueId id = 0; id < same.values.size(); ++id) same.rename(id, "renamed");
    require_verified(same);
    REQUIRE(ir::digest(same) == ir::digest(before));

    ir::Graph other = before;
    std::vector<ir::Node*> nodes;
    ir::for_each_node(other.body, [&](ir::Node& n) { if (n.kind != ir::Node::Kind::scope) nodes.push_back(&n); });
    if (nodes.empty()) continue;
    ir::Node& n = *nodes[random.below(nodes.size())];
    switch (random.below(9)) {
      case 0: n.target += "x"; break;
      case 1: n.args.push_back(ir::None{}); break;
      case 2: n.kwargs.emplace_back("zzz", 1); break;
      case 3: other.values[n.results[0]].type.tensor.requires_grad ^= true; other.values[n.results[0]].type.kind = ir::Type::Kind::tensor; break;
      case 4: other.inputs[0].qualified_name += "x"; break;
      case 5: other.body.outputs.push_back(ir::ValueRef{other.inputs[0].value}); break;
      case 6: n.state.inference_mode = n.state.inference_mode ? std::optional<bool>() : std::optional(true); break;
      case 7: other.values[other.inputs[0].value].type.tensor.sizes.push_back(3); other.values[other.inputs[0].value].type.tensor.strides.push_back(1); break;
      case 8: other.inputs[0].kind = static_cast<ir::InputKind>((static_cast<int>(other.inputs[0].kind) + 1) % 4); break;
    }
    REQUIRE(ir::digest(other) != ir::digest(before));
    REQUIRE(!ir::diff(before, other).empty());
  }
  const auto digest_of = [](std::string_view argument) { return ir::digest(read("graph f(%x: f32[2]) {\n  %y: f32[2] = aten.f(" + std::string(argument) + ")\n  return (%y)\n}\n")); };
  CHECK(digest_of("1") != digest_of("1.0"));
  CHECK(digest_of("0.0") != digest_of("-0.0"));
  CHECK(digest_of("nan") == digest_of("-nan"));
  CHECK(digest_of("true") != digest_of("\"true\""));
}

TEST_CASE("effects are known by schema, by name, and by what torch forgets to say") {
  const auto effects = [](std::string_view node) { return ir::has_effects(read("graph f(%x: f32[2]) {\n  " + std::string(node) + "\n  return ()\n}\n").body.nodes.at(0)); };
  CHECK_FALSE(effects("%y: f32[2] = aten.add.Tensor(%x, %x)"));
  CHECK_FALSE(effects("%y: f32[2] = aten.__and__.Tensor(%x, %x)"));
  CHECK(effects("%y: f32[2] = aten.__iand__.Tensor(%x, %x)"));
  CHECK(effects("%y: f32[2] = aten.add_.Tensor(%x, %x)"));
  CHECK(effects("%y: f32[2] = aten.add.out(%x, %x, out=%x)"));
  CHECK(effects("%y: f32[2] = aten.max.dim_max(%x, out=%x)"));
  CHECK(effects("%y: f32[2] = aten.rand([2])"));
  CHECK(effects("aten._assert_async(%x)"));
  CHECK(effects("%y: f32[2] = aten.batch_norm(%x, none, none, %x, %x, true, 0.1, 1e-05, false)"));
  CHECK_FALSE(effects("%y: f32[2] = aten.batch_norm(%x, none, none, %x, %x, false, 0.1, 1e-05, false)"));
  CHECK(effects("%y: f32[2] = scope {\n %z: f32[2] = aten.rand([2])\n yield (%z) }"));
}

}  // namespace edit_test
