#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "core/base/json.h"
#include "core/bundle/bundle.h"

namespace manifest_test {

using namespace cutaway;
using namespace cutaway::bundle;

namespace {

TensorRecord weight() {
  TensorRecord r;
  r.sizes = {64, 64};
  r.strides = {64, 1};
  r.storage = base::digest_text("w");
  r.storage_bytes = 64 * 64 * 4;
  r.is_parameter = r.requires_grad = true;
  return r;
}

Manifest full_manifest() {
  Manifest m;
  m.name = "forward";
  m.stage = "aot";
  m.backend = "inductor";
  m.tracing_mode = "symbolic";
  m.accuracy = "strict";
  m.state.grad_enabled = false;
  m.state.autocast = {{ir::Device{"cuda", 0}, true, ir::DType::f16, false}, {}};
  m.seed = UINT64_MAX;
  m.random_inputs = true;
  m.inputs.push_back({.kind = InputRef::Kind::data, .tensor = weight(), .make_contiguous = true});
  InputRef seeded{.kind = InputRef::Kind::seeded, .tensor = weight(), .seed = 7};
  seeded.tensor.storage = {};
  seeded.range = {-3, 10};
  seeded.reason = "larger than 1 GB";
  m.inputs.push_back(seeded);
  InputRef filled{.kind = InputRef::Kind::filled, .tensor = seeded.tensor};
  filled.fill = -0.0;
  m.inputs.push_back(filled);
  for (ir::Argument literal : {ir::Argument(), ir::Argument(true), ir::Argument(int64_t{-5}), ir::Argument(2.5), ir::Argument(-0.0), ir::Argument(INFINITY),
                               ir::Argument("a \"quoted\" ü\n\xff"), ir::Argument(ir::DType::bf16), ir::Argument(ir::Device{"cuda", 1}),
                               ir::Argument(ir::List{{ir::Argument(1), ir::Argument(ir::Tuple{{ir::Argument()}})}}), ir::Argument(std::complex<double>(1, NAN))}) {
    InputRef ref;
    ref.kind = InputRef::Kind::literal;
    ref.literal = std::move(literal);
    m.inputs.push_back(ref);
  }
  m.failure = {"exception", "backend", "LoweringException", "aten.cummin", "", "no rule for <n>", "model.py:23 Block.forward"};
  m.options = {{"max_autotune", "true"}, {"cpp.threads", "4"}, {"list", "[1,2.5,{\"a\":null}]"}};
  m.environment = {{"OMP_NUM_THREADS", "1"}};
  m.libraries = {"torchvision"};
  m.versions = {{"torch", "2.13.0"}};
  m.hardware = {{"cpu", "AMD \"EPYC\""}};
  m.extra = {{"minify", "{\"candidates\":25}"}};
  return m;
}

std::string complaint(std::string text) { return manifest_from_json(text, "out/manifest.json").error().text(); }

/// A good manifest, with one thing changed.
std::string changed(void (*change)(base::Json&)) {
  base::Json document = *base::Json::parse(manifest_to_json(full_manifest(), base::digest_text("g")), "m");
  change(document);
  return document.text(2);
}
base::Json& input(base::Json& m, size_t i) { return (*m["inputs"].as<base::Json::Array>())[i]; }

}  // namespace

TEST_CASE("manifest: reads back equal") {
  for (const Manifest& m : {Manifest{}, full_manifest()}) {
    const std::string text = manifest_to_json(m, base::digest_text("g"));
    const auto back = manifest_from_json(text, "manifest.json");
    REQUIRE_MESSAGE(back.ok(), back.error().text());
    CHECK(back->manifest == m);
    CHECK(back->graph_digest == base::digest_text("g"));
    CHECK(manifest_to_json(back->manifest, back->graph_digest) == text);
  }
  Manifest nan;
  nan.inputs.push_back({.kind = InputRef::Kind::filled, .fill = std::nan("")});
  CHECK(std::isnan(manifest_from_json(manifest_to_json(nan, {}), "m")->manifest.inputs[0].fill));
}

TEST_CASE("manifest: a small one, as people see it") {
  Manifest m;
  m.name = "forward";
  m.inputs.push_back({.kind = InputRef::Kind::data, .tensor = weight()});
  CHECK(manifest_to_json(m, base::digest_text("g")) == R"({
  "format": "cutaway bundle",
  "graph": {
    "digest": ")" + base::digest_text("g").hex() + R"("
  },
  "inputs": [
    {
      "kind": "data",
      "tensor": {
        "dtype": "f32",
        "is_parameter": true,
        "requires_grad": true,
        "sizes": [64, 64],
        "storage": ")" + base::digest_text("w").hex() + R"(",
        "storage_bytes": 16384,
        "strides": [64, 1]
      }
    }
  ],
  "name": "forward",
  "seed": 0,
  "tracing_mode": "real",
  "version": 1
}
)");
}

