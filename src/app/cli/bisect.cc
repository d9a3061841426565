// cutaway bisect.
#include <cstdint>
#include <cstdio>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/bisect_flow.h"
#include "app/flows/progress_line.h"
#include "core/bundle/archive.h"

namespace cutaway::cli {

std::function<int()> declare_bisect(CLI::App& app) {
  struct State { flows::BisectOptions options; double timeout = 120, memory = 0; bool json = false, no_minify = false, no_options = false; std::string path, output; };
  auto s = std::make_shared<State>();
  app.add_option("bundle", s->path, "a bundle that fails with torch's Inductor, a backend that calls it, or native; or its .tar")->required();
  app.add_option("-o,--output", s->output, "where the smallest bundle goes (default: BUNDLE-minimal)");
  app.add_option("-j,--jobs", s->options.jobs, "trials at once")->capture_default_str()->check(above_zero());
  app.add_option("--backend", s->options.backend, "another backend than the recorded one");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--timeout", s->timeout, "seconds after which a trial counts as hanging")->capture_default_str()->check(above_zero());
  app.add_option("--memory", s->memory, "gigabytes that a trial may use")->check(not_negative());
  app.add_option("--match", s->options.match, "a regular expression that the failure's message must hold");
  app.add_flag("--no-minify", s->no_minify, "name the guilty part, and leave the graph as it is");
  app.add_flag("--no-options", s->no_options, "look at passes, lowerings and the like alone, not at options");
  app.add_flag("--only-forward", s->options.only_forward, "no backward");
  app.add_flag("--trust", s->options.is_trusted, "run what the bundle brings along: imports, source text, files");
  app.add_flag("--json", s->json, "one JSON object on standard output; progress goes to standard error");
  app.footer("Exit status: 0 answered and verified, 1 it fails whatever is switched off, 5 the start does not fail, 3 it fails in another way, 4 eager itself fails,\n2 wrong usage or unreadable.");
  return [s] {
    auto argument = bundle::open_argument(s->path);
    if (!argument.ok()) return fail(argument.error());
    s->options.bundle = argument->path;
    if (argument->unpacked) {
      s->options.archive = s->path;
      if (s->output.empty()) s->output = std::filesystem::path(s->path).replace_extension().string() + "-minimal";
    }
    s->options.output = s->output;
    s->options.minify = !s->no_minify;
    s->options.try_options = !s->no_options;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.max_bytes = static_cast<uint64_t>(s->memory * 1e9);
    flows::ProgressLine progress;
    s->options.on_progress = [&](const minify::Progress& p) { progress.show(p); return !is_interrupted(); };
    s->options.on_step = [&](const std::string& text) { progress.say(text); };
    s->options.is_interrupted = is_interrupted;
    auto report = flows::bisect_bundle(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return report->exit_code;
  };
}

}  // namespace cutaway::cli
