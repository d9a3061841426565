// cutaway profile: the script runs in Python with the backend native, which times every kernel and operator of compiled graphs.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/cli/command.h"
#include "app/flows/workers.h"

namespace cutaway::cli {

std::function<int()> declare_profile(CLI::App& app) {
  struct State { bool json = false; std::string timeline, backend; };
  auto s = std::make_shared<State>();
  app.add_flag("--json", s->json, "one JSON object on standard output; what the script prints goes to standard error");
  app.add_option("--timeline", s->timeline, "also write a timeline, which ui.perfetto.dev and chrome://tracing open")->type_name("FILE");
  app.add_option("--backend", s->backend, "native with other settings: native:lanes=8");
  app.prefix_command();   // `--steps 1` after the script is none of ours
  app.footer("SCRIPT [ARGS...], or -m MODULE [ARGS...], come last: what follows belongs to it. A SCRIPT of - is read from standard input. torch.compile is cutaway.compile with the backend native while it runs.\nExit status: the script's own, 2 wrong usage.");
  return [s, &app] {
    std::vector<std::string> words = app.remaining();
    if (!words.empty() && words.front() == "--") words.erase(words.begin());
    if (words.empty()) return fail({"a script is missing", "", "", "cutaway profile SCRIPT [ARGS...]", ""});
    if (words.front() == "-m" && words.size() < 2) return fail({"-m: a module is missing", "", "", "cutaway profile -m MODULE [ARGS...]", ""});
    if (words.front().size() > 1 && words.front().starts_with("-") && words.front() != "-m") return fail({"profile has no option " + words.front(), "", "", "cutaway profile --help", ""});
    std::error_code ec;
    if (words.front() != "-" && words.front() != "-m" && !std::filesystem::is_regular_file(words.front(), ec)) return fail({"there is no such script", words.front(), "", "", ""});
    if (!s->backend.empty() && s->backend != "native" && !s->backend.starts_with("native:")) return fail({"only the backend native is timed", "", "", "--backend native, or native:SETTING", ""});
    const flows::Programs programs = flows::find_programs(CUTAWAY_BUILD_PYTHON);
    std::vector<std::string> argv{programs.python, "-m", "cutaway.profile_script"};
    if (s->json) argv.push_back("--json");
    if (!s->timeline.empty()) argv.insert(argv.end(), {"--timeline", s->timeline});
    if (!s->backend.empty()) argv.insert(argv.end(), {"--backend", s->backend});
    argv.insert(argv.end(), words.begin(), words.end());
    std::vector<char*> pointers;
    for (std::string& w : argv) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());   // its output and its end are ours
    return fail({"Python cannot be started", programs.python, std::strerror(errno), "cutaway doctor", ""});
  };
}

}  // namespace cutaway::cli
