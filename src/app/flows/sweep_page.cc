#include "app/flows/sweep_page.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/text.h"
#include "diagnosis/report/html.h"

namespace cutaway::flows {
namespace {

using report::escape;

/// What a cell shows, and the class of its badge.
struct Badge { std::string_view word, kind; };
Badge badge_of(std::string_view outcome) {
  if (outcome == "pass") return {"passes", "good"};
  if (outcome == "failure") return {"FAILS", "bad"};
  if (outcome == "eager_fails") return {"eager fails", "neutral"};
  if (outcome == "unfit") return {"no such form", "neutral"};
  return {"not run", "neutral"};
}

std::string link_to(const std::string& path, const std::string& from, const std::string& text) {
  std::error_code ec;
  const std::string relative = std::filesystem::relative(path, from, ec).string();
  return "<a href=\"" + escape(ec || relative.empty() ? path : relative) + "\">" + escape(text) + "</a>";
}

void add_failure(std::string& out, const SweepFailure& f, size_t number, const SweepReport& r) {
  out += "<h3 id=\"failure-" + std::to_string(number) + "\">" + std::to_string(number) + ". " + escape(f.description) + "</h3>\n<dl>\n";
  const auto row = [&](std::string_view key, const std::string& html) { out += "<dt>" + std::string(key) + "</dt><dd>" + html + "</dd>\n"; };
  row("backend", "<code>" + escape(f.backend) + "</code>");
  row("met in", escape(base::count_of(f.cells.size(), "cell")));
  if (!f.graph.empty()) row("cut down to", escape(base::count_of(f.nodes, "node") + (f.is_verified ? ", and run again from its files: the same failure" : "")));
  if (!f.note.empty()) row("note", escape(f.note));
  if (!f.report.empty()) row("report", link_to(f.report, r.output, "report.html"));
  if (!f.repro.empty()) row("attach", link_to(f.repro, r.output, "repro.py"));
  if (!f.bundle.empty()) row("next", "<code>cutaway run " + escape(report::shell_word(f.bundle)) + "</code>");
  out += "</dl>\n";
  if (!f.graph.empty()) out += "<pre><code>" + escape(f.graph) + "</code></pre>\n";
}

}  // namespace

std::string sweep_page(const SweepReport& r) {
  std::vector<std::string> columns, rows;   // in the order in which they come first
  std::map<std::pair<std::string, std::string>, const SweepCell*> at;
  for (const SweepCell& c : r.cells) {
    const std::string column = c.column();
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
    if (rows.empty() || rows.back() != c.subject) rows.push_back(c.subject);
    at[{c.subject, column}] = &c;
  }
  std::map<std::string, size_t> failure_of;   // by the key of a cell
  for (size_t i = 0; i < r.failures.size(); ++i)
    for (const std::string& key : r.failures[i].cells) failure_of.emplace(key, i + 1);
  const std::string title = r.count("failure") == 0 ? "Nothing fails" : base::count_of(r.failures.size(), "distinct failure") + " in " + base::count_of(r.count("failure"), "cell");
  std::string out = report::page_head(title) + "<header>\n<p class=\"product\">Cutaway sweep</p>\n<h1>" + escape(title) + "</h1>\n<p class=\"lead\">" +
                    escape(base::count_of(r.cells.size(), "cell") + " of " + base::count_of(rows.size(), "subject") + ": " + std::to_string(r.count("pass")) + " pass, " + std::to_string(r.count("failure")) + " fail, " +
                           std::to_string(r.count("eager_fails")) + " fail in eager itself, " + std::to_string(r.count("unfit")) + " have no such form, " + std::to_string(r.count("not_run")) + " were not run.") +
                    (r.was_interrupted ? " It was interrupted; --resume goes on." : "") + "</p>\n</header>\n<main>\n";
  if (!r.failures.empty()) {
    out += "<h2 id=\"failures\">Failures</h2>\n";
    for (size_t i = 0; i < r.failures.size(); ++i) add_failure(out, r.failures[i], i + 1, r);
  }
  out += "<h2 id=\"cells\">Every cell</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Every cell\">\n<table>\n<thead><tr><th scope=\"col\">subject</th>";
  for (const std::string& column : columns) out += "<th scope=\"col\">" + escape(column) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const std::string& row : rows) {
    out += "<tr><th scope=\"row\">" + escape(row) + "</th>";
    for (const std::string& column : columns) {
      const auto found = at.find({row, column});
      if (found == at.end()) { out += "<td></td>"; continue; }
      const SweepCell& c = *found->second;
      const Badge badge = badge_of(c.outcome);
      std::string word(badge.word);
      if (const auto f = failure_of.find(c.key()); f != failure_of.end()) word = "<a href=\"#failure-" + std::to_string(f->second) + "\">" + word + " (" + std::to_string(f->second) + ")</a>";
      out += "<td class=\"short\" title=\"" + escape(report::shorten(c.message, 300)) + "\"><span class=\"badge " + std::string(badge.kind) + "\">" + word + "</span></td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n</main>\n</body>\n</html>\n";
}

}  // namespace cutaway::flows
