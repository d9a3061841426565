#include "diagnosis/report/report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/files.h"
#include "core/ir/text.h"
#include "diagnosis/report/draw_graph.h"
#include "diagnosis/report/html.h"
#include "diagnosis/report/plot.h"
#include "diagnosis/report/words.h"

namespace report_test {

using namespace cutaway;
using namespace cutaway::report;

namespace {

Subject subject_of(const std::string& text) {
  Subject s;
  s.name = "out";
  auto graph = ir::parse(text);
  REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().text()));
  s.graph = std::move(graph).value();
  return s;
}
Subject relu() {
  Subject s = subject_of("graph g(%x: f32[1]) {\n  %y: f32[1] = aten.relu(%x)   # model.py:23 Block.forward\n  return (%y)\n}\n");
  s.manifest.backend = "inductor";
  s.manifest.failure = {"exception", "backend", "RuntimeError", "aten.relu", "", "cannot lower aten.relu", ""};
  return s;
}
std::string page_of(const Subject& s) { return make_report(s).at(0).text; }
size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++n;
  return n;
}
/// Every element that is opened is closed, in order; nothing but the elements that the page is made of.
void check_well_formed(const std::string& html) {
  static const std::vector<std::string> empty = {"meta", "path", "line", "rect", "circle"};
  static const std::vector<std::string> known = {"html", "head", "title", "style", "body", "header", "main", "footer", "nav", "section", "h1", "h2", "h3", "p", "ul", "li", "a", "code", "pre", "mark", "dl", "dt", "dd", "div", "span",
                                                 "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary", "svg", "desc", "defs", "marker", "g", "text"};
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    REQUIRE(end != std::string::npos);
    std::string tag = html.substr(at + 1, end - at - 1);
    if (tag == "!doctype html") continue;
    const bool closes = tag.starts_with('/'), is_empty = tag.ends_with('/');
    const std::string name = tag.substr(closes, tag.find_first_of(" /", closes) - closes);
    if (closes) {
      REQUIRE_FALSE(open.empty());
      REQUIRE(open.back() == name);
      open.pop_back();
    } else if (is_empty || name == "meta") {
      CHECK_MESSAGE(std::find(empty.begin(), empty.end(), name) != empty.end(), name);
    } else {
      CHECK_MESSAGE((std::find(known.begin(), known.end(), name) != known.end() || name == "circle"), name);
      open.push_back(name);
    }
  }
  CHECK(open.empty());
}

}  // namespace

