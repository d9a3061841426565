#include "diagnosis/report/notebook.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/ir/text.h"
#include "diagnosis/report/graph_html.h"
#include "diagnosis/report/html.h"
#include "diagnosis/report/style.h"

namespace cutaway::report {
namespace {

using base::Json;

constexpr size_t kNotebookRows = 100, kNotebookText = 2000, kNotebookGraphs = 20;

/// The report's style sheet for one element and what is in it. `@scope` keeps it from the notebook's own tables and texts; a browser that does not
/// know it shows the same without colours.
std::string scoped_style() {
  std::string css(kStyle);
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = css.find(from, at)) != std::string::npos; at += to.size()) css.replace(at, from.size(), to);
  };
  replace(":root", ":scope");
  replace("\nbody {", "\n:scope {");
  return "<style>@scope (.cutaway) {" + css + ":scope { padding: .5rem 1rem; border: 1px solid var(--rule); border-radius: 8px; }\n}</style>\n";
}

std::string in_frame(const std::string& inner) { return "<div class=\"cutaway\">\n" + scoped_style() + inner + "</div>\n"; }
std::string plain_text(std::string_view text) { return escape(shorten(text, kNotebookText)); }
std::string as_code(std::string_view text) { return "<code>" + plain_text(text) + "</code>"; }

std::string unfolded(const ir::Graph& graph) {
  return picture_html(graph, {}) + "<details><summary>As text, with your source lines</summary>\n" + graph_text_html(graph, {}) + "</details>\n";
}

std::string title_of(const ir::Graph& g) {
  return (g.name.empty() ? std::string("Graph") : "Graph " + as_code(g.name)) + ": " + base::count_of(g.inputs.size(), "input") + ", " + base::count_of(ir::count_nodes(g), "node") + ", " +
         base::count_of(g.body.outputs.size(), "output");
}

const Json::Array& list_at(const Json& j, std::string_view key) {
  static const Json::Array none;
  const Json* found = j.find(key);
  const auto* list = found ? found->as<Json::Array>() : nullptr;
  return list ? *list : none;
}

/// A number, or the word that stands for one that JSON lacks.
std::string number_text(const Json* stats, std::string_view key) {
  const Json* found = stats ? stats->find(key) : nullptr;
  if (!found) return "";
  if (const auto* word = found->as<std::string>()) return *word == "nan" ? "" : plain_text(*word);
  if (const auto* d = found->as<double>()) return scientific(*d);
  if (const auto* i = found->as<int64_t>()) return std::to_string(*i);
  return "";
}

std::string verdict_badge(const Json& v) {
  return std::string("<span class=\"badge ") + (v.flag_or("same") ? "good" : "bad") + "\">" + plain_text(v.text_or("outcome")) + "</span>";
}

/// The innermost of (file, line, function, text).
std::string line_of(const Json& reason) {
  const Json::Array& stack = list_at(reason, "user_stack");
  const auto* frame = stack.empty() ? nullptr : stack.back().as<Json::Array>();
  if (!frame || frame->size() < 4) return "";
  const auto* file = (*frame)[0].as<std::string>();
  const auto* line = (*frame)[1].as<int64_t>();
  const auto* text = (*frame)[3].as<std::string>();
  if (!file || !line) return "";
  return as_code(file->substr(file->rfind('/') + 1) + ":" + std::to_string(*line)) + (text && !text->empty() ? "<br>" + as_code(*text) : "");
}

std::string reasons_table(const Json::Array& reasons, const std::string& caption) {
  if (reasons.empty()) return "";
  std::string rows;
  for (size_t i = 0; i < std::min(reasons.size(), kNotebookRows); ++i) {
    const Json& r = reasons[i];
    const std::string cause = r.text_or("cause");
    rows += "<tr><td class=\"long\">" + line_of(r) + "</td><td class=\"long\">" + plain_text(r.text_or("reason")) + (cause.empty() ? "" : "<br>because the graph had to end: " + plain_text(cause)) + "</td><td class=\"long\">" +
            plain_text(r.text_or("hint")) + "</td></tr>\n";
  }
  std::string out = scroll(caption, "<table>\n<caption>" + caption + "</caption>\n<thead><tr><th scope=\"col\">Your line</th><th scope=\"col\">Why</th><th scope=\"col\">Try</th></tr></thead>\n<tbody>\n" + rows + "</tbody></table>\n");
  if (reasons.size() > kNotebookRows) out += "<p class=\"quiet\">And " + std::to_string(reasons.size() - kNotebookRows) + " more.</p>\n";
  return out;
}

}  // namespace

std::string graph_for_notebook(const ir::Graph& graph) { return in_frame("<p>" + title_of(graph) + "</p>\n" + unfolded(graph)); }

