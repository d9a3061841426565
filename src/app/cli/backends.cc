// cutaway backends.
#include <cstdio>

#include "app/cli/command.h"
#include "app/flows/backend_list.h"

namespace cutaway::cli {

std::function<int()> declare_backends(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "one JSON object");
  app.footer("Names of this list go to --backend. Those that need trust want --trust with a bundle from somebody else; names that torch.compile knows work too, with --trust.");
  return [json] {
    const auto& rows = capabilities::rows();
    if (*json) std::printf("%s\n", base::Json(base::Json::Object{{"backends", flows::backends_json(rows)}}).text(2).c_str());
    else std::printf("%s", flows::backends_text(rows).c_str());
    return kOk;
  };
}

}  // namespace cutaway::cli
