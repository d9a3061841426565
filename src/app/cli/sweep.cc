// cutaway sweep.
#include <cstdint>
#include <cstdio>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/progress_line.h"
#include "app/flows/sweep_flow.h"

namespace cutaway::cli {

std::function<int()> declare_sweep(CLI::App& app) {
  struct State { flows::SweepOptions options; double timeout = 120, memory = 0; bool json = false; std::string output; };
  auto s = std::make_shared<State>();
  app.add_option("subjects", s->options.subjects, "bundles, their .tar files, folders of them, or scripts (.py), which are triaged as they are");
  app.add_option("--random", s->options.random_graphs, "so many random graphs besides")->type_name("COUNT");
  app.add_option("--seed", s->options.random.seed, "of the first random graph; the next has the next number")->capture_default_str();
  app.add_option("--nodes", s->options.random.nodes, "operators of a random graph")->capture_default_str()->check(above_zero());
  app.add_option("--backends", s->options.backends, "instead of the recorded one: native,inductor,…")->delimiter(',');
  app.add_option("--dtypes", s->options.dtypes, "what floating tensors become: f32,bf16,f16,f64; `recorded` for as they were")->delimiter(',');
  app.add_option("--batch-sizes", s->options.batches, "what the leading size of the first input becomes; 0 for as it was")->delimiter(',')->check(not_negative());
  app.add_option("--modes", s->options.modes, "inference,training; else training where an input asks for gradients")->delimiter(',');
  app.add_option("-o,--output", s->output, "the folder of the sweep (default: cutaway_sweep)");
  app.add_option("-j,--jobs", s->options.jobs, "cells at once")->capture_default_str()->check(above_zero());
  app.add_option("--on", s->options.on, "ray://HOST:PORT, or ray for the cluster of this machine: the cells run there")->type_name("CLUSTER");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--timeout", s->timeout, "seconds after which a cell counts as hanging")->capture_default_str()->check(above_zero());
  app.add_option("--memory", s->memory, "gigabytes that a cell may use")->check(not_negative());
  app.add_option("--most-minified", s->options.most_reduced, "how many failures are cut down; 0: none")->capture_default_str();
  app.add_option("--time-budget", s->options.reduction_budget_s, "seconds for cutting down one failure")->capture_default_str()->check(above_zero());
  app.add_flag("--resume", s->options.resume, "go on with the sweep in that folder: answered cells are not asked again");
  app.add_flag("--trust", s->options.is_trusted, "run what the bundles bring along: imports, source text, files");
  app.add_flag("--json", s->json, "one JSON object on standard output; progress goes to standard error");
  app.footer("Exit status: 0 nothing fails, 1 something does, 2 wrong usage, unreadable, or cells that could not be run, 130 interrupted.");
  return [s] {
    s->options.output = s->output;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.max_bytes = static_cast<uint64_t>(s->memory * 1e9);
    s->options.is_interrupted = is_interrupted;
    flows::ProgressLine progress;
    s->options.on_step = [&](const std::string& text) { progress.say(text); };
    s->options.on_progress = [&](uint64_t done, uint64_t failures) { progress.show_cells(done, failures); };
    auto report = flows::sweep(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return report->exit_code();
  };
}

}  // namespace cutaway::cli
