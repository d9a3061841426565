#include "app/flows/findings.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/base/text.h"
#include "diagnosis/oracle/signature.h"

namespace cutaway::flows {
namespace {

using base::Json;
using report::Severity;
using report::Spot;

/// (file, line, function, text) of Python, as explain's records have it.
Spot spot_of(const Json& frame) {
  Spot spot;
  const auto* parts = frame.as<Json::Array>();
  if (!parts || parts->size() < 4) return spot;
  if (const auto* s = (*parts)[0].as<std::string>()) spot.file = *s;
  if (const auto* n = (*parts)[1].as<int64_t>()) spot.line = *n;
  if (const auto* s = (*parts)[2].as<std::string>()) spot.function = *s;
  if (const auto* s = (*parts)[3].as<std::string>()) spot.text = *s;
  return spot;
}
Spot spot_of(const SourceLine& line) { return {line.file, line.function, line.text, line.line}; }

/// "script.py:14 f": a line that a graph remembers, whose file is named from its package on. Found beside the script, or not at all.
bool find_beside(const std::string& source, const std::string& script, Spot& spot) {
  const size_t colon = source.find(':');
  if (colon == std::string::npos) return false;
  int64_t line = 0;
  const auto [end, ec] = std::from_chars(source.data() + colon + 1, source.data() + source.size(), line);
  if (ec != std::errc() || line < 1) return false;
  std::string name = source.substr(0, colon);
  if (const std::string dots = "…/"; name.starts_with(dots)) name.erase(0, dots.size());
  std::error_code none;
  for (const std::filesystem::path& folder : {std::filesystem::path(), std::filesystem::path(script).parent_path()}) {
    const std::filesystem::path path = std::filesystem::absolute(folder / name, none);
    if (!std::filesystem::is_regular_file(path, none)) continue;
    std::string function(end, source.data() + source.size());
    function.erase(0, function.find_first_not_of(' '));
    spot = {path.string(), function, "", line};
    return true;
  }
  return false;
}

/// Breaks and frames left to Python: why, at the line where it happened.
report::Finding reason_finding(const Json& record, const Json& reason) {
  const bool is_break = record.text_or("ending") == "break", has_failed = record.text_or("outcome") == "failed";
  const std::string id = reason.text_or("id"), what = reason.text_or("what"), hint = reason.text_or("hint"), cause = reason.text_or("cause");
  report::Finding f;
  f.rule = std::string(is_break ? "graph-break/" : has_failed ? "capture-failed/" : "left-to-python/") + id;
  f.rule_text = is_break ? "The graph ends at this line and another one begins behind it." : has_failed ? "This function could not be captured." : "This function is not compiled: Python runs it.";
  f.severity = is_break ? Severity::warning : has_failed ? Severity::error : Severity::note;
  f.title = is_break ? "graph break" : has_failed ? "capture failed" : "left to Python";
  f.message = what + (cause.empty() ? "" : "\nbecause the graph had to end: " + cause) + (hint.empty() ? "" : "\ntry: " + hint);
  f.spot = {record.text_or("file"), record.text_or("function"), "", record.integer_or("line", 1)};
  const Json* stack = reason.find("stack");
  if (const auto* frames = stack ? stack->as<Json::Array>() : nullptr; frames && !frames->empty()) {
    f.spot = spot_of(frames->back());   // the innermost
    for (size_t i = frames->size() - 1; i-- > 0;) f.related.emplace_back("called from here", spot_of((*frames)[i]));
  }
  return f;
}

report::Finding recompile_finding(const Json& record) {
  report::Finding f;
  f.rule = "recompile";
  f.rule_text = "A function was compiled again, because a guard of what was compiled before failed.";
  f.title = "compiled again";
  f.message = record.text_or("function") + " was compiled again: " + record.text_or("recompile_reason");
  f.spot = {record.text_or("file"), record.text_or("function"), "", record.integer_or("line", 1)};
  return f;
}

}  // namespace

std::string findings_root() {
  if (const char* workspace = std::getenv("GITHUB_WORKSPACE"); workspace && *workspace) return workspace;
  std::error_code ec;
  return std::filesystem::current_path(ec).string();
}

report::Findings explain_findings(const Json& answer) {
  report::Findings out;
  std::vector<int64_t> times;
  std::map<std::string, size_t> known;
  const auto add = [&](report::Finding f) {
    const std::string key = f.rule + '\n' + f.spot.file + '\n' + std::to_string(f.spot.line) + '\n' + f.message;
    const auto [it, is_new] = known.emplace(key, out.list.size());
    if (!is_new) { ++times[it->second]; return; }
    times.push_back(1);
    out.list.push_back(std::move(f));
  };
  const Json* records = answer.find("records");
  if (const auto* list = records ? records->as<Json::Array>() : nullptr)
    for (const Json& record : *list) {
      if (!record.text_or("recompile_reason").empty() && record.text_or("outcome") == "compiled") add(recompile_finding(record));
      if (const Json* reason = record.find("reason"); reason && !reason->is_null()) add(reason_finding(record, *reason));
    }
  for (size_t i = 0; i < times.size(); ++i)
    if (times[i] > 1) out.list[i].message += "\n(" + std::to_string(times[i]) + " times)";
  // A finding without a line could not be shown anywhere.
  std::erase_if(out.list, [&](const report::Finding& f) {
    if (!f.spot.file.empty() && !f.spot.file.starts_with("<")) return false;
    out.notes.emplace_back(f.severity, f.title + ": " + f.message);
    return true;
  });
  out.is_complete = answer.integer_or("status", 0) == 0;
  return out;
}

report::Findings triage_findings(const TriageReport& t, const std::string& script) {
  report::Findings out;
  for (const Observation::Judged& v : t.judged) out.notes.emplace_back(Severity::note, v.graph + " is " + v.outcome + ": " + v.reason);
  if (t.exit_code == kPasses) {
    if (t.seen.graphs == 0) out.notes.emplace_back(Severity::warning, "nothing to judge: " + t.message);
    return out;
  }
  if (t.exit_code == kEagerFails) {
    out.notes.emplace_back(Severity::error, "the script fails without the compiler: " + t.message);
    out.is_complete = false;
    return out;
  }
  static const std::map<std::string, std::pair<const char*, const char*>> kKinds = {
      {"accuracy", {"wrong-numbers", "Compiled code computes other numbers than eager."}},
      {"exception", {"compiler-exception", "The compiler, or what it compiled, raises where eager does not."}},
      {"crash", {"compiler-crash", "The compiler, or what it compiled, ends the process."}},
      {"hang", {"compiler-hang", "The compiler, or what it compiled, does not come to an end."}},
      {"memory", {"compiler-memory", "The compiler, or what it compiled, runs out of memory where eager does not."}},
  };
  const std::string kind = t.kind.empty() ? t.signature.kind : t.kind;
  const auto row = kKinds.find(kind);
  report::Finding f;
  f.rule = row == kKinds.end() ? "compiler-failure" : row->second.first;
  f.rule_text = row == kKinds.end() ? "The script fails with the compiler." : row->second.second;
  f.severity = t.exit_code == kFailsAsRecorded ? Severity::error : Severity::warning;
  f.title = f.rule + (t.backend.empty() ? "" : " with " + t.backend);
  f.message = t.signature.kind.empty() ? t.seen.message : oracle::describe(t.signature, t.seen.message);
  if (!t.stage.empty()) f.message += "\nguilty stage: " + t.stage + (t.backend.empty() ? "" : " (" + t.backend + ")");
  const bool is_reduced = t.minimal && !t.minimal->graph_text.empty();
  if (is_reduced) f.message += "\nminimal graph (" + std::to_string(t.minimal->before.nodes) + " -> " + base::count_of(t.minimal->after.nodes, "node") + "):\n" + t.minimal->graph_text;
  if (!t.message.empty()) f.message += "\n" + t.message;
  if (t.exit_code != kFailsAsRecorded) f.message += "\nthe saved graph does not fail as the script did";
  while (f.message.ends_with('\n')) f.message.pop_back();
  f.spot = t.stage == "capture" && t.seen.line.is_known() ? spot_of(t.seen.line) : t.seen.call.is_known() ? spot_of(t.seen.call) : Spot{script, "", "", 1};
  if (Spot at; t.first_wrong && find_beside(t.first_wrong->source, script, at)) f.related.emplace_back("the operator that is left: " + t.first_wrong->op, at);
  for (const auto& [key, value] : {std::pair{"stage", t.stage}, {"backend", t.backend}, {"bundle", t.bundle}, {"repro", t.repro}, {"report", t.report}, {"directory", t.output}})
    if (!value.empty()) f.properties.emplace_back(key, value);
  out.list.push_back(std::move(f));
  return out;
}

}  // namespace cutaway::flows
