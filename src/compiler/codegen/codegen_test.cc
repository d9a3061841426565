// Golden cases of tests/golden/codegen: "run: <what>" in the first line, a graph, a line "----", the expected text. CUTAWAY_UPDATE_GOLDEN=1 rewrites them.
// what: "fused" (the graph with its calls), "decisions", "loops" (the loop form), "cpp" (the text), "cuda" (the text for a card), "memory" (the plan), each with settings behind it: fusions=N, kernels=N, rewrites=N.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/codegen/generate.h"
#include "compiler/codegen/maker.h"
#include "compiler/codegen/rules.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"
#include "tests/support/golden_cases.h"

namespace codegen_test {

using namespace cutaway;
using namespace cutaway::codegen;

namespace {

Options options_of(std::istringstream& words) {
  Options o;
  o.lanes = 8;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    REQUIRE(equals != std::string::npos);
    const int64_t n = std::stoll(word.substr(equals + 1));
    if (word.starts_with("fusions")) o.fuel.fusions = n;
    else if (word.starts_with("kernels")) o.kernels = n;
    else if (word.starts_with("rewrites")) o.rewrites.fuel = n;
    else FAIL("unknown setting " << word);
  }
  return o;
}

std::string answer(const std::string& command, const std::string& input) {
  base::Result<ir::Graph> graph = ir::parse(input, "input.cut");
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  std::istringstream words(command);
  std::string what, out;
  words >> what;
  const Program p = generate(*graph, options_of(words));
  for (const base::Error& e : ir::verify(p.graph)) FAIL("the fused graph is not well formed: " << e.text());
  if (what == "fused") return ir::print(p.graph);
  if (what == "memory") return p.memory.text(p.graph);
  if (what == "cuda") {
    for (const Text& t : p.texts) {
      REQUIRE(t.cuda);
      out += t.source + "// " + std::to_string(t.cuda->blocks) + " x " + std::to_string(t.cuda->splits) + " blocks of " + std::to_string(t.cuda->threads) + " threads\n\n";
    }
  } else if (what == "cpp") {
    for (const Text& t : p.texts) out += t.source + "\n";
  } else if (what == "loops") {
    for (const Generated& k : p.kernels) out += print(k.kernel);
    for (const Product& x : p.products) out += "product " + x.text() + "\n";
    for (const Draw& x : p.draws) out += "random " + x.text() + "\n";
    for (const Scatter& x : p.scatters) out += "scatter " + x.text() + "\n";
  } else {
    for (const Rewritten& r : p.rewrites) out += "rewrite " + std::string(r.row) + " %" + r.value + "\n";
    for (const Decision& d : p.decisions) out += d.action + (d.done ? " " : " not ") + d.identity + (d.reason.empty() ? "" : ": " + d.reason) + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("codegen: golden cases") {
  CHECK(testing::run_golden_cases("tests/golden/codegen", answer) >= 12);
}

TEST_CASE("codegen: the table of rules is sorted and has no operator twice") {
  const auto& rows = all_rules();
  CHECK(rows.size() > 80);
  CHECK(std::ranges::is_sorted(rows, {}, &RuleRow::target));
  CHECK(std::ranges::adjacent_find(rows, {}, &RuleRow::target) == rows.end());
  for (const RuleRow& r : rows) CHECK(find_rule(r.target) == &r);
  CHECK(find_rule("aten.mm") == nullptr);
}

TEST_CASE("codegen: kernels that compute the same on other values share one text") {
  const auto graph = ir::parse("graph g(%a: f32[8, 16], %b: f32[8, 16], %w: f32[16, 16]) {\n  %x: f32[8, 16] = aten.tanh(%a)\n  %m: f32[8, 16] = aten.mm(%x, %w)\n  %y: f32[8, 16] = aten.tanh(%m)\n  return (%y)\n}\n", "g");
  REQUIRE(graph.ok());
  Options o;
  CHECK(generate(*graph, o).texts.size() == 2);   // the second one is an epilogue
  o.fuel.epilogues = false;
  const Program p = generate(*graph, o);
  CHECK(p.kernels.size() == 2);
  CHECK(p.texts.size() == 1);
  CHECK(p.products.size() == 1);
}

TEST_CASE("codegen: fuel stops fusions and kernels where it says, and the rest stays operators") {
  const auto graph = ir::parse("graph g(%a: f32[8, 16]) {\n  %x: f32[8, 16] = aten.tanh(%a)\n  %y: f32[8, 16] = aten.sin(%x)\n  %z: f32[8, 16] = aten.cos(%y)\n  return (%z)\n}\n", "g");
  REQUIRE(graph.ok());
  Options o;
  CHECK(generate(*graph, o).kernels.size() == 1);
  o.fuel.fusions = 1;
  CHECK(generate(*graph, o).kernels.size() == 2);
  o.fuel.fusions = 0;
  CHECK(generate(*graph, o).kernels.size() == 3);
  o.kernels = 1;
  CHECK(generate(*graph, o).kernels.size() == 1);
  o.kernels = 0;
  CHECK(ir::identical(generate(*graph, o).graph, *graph));
}

namespace {

/// The graph with its symbol, and with a number in its place.
Program at_size(const std::string& text, int64_t n, const ir::Graph& symbolic) {
  std::string at = text;
  for (size_t i; (i = at.find("s0")) != std::string::npos;) at.replace(i, 2, std::to_string(n));
  const auto graph = ir::parse(at, "g");
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  Options o;
  o.symbolic = &symbolic;
  return generate(*graph, o);
}

}  // namespace

TEST_CASE("codegen: texts of a graph with symbols are the same at every size, and sizes are their arguments") {
  const std::string body =
      "graph g(%a: f32[s0, 24], %b: f32[24], %c: f32[24, s0], %d: f32[3, s0]) {\n"
      "  %x: f32[s0, 24] = aten.add.Tensor(%a, %b)\n"
      "  %y: f32[s0, 24] = aten.tanh(%x)\n"
      "  %t: f32[s0, 24] strides(1, s0) = aten.t(%c)\n"
      "  %z: f32[s0, 24] = aten.mul.Tensor(%y, %t)\n"
      "  %m: f32[s0, 1] = aten.mean.dim(%a, [1], true)\n"
      "  %r: f32[3, 1] = aten.mean.dim(%d, [1], true)\n"
      "  %p: f32[24, 1] = aten.mean.dim(%c, [1], true)\n"
      "  %e: f32[s0, 24] = aten.exp(%a)\n"
      "  %k: f32[24] = aten.sum.dim_IntList(%a, [0])\n"
      "  return (%z, %m, %r, %p, %e, %k)\n}\n";
  const auto symbolic = ir::parse(body, "g");
  REQUIRE_MESSAGE(symbolic.ok(), symbolic.error().text());
  const Program a = at_size(body, 40, *symbolic), b = at_size(body, 700, *symbolic), c = at_size(body, 24, *symbolic);
  REQUIRE(a.texts.size() >= 4);
  for (const Program* other : {&b, &c}) {
    REQUIRE(other->kernels.size() == a.kernels.size());
    for (size_t i = 0; i < a.kernels.size(); ++i) {
      CHECK(a.texts[a.kernels[i].text].key == other->texts[other->kernels[i].text].key);
      CHECK(a.kernels[i].sizes.size() == other->kernels[i].sizes.size());
      CHECK(a.kernels[i].sizes != other->kernels[i].sizes);
    }
  }
  // What does not depend on the size stays in the text: rows of 24 elements need no end of their own on vectors of 8.
  CHECK(std::ranges::any_of(a.kernels, [](const Generated& k) { return k.kernel.has_fixed_inner; }));
  // The last one: a mean's divisor is a number of the call where the size is.
  CHECK(std::ranges::any_of(a.kernels, [](const Generated& k) { return std::ranges::any_of(k.kernel.terms, [](const Term& t) { return t.is_size && t.number == 40; }); }));
  for (const Generated& k : a.kernels) CHECK(k.kernel.is_general);
}

TEST_CASE("codegen: a graph of numbers has no arguments for sizes") {
  const auto graph = ir::parse("graph g(%a: f32[8, 16]) {\n  %x: f32[8, 16] = aten.tanh(%a)\n  return (%x)\n}\n", "g");
  const Program p = generate(*graph, {});
  REQUIRE(p.kernels.size() == 1);
  CHECK(p.kernels[0].sizes.empty());
  CHECK(p.texts[0].key.empty());
  CHECK(p.texts[0].source.find("size") == std::string::npos);
}

// docs/notes/native_operators.md is written from the tables: CUTAWAY_UPDATE_GOLDEN=1 rewrites it.
TEST_CASE("codegen: the page of operators says what the tables say") {
  std::map<std::string, std::pair<std::string, std::string>> rows;   // operator -> how, test
  for (const RuleRow& r : all_rules()) rows[std::string(r.target)] = {r.moves ? "rule, at places of its own" : "rule", r.moves ? "test_native_index.py" : "test_native.py"};
  for (std::string_view target : all_reductions()) rows[std::string(target)] = {"reduction", "test_native.py, test_native_reductions.py"};
  for (const auto& [name, target] : all_rewrites()) {
    auto& row = rows[std::string(target)];
    row = {"rewrite `" + std::string(name) + "`" + (row.first.empty() ? "" : ", " + row.first), row.second.empty() ? "test_native.py, test_native_reductions.py" : row.second};
  }
  const auto tested_in = [&](const auto& table, const char* file) {
    for (const auto& r : table) rows[std::string(r.target)].second = file;
  };
  tested_in(loss_rules(), "test_native_training.py");
  tested_in(training_rewrites(), "test_native_training.py");
  tested_in(pooling_rules(), "test_native_pooling.py");
  for (const char* target : {"aten.cumsum", "aten.cumprod", "aten.logcumsumexp", "aten.hardtanh", "aten.clamp.Tensor", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor"}) rows[target].second = "test_native_training.py";
  tested_in(pooling_rewrites(), "test_native_rules.py");
  for (const char* target : {"aten.avg_pool2d_backward", "aten.upsample_nearest2d_backward", "cutaway.max_pool2d_places", "aten.roll", "aten.native_group_norm_backward", "aten.linalg_vector_norm", "aten.hardswish_backward", "aten.mish_backward", "aten._prelu_kernel",
                             "aten._prelu_kernel_backward", "aten.glu", "aten.glu_backward", "aten.nan_to_num", "aten.logaddexp", "aten.pixel_shuffle", "aten.pixel_unshuffle", "aten.mm", "aten.addmm", "aten.bmm"})
    rows[target].second = "test_native_rules.py";
  for (const char* target : {"aten.max_pool2d_with_indices", "aten.upsample_nearest2d"}) rows[target].second = "test_native_pooling.py, test_native_rules.py";
  for (const char* target : {"aten.bernoulli.p", "aten.rand", "aten.rand_like"}) rows[target] = {"eager's own random bits", "test_native_random.py"};
  for (const char* target : {"aten.embedding_dense_backward", "aten.index_add", "aten.index_put", "aten.scatter_add"}) rows[target] = {"additions in eager's order", "test_native_scatter.py"};
  std::string text = "# Operators of the backend `native`\n\nWritten from the tables of `src/compiler/codegen` by its tests (`CUTAWAY_UPDATE_GOLDEN=1 build/cxx/cutaway_core_tests`); do not edit. An operator that is not here is called as torch's own;\n"
                     "so is one of these where its rule refuses the arguments (`fusion.txt` of the debug directory says why). Matrix products, views and constants are not listed. Tests are in `tests/unit`.\n\n| operator | how | test |\n|---|---|---|\n";
  for (const auto& [target, row] : rows) text += "| `" + target + "` | " + row.first + " | " + row.second + " |\n";
  const auto path = std::filesystem::path(CUTAWAY_SOURCE_DIR) / "docs/notes/native_operators.md";
  if (const char* update = std::getenv("CUTAWAY_UPDATE_GOLDEN"); update && *update == '1') std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  CHECK(text == std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

}  // namespace codegen_test
