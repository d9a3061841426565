#include "core/ir/text.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <ctime>

#include "core/ir/edit.h"
#include "core/ir/verify.h"
#include "tests/support/random_graph.h"

namespace text_test {

using namespace cutaway;
using testing::RandomGraph;

namespace {
ir::Graph read(std::string_view text) {
  base::Result<ir::Graph> g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), g.error().text());
  return *std::move(g);
}
std::string one_node(std::string_view argument) {
  return "graph f(%x: f32[2]) {\n  %y: f32[2] = aten.f(" + std::string(argument) + ")\n  return (%y)\n}\n";
}
const ir::Argument& first_argument(const ir::Graph& g) { return g.body.nodes.at(0).args.at(0); }
}  // namespace

TEST_CASE("random graphs read back identical, with the ids of renumber()") {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ir::Graph g = RandomGraph(seed, {.nodes = 3 + seed % 20}).make();
    CAPTURE(seed);
    for (const base::Error& e : ir::verify(g)) FAIL(e.text());
    const std::string text = ir::print(g, {.header = seed % 2 == 0});
    base::Result<ir::Graph> again = ir::parse(text);
    REQUIRE_MESSAGE(again.ok(), again.error().text());
    REQUIRE(ir::identical(g, *again));
    REQUIRE(ir::print(*again, {.header = seed % 2 == 0}) == text);
    ir::renumber(g, ir::Names::keep);
    REQUIRE(g.values.size() == again->values.size());
    for (size_t i = 0; i < g.values.size(); ++i) REQUIRE(g.values[i].name == again->values[i].name);
  }
}

TEST_CASE("floating-point literals keep every bit and never look like integers") {
  for (const auto& [text, value] : {std::pair{"2.0", 2.0}, {"0.1", 0.1}, {"1e+300", 1e300}, {"5e-324", 5e-324}, {"-0.0", -0.0},
                                    {"inf", std::numeric_limits<double>::infinity()}, {"-inf", -std::numeric_limits<double>::infinity()},
                                    {"nan", std::numeric_limits<double>::quiet_NaN()}, {"1.7976931348623157e+308", std::numeric_limits<double>::max()}}) {
    const ir::Graph g = read(one_node(text));
    CHECK(first_argument(g) == ir::Argument(value));
    CHECK(ir::print_argument(g, first_argument(g)) == text);
  }
  CHECK_FALSE(ir::Argument(1.0) == ir::Argument(1));
  CHECK_FALSE(ir::Argument(0.0) == ir::Argument(-0.0));
  CHECK_FALSE(ir::Argument(true) == ir::Argument(1));
}

TEST_CASE("strings keep UTF-8, and escape what is not and what acts on a terminal") {
  const std::string all = std::string("é 漢 🙂 \"q\" \\ \n\t\r") + '\0' + "\x1b[31m \x7f \xff \xc3 \xed\xa0\x80 \xc2\x9b \xe2\x80\xae";
  ir::Graph g = read(one_node("1"));
  g.body.nodes[0].args[0] = all;
  const std::string text = ir::print(g);
  CHECK(text.find("é 漢 🙂 \\\"q\\\" \\\\ \\n\\t\\r\\x00\\x1b[31m \\x7f \\xff \\xc3 \\xed\\xa0\\x80 \\xc2\\x9b \\xe2\\x80\\xae") != std::string::npos);
  CHECK(first_argument(read(text)) == ir::Argument(all));
}

TEST_CASE("symbols, devices and dtypes cannot be taken for one another") {
  CHECK(first_argument(read(one_node("s0"))) == ir::Argument(ir::Dim::symbol("s0")));
  CHECK(first_argument(read(one_node("u8"))) == ir::Argument(ir::DType::u8));
  CHECK(first_argument(read(one_node("sym(u8)"))) == ir::Argument(ir::Dim::symbol("u8")));
  CHECK(first_argument(read(one_node("sym(3)"))) == ir::Argument(ir::Dim(3)));
  CHECK_FALSE(first_argument(read(one_node("sym(3)"))) == first_argument(read(one_node("3"))));
  CHECK(first_argument(read(one_node("mkldnn"))) == ir::Argument(ir::Layout::mkldnn));
  CHECK(first_argument(read(one_node("device(\"mkldnn:1\")"))) == ir::Argument(ir::Device{"mkldnn", 1}));
  CHECK(first_argument(read(one_node("cuda:3"))) == ir::Argument(ir::Device{"cuda", 3}));
}

TEST_CASE("symbolic sizes print with the parentheses that their tree needs") {
  for (std::string_view text : {"s0", "s0*2 + 1", "(s0 + 1)//2", "max(s0, 4)", "mod(s0, 8)*2", "(s0 + 1) + 2", "s0 + 1 + 2", "s0*(s1*2)", "(s0//2)*2", "min(s0, s1 + 1, -3)", "s0 + -1"}) {
    const ir::Graph g = read("graph f(%x: f32[" + std::string(text) + "]) {\n  return (%x)\n}\n");
    CHECK(g.values[0].type.tensor.sizes[0].text() == text);
  }
}

