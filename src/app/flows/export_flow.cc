#include "app/flows/export_flow.h"

#include <chrono>
#include <set>

#include "app/flows/permission.h"
#include "app/flows/python_program.h"
#include "app/flows/report_json.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/bundle/archive.h"
#include "core/ir/text.h"
#include "core/script/repro_script.h"

namespace cutaway::flows {
namespace {

using base::Json;
namespace fs = std::filesystem;

base::Status export_program(const Programs& programs, const ExportOptions& options, const bundle::Bundle& b, ExportReport&) {
  CUTAWAY_TRY(check_trust(b, options.is_trusted, options.say));
  return run_python_program(programs, "cutaway.exporter", {b.path.string(), "-o", options.output.string()}, b.path.string(), options.timeout_ms, options.say);
}

base::Status export_script(const Programs&, const ExportOptions& options, const bundle::Bundle& b, ExportReport& report) {
  const fs::path folder = options.output.stem().string() + "_data";
  CUTAWAY_TRY_ASSIGN(const std::string text, script::to_repro_script(b.graph, b.manifest, (folder / "blobs").string()));
  std::set<base::Digest> needed;
  for (const bundle::InputRef& in : b.manifest.inputs)
    if (in.kind == bundle::InputRef::Kind::data) needed.insert(in.tensor.storage);
  if (!needed.empty()) {
    const fs::path place = options.output.parent_path() / folder;
    CUTAWAY_TRY(base::make_directories(place));
    CUTAWAY_TRY_ASSIGN(store::Store from, bundle::open_store(b));
    CUTAWAY_TRY_ASSIGN(store::Store to, store::Store::open(place, store::Store::Open::create));
    for (const base::Digest& digest : needed) CUTAWAY_TRY(from.copy_to(to, digest));
    report.data = place.string();
  }
  return base::write_file_atomic(options.output, text);
}

base::Status export_graph(const Programs&, const ExportOptions& options, const bundle::Bundle& b, ExportReport&) {
  ir::PrintOptions print;
  print.header = true;
  return base::write_file_atomic(options.output, ir::print(b.graph, print));
}

base::Status export_archive(const Programs&, const ExportOptions& options, const bundle::Bundle& b, ExportReport&) { return bundle::write_archive(b.path, options.output); }

struct ExportKind {
  std::string_view ending;
  base::Status (*write)(const Programs&, const ExportOptions&, const bundle::Bundle&, ExportReport&);
};
constexpr ExportKind kKinds[] = {{".pt2", export_program}, {".py", export_script}, {".cut", export_graph}, {".tar", export_archive}};

}  // namespace

base::Result<ExportReport> export_bundle(const Programs& programs, const ExportOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string ending = options.output.extension().string();
  std::vector<std::string> endings;
  const ExportKind* row = nullptr;
  for (const ExportKind& r : kKinds) {
    endings.emplace_back(r.ending);
    if (r.ending == ending) row = &r;
  }
  if (!row) return base::Error{"cannot export to " + base::quote(options.output.filename().string()), "", "the ending says what is written: " + base::join(endings), "", ""};
  CUTAWAY_TRY_ASSIGN(const bundle::Bundle b, bundle::read_bundle(options.bundle));
  std::error_code ec;
  if (fs::is_directory(options.output, ec)) return base::Error{"is a directory", options.output.string(), "", "-o with the name of a file", ""};
  ExportReport report;
  report.bundle = options.bundle.string();
  report.output = options.output.string();
  report.kind = ending.substr(1);
  CUTAWAY_TRY(row->write(programs, options, b, report));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

std::string ExportReport::text() const { return "written   " + output + (data.empty() ? "" : ", with its data in " + data) + "\n"; }

std::string ExportReport::to_json() const {
  Json::Object j = common_keys("pass", {}, "", bundle, kind == "py" ? output : "", seconds, "");
  j["output"] = Json(output);
  j["output_kind"] = Json(kind);
  j["data"] = data.empty() ? Json() : Json(data);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
