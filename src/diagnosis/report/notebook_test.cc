#include "diagnosis/report/notebook.h"

#include <doctest/doctest.h>

#include "core/ir/text.h"

namespace cutaway::report::notebook_test {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("notebook: a graph is its picture and its text, and its style stays inside") {
  const auto graph = ir::parse("graph f(%x: f32[2]) {\n  %y: f32[2] = aten.relu(%x)  # </div>.py:3 f\n  return (%y)\n}\n", "test");
  REQUIRE(graph.ok());
  const std::string html = graph_for_notebook(*graph);
  CHECK(html.starts_with("<div class=\"cutaway\">\n<style>@scope (.cutaway) {"));
  CHECK(has(html, "<svg"));
  CHECK(has(html, "1 input, 1 node, 1 output"));
  CHECK(has(html, "&lt;/div&gt;.py:3"));
  CHECK_FALSE(has(html, ":root"));
  CHECK_FALSE(has(html, "\nbody {"));
  CHECK_FALSE(has(html, "<script"));
}

TEST_CASE("notebook: a verdict shows every leaf that differs") {
  const base::Json v = base::Json::parse_or_null(R"json({"outcome": "wrong", "same": false, "path": "out[1]", "reason": "1 of 3 elements are off", "leaves": 2, "parts": [
    {"outcome": "wrong", "same": false, "path": "out[<b>]", "reason": "", "leaves": 1, "stats": {"dtype": "float32", "sizes": [3], "elements": 3, "unequal": 1, "max_abs": 0.5, "rmse_result": "nan", "rmse_reference": "nan"}}]})json");
  const std::string html = verdict_for_notebook(v);
  CHECK(has(html, "<span class=\"badge bad\">wrong</span> <code>out[1]</code> 1 of 3 elements are off"));
  CHECK(has(html, "out[&lt;b&gt;]"));
  CHECK(has(html, "1 of 3</td>"));
  CHECK_FALSE(has(html, "nan"));
}

TEST_CASE("notebook: what explain found") {
  const base::Json answer = base::Json::parse_or_null(R"json({"graph_count": 1, "graph_break_count": 1, "op_count": 1,
    "graphs": ["graph f(%x: f32[2]) {\n  %y: f32[2] = aten.relu(%x)\n  return (%y)\n}\n"], "out_guards": [["x.dtype == <float>"]], "recompile_reasons": ["f: `x` changed"],
    "break_reasons": [{"id": "print", "reason": "print has an effect", "hint": "remove it", "cause": "", "user_stack": [["/a/train.py", 6, "f", "print(x)"]]}], "skipped": []})json");
  const std::string html = explain_for_notebook(answer);
  for (const char* part : {"1 break", "1 graph, 1 operator", "<code>train.py:6</code><br><code>print(x)</code>", "remove it", "x.dtype == &lt;float&gt;", "f: `x` changed", "<svg"}) CHECK(has(html, part));
}

TEST_CASE("notebook: a page is framed, and what is in it cannot leave the frame") {
  CHECK(page_for_notebook("<p title=\"x\">") == "<iframe sandbox srcdoc=\"&lt;p title=&quot;x&quot;&gt;\" style=\"width: 100%; height: 40em; border: 1px solid #8888\"></iframe>");
}

}  // namespace cutaway::report::notebook_test