TEST_CASE("strides are left out only when they are the row-major ones, to the digit") {
  for (std::string_view text : {"f32[]", "f32[0]", "f32[0, 3]", "f32[2, 1] strides(1, 7)", "f32[2, 0] strides(5, 5)", "f32[1]", "f32[1] strides(9)", "f32[2, 3] strides(1, 2) cuda:0 grad", "f32[s0, s1, 4]"}) {
    const ir::Graph g = read("graph f(%x: " + std::string(text) + ") {\n  return (%x)\n}\n");
    CHECK(g.values[0].type.text() == text);
  }
  const ir::Graph g = read("graph f(%x: f32[2, 1] strides(1, 7), %y: f32[2, 0] strides(5, 5), %z: f32[2, 2] strides(1, 2)) {\n  return ()\n}\n");
  CHECK(g.values[0].type.tensor.is_contiguous());
  CHECK(g.values[1].type.tensor.is_contiguous());
  CHECK_FALSE(g.values[2].type.tensor.is_contiguous());
}

TEST_CASE("options leave out types, locations and regions") {
  const ir::Graph g = read("graph f(%x: f32[2]) {\n  %y: f32[2] = call torch.relu(%x) no_grad {  # m.py:3 f in a.b\n    %z: f32[2] = aten.relu(%x)\n    yield (%z)\n  }\n  return (%y)\n}\n");
  CHECK(ir::print(g, {.types = false, .locations = false, .regions = false}) == "graph f(%x: f32[2]) {\n  %y = call torch.relu(%x) no_grad\n  return (%y)\n}\n");
  CHECK(ir::print_node(g, g.body.nodes[0]) == "%y: f32[2] = call torch.relu(%x) no_grad");
  CHECK(g.locations.size() == 1);
}

TEST_CASE("hostile nesting is refused, not followed") {
  for (const auto& [open, close] : {std::pair<std::string, std::string>{"[", "]"}, {"(", ",)"}, {"{\"k\": ", "}"}}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += open;
    deep += "1";
    for (int i = 0; i < 100000; ++i) deep += close;
    const base::Result<ir::Graph> g = ir::parse(one_node(deep));
    REQUIRE_FALSE(g.ok());
    CHECK(g.error().what == "nested more than 64 deep");
  }
  std::string sizes(100000, '(');
  CHECK(ir::parse("graph f(%x: f32[" + sizes + "s0]) {").error().what == "nested more than 64 deep");
  std::string scopes = "graph f() {\n";
  for (int i = 0; i < 1000; ++i) scopes += "scope {\n";
  CHECK(ir::parse(scopes).error().what == "nested more than 64 deep");
}

// Not part of a plain run (times prove nothing on a busy machine): cutaway_core_tests -ns -tc="bench: text of 100000 nodes"
TEST_CASE("bench: text of 100000 nodes" * doctest::skip()) {
  ir::Graph g;
  g.name = "forward";
  ir::ValueId last = g.add_input("x", ir::Type::of({ir::DType::f32, {64, 128}, {128, 1}}));
  for (int i = 0; i < 100000; ++i) {
    ir::Node n;
    n.target = "aten.add.Tensor";
    n.args = {ir::ValueRef{last}, ir::ValueRef{last}};
    n.kwargs = {{"alpha", 2}};
    n.location = g.add_location({"model.py", 10 + i % 500, "Net.forward", "encoder.layer." + std::to_string(i % 24)});
    n.returns = {ir::Node::kSingle};
    last = g.add_value("add", g.value(last).type);
    n.results = {last};
    g.body.nodes.push_back(std::move(n));
  }
  g.body.outputs = {ir::ValueRef{last}};
  const auto cpu_ms = [](auto&& f) {
    const std::clock_t start = std::clock();   // of this process: other programs do not count
    f();
    return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  std::string text;
  const double printing = cpu_ms([&] { text = ir::print(g, {.header = true}); });
  base::Result<ir::Graph> again = ir::Graph();
  const double parsing = cpu_ms([&] { again = ir::parse(text); });
  const double verifying = cpu_ms([&] { REQUIRE(ir::verify(g).empty()); });
  const double digesting = cpu_ms([&] { REQUIRE(ir::digest(g) == ir::digest(*again)); });
  REQUIRE(ir::identical(g, *again));
  MESSAGE(text.size() << " bytes, CPU time: print " << printing << " ms, parse " << parsing << " ms, verify " << verifying << " ms, two digests " << digesting << " ms");
}

}  // namespace text_test
