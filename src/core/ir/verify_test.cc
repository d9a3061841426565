#include "core/ir/verify.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>

#include "core/ir/text.h"

namespace verify_test {

using namespace cutaway;
using ir::Node;

namespace {
ir::Graph read(std::string_view text) {
  base::Result<ir::Graph> g = ir::parse(text);
  REQUIRE_MESSAGE(g.ok(), g.error().text());
  return *std::move(g);
}
ir::Graph sample() {
  return read("graph f(%x: f32[2]) {\n  %a: f32[2] = aten.relu(%x)\n  %b: f32[2] = call torch.neg(%a) {\n    %c: f32[2] = aten.neg(%a)\n    yield (%c)\n  }\n  return (%b)\n}\n");
}
std::vector<std::string> problems(const ir::Graph& g) {
  std::vector<std::string> out;
  for (const base::Error& e : ir::verify(g, {.file = "g.cut"})) out.push_back(e.place + ": " + e.what);
  return out;
}
using Problems = std::vector<std::string>;

class Schemas : public ir::SchemaTable {
 public:
  Schemas() {
    table_["aten.add.Tensor"] = {{{"self", "Tensor"}, {"other", "Tensor"}, {"alpha", "Scalar", true, true}}, {"Tensor"}};
    table_["aten.sum.dim_IntList"] = {{{"self", "Tensor"}, {"dim", "int[1]?"}, {"keepdim", "bool", true}, {"dtype", "ScalarType?", true, true}}, {"Tensor"}};
    table_["aten.split.Tensor"] = {{{"self", "Tensor(a -> *)"}, {"split_size", "SymInt"}, {"dim", "int", true}}, {"Tensor(a)[]"}};
    table_["aten.index.Tensor"] = {{{"self", "Tensor"}, {"indices", "Tensor?[]"}}, {"Tensor"}};
    table_["aten.max.dim"] = {{{"self", "Tensor"}, {"dim", "int"}, {"keepdim", "bool", true}}, {"Tensor", "Tensor"}};
  }
  const ir::Schema* find(std::string_view target) const override {
    const auto it = table_.find(target);
    return it == table_.end() ? nullptr : &it->second;
  }

