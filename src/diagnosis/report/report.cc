#include "diagnosis/report/report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/places.h"
#include "core/base/text.h"
#include "core/ir/text.h"
#include "diagnosis/oracle/trust.h"
#include "diagnosis/report/draw_graph.h"
#include "diagnosis/report/graph_html.h"
#include "diagnosis/report/html.h"
#include "diagnosis/report/plot.h"
#include "diagnosis/report/words.h"

namespace cutaway::report {
namespace {

constexpr size_t kMaxInputRows = 100, kMaxAnalysisRows = 60, kRowsAround = 8, kWorstRows = 12, kMaxCell = 2000;

std::string code(std::string_view text) { return "<code>" + escape(shorten(text, kMaxCell)) + "</code>"; }
std::string cell(std::string_view text) { return escape(shorten(text, kMaxCell)); }

class Page {
 public:
  explicit Page(const Subject& s) : s_(s), marks_(find_marks(s)), risks_(oracle::needs_trust(s.graph, s.manifest)) {}

  std::string html() {
    add_failure();
    add_ablation();
    add_bisection();
    add_graph();
    add_errors();
    add_profile();
    add_certificate();
    add_environment();
    add_steps();
    const std::string title = headline(s_, marks_);
    std::string out = page_head(shorten(title, kMaxCell));
    out += "<header>\n<p class=\"product\">Cutaway report on " + code(s_.name) + "</p>\n<h1>" + cell(title) + "</h1>\n";
    if (const std::string where = setting(s_); !where.empty()) out += "<p class=\"lead\">" + cell(where) + "</p>\n";
    out += "<nav aria-label=\"Sections\"><ul>\n" + nav_ + "</ul></nav>\n</header>\n<main>\n" + body_ + "</main>\n";
    return out + "<footer>One static file: no scripts, nothing loaded from elsewhere. Made by <code>cutaway report</code>; making it ran nothing of the bundle.</footer>\n</body>\n</html>\n";
  }

 private:
  void open(const std::string& id, const std::string& title) {
    nav_ += "<li><a href=\"#" + id + "\">" + title + "</a></li>\n";
    body_ += "<section aria-labelledby=\"" + id + "\">\n<h2 id=\"" + id + "\">" + title + "</h2>\n";
  }
  void close() { body_ += "</section>\n"; }
  void add_failure();
  void add_ablation();
  void add_bisection();
  void add_graph();
  void add_inputs();
  void add_errors();
  void add_profile();
  void add_certificate();
  void add_environment();
  void add_steps();

