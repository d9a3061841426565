// cutaway triage.
#include <cstdio>
#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/findings.h"
#include "app/flows/progress_line.h"
#include "app/flows/triage_flow.h"

namespace cutaway::cli {

std::function<int()> declare_triage(CLI::App& app) {
  struct State { flows::TriageOptions options; double timeout = 300, memory = 0; FormOption form; std::string output; };
  auto s = std::make_shared<State>();
  app.add_option("-o,--output", s->output, "the folder of this run (default: cutaway_debug/run_<time>-pid_<pid>)");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--check-calls", s->options.check_calls, "compare numbers in so many calls of each graph only; 0: in all")->capture_default_str()->check(not_negative());
  app.add_option("-j,--jobs", s->options.jobs, "candidates at once")->capture_default_str()->check(above_zero());
  const auto* timeout = app.add_option("--timeout", s->timeout, "seconds after which one compilation or call counts as hanging, and the script's own code where it is silent (else half an hour)")
                            ->capture_default_str()->check(above_zero());
  app.add_option("--memory", s->memory, "gigabytes that the script and a candidate may use")->check(not_negative());
  app.add_option("--time-budget", s->options.time_budget_s, "stop the reduction after so many seconds with the best so far")->check(not_negative());
  declare_form(app, s->form);
  app.prefix_command();   // `--steps 1` after the script is none of ours
  app.footer("SCRIPT [ARGS...], or -m MODULE [ARGS...], come last: what follows belongs to it. A SCRIPT of - is read from standard input.\nExit status: 0 no failure, 1 a failure of the compiler, 3 it failed once and not again, 4 the script fails without the compiler, 2 wrong usage.");
  return [s, &app, timeout] {
    const report::Form form = s->form.form();
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
    const std::string& named = s->options.script.front();
    const auto findings = [&] { return flows::triage_findings(*report, named == "-m" || named == "-" ? s->options.script.back() : std::filesystem::absolute(named).string()); };
    switch (form) {
      case report::Form::json: std::printf("%s\n", report->to_json().c_str()); break;
      case report::Form::sarif: std::printf("%s\n", report::sarif_text(findings(), flows::findings_root(), CUTAWAY_VERSION).c_str()); break;
      case report::Form::github: std::printf("%s%s", report->text().c_str(), report::github_text(findings(), flows::findings_root()).c_str()); break;
      case report::Form::text: std::printf("%s", report->text().c_str()); break;
    }
    return report->exit_code;
  };
}

}  // namespace cutaway::cli
