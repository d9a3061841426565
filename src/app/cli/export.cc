// cutaway export.
#include <cstdint>
#include <cstdio>

#include "app/cli/command.h"
#include "app/flows/export_flow.h"
#include "core/bundle/archive.h"

namespace cutaway::cli {

std::function<int()> declare_export(CLI::App& app) {
  struct State { flows::ExportOptions options; double timeout = 600; bool json = false; std::string path, output; };
  auto s = std::make_shared<State>();
  app.add_option("bundle", s->path, "a bundle directory or its .tar")->required();
  app.add_option("-o,--output", s->output, "FILE.pt2 (an exported program), FILE.py (a script that needs torch alone), FILE.cut (the graph) or FILE.tar (the bundle)")->required();
  app.add_option("--timeout", s->timeout, "seconds that it may take")->capture_default_str()->check(above_zero());
  app.add_flag("--trust", s->options.is_trusted, "for a .pt2: run what the bundle brings along");
  app.add_flag("--json", s->json, "one JSON object");
  app.footer("Exit status: 0, or 2 for wrong usage and for what the chosen form cannot hold.");
  return [s] {
    auto argument = bundle::open_argument(s->path);
    if (!argument.ok()) return fail(argument.error());
    s->options.bundle = argument->path;
    s->options.output = s->output;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.say = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
    auto report = flows::export_bundle(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    report->bundle = s->path;
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return kOk;
  };
}

}  // namespace cutaway::cli