  const Subject& s_;
  const Marks marks_;
  const std::vector<std::string> risks_;
  std::string nav_, body_;
};

void Page::add_failure() {
  open("failure", "What failed");
  const bundle::FailureSignature& f = s_.manifest.failure;
  if (s_.certificate)
    if (const std::string warning = certificate_warning(*s_.certificate); !warning.empty()) body_ += "<p class=\"note\" role=\"note\">" + escape(warning) + "</p>\n";
  if (f.kind.empty()) {
    body_ += "<p>The bundle records no failure. <code>cutaway run</code> tells whether it fails here.</p>\n";
    close();
    return;
  }
  static const std::pair<std::string_view, std::string_view> kinds[] = {{"accuracy", "the results differ from eager's by more than rounding explains"}, {"exception", "an exception was raised"},
                                                                        {"crash", "the process died"}, {"hang", "it did not end within its time limit"}, {"memory", "it ran out of memory"}};
  std::string kind = f.kind;
  for (const auto& [word, sentence] : kinds)
    if (word == f.kind) kind += ": " + std::string(sentence);
  body_ += "<dl>\n";
  const auto row = [&](const std::string& name, const std::string& html) { body_ += "<dt>" + name + "</dt><dd>" + html + "</dd>\n"; };
  row("Failure", "<span class=\"badge bad\">" + cell(f.kind) + "</span>" + (kind == f.kind ? "" : " " + cell(std::string_view(kind).substr(f.kind.size() + 2))));
  if (!f.type.empty()) row("Exception type", code(f.type));
  if (!f.signal.empty()) row("Signal", code(f.signal));
  if (!f.message.empty()) row("Message", code(f.message));
  if (!f.op.empty()) row("Operator", code(f.op));
  if (s_.analysis)
    if (const AnalysisRow* wrong = first_wrong(*s_.analysis))
      row("First wrong node", code("%" + wrong->node) + " " + code(wrong->op) + (wrong->local_error ? ", local error " + scientific(*wrong->local_error) : ""));
  if (const std::string line = source_line(s_, marks_); !line.empty()) row("Your line", code(line));
  if (!f.stage.empty()) row("Stage", cell(f.stage));
  if (!s_.manifest.backend.empty()) row("Backend", code(s_.manifest.backend));
  if (!s_.manifest.accuracy.empty()) row("Compared", s_.manifest.accuracy == "strict" ? "strictly: any difference counts" : "with an fp64 reference: rounding does not count");
  if (s_.certificate && s_.certificate->nodes_before && s_.certificate->nodes_after)
    row("Size", std::to_string(*s_.certificate->nodes_before) + " to " + base::count_of(static_cast<uint64_t>(*s_.certificate->nodes_after), "node"));
  body_ += "</dl>\n";
  close();
}

void Page::add_ablation() {
  if (!s_.ablation) return;
  open("ablation", "Which stage is guilty");
  const AblationRow* guilty = nullptr;
  const AblationRow* last_good = nullptr;
  for (const AblationRow& r : *s_.ablation) {
    if (!guilty && r.fails()) guilty = &r;
    if (!guilty && r.passes()) last_good = &r;
  }
  if (!guilty) body_ += "<p>No stage failed.</p>\n";
  else if (last_good) body_ += "<p>It works with " + code(last_good->backend) + " and fails with " + code(guilty->backend) + ": what the second adds to the first is guilty.</p>\n";
  else body_ += "<p>It fails with " + code(guilty->backend) + " already.</p>\n";
  std::string table = "<table>\n<caption>The same program with more and more of the compiler</caption>\n<thead><tr><th scope=\"col\">Backend</th><th scope=\"col\">Outcome</th><th scope=\"col\" class=\"number\">Time</th><th scope=\"col\">Detail</th></tr></thead>\n<tbody>\n";
  for (const AblationRow& r : *s_.ablation)
    table += "<tr><th scope=\"row\">" + code(r.backend) + "</th><td><span class=\"badge " + (r.passes() ? "good" : r.fails() ? "bad" : "neutral") + "\">" + cell(r.outcome) + "</span></td><td class=\"number\">" +
             (r.seconds ? duration(*r.seconds) : "") + "</td><td class=\"long\">" + cell(r.detail) + "</td></tr>\n";
  body_ += scroll("Ablation", table + "</tbody></table>\n");
  close();
}

void Page::add_bisection() {
  if (!s_.bisection) return;
  const Bisection& b = *s_.bisection;
  open("guilty", "Which part is guilty");
  if (!b.guilty) {
    body_ += "<p>It fails with each of the compiler's parts off that can be switched off.</p>\n";
    close();
    return;
  }
  const Culprit& g = *b.guilty;
  body_ += "<p>Without the " + cell(g.kind) + " " + code(g.name) + " it passes" + (b.verified ? ", and with it it fails: both were run in fresh processes.</p>\n" : ". This is not verified: it was not confirmed in fresh processes.</p>\n");
  body_ += "<dl>\n";
  const auto row = [&](const std::string& name, const std::string& html) { body_ += "<dt>" + name + "</dt><dd>" + html + "</dd>\n"; };
  row("Guilty", cell(g.kind) + " " + code(g.name) + (g.number && g.of ? ", application " + std::to_string(*g.number) + " of " + std::to_string(*g.of) : ""));
  if (!g.node.empty()) row("Applied to", code(g.node));
  if (!g.graph.empty()) row("In graph", code(g.graph));
  if (!g.place.empty()) row("Your line", code(g.place));
  const auto value = [](const std::string& v) { return v.empty() ? std::string("its default") : code(v); };
  if (g.kind == "option") row("Value", value(g.value) + "; it passes with " + value(g.off));
  for (const Culprit& c : b.also) row("Also cured by", c.kind == "option" ? "option " + code(c.name) + " = " + value(c.off) + ", which is " + value(c.value) : "no " + code(c.name));
  if (b.trials) row("Cost", base::count_of(static_cast<uint64_t>(*b.trials), "trial"));
  body_ += "</dl>\n";
  if (!b.check.empty()) body_ += "<p>The command that shows it passing:</p>\n<pre tabindex=\"0\" aria-label=\"Command\"><code>" + escape(shorten(b.check, kMaxCell)) + "</code></pre>\n";
  close();
}

void Page::add_profile() {
  if (!s_.profile) return;
  open("profile", "Where the time goes");
  body_ += profile_html(*s_.profile);
  close();
}

void Page::add_inputs() {
  if (s_.manifest.inputs.empty()) return;
  const size_t n = s_.manifest.inputs.size();
  std::string table = "<table>\n<caption>" + base::count_of(n, "input") + "</caption>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Type</th><th scope=\"col\">Data</th></tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < std::min(n, kMaxInputRows); ++i) {
    const bundle::InputRef& in = s_.manifest.inputs[i];
    std::string name, type;
    if (i < s_.graph.inputs.size()) {
      const ir::Value& v = s_.graph.value(s_.graph.inputs[i].value);
      name = "%" + v.name;
      if (!s_.graph.inputs[i].qualified_name.empty()) name += " (" + s_.graph.inputs[i].qualified_name + ")";
      type = v.type.text();
    }
    table += "<tr><th scope=\"row\">" + code(name) + "</th><td>" + code(type) + "</td><td class=\"long\">" + cell(input_words(s_.graph, in)) + "</td></tr>\n";
  }
  body_ += "<h3>Inputs</h3>\n" + scroll("Inputs", table + "</tbody></table>\n");
  if (n > kMaxInputRows) body_ += "<p class=\"quiet\">And " + base::count_of(n - kMaxInputRows, "more input") + ", all in <code>manifest.json</code>.</p>\n";
}

void Page::add_graph() {
  open("graph", s_.certificate ? "The minimal graph" : "The graph");
  body_ += picture_html(s_.graph, marks_) + "<h3>As text, with your source lines</h3>\n" + graph_text_html(s_.graph, marks_);
  add_inputs();
  close();
}

void Page::add_errors() {
  if (!s_.analysis) return;
  const std::vector<AnalysisRow>& rows = *s_.analysis;
  open("errors", "The error along the graph");
  if (rows.empty()) {
    body_ += "<p>The analysis looked at no node.</p>\n";
    close();
    return;
  }
  const AnalysisRow* wrong = first_wrong(rows);
  body_ += wrong ? "<p>The first wrong node is " + code("%" + wrong->node) + " (" + code(wrong->op) + "): " + cell(wrong->verdict) + (wrong->source.empty() ? "" : ", " + code(wrong->source)) + ".</p>\n"
                 : std::string("<p>No node is wrong by itself.</p>\n");
  body_ += "<figure>\n<div class=\"wide\">" + plot_errors(rows, 760, "plot-wide") + "</div>\n<div class=\"narrow\">" + plot_errors(rows, 360, "plot-narrow") +
           "</div>\n<figcaption>Local error: of the node alone, fed the reference's inputs. Cumulative error: of the whole run up to there. Both against the reference, on a logarithmic scale.</figcaption>\n</figure>\n";

  std::set<size_t> shown;
  if (rows.size() <= kMaxAnalysisRows) for (size_t i = 0; i < rows.size(); ++i) shown.insert(i);
  else {
    const size_t middle = wrong ? static_cast<size_t>(wrong - rows.data()) : 0;
    for (size_t i = middle > kRowsAround ? middle - kRowsAround : 0; i < std::min(rows.size(), middle + kRowsAround + 1); ++i) shown.insert(i);
    std::vector<size_t> order;
    for (size_t i = 0; i < rows.size(); ++i) if (rows[i].local_error) order.push_back(i);
    const auto weight = [&](size_t i) { return *rows[i].local_error == *rows[i].local_error ? *rows[i].local_error : HUGE_VAL; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
    for (size_t i = 0; i < std::min(order.size(), kWorstRows); ++i) shown.insert(order[i]);
  }
  std::string table = "<table>\n<caption>" + (shown.size() == rows.size() ? "Every node" : std::to_string(shown.size()) + " of " + std::to_string(rows.size()) + " nodes: those around the first wrong one and those with the largest local error") +
                      "</caption>\n<thead><tr><th scope=\"col\">Node</th><th scope=\"col\">Operator</th><th scope=\"col\" class=\"number\">Local error</th><th scope=\"col\" class=\"number\">Cumulative</th><th scope=\"col\">Verdict</th><th scope=\"col\">Source</th></tr></thead>\n<tbody>\n";
  const auto error = [](const std::optional<double>& e) { return e ? scientific(*e) : std::string("not measured"); };
  for (size_t i : shown) {
    const AnalysisRow& r = rows[i];
    table += std::string(r.is_wrong() ? "<tr class=\"wrong\">" : "<tr>") + "<th scope=\"row\">" + code("%" + r.node) + "</th><td>" + code(r.op) + "</td><td class=\"number\">" + error(r.local_error) + "</td><td class=\"number\">" +
             error(r.cumulative_error) + "</td><td" + (r.verdict.size() < 32 ? " class=\"short\">" : ">") + cell(r.verdict) + "</td><td>" + code(r.source) + "</td></tr>\n";
  }
  body_ += scroll("Errors by node", table + "</tbody></table>\n");
  close();
}

void Page::add_certificate() {
  if (!s_.certificate) return;
  const Certificate& c = *s_.certificate;
  open("certificate", "How sure");
  body_ += "<ul>\n";
  for (const std::string& sentence : certificate_words(c)) body_ += "<li>" + cell(sentence) + "</li>\n";
  body_ += "</ul>\n";
  std::string rows;
  for (const auto& [pass, n] : c.single_removals)
    if (n > 0) rows += "<tr><th scope=\"row\">" + code(pass) + "</th><td class=\"number\">" + std::to_string(n) + "</td></tr>\n";
  if (!rows.empty())
    body_ += "<details><summary>The final sweep, by pass</summary>\n" + scroll("Final sweep", "<table>\n<caption>Single steps that were tried and no longer fail; passes that found nothing to try are left out</caption>\n<thead><tr><th scope=\"col\">Pass</th><th scope=\"col\" class=\"number\">Steps</th></tr></thead>\n<tbody>\n" + rows + "</tbody></table>\n") + "</details>\n";
  if (!c.unknown.empty()) {
    body_ += "<details><summary>Also recorded</summary>\n<dl>\n";
    for (const auto& [key, json] : c.unknown) body_ += "<dt>" + code(key) + "</dt><dd>" + code(json) + "</dd>\n";
    body_ += "</dl>\n</details>\n";
  }
  close();
}

void Page::add_environment() {
  open("environment", "Environment");
  const bundle::Manifest& m = s_.manifest;
  std::string rows;
  const auto row = [&](const std::string& group, const std::string& name, const std::string& value) {
    rows += "<tr><th scope=\"row\">" + group + "</th><td>" + code(name) + "</td><td class=\"long\">" + code(base::without_private_paths(value)) + "</td></tr>\n";
  };
  for (const auto& [k, v] : m.versions) row("version", k, v);
  for (const auto& [k, v] : m.hardware) row("hardware", k, v);
  for (const auto& [k, v] : m.options) row("option", k, v);
  for (const auto& [k, v] : m.environment) row("variable", k, v);
  for (const std::string& l : m.libraries) row("library", l, "");
  for (const std::string& w : state_words(m)) row("state", w, "");
  row("seed", "", std::to_string(m.seed));
  for (const auto& [k, v] : m.extra)
    if (k != "program" && k != "backend_source") row("also recorded", k, v);   // whole scripts: the bundle has them
  body_ += scroll("Environment", "<table>\n<caption>Where the failure was recorded</caption>\n<thead><tr><th scope=\"col\">Kind</th><th scope=\"col\">Name</th><th scope=\"col\">Value</th></tr></thead>\n<tbody>\n" + rows + "</tbody></table>\n");
  if (m.versions.empty() && m.hardware.empty()) body_ += "<p class=\"quiet\">The bundle records neither versions nor hardware.</p>\n";
  close();
}

void Page::add_steps() {
  open("next", "Go on");
  if (!risks_.empty()) {
    body_ += "<p class=\"note\" role=\"note\">Running this bundle would do more than compute: it " + cell(base::without_private_paths(base::join(risks_, "; it "))) + ". Use <code>--trust</code> only when you know who wrote it.</p>\n";
  }
  body_ += "<p>In the directory that holds " + code(s_.name) + ":</p>\n";
  for (const Step& step : next_steps(s_, !risks_.empty())) body_ += "<h3>" + cell(step.purpose) + "</h3>\n<pre tabindex=\"0\" aria-label=\"Command\"><code>" + escape(step.command) + "</code></pre>\n";
  close();
}

}  // namespace

std::vector<File> make_report(const Subject& subject) { return {{"report.html", Page(subject).html()}}; }

}  // namespace cutaway::report
