#include "core/capabilities/switches.h"

#include <doctest/doctest.h>

using cutaway::capabilities::Switches;

TEST_CASE("switches read back as they were written") {
  Switches s;
  CHECK(s.to_json().empty());
  CHECK(Switches::from_json("")->empty());
  s.limits["fusions"] = 3;
  s.without = {"rewrites", "kernels:k0"};
  s.options["max_autotune"] = "true";
  s.log = "log.jsonl";
  s.code = "k.cpp";
  const auto back = Switches::from_json(s.to_json());
  REQUIRE(back.ok());
  CHECK(back->to_json() == s.to_json());
  CHECK(back->limits == s.limits);
  CHECK(back->without == s.without);
  CHECK(back->options == s.options);
}

TEST_CASE("switches that make no sense are refused with their place") {
  CHECK(Switches::from_json(R"({"limits": {"fusions": "many"}})").error().text() == "switches: limits: the limit of fusions is not a whole number");
  CHECK(Switches::from_json(R"({"wihout": []})").error().what == "unknown field \"wihout\"; did you mean \"without\"?");
}