TEST_CASE("manifest: every breach has its place") {
  using base::Json;
  CHECK(complaint("[]") == "out/manifest.json: expected an object, got an array");
  CHECK(complaint("{\n  \"a\": tru\n}").starts_with("out/manifest.json:2:"));
  CHECK(complaint(R"({"version":1})") == "out/manifest.json: the field \"format\" is missing");
  CHECK(complaint(R"({"format":"cutaway bundle","version":2,"anything":1})") ==
        "out/manifest.json: version: version 2 is not known\n   because: this Cutaway reads version 1\n   try: a newer Cutaway");
  CHECK(complaint(R"({"format":"zip","version":1})") == "out/manifest.json: format: expected \"cutaway bundle\", got \"zip\"");
  CHECK(complaint(R"({"format":"cutaway bundle","version":1,"version":1})") == "out/manifest.json: the key \"version\" appears twice");
  const auto check = [](void (*change)(Json&), std::string_view expected) {
    CAPTURE(expected);
    const std::string text = complaint(changed(change));
    CHECK_MESSAGE(text.starts_with("out/manifest.json: " + std::string(expected)), text);
  };
  check([](Json& m) { m["inptus"] = 1; }, "unknown field \"inptus\"; did you mean \"inputs\"?");
  check([](Json& m) { m["graph"]["digest"] = "12"; }, "graph.digest: a digest has 32 hexadecimal digits");
  check([](Json& m) { m["graph"]["file"] = "../graph.cut"; }, "graph: unknown field \"file\"");
  check([](Json& m) { m["inputs"] = "x"; }, "inputs: expected an array, got a string");
  check([](Json& m) { m["tracing_mode"] = "reel"; }, "tracing_mode: unknown word \"reel\"; did you mean \"real\"?");
  check([](Json& m) { m["stage"] = ""; }, "stage: unknown word \"\"");
  check([](Json& m) { m["seed"] = -1; }, "seed: -1 is too small");
  check([](Json& m) { m["seed"] = 1.0; }, "seed: expected an integer, got a number");
  check([](Json& m) { m["random_inputs"] = 1; }, "random_inputs: expected true or false, got an integer");
  check([](Json& m) { m["failure"]["kind"] = "sad"; }, "failure.kind: unknown word \"sad\"");
  check([](Json& m) { m["options"] = Json::Array{}; }, "options: expected an object, got an array");
  check([](Json& m) { m["environment"]["X"] = 1; }, "environment.X: expected a string, got an integer");
  check([](Json& m) { m["libraries"] = Json::Array{1}; }, "libraries[0]: expected a string, got an integer");
  check([](Json& m) { m["state"]["autocast"] = Json::Array{Json::Object{{"device", "cpu"}, {"enabled", true}, {"dtype", "f31"}}}; }, "state.autocast[0].dtype: unknown dtype \"f31\"");
  check([](Json& m) { input(m, 0)["kind"] = "dta"; }, "inputs[0].kind: unknown word \"dta\"; did you mean \"data\"?");
  check([](Json& m) { input(m, 0)["seed"] = 1; }, "inputs[0]: unknown field \"seed\"");
  check([](Json& m) { input(m, 0)["tensor"]["storage"] = std::string(32, '0'); }, "inputs[0].tensor.storage: a digest of zeros names nothing");
  check([](Json& m) { input(m, 0)["tensor"]["storage_bytes"] = 100; }, "inputs[0].tensor: the tensor reaches outside its storage");
  check([](Json& m) { input(m, 0)["tensor"].as<Json::Object>()->erase("storage"); }, "inputs[0].tensor: the field \"storage\" is missing");
  check([](Json& m) { input(m, 1)["tensor"]["storage"] = base::digest_text("w").hex(); }, "inputs[1].tensor: the field \"storage\" has no place here");
  check([](Json& m) { input(m, 1)["range"] = Json::Array{3, 3}; }, "inputs[1].range: a range is");
  check([](Json& m) { input(m, 1)["range"] = Json::Array{3}; }, "inputs[1].range: a range is");
  check([](Json& m) { input(m, 2)["fill"] = "zero"; }, "inputs[2].fill: expected a number");
  for (const char* bad : {"%x", "1, 2", "", "1 ", "01", "f31", "1) #", "[1", "1)\n}\n"}) {
    CAPTURE(bad);
    base::Json document = *Json::parse(changed([](Json&) {}), "m");
    input(document, 5)["literal"] = bad;
    CHECK(complaint(document.text()).starts_with("out/manifest.json: inputs[5].literal: "));
  }
  check([](Json& m) {
    m["inputs"].as<Json::Array>()->push_back(input(m, 0));
    m["inputs"].as<Json::Array>()->back()["tensor"]["storage_bytes"] = 20000;
  }, "inputs[14]: the storage " + base::digest_text("w").short_hex() + " has 20000 bytes here and 16384 in an input before");
}

}  // namespace manifest_test
