// The command. Linked to nothing that needs libtorch, so that --help, show, diff and doctor answer at once.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/interrupt.h"
#include "app/flows/report_json.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/debug/settings.h"
#include "diagnosis/worker/join.h"

namespace cutaway::cli {

std::span<const Command> commands() {
  static constexpr std::array table = {
      Command{"triage", "run a script, find the first torch.compile that fails, and cut the failure down", declare_triage},
      Command{"explain", "run a script and tell what its compiled functions became, and where graphs break", declare_explain},
      Command{"profile", "run a script with the backend native and tell where the time of its compiled functions goes", declare_profile},
      Command{"replay", "capture the frame of a record again, alone: does it fail as recorded?", declare_replay},
      Command{"run", "does this bundle still fail, and as recorded?", declare_run},
      Command{"minify", "cut a failing bundle down to the smallest one that fails the same way", declare_minify},
      Command{"analyze", "at which node of the graph do the numbers go wrong?", declare_analyze},
      Command{"bisect", "which pass, lowering or option of torch's Inductor, or which rewrite, fusion or kernel of native, is guilty?", declare_bisect},
      Command{"sweep", "run many bundles or random graphs with many backends and dtypes; cut down what fails, each bug once", declare_sweep},
      Command{"import", "make a bundle of a .pt2 file, or of torch's repro.py and minifier_launcher.py", declare_import},
      Command{"export", "write a bundle as a .pt2 file, as a script, or as a graph", declare_export},
      Command{"report", "write report.html again: what failed, the graph, how sure, what next", declare_report},
      Command{"show", "print a graph, a bundle or a record; executes nothing", declare_show},
      Command{"diff", "what differs between two graphs or bundles", declare_diff},
      Command{"backends", "the backends, and what each can do", declare_backends},
      Command{"doctor", "versions, compilers, devices, and what is missing", declare_doctor},
      Command{"completion", "a script for bash, zsh or fish that completes commands and options", declare_completion},
      Command{"worker", "", declare_worker},
      Command{"torch-report", "", declare_torch_report},
  };
  return table;
}

namespace {
bool wants_json = false;   // set once, before a subcommand runs
constexpr int kInterrupted = 130;
}  // namespace

int fail(const base::Error& error) {
  if (wants_json) std::printf("%s\n", base::Json(flows::error_keys(error)).text(2).c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "cutaway: %s\n", error.text().c_str());
  return was_interrupted() ? kInterrupted : kUsage;
}
void print_failures_as_json(bool is_wanted) { wants_json = is_wanted; }

int tell(const std::string& text, const char* key) {
  if (!wants_json) {
    std::fputs(text.c_str(), stdout);
    return kOk;
  }
  base::Json::Object j = flows::common_keys("pass", {}, "", "", "", 0, text);
  j["seconds"] = base::Json();
  j[key] = base::Json(text);
  std::printf("%s\n", base::Json(std::move(j)).text(2).c_str());
  return kOk;
}

int enter_torch(const std::vector<std::string>& words) {
  void* library = dlopen("libcutaway.so", RTLD_NOW | RTLD_GLOBAL);   // found through this executable's rpath
  if (!library) return fail({"cannot load libtorch", "", dlerror(), "install cutaway in the environment that has torch, with `make build`", ""});
  using Entry = int (*)(int, const char* const*);
  auto entry = reinterpret_cast<Entry>(dlsym(library, "cutaway_entry"));
  if (!entry) return fail({"libcutaway.so is of another version", "", dlerror(), "install cutaway again, with `make build`", ""});
  std::vector<const char*> argv;
  for (const std::string& w : words) argv.push_back(w.c_str());
  return entry(static_cast<int>(argv.size()), argv.data());
}

namespace {
CLI::Validator number(std::string name, std::string rule, bool (*holds)(double)) {
  return CLI::Validator([=](std::string& word) {
    double n = 0;
    return CLI::detail::lexical_cast(word, n) && holds(n) ? std::string() : base::quote(word) + " is not a number " + rule;
  }, std::move(name));
}
}  // namespace
CLI::Validator above_zero() { return number("ABOVE 0", "above 0", [](double n) { return n > 0; }); }
CLI::Validator not_negative() { return number("0 OR MORE", "of 0 or more", [](double n) { return n >= 0; }); }

std::function<int()> declare_worker(CLI::App& app) {
  struct Settings { std::string join; std::vector<std::string> otherwise; };
  auto s = std::make_shared<Settings>();
  app.add_option("--join", s->join, "give the socket to the process that waits at this address; the words after -- run where none does");
  app.add_option("otherwise", s->otherwise);
  app.positionals_at_end();
  return [s] { return s->join.empty() ? enter_torch({"worker"}) : worker::join(s->join, s->otherwise); };
}
std::function<int()> declare_torch_report(CLI::App&) {
  return [] { return enter_torch({"torch-report"}); };
}

}  // namespace cutaway::cli

