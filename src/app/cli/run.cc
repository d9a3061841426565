// cutaway run.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/run_flow.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/bundle/archive.h"
#include "core/capabilities/parts.h"

namespace cutaway::cli {

void declare_accuracy(CLI::App& app, std::string& accuracy) {
  auto* plain = app.add_flag_callback("--accuracy", [&accuracy] { accuracy = "accuracy"; }, "compare numbers with eager and with an fp64 run of eager");
  auto* strict = app.add_flag_callback("--strict-accuracy", [&accuracy] { accuracy = "strict"; }, "any difference from eager is a failure")->excludes(plain);
  app.add_flag_callback("--no-accuracy", [&accuracy] { accuracy = "none"; }, "only exceptions, crashes and hangs count")->excludes(plain)->excludes(strict);
}

namespace {

// NAME=VALUE words of --limit and --option into switches, and all parts checked.
base::Status read_switches(const std::vector<std::string>& limits, const std::vector<std::string>& values, oracle::Switches& switches) {
  for (const std::string& w : switches.without) CUTAWAY_TRY(oracle::check_part(w.substr(0, w.find(':'))));
  for (const std::string& word : limits) {
    const size_t at = word.find('=');
    CUTAWAY_TRY(oracle::check_part(word.substr(0, at)));
    const std::string digits = at == word.npos ? "" : word.substr(at + 1);
    int64_t n = -1;
    if (auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), n); ec != std::errc() || end != digits.data() + digits.size() || n < 0)
      return base::Error{"--limit " + word + ": not a number of applications", "", "", "--limit lowerings=3", ""};
    switches.limits[word.substr(0, at)] = n;
  }
  for (const std::string& word : values) {
    const size_t at = word.find('=');
    if (at == 0 || at == word.npos) return base::Error{"--option " + word + ": a value is missing", "", "", "--option epilogue_fusion=false", ""};
    const std::string value = word.substr(at + 1);
    switches.options[word.substr(0, at)] = value == flows::kDefaultOption || base::Json::parse(value, "--option").ok() ? value : base::json_text(value);
  }
  return {};
}

}  // namespace

std::function<int()> declare_run(CLI::App& app) {
  struct State { flows::RunOptions options; double timeout = 300, memory = 0; bool json = false; std::string path; std::vector<std::string> limits, values; };
  auto s = std::make_shared<State>();
  app.add_option("bundle", s->path, "a bundle directory or its .tar")->required();
  app.add_option("--backend", s->options.backend, "another backend than the recorded one");
  app.add_option("--device", s->options.device, "cpu or cuda: as if it had been recorded there")->type_name("DEVICE");
  declare_accuracy(app, s->options.accuracy);
  app.add_option("--timeout", s->timeout, "seconds after which it counts as a hang")->capture_default_str()->check(above_zero());
  app.add_option("--memory", s->memory, "gigabytes that it may use")->check(not_negative());
  app.add_option("--match", s->options.match, "a regular expression that the failure's message must hold to be the recorded one");
  app.add_option("--before", s->options.before, "a bundle that is compiled and run in the same process first; may be given several times")->type_name("BUNDLE");
  app.add_option("--threads", s->options.threads, "threads of the run; else as the bundle says, or one")->check(above_zero());
  app.add_option("--without", s->options.switches.without, "a part of Inductor (" + base::join(capabilities::names_of(capabilities::Parts::inductor)) + ") or of native (" + base::join(capabilities::names_of(capabilities::Parts::native)) + "), or PART:NAME, to switch off");
  app.add_option("--limit", s->limits, "PART=N: only the first N applications of a part happen");
  app.add_option("--option", s->values, "NAME=VALUE: an option of Inductor, as JSON or a word; `default` for what was recorded otherwise");
  app.add_option("--code", s->options.switches.code, "with native: run the kernels of this file (output_code.cpp, edited) in place of the generated ones")->type_name("FILE");
  app.add_option("--write-code", s->options.switches.write_code, "with native: write the generated program there, and recorded values beside it")->type_name("FILE");
  app.add_flag("--profile", s->options.has_profile, "with native: time each kernel and operator; profile.json and report.html in the bundle tell");
  app.add_flag("--only-forward", s->options.only_forward, "no backward");
  app.add_flag("--trust", s->options.is_trusted, "run what the bundle brings along: imports, source text, files");
  app.add_flag("--json", s->json, "one JSON object");
  app.footer("Exit status: 0 passes, 1 fails as recorded, 3 fails in another way, 4 eager itself fails, 2 wrong usage or unreadable.");
  return [s] {
    auto argument = bundle::open_argument(s->path);
    if (!argument.ok()) return fail(argument.error());
    s->options.bundle = argument->path;
    if (argument->unpacked) s->options.archive = s->path;
    for (std::string* file : {&s->options.switches.code, &s->options.switches.write_code})   // the worker has another folder
      if (std::error_code ec; !file->empty()) *file = std::filesystem::absolute(*file, ec).lexically_normal().string();
    if (std::error_code ec; !s->options.switches.code.empty() && !std::filesystem::is_regular_file(s->options.switches.code, ec)) return fail({"there is no such file", s->options.switches.code, "", "", ""});
    if (auto read = read_switches(s->limits, s->values, s->options.switches); !read.ok()) return fail(read.error());
    s->options.timeout_ms = static_cast<int64_t>(s->timeout * 1000);
    s->options.max_bytes = static_cast<uint64_t>(s->memory * 1e9);
    s->options.is_interrupted = is_interrupted;
    s->options.on_step = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
    auto report = flows::run_bundle(flows::find_programs(CUTAWAY_BUILD_PYTHON), s->options);
    if (!report.ok()) return fail(report.error());
    report->bundle = s->path;
    std::printf("%s%s", (s->json ? report->to_json() : report->text()).c_str(), s->json ? "\n" : "");
    return report->exit_code;
  };
}

}  // namespace cutaway::cli
