#include "app/flows/guesses.h"

#include <doctest/doctest.h>

#include "core/ir/text.h"

namespace cutaway {
namespace {

struct AllValues final : minify::RecordedValues {
  const ir::Graph& graph;
  explicit AllValues(const ir::Graph& g) : graph(g) {}
  std::optional<bundle::InputRef> find(std::string_view name) override {
    for (const ir::Value& v : graph.values)
      if (v.name == name) {
        bundle::InputRef in;
        in.kind = bundle::InputRef::Kind::filled;
        for (const auto& s : v.type.tensor.sizes) in.tensor.sizes.push_back(s.value());
        in.tensor.strides.assign(in.tensor.sizes.size(), 1);
        return in;
      }
    return std::nullopt;
  }
};

minify::Case chain() {
  minify::Case c;
  c.graph = ir::parse(R"(graph g(%x: f32[4]) {
  %a: f32[4] = aten.tanh(%x)
  %b: f32[4] = aten.tanh(%a)
  %v.1: f32[4] = aten.relu(%b)
  %d: f32[4] = call torch.tanh(%v.1) {
    %d.r0: f32[4] = aten.tanh(%v.1)
    yield (%d.r0)
  }
  %e: f32[4] = aten.sin(%d)
  return (%e)
}
)", "test").value();
  c.manifest.inputs.resize(1);
  c.manifest.inputs[0].kind = bundle::InputRef::Kind::filled;
  c.manifest.inputs[0].tensor.sizes = {4};
  c.manifest.inputs[0].tensor.strides = {1};
  return c;
}

std::vector<std::string> targets(const minify::Case& c) {
  std::vector<std::string> out;
  for (const ir::Node& n : c.graph.body.nodes) out.push_back(n.target);
  return out;
}
using Targets = std::vector<std::string>;

TEST_CASE("an operator that is named gives each kind of its uses alone, inside captured calls too") {
  const minify::Case c = chain();
  AllValues values(c.graph);
  const minify::Guesses g = flows::make_guesses(c, values, {"aten.tanh", {}});
  REQUIRE(g.size() == 3);
  CHECK(targets(g[0]) == Targets{"aten.tanh"});
  CHECK(targets(g[1]) == Targets{"torch.tanh"});
  CHECK(targets(g[2]) == Targets{"aten.tanh", "aten.relu", "torch.tanh", "aten.sin"});   // one of every kind
}

TEST_CASE("nodes of the kernel that failed come alone, the rarest first, then together") {
  const minify::Case c = chain();
  AllValues values(c.graph);
  const minify::Guesses g = flows::make_guesses(c, values, {"", {"b", "v_1"}});
  REQUIRE(g.size() == 4);
  CHECK(targets(g[0]) == Targets{"aten.relu"});
  CHECK(targets(g[1]) == Targets{"aten.tanh"});
  CHECK(targets(g[2]) == Targets{"aten.tanh", "aten.relu"});
}

TEST_CASE("of a hang every kind comes alone, the rarest first") {
  const minify::Case c = chain();
  AllValues values(c.graph);
  const minify::Guesses g = flows::make_guesses(c, values, {"", {}, true});
  REQUIRE(g.size() == 5);
  CHECK(targets(g[0]) == Targets{"aten.sin"});
  CHECK(targets(g[3]) == Targets{"aten.tanh"});   // twice in the graph
  CHECK(targets(g[4]) == Targets{"aten.tanh", "aten.relu", "torch.tanh", "aten.sin"});
}

TEST_CASE("a name that the graph does not have is no guess") {
  const minify::Case c = chain();
  AllValues values(c.graph);
  CHECK(flows::make_guesses(c, values, {"aten.softmax", {"nobody"}}).size() == 1);
}

}  // namespace
}  // namespace cutaway