namespace {

using namespace cutaway;

/// What is wrong with the command line, in our words.
std::string complaint(const CLI::ParseError& e, const CLI::App& app) {
  if (dynamic_cast<const CLI::ExtrasError*>(&e)) {
    const std::vector<std::string> rest = app.remaining(true);
    const std::string word = rest.empty() ? "" : rest.front();
    if (!word.starts_with("-")) return base::quote(word) + " is one word too many";
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    return "unknown option " + base::quote(word) + base::did_you_mean(word, known);
  }
  std::string text = e.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) && text.ends_with("missing")) return text.substr(0, text.find(':')) + ": its value is missing";
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1]))) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

/// A file that is opened where standard output is closed would get its number, and with it what is printed.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)!::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);   // the lowest number that is free
}

int run_command(int argc, char** argv) {
  CLI::App app{"Cutaway: see into compiled PyTorch programs, and find what a compiler got wrong.", "cutaway"};
  app.set_version_flag("--version", "cutaway " CUTAWAY_VERSION);
  app.footer("`cutaway COMMAND --help` tells more of each. Exit status 2: wrong usage, or something that cannot be read.");
  std::vector<std::pair<CLI::App*, std::function<int()>>> declared;
  for (const cli::Command& c : cli::commands()) {
    CLI::App* sub = app.add_subcommand(std::string(c.name), std::string(c.summary));
    if (c.summary.empty()) sub->group("");   // for our own processes: not in --help
    declared.emplace_back(sub, c.declare(*sub));
  }
  // A program that asked for an object gets one for wrong usage and for help too, where nobody knows yet which option belongs to whom.
  if (argc > 1 && std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; })) cli::print_failures_as_json();
  const auto find_command = [&](std::string_view name) {
    const auto found = std::find_if(declared.begin(), declared.end(), [&](const auto& d) { return d.first->get_name() == name; });
    return found == declared.end() ? nullptr : found->first;
  };
  const bool is_help = argc > 1 && std::string_view(argv[1]) == "help";
  CLI::App* about = is_help && argc > 2 ? find_command(argv[2]) : nullptr;
  if (argc < 2 || (is_help && (argc == 2 || about || argv[2][0] == '-'))) {
    cli::tell((about ? about : &app)->help(), "help");
    return argc < 2 ? cli::kUsage : cli::kOk;
  }
  // An unknown word where a subcommand stands gets the nearest name, which CLI11 does not offer.
  const std::string_view word = argv[is_help ? 2 : 1];
  if (!word.starts_with('-') && !find_command(word)) {
    std::vector<std::string> names;
    for (const cli::Command& c : cli::commands())
      if (!c.summary.empty()) names.emplace_back(c.name);
    return cli::fail({"unknown command " + base::quote(word) + base::did_you_mean(word, names), "", "", "cutaway --help", ""});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    CLI::App* shown = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    return cli::tell(shown->help(), "help");
  } catch (const CLI::CallForVersion& e) {
    return cli::tell(std::string(e.what()) + "\n", "version");
  } catch (const CLI::ParseError& e) {
    CLI::App* shown = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
    return cli::fail({complaint(e, *shown), "", "", shown == &app ? "cutaway --help" : "cutaway " + shown->get_name() + " --help", ""});
  }
  for (auto& [sub, run] : declared)
    if (sub->parsed()) {
      const CLI::Option* json = sub->get_option_no_throw("--json");
      cli::print_failures_as_json(json && json->count() > 0);   // and not one of the script's
      if (!sub->get_group().empty())   // not our own processes
        if (const auto settings = debug::from_environment(&debug::process_environment); !settings.ok()) return cli::fail(settings.error());
      return run();
    }
  return cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);   // a limit of file sizes is an error to be told, not a death
  open_standard_streams();
  const int status = run_command(argc, argv);
  // An answer that nobody got is none, whatever it was.
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "cutaway: %s\n", base::os_error("standard output", "the answer cannot be written", errno).text().c_str());
  return cli::kUsage;
}
