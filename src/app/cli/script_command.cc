#include "app/cli/script_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/cli/command.h"
#include "app/flows/script_input.h"
#include "app/flows/workers.h"

namespace cutaway::cli {

report::Form FormOption::form() const {
  if (json || word == "json") {
    print_failures_as_json();
    return report::Form::json;
  }
  return word == "sarif" ? report::Form::sarif : word == "github" ? report::Form::github : report::Form::text;
}

void declare_form(CLI::App& app, FormOption& option) {
  CLI::Option* form = app.add_option("--format", option.word, "text; json: one object; sarif: SARIF 2.1.0, for editors and code scanning; github: the text, then an annotation for each line (GitHub Actions)")
                          ->capture_default_str()->check(CLI::IsMember({"text", "json", "sarif", "github"}));
  app.add_flag("--json", option.json, "the same as --format json: one JSON object on standard output; what else is told goes to standard error")->excludes(form);
}

void declare_script(CLI::App& app, std::string_view says) {
  app.prefix_command();   // `--steps 1` after the script is none of ours
  app.footer("SCRIPT [ARGS...], or -m MODULE [ARGS...], come last: what follows belongs to it. A SCRIPT of - is read from standard input. " + std::string(says) + "\nExit status: the script's own, 2 wrong usage.");
}

int run_script(const CLI::App& app, std::string_view module, const std::vector<std::string>& options) {
  const std::string command = app.get_name();
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty()) return fail({"a script is missing", "", "", "cutaway " + command + " SCRIPT [ARGS...]", ""});
  if (words.front() == "-m" && words.size() < 2) return fail({"-m: a module is missing", "", "", "cutaway " + command + " -m MODULE [ARGS...]", ""});
  if (words.front().size() > 1 && words.front().starts_with("-") && words.front() != "-m") return fail({command + " has no option " + words.front(), "", "", "cutaway " + command + " --help", ""});
  if (words.front() != "-" && words.front() != "-m")
    if (const auto there = flows::check_script(words.front()); !there.ok()) return fail(there.error());
  const flows::Programs programs = flows::find_programs(CUTAWAY_BUILD_PYTHON);
  std::vector<std::string> argv{programs.python, "-m", std::string(module)};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& w : argv) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  return fail({"Python cannot be started", programs.python, std::strerror(errno), "cutaway doctor", ""});
}

}  // namespace cutaway::cli
