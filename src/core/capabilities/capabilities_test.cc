#include "core/capabilities/parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace capabilities_test {

using namespace cutaway;
using capabilities::Lives;
using capabilities::Parts;
using capabilities::Stage;

TEST_CASE("capabilities: every row is complete, and names differ") {
  std::set<std::string> names;
  for (const capabilities::Row& row : capabilities::rows()) {
    CHECK_MESSAGE(capabilities::missing_in(row) == "", row.name);
    CHECK(names.insert(row.name).second);
  }
  CHECK(std::is_sorted(capabilities::rows().begin(), capabilities::rows().end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST_CASE("capabilities: a row by name, with parameters, and for a name that only torch knows") {
  REQUIRE(capabilities::find("fault:crash:aten.relu"));
  CHECK(capabilities::find("fault:crash:aten.relu")->name == "fault");
  CHECK(capabilities::find("native")->parts == Parts::native);
  CHECK(!capabilities::find("tvm"));
  CHECK(!capabilities::find(""));
  const capabilities::Row tvm = capabilities::row_of("tvm");
  CHECK(tvm.name == "tvm");
  CHECK(tvm.lives == Lives::python);
  CHECK(tvm.needs_trust);
  CHECK(capabilities::missing_in(tvm) == "");
  CHECK(capabilities::row_of("aot_ts").has_aot_stage);
}

TEST_CASE("capabilities: the backends that stop after a stage") {
  CHECK(capabilities::up_to(Stage::capture) == "eager");
  CHECK(capabilities::up_to(Stage::aot) == "aot_eager");
  CHECK(capabilities::row_of("aot_eager:save_all").last_stage == Stage::aot);
  CHECK(capabilities::row_of("tvm").last_stage == Stage::backend);
}

TEST_CASE("capabilities: a field that a row lacks is named") {
  capabilities::Row row = *capabilities::find("native");
  row.devices.clear();
  CHECK(capabilities::missing_in(row) == "it names no device");
  row = *capabilities::find("native");
  row.of_ours = "nothing";
  CHECK(capabilities::missing_in(row) == "its of_ours is no row");
}

TEST_CASE("capabilities: a name that is nearly one of those that need no trust") {
  CHECK(capabilities::nearest("indutcor") == "; did you mean \"inductor\"?");
  CHECK(capabilities::nearest("inductor") == "");
  CHECK(capabilities::nearest("python:a:b") == "");
}

TEST_CASE("capabilities: the parts of a backend, in both orders") {
  CHECK(capabilities::names_of(Parts::native) == std::vector<std::string>{"rewrites", "fusions", "kernels"});
  for (const Parts p : {Parts::none, Parts::native, Parts::inductor}) {
    const capabilities::PartsTable& table = capabilities::table_of(p);
    CHECK(table.parts.size() == table.in_order.size());
    for (const std::string_view name : table.in_order) CHECK(std::ranges::count(table.parts, name, &capabilities::PartRow::name) == 1);
  }
  CHECK(capabilities::one_of("post_grad_passes") == "post-grad pass");
  CHECK(capabilities::all_parts().size() == 9);
}

}  // namespace capabilities_test
