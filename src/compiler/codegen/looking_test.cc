// What people see of generated code: costs, instructions, the program, marks of lines; and faults that are planted.
#include <doctest/doctest.h>

#include "compiler/codegen/cost.h"
#include "compiler/codegen/diagram.h"
#include "compiler/codegen/instructions.h"
#include "compiler/codegen/line_marks.h"
#include "compiler/codegen/planted.h"
#include "compiler/codegen/program_text.h"
#include "core/ir/text.h"

namespace looking_test {

using namespace cutaway;
using namespace cutaway::codegen;

namespace {

ir::Graph graph() {
  auto g = ir::parse("graph g(%a: f32[8, 16], %w: f32[16, 32]) {\n  %x: f32[8, 16] = aten.tanh(%a)\n  %y: f32[8, 16] = aten.add.Tensor(%x, %a)\n  %m: f32[8, 32] = aten.mm(%y, %w)\n  return (%m)\n}\n", "g");
  REQUIRE(g.ok());
  return *g;
}

}  // namespace

TEST_CASE("costs: each element is read and written once, functions count more than sums") {
  const Program p = generate(graph(), {});
  REQUIRE(p.kernels.size() == 1);
  REQUIRE(p.products.size() == 1);
  const Cost k = cost_of(p.kernels[0].kernel);
  CHECK(k.bytes == 2 * 8 * 16 * 4);
  CHECK(k.operations == 8 * 16 * (kFunctionOperations + 1));
  const Cost m = cost_of(p.products[0]);
  CHECK(m.bytes == 4 * (8 * 16 + 16 * 32 + 8 * 32));
  CHECK(m.operations == 2 * 8 * 16 * 32);
}

TEST_CASE("stores_all: a kernel gives every value that it computes") {
  Options o;
  CHECK(generate(graph(), o).kernels[0].kernel.stores.size() == 1);
  o.stores_all = true;
  CHECK(generate(graph(), o).kernels[0].kernel.stores.size() == 2);
}

TEST_CASE("a planted fault sits in one value, and who uses it sees it") {
  Options o;
  const std::string right = print(generate(graph(), o).kernels[0].kernel);
  for (const char* planted : {"rules:aten.tanh", "rules:aten.add.Tensor", "kernels:aten.tanh+aten.add.Tensor", "fusions:aten.add.Tensor into aten.tanh"}) {
    o.planted = planted;
    CHECK_MESSAGE(print(generate(graph(), o).kernels[0].kernel) != right, planted);
  }
  o.planted = "rules:aten.sin";
  CHECK(print(generate(graph(), o).kernels[0].kernel) == right);
  Kernel k = generate(graph(), {}).kernels[0].kernel;
  CHECK(make_wrong(k, "x"));
  CHECK_FALSE(make_wrong(k, "nothing"));
  for (size_t i = 0; i < k.terms.size(); ++i)
    for (TermId t : k.terms[i].operands) CHECK(t < i);
}

TEST_CASE("instructions: one line a step, with what it frees") {
  const std::string text = instructions_text(generate(graph(), {}));
  CHECK(text.find("kernel   %y = native.k0(%a)   frees %a\n") != text.npos);
  CHECK(text.find("product  %m = native.p1(%y, %w)   frees %y, %w\n") != text.npos);
  CHECK(text.find("return  %m\n") != text.npos);
}

TEST_CASE("the program has its command in the first line, every value, and every step") {
  ProgramTextOptions o;
  o.compiler = "c++";
  o.flags = {"-O2", "-fPIC", "-shared"};
  const std::string text = complete_program(generate(graph(), {}), o);
  CHECK(text.starts_with("// c++ -O2 -fopenmp output_code.cpp -o output_code -lm && ./output_code\n"));
  for (const char* part : {"{\"a\", \"f32\", 4, 512, false, false}", "{\"m\", \"f32\", 4, 1024, true, true}", "\"native.k0\"", "\"native.p1\"", "int main("}) CHECK_MESSAGE(text.find(part) != text.npos, part);
}

TEST_CASE("marks: a value's statement stands at the user's line, the next one at its own") {
  ir::Graph g = graph();
  g.body.nodes[0].location = g.add_location({"/m.py", 7, "f", ""});
  const std::string text = with_line_marks("first\n  const F x_ = 1;\n  const F other = 2;\n", g, "own.cpp");
  CHECK(text == "first\n#line 7 \"/m.py\"\n  const F x_ = 1;\n#line 5 \"own.cpp\"\n  const F other = 2;\n");
}

TEST_CASE("the picture has a box for each step and an arc for each use") {
  const std::string svg = diagram(generate(graph(), {}));
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = svg.find(word); at != svg.npos; at = svg.find(word, at + 1)) ++n;
    return n;
  };
  CHECK(count("<rect") == 5);
  CHECK(count("<path") == 4);
}

}  // namespace looking_test
