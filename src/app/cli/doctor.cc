// cutaway doctor.
#include "app/flows/doctor.h"

#include <cstdio>

#include "app/cli/command.h"

namespace cutaway::cli {

std::function<int()> declare_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "one JSON object");
  app.footer("Exit status: 0 when everything that is needed is here, else 1.");
  return [json] {
    const flows::Diagnosis d = flows::examine(flows::find_programs(CUTAWAY_BUILD_PYTHON), CUTAWAY_VERSION);
    std::printf("%s%s", (*json ? d.to_json() : d.text()).c_str(), *json ? "\n" : "");
    return d.is_healthy() ? 0 : 1;
  };
}

}  // namespace cutaway::cli
