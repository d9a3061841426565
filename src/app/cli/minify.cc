// cutaway minify.
#include <cstdint>
#include <cstdio>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/minify_flow.h"
#include "app/flows/progress_line.h"
#include "app/flows/report_json.h"

namespace cutaway::cli {

namespace {

int list_passes(bool is_json) {
  using base::Json;
  Json::Array rows;
  for (const auto& p : minify::passes()) {
    if (is_json) rows.push_back(Json::Object{{"name", std::string(p.name)}, {"summary", std::string(p.summary)}});
    else std::printf("%-30s %s\n", std::string(p.name).c_str(), std::string(p.summary).c_str());
  }
  if (!is_json) return kOk;
  Json::Object j = flows::common_keys("pass", {}, "", "", "", 0, "");
  j["seconds"] = Json();
  j["passes"] = Json(std::move(rows));
  std::printf("%s\n", Json(std::move(j)).text(2).c_str());
  return kOk;
}

}  // namespace

std::function<int()> declare_minify(CLI::App& app) {
  struct State { flows::MinifyOptions options; double timeout = 120, memory = 0; bool json = false, list = false; std::string path, output; };
  auto s = std::make_shared<State>();
  app.add_option("bundle", s->path, "a bundle that fails, or its .tar");
  app.add_option("-o,--output", s->output, "where the smallest bundle goes (default: BUNDLE-minimal)");
  app.add_option("-j,--jobs", s->options.jobs, "candidates at once; the result does not depend on it")->capture_default_str()->check(above_zero());
  app.add_option("--on", s->options.on, "ray://HOST:PORT, or ray for the cluster of this machine: candidates run there; the result does not depend on it")->type_name("CLUSTER");
  app.add_option("--backend", s->options.backend, "another backend than the recorded one");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--timeout", s->timeout, "seconds after which a candidate counts as hanging")->capture_default_str()->check(above_zero());
  app.add_option("--memory", s->memory, "gigabytes that a candidate may use")->check(not_negative());
  app.add_option("--match", s->options.match, "a regular expression that the failure's message must hold");
  app.add_option("--passes", s->options.passes, "only these passes, by name")->delimiter(',');
  app.add_flag("--list-passes", s->list, "print the passes and stop");
  app.add_flag("--resume", s->options.resume, "go on from the journal of an interrupted run");
  app.add_option("--time-budget", s->options.time_budget_s, "stop after so many seconds with the best so far")->check(not_negative());
  app.add_option("--first", s->options.op_hint, "an operator to try alone first");
  app.add_flag("--only-forward", s->options.only_forward, "no backward");
  app.add_flag("--trust", s->options.is_trusted, "run what the bundle brings along: imports, source text, files");
  app.add_flag("--json", s->json, "one JSON object on standard output; progress goes to standard error");
  app.footer("Exit status: 0 answered and verified, 5 the start does not fail, 3 it fails in another way, 4 eager itself fails, 2 wrong usage or unreadable.");
  return [s] {
    if (s->list) {
      return list_passes(s->json);
    }
    if (s->path.empty()) return fail({"a bundle is missing", "", "", "cutaway minify --help", ""});
    s->options.bundle = s->path;
    s->options.output = s->output;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.max_bytes = static_cast<uint64_t>(s->memory * 1e9);
    flows::ProgressLine progress;
    s->options.on_progress = [&](const minify::Progress& p) { progress.show(p); return !is_interrupted(); };
    s->options.on_step = [&](const std::string& text) { progress.say(text); };
    auto report = flows::minify_bundle(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return report->exit_code;
  };
}

}  // namespace cutaway::cli
