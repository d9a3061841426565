// cutaway import.
#include <cstdint>
#include <cstdio>

#include "app/cli/command.h"
#include "app/flows/import_flow.h"

namespace cutaway::cli {

std::function<int()> declare_import(CLI::App& app) {
  struct State { flows::ImportOptions options; double timeout = 600; bool json = false; std::string path, output, data; };
  auto s = std::make_shared<State>();
  app.add_option("file", s->path, "a .pt2 file, torch's repro.py, minifier_launcher.py or fx_graph_runnable.py, or the .tar of a bundle")->required();
  app.add_option("-o,--output", s->output, "where the bundle goes (default: the file's name without its ending, here)");
  app.add_option("--backend", s->options.backend, "another backend than the file says (a .pt2 says none: inductor)");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--data", s->data, "torch's checkpoints folder, when it is not where the script says");
  app.add_flag("--random-inputs", s->options.random_inputs, "random data in place of data that is missing; the bundle records it");
  app.add_option("--max-bytes", s->options.max_bytes, "data to keep; above it metadata and a seed");
  app.add_option("--timeout", s->timeout, "seconds that it may take")->capture_default_str()->check(above_zero());
  app.add_flag("--trust", s->options.is_trusted, "run the code that the file brings along");
  app.add_flag("--json", s->json, "one JSON object");
  app.footer("Reading any of these but a .tar runs code from it, so --trust is needed; it happens in a process of its own. Exit status: 0, or 2.");
  return [s] {
    s->options.file = s->path;
    s->options.output = s->output;
    s->options.data = s->data;
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.say = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
    auto report = flows::import_file(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return kOk;
  };
}

}  // namespace cutaway::cli