TEST_CASE("report: text is escaped, and what would mislead is spelled out") {
  CHECK(escape("<script>alert('x')</script> & \"q\"") == "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;q&quot;");
  CHECK(escape("a\xff" "b\xc0\x80") == "a\xef\xbf\xbd" "b\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(escape("safe\u202egnp.exe") == "safe\\u202egnp.exe");
  CHECK(escape(std::string_view("a\0b\x1b[31m", 8)) == "a\\u0000b\\u001b[31m");
  CHECK(escape("größe 大きさ\n\t") == "größe 大きさ\n\t");
  CHECK(shorten("abcdefghij", 5) == "ab…ij");
  CHECK(shorten("大きさ大きさ", 3) == "大…さ");
  CHECK(shorten("abc", 3) == "abc");
}

TEST_CASE("report: numbers and words of a command line") {
  CHECK(fixed(12.50) == "12.5");
  CHECK(fixed(-0.01) == "0");
  CHECK(fixed(3, 0) == "3");
  CHECK(scientific(3.14e-7) == "3.1e-07");
  CHECK(scientific(0) == "0");
  CHECK(scientific(NAN) == "nan");
  CHECK(duration(0.214) == "0.21 s");
  CHECK(duration(35.2) == "35 s");
  CHECK(duration(725) == "12 min 5 s");
  CHECK(percent(0.5) == "50 %");
  CHECK(percent(0.999) == "over 99 %");
  CHECK(shell_word("out-minimal") == "out-minimal");
  CHECK(shell_word("-rf") == "./-rf");
  CHECK(shell_word("a b$(rm x)'c") == "'a b$(rm x)'\\''c'");
}

TEST_CASE("report: everything that a hostile bundle can name stays text") {
  const std::string evil = "\"><img src=x onerror=alert(1)><script>alert(2)</script><!--";
  Subject s = relu();
  s.name = evil;
  s.graph.name = evil;
  s.graph.values[0].name = evil;                 // a parser would refuse these; a later reader might not
  s.graph.values[1].name = evil;
  s.graph.body.nodes[0].target = evil;
  s.graph.locations[0] = {evil, 3, evil, evil};
  s.graph.inputs[0].qualified_name = evil;
  bundle::Manifest& m = s.manifest;
  m.backend = m.stage = m.accuracy = evil;
  m.failure = {evil, evil, evil, evil, evil, evil, evil};
  m.options = m.environment = m.versions = m.hardware = m.extra = {{evil, evil}};
  m.libraries = {evil};
  m.state.autocast.push_back({{evil, 0}, true});
  bundle::InputRef in;
  in.kind = bundle::InputRef::Kind::seeded;
  in.reason = evil;
  m.inputs = {in};
  s.has_script = true;
  s.certificate.emplace();
  s.certificate->failure = evil;
  s.certificate->single_removals = {{evil, 1}};
  s.certificate->others = {{evil, evil, 1}};
  s.certificate->unknown = {{evil, evil}};
  s.ablation = {{evil, evil, 1.0, evil}};
  s.analysis = {{evil, evil, 1.0, 2.0, "wrong " + evil, evil}};
  for (const char* kind : {"accuracy", "exception", "crash", ""}) {
    m.failure.kind = kind;
    const std::string page = page_of(s);
    CHECK(page.find("<img") == std::string::npos);
    CHECK(page.find("<script") == std::string::npos);
    CHECK(page.find("<!--") == std::string::npos);
    CHECK(count(page, "&lt;script&gt;") > 20);
    check_well_formed(page);
  }
}

TEST_CASE("report: nothing is loaded from elsewhere") {
  const std::string page = page_of(relu());
  CHECK(count(page, "http://") == count(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(page.find("https://") == std::string::npos);
  CHECK(page.find("src=") == std::string::npos);
  CHECK(page.find("@import") == std::string::npos);
  CHECK(count(page, "url(") == count(page, "url(#arrow)"));
  CHECK(page.find("Content-Security-Policy") != std::string::npos);
  CHECK(page.find("name=\"viewport\"") != std::string::npos);
  CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
}

TEST_CASE("report: the facts are there, and the same subject gives the same bytes") {
  Subject s = relu();
  s.certificate = Certificate{};
  s.certificate->one_minimal = true;
  s.certificate->failed_runs = s.certificate->runs = 5;
  s.certificate->nodes_before = 60;
  s.certificate->nodes_after = 1;
  s.ablation = {{"eager", "pass", 0.2, ""}, {"inductor", "exception", 3.0, "cannot lower"}};
  s.analysis = {{"y", "aten.relu", 0.5, 0.5, "WRONG (first)", "model.py:23"}};
  s.manifest.versions = {{"torch", "2.13.0"}};
  const std::string page = page_of(s);
  CHECK(page == page_of(s));
  check_well_formed(page);
  for (const char* fact : {"<h1>RuntimeError in aten.relu</h1>", "cannot lower aten.relu", "model.py:23", "One-minimal", "5 of 5 final runs", "60 to 1 node", "2.13.0", "cutaway run out", "It works with <code>eager</code> and fails with <code>inductor</code>",
                           "<mark>  %y: f32[1] = aten.relu(%x)", "class=\"box op marked\"", "first wrong: %y"})
    CHECK_MESSAGE(page.find(fact) != std::string::npos, fact);
}

TEST_CASE("report: the words of a certificate") {
  Certificate c;
  c.stopped_early = true;
  c.verified = false;
  c.rate_of_the_start = 0.5;
  CHECK(certificate_warning(c).starts_with("Not verified"));
  CHECK(certificate_words(c) == std::vector<std::string>{"Stopped early: this is the smallest case found so far, and a smaller one may exist.", "Flaky: the unreduced case failed in 50 % of its runs.", "No other failure was met on the way."});
}

TEST_CASE("report: evidence is read strictly") {
  auto ablation = ablation_from_json(R"([{"backend": "eager", "outcome": "pass", "seconds": 0.5}, {"backend": "b", "outcome": "crash", "seconds": null, "detail": "SIGSEGV"}])", "ablation.json");
  REQUIRE(ablation.ok());
  CHECK(ablation->at(0).passes());
  CHECK(ablation->at(1).fails());
  CHECK(ablation_from_json(R"([{"backend": "eager"}])", "ablation.json").error().text().find("outcome") != std::string::npos);
  CHECK_FALSE(ablation_from_json(R"([{"backend": "eager", "outcome": "pass", "colour": 1}])", "ablation.json").ok());
  CHECK_FALSE(ablation_from_json(R"({"version": 2})", "ablation.json").ok());
  auto analysis = analysis_from_json(R"([{"node": "%a", "op": "o", "local_error": "nan", "cumulative_error": null, "verdict": "wrong input"}, {"node": "b", "op": "o", "local_error": 1, "verdict": "Wrong"}])", "a");
  REQUIRE(analysis.ok());
  CHECK(analysis->at(0).node == "a");
  CHECK(std::isnan(*analysis->at(0).local_error));
  CHECK_FALSE(analysis->at(0).cumulative_error.has_value());
  CHECK(first_wrong(*analysis)->node == "b");
  analysis->push_back({"c", "o", 1.0, 1.0, "WRONG (first), with %b", ""});
  CHECK(first_wrong(*analysis)->node == "c");
  CHECK_FALSE(analysis_from_json(R"([{"node": "a", "op": "o", "local_error": -1, "verdict": ""}])", "a").ok());
  auto certificate = certificate_from_json(R"({"version": 1, "one_minimal": true, "later": [1]})", "c");
  REQUIRE(certificate.ok());
  CHECK(certificate->unknown == std::vector<std::pair<std::string, std::string>>{{"later", "[1]"}});
  CHECK_FALSE(certificate_from_json(R"({"version": 2, "one_minimal": true})", "c").ok());
  CHECK_FALSE(certificate_from_json(R"({"version": 1, "one_minimal": true, "rate_of_the_start": 2})", "c").ok());
}

TEST_CASE("report: a graph too large to draw is text, and says why") {
  std::string text = "graph g(%v0: f32[1]) {\n";
  for (int i = 1; i <= 200; ++i) text += "  %v" + std::to_string(i) + ": f32[1] = aten.sin(%v" + std::to_string(i - 1) + ")\n";
  Subject s = subject_of(text + "  return (%v200)\n}\n");
  const std::string page = page_of(s);
  CHECK(page.find("<svg") == std::string::npos);
  CHECK(page.find("Not drawn: 200 nodes") != std::string::npos);
  CHECK(page.find("%v200: f32[1] = aten.sin(%v199)") != std::string::npos);
}

TEST_CASE("report: what a scope holds is drawn, and arrows lead through it") {
  Subject s = subject_of("graph g(%x: f32[1]) {\n  %z: f32[1] = scope no_grad {\n    %y: f32[1] = aten.sin(%x)\n    yield (%y)\n  }\n  %w: f32[1] = aten.cos(%z)\n  return (%w)\n}\n");
  const Picture p = draw_graph(s.graph, {});
  CHECK(count(p.svg, "<rect") == 4);
  CHECK(count(p.svg, "class=\"edge\"") == 3);
}

TEST_CASE("report: the plot has a lane for zero and one for what is not finite") {
  std::vector<AnalysisRow> rows = {{"a", "o", 0.0, 0.0, "equal", ""}, {"b", "o", 1e-7, 1e-7, "ok", ""}, {"c", "o", INFINITY, NAN, "WRONG", ""}, {"d", "o", std::nullopt, std::nullopt, "not measured", ""}};
  const std::string svg = plot_errors(rows, 760, "p");
  CHECK(svg.find(">0</text>") != std::string::npos);
  CHECK(svg.find(">inf, nan</text>") != std::string::npos);
  CHECK(count(svg, "<circle") == 6);
  CHECK(svg.find("nan\"") == std::string::npos);
  CHECK(plot_errors({}, 360, "q").find("</svg>") != std::string::npos);
  std::vector<AnalysisRow> many(50'000, rows[1]);
  CHECK(count(plot_errors(many, 760, "p"), "<circle") <= 1200);
}

TEST_CASE("report: golden page") {
  Subject s = relu();
  s.certificate = certificate_from_json(R"({"version": 1, "one_minimal": true, "verified": true, "failed_runs": 5, "runs": 5, "candidates": 6, "seconds": 1.3})", "c").value();
  std::string page = page_of(s);
  page = page.substr(page.find("<header>"));      // the style has no golden copy: its picture is what counts
  const std::string path = std::string(CUTAWAY_SOURCE_DIR) + "/tests/golden/report/relu.html";
  if (std::getenv("CUTAWAY_UPDATE_GOLDEN")) REQUIRE(base::write_file_atomic(path, page).ok());
  auto golden = base::read_file(path);
  REQUIRE_MESSAGE(golden.ok(), "run once with CUTAWAY_UPDATE_GOLDEN=1");
  CHECK(page == *golden);
}

TEST_CASE("report: what bisect found") {
  Subject s = relu();
  CHECK(page_of(s).find("cutaway bisect out") != std::string::npos);
  const char* text = R"({"guilty": {"kind": "lowering", "part": "lowerings", "name": "aten.relu.default", "number": 3, "of": 17, "graph": "model__0_forward_1", "node": "relu<1>", "place": "model.py:23",
    "value": null, "off": null, "switch": "--without lowerings:aten.relu.default"}, "also": [{"kind": "option", "part": null, "name": "cpp.simdlen", "number": null, "value": null, "off": "1"},
    {"kind": "post-grad pass", "part": "post_grad_passes", "name": null}], "check": "cutaway run out --without lowerings:aten.relu.default", "trials": 12, "verified": true, "outcome": "failure", "nodes_before": 4})";
  auto read = bisection_from_json(text, "bisect.json");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
  s.bisection = std::move(*read);
  std::string page = page_of(s);
  check_well_formed(page);
  for (const char* words : {"Which part is guilty", "lowering <code>aten.relu.default</code>, application 3 of 17", "relu&lt;1&gt;", "<code>cpp.simdlen</code> = <code>1</code>, which is its default", "no <code>post_grad_passes</code>", "12 trials",
                            "cutaway run out --without lowerings:aten.relu.default"})
    CHECK_MESSAGE(page.find(words) != std::string::npos, words);
  CHECK(page.find("cutaway bisect out") == std::string::npos);
  s.bisection->verified = false;
  CHECK(page_of(s).find("not verified") != std::string::npos);
  s.bisection->guilty.reset();
  CHECK(page_of(s).find("It fails with each") != std::string::npos);
  CHECK(bisection_from_json(R"({"guilty": {"kind": 3}})", "b").error().text().find("guilty.kind") != std::string::npos);
  CHECK_FALSE(bisection_from_json("[]", "b").ok());
  CHECK_FALSE(bisection_from_json("{}", "b").ok());
}

}  // namespace report_test
