#include "core/base/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace json_test {

using namespace cutaway::base;

namespace {
std::string reprint(std::string_view text) { return std::move(Json::parse(text, "t")).value().text(); }
std::string complaint(std::string_view text) { return Json::parse(text, "t.json").error().text(); }
}  // namespace

TEST_CASE("json: reads and writes back the same way every time") {
  CHECK(reprint(" {\"b\" : [1, 2.5, -0.0, 1e300], \"a\":{\"x\":null,\"y\":[true,false]}} ") ==
        "{\"a\":{\"x\":null,\"y\":[true,false]},\"b\":[1,2.5,-0.0,1e+300]}");
  CHECK(reprint("18446744073709551615") == "18446744073709551615");
  CHECK(reprint("-9223372036854775808") == "-9223372036854775808");
  CHECK(reprint("1.0") == "1.0");
  CHECK(reprint("\"a\\u00e9\\n\\u0000\\ud83d\\ude00\"") == "\"aé\\n\\u0000😀\"");
  CHECK(Json(0.1).text() == "0.1");
  CHECK(Json(std::nan("")).text() == "\"nan\"");
  CHECK(Json(-INFINITY).text() == "\"-inf\"");
  CHECK(json_text("a\"\x01\xff") == "\"a\\\"\\u0001\\ufffd\"");
  Json made;
  made["z"] = 1;
  made["a"] = Json::Array{Json(1), Json("two")};
  made["o"] = Json::Array{Json(Json::Object{{"k", 1}}), Json(Json::Object{})};
  CHECK(made.text(2) == "{\n  \"a\": [1, \"two\"],\n  \"o\": [\n    {\n      \"k\": 1\n    },\n    {}\n  ],\n  \"z\": 1\n}");
  CHECK(*Json::parse(made.text(2), "t") == made);
}

TEST_CASE("json: refuses what is not exactly one value") {
  CHECK(complaint("{\"a\": 1,\n \"b\": }").find("t.json:2:7: this is not JSON") == 0);
  CHECK(complaint("{\"a\":{\"b\":[0,{\"c\":1,\"c\":2}]}}") == "t.json: a.b[1]: the key \"c\" appears twice");
  CHECK(complaint("{\"c\":1,\"c\":2}") == "t.json: the key \"c\" appears twice");
  for (const char* bad : {"", " ", "1 2", "{}x", "[1,]", "{,}", "'a'", "NaN", "Infinity", "01", "+1", "1.", "\"\n\"", "\"\\x\"", "\"\xff\"",
                          "\"\\ud800\"", "tru", "// c\n1", "1e999", "-1e999", "[", "{\"a\"", "\xef\xbb\xbf\xef"}) {
    CAPTURE(bad);
    CHECK_FALSE(Json::parse(bad, "t").ok());
  }
  CHECK(Json::parse(std::string(64, '[') + std::string(64, ']'), "t").ok());
  CHECK(Json::parse(std::string(65, '[') + std::string(65, ']'), "t").error().what == "nested more than 64 deep");
  CHECK_FALSE(Json::parse(std::string(1'000'000, '['), "t").ok());
  CHECK_FALSE(Json::parse(std::string_view("1\0", 2), "t").ok());
}

TEST_CASE("json: every complaint names its place") {
  const Json document = std::move(Json::parse(R"({"n":-1,"big":18446744073709551615,"s":"x","list":[1,"2"],"word":"reel","extra_field":1})", "t")).value();
  auto fields = JsonFields::open(JsonAt(document, "m.json"));
  REQUIRE(fields.ok());
  const auto at = [&](const char* key) { return *fields->required(key); };
  CHECK(*at("n").integer() == -1);
  CHECK(at("n").integer(0).error().text() == "m.json: n: -1 is too small\n   because: at least 0");
  CHECK(at("n").unsigned_integer().error().what == "-1 is too small");
  CHECK(at("big").integer().error().what == "18446744073709551615 is too large");
  CHECK(*at("big").unsigned_integer() == UINT64_MAX);
  CHECK(at("s").integer().error().what == "expected an integer, got a string");
  CHECK(at("s").boolean().error().what == "expected true or false, got a string");
  CHECK(at("list").integers(10, 0).error().text() == "m.json: list[1]: expected an integer, got a string");
  CHECK(at("list").array(1).error().what == "2 elements are too many");
  CHECK(at("word").one_of({"real", "fake"}).error().what == "unknown word \"reel\"; did you mean \"real\"?");
  CHECK(fields->required("absent").error().text() == "m.json: the field \"absent\" is missing");
  CHECK_FALSE(fields->optional("extra_fields").has_value());
  CHECK(fields->finish().error().what == "unknown field \"extra_field\"; did you mean \"extra_fields\"?");
  CHECK(fields->optional("extra_field").has_value());
  CHECK(fields->finish().ok());
  CHECK(JsonFields::open(at("n")).error().text() == "m.json: n: expected an object, got an integer");
}

}  // namespace json_test