std::string verdict_for_notebook(const Json& v) {
  const std::string path = v.text_or("path");
  std::string out = "<p>" + verdict_badge(v) + (path.empty() ? "" : " " + as_code(path)) + " " + plain_text(v.text_or("reason")) + "</p>\n";
  Json::Array rows = list_at(v, "parts");
  if (rows.empty() && v.find("stats")) rows.push_back(v);
  if (rows.empty()) return in_frame(out);
  std::string body;
  for (size_t i = 0; i < std::min(rows.size(), kNotebookRows); ++i) {
    const Json& leaf = rows[i];
    const Json* stats = leaf.find("stats");
    const Json* sizes = stats ? stats->find("sizes") : nullptr;
    const std::string of = number_text(stats, "elements");
    body += "<tr><th scope=\"row\">" + as_code(leaf.text_or("path")) + "</th><td>" + verdict_badge(leaf) + "</td><td>" + (stats ? as_code(stats->text_or("dtype") + " " + (sizes ? sizes->text() : "")) : "") +
            "</td><td class=\"number\">" + (of.empty() ? "" : number_text(stats, "unequal") + " of " + of) + "</td><td class=\"number\">" + number_text(stats, "max_abs") + "</td><td class=\"number\">" + number_text(stats, "rmse_result") +
            "</td><td class=\"number\">" + number_text(stats, "rmse_reference") + "</td></tr>\n";
  }
  const int64_t leaves = v.integer_or("leaves", 1);
  out += scroll("Parts", "<table>\n<caption>" + (leaves == 1 ? "1 part" : std::to_string(leaves) + " parts") +
                              " compared; those that differ</caption>\n<thead><tr><th scope=\"col\">Part</th><th scope=\"col\">Outcome</th><th scope=\"col\">Tensor</th><th scope=\"col\" class=\"number\">Unequal</th><th scope=\"col\" class=\"number\">Largest "
                              "difference</th><th scope=\"col\" class=\"number\">RMSE to fp64</th><th scope=\"col\" class=\"number\">Eager's</th></tr></thead>\n<tbody>\n" + body + "</tbody></table>\n");
  if (rows.size() > kNotebookRows) out += "<p class=\"quiet\">And " + std::to_string(rows.size() - kNotebookRows) + " more.</p>\n";
  return in_frame(out);
}

std::string explain_for_notebook(const Json& answer) {
  const auto counted = [&](std::string_view key, std::string_view noun) { return base::count_of(static_cast<uint64_t>(std::max<int64_t>(answer.integer_or(key), 0)), noun); };
  const bool is_whole = answer.integer_or("graph_break_count") == 0;
  std::string out = "<p><span class=\"badge " + std::string(is_whole ? "good" : "bad") + "\">" + counted("graph_break_count", "break") + "</span> " + counted("graph_count", "graph") + ", " + counted("op_count", "operator") + "</p>\n";
  out += reasons_table(list_at(answer, "break_reasons"), "Where graphs break");
  out += reasons_table(list_at(answer, "skipped"), "Left to Python");
  std::string again;
  for (const std::string& text : answer.texts_or_none("recompile_reasons")) again += "<li>" + plain_text(text) + "</li>\n";
  if (!again.empty()) out += "<p>Compiled again:</p>\n<ul>\n" + again + "</ul>\n";
  const std::vector<std::string> graphs = answer.texts_or_none("graphs");
  const Json::Array& guards = list_at(answer, "out_guards");
  for (size_t i = 0; i < std::min(graphs.size(), kNotebookGraphs); ++i) {
    const auto graph = ir::parse(graphs[i], "graph " + std::to_string(i + 1));
    out += "<details><summary>Graph " + std::to_string(i + 1) + (graph.ok() ? ", " + base::count_of(ir::count_nodes(*graph), "node") : "") + "</summary>\n";
    out += graph.ok() ? unfolded(*graph) : "<pre><code>" + plain_text(graphs[i]) + "</code></pre>\n";
    std::string list;
    if (const auto* mine = i < guards.size() ? guards[i].as<Json::Array>() : nullptr)
      for (const Json& guard : *mine)
        if (const auto* text = guard.as<std::string>()) list += "<li>" + as_code(*text) + "</li>\n";
    if (!list.empty()) out += "<details><summary>Its guards</summary>\n<ul>\n" + list + "</ul>\n</details>\n";
    out += "</details>\n";
  }
  if (graphs.size() > kNotebookGraphs) out += "<p class=\"quiet\">And " + base::count_of(graphs.size() - kNotebookGraphs, "more graph") + ".</p>\n";
  return in_frame(out);
}

std::string page_for_notebook(std::string_view page) {
  return "<iframe sandbox srcdoc=\"" + escape(page) + "\" style=\"width: 100%; height: 40em; border: 1px solid #8888\"></iframe>";
}

}  // namespace cutaway::report
