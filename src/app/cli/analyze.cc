// cutaway analyze.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/analyze_flow.h"
#include "app/flows/progress_line.h"
#include "core/bundle/archive.h"

namespace cutaway::cli {

std::function<int()> declare_analyze(CLI::App& app) {
  struct State { flows::AnalyzeOptions options; double timeout = 1800, part_timeout = 120, memory = 0; bool json = false; std::string path; };
  auto s = std::make_shared<State>();
  app.add_option("bundle", s->path, "a bundle directory or its .tar")->required();
  app.add_option("--backend", s->options.backend, "another backend than the recorded one");
  app.add_flag_callback("--strict-accuracy", [s] { s->options.accuracy = "strict"; }, "any difference from eager counts");
  app.add_flag("--all", s->options.every_node, "measure every node, however long it takes, and print every row");
  app.add_option("--budget", s->options.budget_s, "seconds for nodes beyond the first wrong one")->capture_default_str()->check(not_negative());
  app.add_option("--timeout", s->timeout, "seconds after which it counts as a hang")->capture_default_str()->check(above_zero());
  app.add_option("--part-timeout", s->part_timeout, "seconds after which one part of the graph counts as hanging")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--memory", s->memory, "gigabytes that it may use")->check(not_negative());
  app.add_option("--match", s->options.match, "a regular expression that the failure's message must hold to be the recorded one");
  app.add_option("--threads", s->options.threads, "threads of the runs; else as the bundle says, or one")->check(above_zero());
  app.add_flag("--only-forward", s->options.only_forward, "no backward");
  app.add_flag("--trust", s->options.is_trusted, "run what the bundle brings along: imports, source text, files");
  app.add_flag("--json", s->json, "one JSON object on standard output; progress goes to standard error");
  app.footer("Exit status: 0 answered, 5 nothing wrong was found, 3 it fails in another way, 4 eager itself fails, 2 wrong usage or unreadable.");
  return [s] {
    auto argument = bundle::open_argument(s->path);
    if (!argument.ok()) return fail(argument.error());
    s->options.bundle = argument->path;
    if (argument->unpacked) s->options.archive = s->path;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.max_bytes = static_cast<uint64_t>(s->memory * 1e9);
    s->options.part_timeout_s = std::max<int64_t>(1, static_cast<int64_t>(s->part_timeout));
    flows::ProgressLine progress;
    s->options.on_step = [&](const std::string& text) { progress.say(text); };
    s->options.is_interrupted = is_interrupted;
    auto report = flows::analyze_bundle(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    const auto rows = s->options.every_node ? flows::AnalyzeReport::Rows::all : flows::AnalyzeReport::Rows::of_interest;
    std::printf("%s%s", (s->json ? report->to_json() : report->text(rows)).c_str(), s->json ? "\n" : "");
    return report->exit_code;
  };
}

}  // namespace cutaway::cli
