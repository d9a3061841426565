#include "core/ir/graph.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

namespace graph_test {

using namespace cutaway;

TEST_CASE("names are made unique and good, also after copies, moves and renames") {
  ir::Graph g;
  CHECK(g.value(g.add_value("x", {})).name == "x");
  CHECK(g.value(g.add_value("x", {})).name == "x_1");
  CHECK(g.value(g.add_value("x_2", {})).name == "x_2");
  CHECK(g.value(g.add_value("x", {})).name == "x_3");
  CHECK(g.value(g.add_value("", {})).name == "v");
  CHECK(g.value(g.add_value("a-b é", {})).name == "a_b___");
  ir::Graph copy = g;
  CHECK(copy.value(copy.add_value("x", {})).name == "x_4");
  CHECK(g.value(g.add_value("x", {})).name == "x_4");
  ir::Graph moved = std::move(copy);
  CHECK(moved.value(moved.add_value("x", {})).name == "x_5");
  moved.rename(0, "y");
  CHECK(moved.value(moved.add_value("x", {})).name == "x");
  moved.rename(1, "y");
  CHECK(moved.value(1).name == "y_1");
  moved.values.push_back({"direct", {}});
  CHECK(moved.value(moved.add_value("direct", {})).name == "direct_1");
}

TEST_CASE("locations are interned, an empty one is none") {
  ir::Graph g;
  CHECK(g.add_location({}) == ir::kNoLocation);
  const ir::LocationId a = g.add_location({"m.py", 3, "f", ""});
  CHECK(g.add_location({"m.py", 4, "f", ""}) != a);
  CHECK(g.add_location({"m.py", 3, "f", ""}) == a);
  CHECK(g.locations.size() == 2);
}

TEST_CASE("operator names split and join") {
  const auto split = [](std::string_view s) {
    const auto n = ir::split_op_name(s);
    return n ? n->name + "|" + n->overload : "none";
  };
  CHECK(split("aten.add.Tensor") == "aten::add|Tensor");
  CHECK(split("aten.mm") == "aten::mm|");
  for (std::string_view bad : {"", "mm", ".mm", "aten.", "aten.mm.", "a.b.c.d", "aten::mm", "aten..x"}) CHECK(split(bad) == "none");
  CHECK(ir::join_op_name("aten::add", "Tensor") == "aten.add.Tensor");
  CHECK(ir::join_op_name("aten::mm", "") == "aten.mm");
}

TEST_CASE("every dtype has a name of its own and a size") {
  std::set<std::string_view> names;
  for (int i = 0; i < ir::kDTypeCount; ++i) {
    const auto d = static_cast<ir::DType>(i);
    CHECK(names.insert(ir::dtype_name(d)).second);
    CHECK(ir::dtype_from_name(ir::dtype_name(d)) == d);
    CHECK(ir::dtype_bytes(d) >= 1);
  }
  CHECK(ir::dtype_bytes(ir::DType::c128) == 16);
  CHECK(ir::is_floating(ir::DType::f8e4m3fn));
  CHECK_FALSE(ir::is_integral(ir::DType::boolean));
}

TEST_CASE("devices read as torch writes them") {
  CHECK(*ir::Device::parse("cpu") == ir::Device{});
  CHECK(*ir::Device::parse("cuda:12") == ir::Device{"cuda", 12});
  for (std::string_view bad : {"", ":0", "cuda:", "cuda:-1", "cuda:1x", "cuda:128", "cu da", "0"}) CHECK_FALSE(ir::Device::parse(bad).ok());
}

TEST_CASE("elements are counted, unless unknown or too many") {
  ir::TensorType t;
  CHECK(t.numel() == 1);
  t.sizes = {int64_t{1} << 40, int64_t{1} << 40};
  CHECK(t.numel() == std::nullopt);
  t.sizes.push_back(0);
  CHECK(t.numel() == 0);
  t.sizes = {ir::Dim::symbol("s0")};
  CHECK(t.numel() == std::nullopt);
}

TEST_CASE("sizes of graphs count calls once and what scopes hold") {
  ir::Graph g;
  ir::Node op, call, scope;
  call.kind = ir::Node::Kind::call;
  scope.kind = ir::Node::Kind::scope;
  call.regions.push_back({{op, op}, {}});
  scope.regions.push_back({{op, call}, {}});
  g.body.nodes = {op, scope};
  CHECK(ir::count_nodes(g) == 3);
  CHECK(ir::count_ops(g) == 4);
}

}  // namespace graph_test
