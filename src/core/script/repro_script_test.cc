#include "core/script/repro_script.h"

#include <doctest/doctest.h>

#include "core/ir/text.h"
#include "core/script/script.h"

namespace repro_script_test {

using namespace cutaway;

namespace {

bundle::Manifest manifest_for(const ir::Graph& g) {
  bundle::Manifest m;
  m.name = g.name;
  m.backend = "inductor";
  auto inputs = script::inputs_from_types(g, 3);
  if (!inputs.ok()) FAIL(inputs.error().text());
  m.inputs = *inputs;
  return m;
}
ir::Graph small() {
  auto g = ir::parse("graph net(%x: f32[4]) {\n  %y: f32[4] = aten.relu(%x)\n  return (%y)\n}\n");
  if (!g.ok()) FAIL(g.error().text());
  return std::move(*g);
}
std::string script_of(const bundle::Manifest& m) {
  auto text = script::to_repro_script(small(), m);
  if (!text.ok()) FAIL(text.error().text());
  return *text;
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("repro script: after capture by torch.compile, with options, state and the type to expect") {
  bundle::Manifest m = manifest_for(small());
  m.stage = "capture";
  m.failure = {"exception", "backend", "InductorError", "", "", "", ""};
  m.options = {{"cpp.threads", "1"}, {"freezing", "true"}, {"name", "\"a\\\"b\""}};
  m.state.grad_enabled = false;
  const std::string s = script_of(m);
  CHECK(has(s, "def graph_under_test(\n    x,  # f32[4]\n):\n"));
  CHECK(has(s, "BACKEND = \"inductor\"\nOPTIONS = {\"cpp.threads\": 1, \"freezing\": True, \"name\": \"a\\\"b\"}\n"));
  CHECK(has(s, "torch.compile(graph_under_test, backend=BACKEND"));
  CHECK(has(s, "EXPECTED = \"InductorError\""));
  CHECK(has(s, "with torch.set_grad_enabled(False):\n        status = check()"));
  CHECK_FALSE(has(s, "@"));
  CHECK_FALSE(has(s, "# patience"));
}

TEST_CASE("repro script: after aot the inner compiler, numbers checked, hangs ended") {
  bundle::Manifest m = manifest_for(small());
  m.stage = "aot";
  m.failure.kind = "accuracy";
  m.accuracy = "accuracy";
  m.tracing_mode = "symbolic";
  std::string s = script_of(m);
  CHECK(has(s, "compile_fx_inner(module, inputs)"));
  CHECK(has(s, "tracing_mode=\"symbolic\""));
  CHECK(has(s, "import torch._inductor.config\n"));
  CHECK(has(s, "def run_wide():"));
  m.failure.kind = "hang";
  m.accuracy = "";
  s = script_of(m);
  CHECK(has(s, "faulthandler.dump_traceback_later(PATIENCE, exit=True)"));
}

TEST_CASE("repro script: a backend by import name or by its source text; anything else is refused") {
  bundle::Manifest m = manifest_for(small());
  m.backend = "python:my.compilers:Best.compile";
  CHECK(has(script_of(m), "BACKEND = operator.attrgetter(\"Best.compile\")(importlib.import_module(\"my.compilers\"))"));
  m.backend = "python:os;x:system";
  CHECK_FALSE(script::to_repro_script(small(), m).ok());
  m.backend = "source:toy";
  CHECK_FALSE(script::to_repro_script(small(), m).ok());
  m.extra["backend_source"] = "\"def toy(gm, inputs):\\n    return gm\\n\"";
  CHECK(has(script_of(m), "def toy(gm, inputs):\n    return gm\n\n\nBACKEND = toy\n"));
  m.backend = "source:toy()";
  CHECK_FALSE(script::to_repro_script(small(), m).ok());
  m.backend = "fault:crash:aten.relu";
  CHECK(has(script_of(m), "sys.exit(2)"));
  m.backend = "eager";
  m.libraries = {"mine; import os"};
  CHECK_FALSE(script::to_repro_script(small(), m).ok());
}

}  // namespace repro_script_test
