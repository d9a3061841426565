// What triage says: one screen for people, one object for programs.
#include <cstdio>
#include <filesystem>

#include "app/flows/report_json.h"
#include "app/flows/triage_flow.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"
#include "diagnosis/oracle/signature.h"

namespace cutaway::flows {
namespace {

using base::Json;

std::string seconds_text(double v) {
  char b[32];
  std::snprintf(b, sizeof b, v < 10 ? "%.2f s" : "%.0f s", v);
  return b;
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  else text += ' ';
  return text;
}

std::string indented(std::string_view text, std::string_view by, size_t most_lines) {
  std::string out;
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    if (lines == most_lines) return out + std::string(by) + "…\n";
    const size_t end = std::min(text.find('\n', at), text.size());
    out += std::string(by) + std::string(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

/// The folders of a file say little on a screen; the files have them.
std::string without_folders(std::string_view text) {
  const size_t slash = text.substr(0, text.find(':')).rfind('/');
  return std::string(slash == std::string_view::npos ? text : text.substr(slash + 1));
}

/// A graph's text with short places.
std::string graph_for_screen(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const size_t place = line.find("  # ");
    out += place == std::string_view::npos ? std::string(line) : std::string(line.substr(0, place + 4)) + without_folders(line.substr(place + 4));
    out += '\n';
    at = end + 1;
  }
  return out;
}

std::string outcome_label(const std::string& outcome) {
  if (outcome == "pass") return "ok";
  if (outcome == "skipped") return "-";
  if (outcome == "accuracy") return "WRONG";
  if (outcome == "exception") return "RAISES";
  if (outcome == "crash") return "CRASH";
  if (outcome == "hang") return "HANGS";
  if (outcome == "memory") return "MEMORY";
  return "FAILS";
}

/// From the first line of the last traceback on.
std::string last_traceback(const std::string& log) {
  const size_t at = log.rfind("Traceback (most recent call last):");
  return at == std::string::npos ? log.substr(log.size() > 2000 ? log.size() - 2000 : 0) : log.substr(at);
}

}  // namespace

std::string TriageReport::text() const {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) { out += report_line(key, value); };
  if (seen.call.is_known() && exit_code != kPasses)
    out += seen.call.place() + "  " + seen.call.text + "      " + (seen.is_own ? "cutaway.compile" : "torch.compile") + (backend.empty() ? "" : ", backend " + backend) + "\n\n";
  size_t width = 12;
  for (const AblationRun& a : ablation) width = std::max(width, a.backend.size() + 2);
  for (const AblationRun& a : ablation)
    out += "  " + padded(a.backend, width) + padded(outcome_label(a.outcome), 8) + padded(a.seconds ? seconds_text(*a.seconds) : "", 9) + a.detail + "\n";
  if (!ablation.empty()) out += "\n";

