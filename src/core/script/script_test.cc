#include "core/script/script.h"

#include <doctest/doctest.h>

#include "core/ir/text.h"
#include "core/script/callable.h"
#include "core/script/python_literal.h"

namespace script_test {

using namespace cutaway;

namespace {
ir::Graph graph_of(std::string_view text) {
  auto g = ir::parse(text);
  if (!g.ok()) FAIL(g.error().text());
  return std::move(*g);
}
std::string script_of(const ir::Graph& g) {
  auto refs = script::inputs_from_types(g, 7);
  if (!refs.ok()) FAIL(refs.error().text());
  auto text = script::to_python(g, *refs);
  if (!text.ok()) FAIL(text.error().text());
  return *text;
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("script: operators are called by their full name, with their line") {
  const std::string s = script_of(graph_of(R"(graph net(%x: f32[2, 4], %lambda: f32[4, 4] grad) {
  %h: f32[2, 4] = aten.mm(%x, %lambda)  # model.py:12 Net.forward
  %y: f32[2, 4] = aten.add.Tensor(%h, 1.5, alpha=-0.0)
  return (%y)
}
)"));
  CHECK(has(s, "def net(\n    x,  # f32[2, 4]\n    lambda_,  # f32[4, 4] grad\n):\n"));
  CHECK(has(s, "    h = torch.ops.aten.mm.default(x, lambda_)  # model.py:12 Net.forward\n"));
  CHECK(has(s, "    y = torch.ops.aten.add.Tensor(h, 1.5, alpha=-0.0)\n    return (y,)\n"));
  CHECK(has(s, "random_storage(32, torch.float32, \"cpu\", seed=7)"));
  CHECK(has(s, ".set_(random_storage(64, torch.float32, \"cpu\", seed=8), 0, (4, 4), (4, 1)).requires_grad_()"));
}

TEST_CASE("script: names of values cannot become code or hide torch") {
  const std::string s = script_of(graph_of("graph f(%torch: f32[1], %a.b: f32[1], %a_b: f32[1]) {\n  %0: f32[1] = aten.relu(%torch)\n  return (%0, %a.b, %a_b)\n}\n"));
  CHECK(has(s, "v0 = torch.ops.aten.relu.default(torch_1)"));
  CHECK(has(s, "return (v0, a_b, a_b_1)"));
}

TEST_CASE("script: only torch's tensor functions are called by name") {
  using script::callable_from_torch;
  CHECK(callable_from_torch("torch.relu"));
  CHECK(callable_from_torch("torch.nn.functional.linear"));
  CHECK(callable_from_torch("Tensor.view")->kind == script::Callable::Kind::method);
  CHECK(callable_from_torch("operator.add"));
  for (const char* name : {"torch.load", "torch.save", "torch.hub.load", "os.system", "torch.compile", "builtins.eval", "builtins.getattr", "torch.utils.cpp_extension.load",
                           "Tensor.__reduce_ex__", "torch", "torch.nn.functional.x y", "operator.attrgetter", "operator.methodcaller", "torch.__import__", ""})
    CHECK_FALSE(callable_from_torch(name));
}

TEST_CASE("script: a string stays within its quotes") {
  CHECK(script::python_string("a\"b\\c\nd") == R"("a\"b\\c\x0ad")");
  CHECK(script::python_string("\u00e9\u4e2d") == "\"\u00e9\u4e2d\"");
  CHECK(script::python_string("\xff") == R"("\xff")");
  CHECK(script::python_string("\u202e") == R"("\u202e")");
}

TEST_CASE("script: numbers read back as the same bits") {
  CHECK(script::python_float(2) == "2.0");
  CHECK(script::python_float(-0.0) == "-0.0");
  CHECK(script::python_float(0.1) == "0.1");
  CHECK(script::python_float(1e300) == "1e+300");
}

TEST_CASE("script: an input that cannot be made up is refused by name") {
  auto refs = script::inputs_from_types(graph_of("graph f(%n: int, %x: f32[2]) {\n  return (%x)\n}\n"), 0);
  REQUIRE_FALSE(refs.ok());
  CHECK(refs.error().what == "the input %n is int, not a tensor");
  auto symbolic = script::inputs_from_types(graph_of("graph f(%x: f32[s0]) {\n  return (%x)\n}\n"), 0);
  REQUIRE_FALSE(symbolic.ok());
  CHECK(symbolic.error().what == "the input %x has the symbolic size s0");
}

TEST_CASE("script: tensors on one storage share it") {
  ir::Graph g = graph_of("graph f(%x: f32[2], %y: f32[2]) {\n  return (%x, %y)\n}\n");
  auto refs = script::inputs_from_types(g, 0);
  REQUIRE(refs.ok());
  for (auto& r : *refs) r.tensor.storage_id = 3;
  (*refs)[1].tensor.storage_offset = 1;
  auto s = script::to_python(g, *refs);
  REQUIRE(s.ok());
  CHECK(has(*s, "set_(storage, 0, (2,), (1,))"));
  CHECK(has(*s, "set_(storage, 1, (2,), (1,))"));
}

}  // namespace script_test
