// What a sweep found, as a screen of text and as JSON.
#include <algorithm>

#include "app/flows/report_json.h"
#include "app/flows/sweep_journal.h"
#include "core/base/text.h"
#include "diagnosis/report/html.h"

namespace cutaway::flows {

using base::Json;

std::string SweepCell::column() const {
  if (backend.empty()) return "any";
  std::string out = backend;
  if (dtype != "recorded") out += ", " + dtype;
  if (batch > 0) out += ", batch " + std::to_string(batch);
  return mode == "script" ? out : out + ", " + mode;
}

std::string SweepCell::key() const { return subject + " | " + column(); }

uint64_t SweepReport::count(std::string_view outcome) const {
  return static_cast<uint64_t>(std::count_if(cells.begin(), cells.end(), [&](const SweepCell& c) { return c.outcome == outcome; }));
}

int SweepReport::exit_code() const {
  constexpr int kInterrupted = 130;
  return was_interrupted ? kInterrupted : count("failure") > 0 ? kFailsAsRecorded : count("not_run") > 0 ? kUnreadable : kPasses;
}

std::string SweepReport::text() const {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) { out += report_line(key, value); };
  line("cells", std::to_string(cells.size()) + ": " + std::to_string(count("pass")) + " pass, " + std::to_string(count("failure")) + " fail, " + std::to_string(count("eager_fails")) + " fail in eager itself, " +
                    std::to_string(count("unfit")) + " have no such form, " + std::to_string(count("not_run")) + " not run");
  if (answered_before > 0) line("known", base::count_of(answered_before, "cell") + " answered by an earlier run");
  if (seconds > 0) line("time", report::duration(seconds) + ", " + report::fixed(static_cast<double>(cells.size() - answered_before) / seconds) + " cells a second");
  for (size_t i = 0; i < failures.size(); ++i) {
    const SweepFailure& f = failures[i];
    line("failure " + std::to_string(i + 1), f.description + "   (" + f.backend + ", " + base::count_of(f.cells.size(), "cell") + ")");
    if (!f.graph.empty()) line("", base::count_of(f.nodes, "node") + (f.is_verified ? ", verified" : ", NOT verified") + ": " + f.bundle);
    if (!f.note.empty()) line("", f.note);
  }
  if (was_interrupted) line("interrupted", "--resume goes on");
  line("page", page);
  if (!failures.empty() && !failures.front().bundle.empty()) line("next", "cutaway run " + report::shell_word(failures.front().bundle));
  return out;
}

std::string SweepReport::to_json() const {
  Json::Object j = common_keys(was_interrupted ? "error" : count("failure") > 0 ? "failure" : count("not_run") > 0 ? "error" : "pass", {}, "", failures.empty() ? "" : failures.front().bundle, failures.empty() ? "" : failures.front().repro, seconds,
                               was_interrupted ? "interrupted; --resume goes on" : count("not_run") > 0 ? "some cells could not be run" : "");
  Json::Array all, found;
  for (const SweepCell& c : cells) all.push_back(cell_to_json(c));
  for (const SweepFailure& f : failures) found.push_back(failure_to_json(f));
  j["cells"] = Json(std::move(all));
  j["failures"] = Json(std::move(found));
  j["directory"] = Json(output);
  j["answered_before"] = Json(answered_before);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