  if (exit_code == kPasses && seen.graphs == 0) {   // "no failure" would be saying too much
    out += "nothing to judge: " + message + "\n";
    line("log", output);
    return out;
  }
  if (exit_code == kPasses) {
    out += "no failure" + (seen.graphs > 0 ? " in " + base::count_of(static_cast<uint64_t>(seen.graphs), "graph") : "") + (message.empty() ? "." : ": " + message + ".") + "\n";
    line("log", output);
    return out;
  }
  if (exit_code == kEagerFails) {
    line("no compiler", "is to blame: " + message);
    if (ablation.empty() || ablation.back().backend != capabilities::up_to(capabilities::Stage::capture)) out += last_traceback(seen.log_tail);
    if (out.back() != '\n') out += '\n';
    if (!bundle.empty()) line("bundle", bundle);
    return out;
  }
  if (stage == "capture") {
    line("guilty stage", seen.is_own ? "capture (cutaway.compile)" : "capture (torch's Dynamo): there is no graph yet");
    line("failure", oracle::describe(signature, seen.message));
    if (seen.line.is_known()) line("at", seen.line.place() + " " + seen.line.function + "   " + seen.line.text);
    if (!seen.frame_source.empty()) out += "captured function\n" + indented(seen.frame_source, "    ", 20);
    line("log", output);
    line("next", seen.is_own ? "cutaway explain and the script: what was captured, and where it broke" : "rewrite that line, or keep it out of the graph with torch.compiler.disable");
    return out;
  }
  if (!stage.empty())
    line("guilty stage", stage + (backend.empty() ? "" : " (" + backend + ")") + (seen.graph.empty() ? "" : ", " + seen.graph + " of " + std::to_string(seen.graphs)) + (seen.process.empty() ? "" : " in " + seen.process) + (nodes ? ", " + base::count_of(*nodes, "node") : ""));
  if (!minimal || minimal->graph_text.empty()) {
    if (!signature.kind.empty()) line("failure", oracle::describe(signature, seen.message));
    if (!message.empty()) line(!tried.empty() ? "not located" : signature.kind.empty() ? "not found" : "not reduced", message);
  } else {
    const MinifyReport& m = *minimal;
    line("failure", oracle::describe(signature, seen.message));
    line("minimising", std::to_string(m.before.nodes) + " -> " + base::count_of(m.after.nodes, "node") + ", " + std::to_string(m.before.elements) + " -> " + base::count_of(m.after.elements, "element") + "   " +
                           base::count_of(m.candidates, "candidate") + ", " + seconds_text(m.seconds));
    out += "minimal graph\n" + indented(graph_for_screen(m.graph_text), "    ", 24);
    if (first_wrong) {
      line(analysis.empty() ? "operator" : "first wrong", (analysis.empty() ? "" : "%" + first_wrong->node + "   ") + first_wrong->op + (first_wrong->source.empty() ? "" : "   at " + without_folders(first_wrong->source)) +
                                                              (first_wrong->kernel.empty() ? "" : "   in kernel " + first_wrong->kernel));
      if (!first_wrong->reason.empty()) line("because", first_wrong->reason);
    }
    line("certainty", std::string(m.one_minimal ? "one-minimal" : m.stopped_early ? "stopped early: not known to be minimal" : "not one-minimal") + "; fails " + std::to_string(m.fails) + " of " +
                          std::to_string(m.runs) + " runs" + (m.start_rate < 1 ? ", the whole graph " + std::to_string(static_cast<int>(m.start_rate * 100)) + " % of its runs" : "") +
                          (m.exit_code == 0 ? "; " + m.proof() : "; NOT VERIFIED: " + m.message));
    if (m.needs_no_node) line("any graph", std::string(kAnyGraph));
    if (m.others.empty()) line("also seen", "nothing else");
    for (const MinifyReport::Other& o : m.others) line("also seen", o.description + ", met by " + base::count_of(o.count, "candidate") + ", kept in " + o.path);
    if (!message.empty()) line("note", message);
  }
  out += "\n";
  if (bundle.empty()) line("log", output);
  if (!report.empty()) line("report", report);
  std::string after;
  for (const std::string& b : before) after += " --before " + b;
  const bool shows_alone = tried.empty() || minimal || !before.empty();
  if (!bundle.empty() && !shows_alone) line("graph", bundle + "      (passes alone)");
  if (!bundle.empty() && shows_alone) line("next", "cutaway run " + bundle + after + (minimal && !minimal->graph_text.empty() && !minimal->needs_trust ? "" : " --trust"));
  if (!attach.empty()) line("attach", attach);
  return out;
}

std::string TriageReport::to_json() const {
  const auto optional = [](const std::optional<uint64_t>& n) { return n ? Json(static_cast<int64_t>(*n)) : Json(); };
  const auto word = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  const auto place = [](const SourceLine& l) {
    return l.is_known() ? Json(Json::Object{{"file", l.file}, {"line", Json(l.line)}, {"function", l.function}, {"text", l.text}}) : Json();
  };
  const bool is_reduced = minimal && !minimal->graph_text.empty();
  const auto count = [](uint64_t n) { return Json(static_cast<int64_t>(n)); };
  Json::Array others, rows;
  if (minimal)
    for (const auto& o : minimal->others) others.push_back(Json::Object{{"failure", o.description}, {"bundle", o.path}, {"candidates", count(o.count)}});
  for (const AblationRun& a : ablation) rows.push_back(Json::Object{{"backend", a.backend}, {"outcome", a.outcome}, {"seconds", a.seconds ? Json(*a.seconds) : Json()}, {"detail", a.detail}});
  Json::Object j = common_keys(outcome_word(exit_code), signature, backend, bundle, repro, seconds, message.empty() ? seen.message : message);
  j["kind"] = word(kind);
  j["stage"] = word(stage);
  j["report"] = word(report);
  j["directory"] = Json(output);
  j["nodes_before"] = optional(nodes);
  j["elements_before"] = optional(elements);
  if (minimal) {
    j["candidates"] = count(minimal->candidates);
    j["one_minimal"] = is_reduced ? Json(minimal->one_minimal) : Json();
  }
  j["new_kernels"] = minimal ? Json(minimal->new_kernels) : Json();
  j["graph"] = Json();
  if (is_reduced) {
    j["nodes_after"] = count(minimal->after.nodes);
    j["elements_after"] = count(minimal->after.elements);
    j["graph"] = Json(minimal->graph_text);
    if (minimal->runs) j["reproduced_rate"] = Json(static_cast<double>(minimal->fails) / minimal->runs);
  }
  j["needs_no_node"] = is_reduced ? Json(minimal->needs_no_node) : Json();
  j["others"] = Json(std::move(others));
  j["before"] = Json(Json::Array(before.begin(), before.end()));
  j["tried"] = Json(Json::Array(tried.begin(), tried.end()));
  j["ablation"] = Json(std::move(rows));
  j["graphs"] = Json(seen.graphs);
  Json::Array verdicts;
  for (const Observation::Judged& v : judged) verdicts.push_back(Json::Object{{"graph", v.graph}, {"outcome", v.outcome}, {"reason", v.reason}});
  j["judged"] = Json(std::move(verdicts));
  j["process"] = word(seen.process);
  j["call"] = place(seen.call);
  j["line"] = place(seen.line);
  j["frame_source"] = word(seen.frame_source);
  j["first_wrong"] = first_wrong ? Json(Json::Object{{"node", first_wrong->node}, {"operator", first_wrong->op}, {"source", first_wrong->source}, {"reason", first_wrong->reason}, {"kernel", first_wrong->kernel}}) : Json();
  j["analysis"] = word(analysis);
  if (exit_code == kEagerFails) j["traceback"] = last_traceback(seen.log_tail);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
