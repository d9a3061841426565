// cutaway explain: the script runs in Python, which tells what its compiled functions became.
#include <array>

#include "app/cli/command.h"
#include "app/cli/script_command.h"

namespace cutaway::cli {

std::function<int()> declare_explain(CLI::App& app) {
  auto s = std::make_shared<FormOption>();
  declare_form(app, *s);
  declare_script(app, "torch.compile is cutaway.compile while it runs.");
  return [s, &app] {
    static constexpr std::array kForms = {"text", "json", "sarif", "github"};   // as report::Form has them
    return run_script(app, "cutaway.explain_script", {"--format", kForms[static_cast<size_t>(s->form())]});
  };
}

}  // namespace cutaway::cli
