// cutaway report.
#include <chrono>
#include <cstdio>

#include "app/cli/command.h"
#include "app/flows/report_flow.h"
#include "app/flows/report_json.h"
#include "core/base/json.h"
#include "core/bundle/archive.h"

namespace cutaway::cli {

std::function<int()> declare_report(CLI::App& app) {
  struct State { std::string path; bool json = false; };
  auto s = std::make_shared<State>();
  app.add_option("directory", s->path, "a bundle directory or its .tar")->required();
  app.add_flag("--json", s->json, "one JSON object on standard output");
  app.footer("Writes report.html into the directory (NAME.report.html beside NAME.tar), from the bundle and from certificate.json, ablation.json, analysis.json and bisect.json\nwhere they are there. Runs nothing of the bundle.");
  return [s] {
    const auto begin = std::chrono::steady_clock::now();
    auto argument = bundle::open_argument(s->path);
    if (!argument.ok()) return fail(argument.error());
    auto page = flows::write_report(flows::Place{argument->path, argument->unpacked ? std::filesystem::path(s->path) : std::filesystem::path()});
    if (!page.ok()) return fail(page.error());
    if (s->json) {
      base::Json::Object j = flows::common_keys("pass", {}, "", s->path, "", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), "");
      j["report"] = base::Json(page->string());
      std::printf("%s\n", base::Json(std::move(j)).text(2).c_str());
    }
    else std::printf("report         %s\n", page->c_str());
    return kOk;
  };
}

}  // namespace cutaway::cli
