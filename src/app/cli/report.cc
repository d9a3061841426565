// cutaway report.
#include <cstdio>

#include "app/cli/command.h"
#include "app/flows/report_flow.h"
#include "core/base/json.h"

namespace cutaway::cli {

std::function<int()> declare_report(CLI::App& app) {
  struct State { std::string path; bool json = false; };
  auto s = std::make_shared<State>();
  app.add_option("directory", s->path, "a bundle")->required();
  app.add_flag("--json", s->json, "one JSON object on standard output");
  app.footer("Writes report.html into the directory, from the bundle and from certificate.json, ablation.json and analysis.json where they are there. Runs nothing of the bundle.");
  return [s] {
    auto page = flows::write_report(s->path);
    if (!page.ok()) return fail(page.error());
    if (s->json) std::printf("%s\n", base::Json(base::Json::Object{{"report", page->string()}}).text(2).c_str());
    else std::printf("report         %s\n", page->c_str());
    return kOk;
  };
}

}  // namespace cutaway::cli
