// cutaway triage.
#include <cstdio>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/progress_line.h"
#include "app/flows/triage_flow.h"

namespace cutaway::cli {

std::function<int()> declare_triage(CLI::App& app) {
  struct State { flows::TriageOptions options; double timeout = 300, memory = 0; bool json = false; std::string output; };
  auto s = std::make_shared<State>();
  app.add_option("-o,--output", s->output, "the folder of this run (default: cutaway_debug/run_<time>-pid_<pid>)");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--check-calls", s->options.check_calls, "compare numbers in so many calls of each graph only; 0: in all")->capture_default_str()->check(not_negative());
  app.add_option("-j,--jobs", s->options.jobs, "candidates at once")->capture_default_str()->check(above_zero());
  const auto* timeout = app.add_option("--timeout", s->timeout, "seconds after which one compilation or call counts as hanging, and the script's own code where it is silent (else half an hour)")
                            ->capture_default_str()->check(above_zero());
  app.add_option("--memory", s->memory, "gigabytes that the script and a candidate may use")->check(not_negative());
  app.add_option("--time-budget", s->options.time_budget_s, "stop the reduction after so many seconds with the best so far")->check(not_negative());
  app.add_flag("--json", s->json, "one JSON object on standard output; progress goes to standard error");
  app.prefix_command();   // `--steps 1` after the script is none of ours
  app.footer("SCRIPT [ARGS...], or -m MODULE [ARGS...], come last: what follows belongs to it. A SCRIPT of - is read from standard input.\nExit status: 0 no failure, 1 a failure of the compiler, 3 it failed once and not again, 4 the script fails without the compiler, 2 wrong usage.");
  return [s, &app, timeout] {
    s->options.script = app.remaining();
    if (!s->options.script.empty() && s->options.script.front() == "--") s->options.script.erase(s->options.script.begin());
    if (s->options.script.empty()) return fail({"a script is missing", "", "", "cutaway triage SCRIPT [ARGS...]", ""});
    const std::string& first = s->options.script.front();
    if (first == "-m" && s->options.script.size() < 2) return fail({"-m: a module is missing", "", "", "cutaway triage -m MODULE [ARGS...]", ""});
    if (first.size() > 1 && first.starts_with("-") && first != "-m") return fail({"triage has no option " + first, "", "", "cutaway triage --help", ""});
    s->options.output = s->output;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    if (timeout->count() > 0) s->options.quiet_ms = s->options.timeout_ms;
    s->options.max_bytes = static_cast<uint64_t>(s->memory * 1e9);
    flows::ProgressLine progress;
    s->options.on_progress = [&](const minify::Progress& p) { progress.show(p); return !is_interrupted(); };
    s->options.on_step = [&](const std::string& text) { progress.say(text); };
    s->options.is_interrupted = is_interrupted;
    auto report = flows::triage_script(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return report->exit_code;
  };
}

}  // namespace cutaway::cli
