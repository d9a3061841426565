#include "diagnosis/oracle/switches.h"

#include <doctest/doctest.h>

#include "core/ir/op_name.h"

namespace cutaway::oracle {

TEST_CASE("switches as text: nothing to switch is no text") {
  CHECK(Switches{}.to_json().empty());
  Switches s;
  s.limits["lowerings"] = 3;
  s.without = {"patterns:f(aten.tanh.default)"};
  s.options = {{"cpp.simdlen", "1"}, {"word", "\"off\""}};
  s.log = "/tmp/x";
  CHECK(s.to_json() == R"j({"limits":{"lowerings":3},"log":"/tmp/x","options":{"cpp.simdlen":1,"word":"off"},"without":["patterns:f(aten.tanh.default)"]})j");
}

TEST_CASE("parts are checked by name") {
  CHECK(check_part("fusions").ok());
  const auto wrong = check_part("lowering");
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().what == "neither Inductor nor native has a part \"lowering\"; did you mean \"lowerings\"?");
}

TEST_CASE("the log of a child that died in the middle of a line is read up to there") {
  const std::string common = R"("kind":"decision","topic":"backend","level":"info","phase":0,"pid":7,"thread":1,"time_us":3,)";
  const auto found = read_applications(
      R"({"kind":"stream","version":1,"pid":7,"began":"2026-01-31T12:00:00Z"})" "\n{" + common +
      R"("name":"applied","fields":{"part":"lowerings","number":0,"name":"aten.relu.default","node":"relu","graph":"g","place":"a.py:3","off":false}})" "\n{" + common +
      R"("name":"else"})" "\n{" + common + R"("name":"applied","fields":{"part":"fusions","number":1}})" "\n{" + common);
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "aten.relu.default");
  CHECK(found[0].place == "a.py:3");
  CHECK(found[1].part == "fusions");
  CHECK(found[1].number == 1);
}

TEST_CASE("an operator without an overload covers its overloads") {
  CHECK(ir::is_op("aten.add", "aten.add.Tensor"));
  CHECK(ir::is_op("aten.add.Tensor", "aten.add.Tensor"));
  CHECK(!ir::is_op("aten.add", "aten.addmm"));
  CHECK(!ir::is_op("aten.add.Tensor", "aten.add"));
}

}  // namespace cutaway::oracle
