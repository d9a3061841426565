// cutaway explain: the script runs in Python, which tells what its compiled functions became.
#include "app/cli/command.h"
#include "app/cli/script_command.h"

namespace cutaway::cli {

std::function<int()> declare_explain(CLI::App& app) {
  struct State { bool json = false; };
  auto s = std::make_shared<State>();
  app.add_flag("--json", s->json, "one JSON object on standard output; what the script prints goes to standard error");
  declare_script(app, "torch.compile is cutaway.compile while it runs.");
  return [s, &app] {
    std::vector<std::string> options;
    if (s->json) options.emplace_back("--json");
    return run_script(app, "cutaway.explain_script", options);
  };
}

}  // namespace cutaway::cli
