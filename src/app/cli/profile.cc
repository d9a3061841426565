// cutaway profile: the script runs in Python with the backend native, which times every kernel and operator of compiled graphs.
#include "app/cli/command.h"
#include "app/cli/script_command.h"
#include "core/capabilities/capabilities.h"

namespace cutaway::cli {

std::function<int()> declare_profile(CLI::App& app) {
  struct State { bool json = false; std::string timeline, backend; };
  auto s = std::make_shared<State>();
  app.add_flag("--json", s->json, "one JSON object on standard output; what the script prints goes to standard error");
  app.add_option("--timeline", s->timeline, "also write a timeline, which ui.perfetto.dev and chrome://tracing open")->type_name("FILE");
  app.add_option("--backend", s->backend, "native with other settings: native:lanes=8");
  declare_script(app, "torch.compile is cutaway.compile with the backend native while it runs.");
  return [s, &app] {
    if (!s->backend.empty() && !capabilities::row_of(s->backend).has_code) return fail({"only the backend native is timed", "", "", "--backend native, or native:SETTING", ""});
    std::vector<std::string> options;
    if (s->json) options.emplace_back("--json");
    if (!s->timeline.empty()) options.insert(options.end(), {"--timeline", s->timeline});
    if (!s->backend.empty()) options.insert(options.end(), {"--backend", s->backend});
    return run_script(app, "cutaway.profile_script", options);
  };
}

}  // namespace cutaway::cli