 private:
  std::map<std::string, ir::Schema, std::less<>> table_;
};
std::vector<std::string> schema_problems(std::string_view node) {
  const ir::Graph g = read("graph f(%x: f32[2], %n: int) {\n  " + std::string(node) + "\n  return ()\n}\n");
  const Schemas schemas;
  std::vector<std::string> out;
  for (const base::Error& e : ir::verify(g, {.schemas = &schemas, .file = "g.cut"})) out.push_back(e.what);
  return out;
}
}  // namespace

TEST_CASE("a sound graph has no breaches") { CHECK(problems(sample()).empty()); }

TEST_CASE("definitions: once, before uses, in scope, with good names") {
  ir::Graph g = sample();
  std::swap(g.body.nodes[0], g.body.nodes[1]);
  CHECK(problems(g) == Problems{"g.cut:3:31: %a is used before it is defined", "g.cut:4:27: %a is used before it is defined"});

  g = sample();
  g.body.outputs[0] = ir::ValueRef{g.body.nodes[1].regions[0].nodes[0].results[0]};
  CHECK(problems(g) == Problems{"g.cut:8:11: %c is used outside of the region that defines it"});

  g = sample();
  g.values[1].name = "x";
  CHECK(problems(g) == Problems{"g.cut:3:3: the name %x is taken by another value"});

  g = sample();
  g.values[1].name = "a b";
  CHECK(problems(g) == Problems{"g.cut:3:3: \"a b\" is not a name"});

  g = sample();
  g.body.nodes[1].results[0] = g.body.nodes[0].results[0];
  CHECK(problems(g) == Problems{"g.cut:4:3: %a is defined twice", "g.cut:8:11: %b is used before it is defined"});

  g = sample();
  g.inputs.push_back(g.inputs[0]);
  CHECK(problems(g) == Problems{"g.cut:2:21: %x is defined twice"});

  g = sample();
  g.body.nodes[0].args[0] = ir::ValueRef{99};
  CHECK(problems(g) == Problems{"g.cut:3:26: value 99 is not among the graph's values"});
}

TEST_CASE("types of tensors hold together") {
  ir::Graph g = sample();
  ir::TensorType& t = g.values[0].type.tensor;
  t.strides.clear();
  CHECK(problems(g) == Problems{"g.cut:2:9: %x: 0 strides for 1 sizes"});
  t.strides = {-1};
  CHECK(problems(g) == Problems{"g.cut:2:9: %x: the stride -1 is negative"});
  t.sizes = {-2};
  CHECK(problems(g) == Problems{"g.cut:2:9: %x: the size -2 is negative"});
  t.sizes = t.strides = {int64_t{1} << 62};
  CHECK(problems(g) == Problems{"g.cut:2:9: %x: the sizes are too large: their product does not fit into 63 bits"});
  t.sizes = t.strides = {ir::Dim::symbol("no word")};
  CHECK(problems(g) == Problems{"g.cut:2:9: %x: a symbol is not a word of letters, digits and '_'"});
}

TEST_CASE("nodes have the parts of their kind") {
  ir::Graph g = sample();
  g.body.nodes[0].target = "relu";
  CHECK(problems(g) == Problems{"g.cut:3:16: \"relu\" does not name an operator"});

  g = sample();
  g.body.nodes[0].returns = {3};
  CHECK(problems(g) == Problems{"g.cut:3:18: the node says that it returns 3 values and defines 1"});

  g = sample();
  g.body.nodes[1].regions.clear();
  CHECK(problems(g) == Problems{"g.cut:4:16: a call has exactly one region, this one has 0"});

  g = sample();
  g.body.nodes[0].state.grad_enabled = false;
  CHECK(problems(g) == Problems{"g.cut:3:16: an operator has no state of its own"});

  g = sample();
  g.body.nodes[0].kwargs = {{"k", 1}, {"k", 2}};
  CHECK(problems(g) == Problems{"g.cut:3:35: the argument k is given twice"});

  g = sample();
  g.body.nodes[0].location = 5;
  CHECK(problems(g) == Problems{"g.cut:3:16: the node's location is not among the graph's locations"});
}

TEST_CASE("regions yield what their node defines") {
  ir::Graph g = sample();
  g.body.nodes[1].regions[0].outputs.clear();
  CHECK(problems(g) == Problems{"g.cut:6:5: the region yields 0 values where 1 are defined"});
  g = sample();
  g.values[g.body.nodes[1].results[0]].type.tensor.dtype = ir::DType::f64;
  CHECK(problems(g) == Problems{"g.cut:6:12: %b is f64[2] and the region yields f32[2]"});
  g = sample();
  g.body.nodes[1].regions[0].outputs[0] = ir::List{};
  CHECK(problems(g) == Problems{"g.cut:6:12: a region yields values and plain literals, one for each result"});
}

TEST_CASE("errors point into the printed text") {
  ir::Graph g = sample();
  std::swap(g.body.nodes[0], g.body.nodes[1]);
  CHECK(ir::verify(g, {.file = "g.cut"})[0].text() ==
        "g.cut:3:31: %a is used before it is defined\n    3 |   %b: f32[2] = call torch.neg(%a) {\n      |                               ^^");
}

TEST_CASE("a hundred breaches are enough") {
  ir::Graph g = read("graph f() {\n  return ()\n}\n");
  for (int i = 0; i < 1000; ++i) g.body.outputs.push_back(ir::ValueRef{7});
  CHECK(ir::verify(g).size() == 100);
}

TEST_CASE("against schemas: operator, arity, names, kinds, returns") {
  CHECK(schema_problems("%y: f32[2] = aten.add.Tensor(%x, %x, alpha=2)").empty());
  CHECK(schema_problems("%y: f32[2] = aten.sum.dim_IntList(%x, [0], true, dtype=f64)").empty());
  CHECK(schema_problems("%y: f32[2] = aten.sum.dim_IntList(%x, 0)").empty());
  CHECK(schema_problems("%y: f32[2] = aten.sum.dim_IntList(%x, none)").empty());
  CHECK(schema_problems("[%y: f32[1], %z: f32[1]] = aten.split.Tensor(%x, %n)").empty());
  CHECK(schema_problems("%y: f32[1] = aten.index.Tensor(%x, [none, %x])").empty());
  CHECK(schema_problems("%y: f32[2] = aten.nope(%x)") == Problems{"the operator aten.nope is not known"});
  CHECK(schema_problems("%y: f32[2] = aten.add.Tensor(%x, %x, 2)") == Problems{"aten.add.Tensor takes at most 2 arguments without a name, this is one more"});
  CHECK(schema_problems("%y: f32[2] = aten.add.Tensor(%x, %x, alhpa=2)") == Problems{"aten.add.Tensor has no argument alhpa; did you mean \"alpha\"?"});
  CHECK(schema_problems("%y: f32[2] = aten.add.Tensor(%x, %x, self=%x)") == Problems{"the argument self of aten.add.Tensor is given twice"});
  CHECK(schema_problems("%y: f32[2] = aten.add.Tensor(%x)") == Problems{"aten.add.Tensor needs the argument other"});
  CHECK(schema_problems("%y: f32[2] = aten.add.Tensor(%x, 1)") == Problems{"the argument other of aten.add.Tensor is a Tensor, not 1"});
  CHECK(schema_problems("%y: f32[2] = aten.sum.dim_IntList(%x, [0.5])") == Problems{"the argument dim of aten.sum.dim_IntList is a int[1]?, not [0.5]"});
  CHECK(schema_problems("%y: f32[2] = aten.sum.dim_IntList(%x, [0], 1)") == Problems{"the argument keepdim of aten.sum.dim_IntList is a bool, not 1"});
  CHECK(schema_problems("%y: f32[1] = aten.split.Tensor(%x, 1)") == Problems{"result 0 of aten.split.Tensor is a list"});
  CHECK(schema_problems("%y: f32[1] = aten.max.dim(%x, 1)") == Problems{"aten.max.dim returns 2 results, here stand 1"});
}

}  // namespace verify_test
