#include "app/flows/import_flow.h"

#include <chrono>
#include <fstream>

#include "app/flows/python_program.h"
#include "app/flows/report_json.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/bundle/archive.h"
#include "core/ir/edit.h"

namespace cutaway::flows {
namespace {

using base::Json;
namespace fs = std::filesystem;

struct Kind { const char* name; const char* what; const char* runs; };
constexpr Kind kProgram = {"pt2", "an exported program", "torch.export.load reads it, and that unpickles objects and evaluates expressions which the file holds"};
constexpr Kind kScript = {"script", "a repro script of torch's", "it is a Python program, which runs as far as its call of run_repro"};

constexpr Kind kArchive = {"tar", "a bundle as one file", ""};

base::Result<Kind> kind_of(const fs::path& file) {
  std::error_code ec;
  if (!fs::exists(file, ec)) return base::Error{"no such file", file.string(), "", "a .pt2 file, torch's repro.py, minifier_launcher.py or fx_graph_runnable.py, or a .tar", ""};
  if (fs::is_directory(file, ec))
    return base::Error{"is a directory", file.string(), bundle::looks_like_bundle(file) ? "it is a bundle already" : "", bundle::looks_like_bundle(file) ? "cutaway run " + file.string() : "give a file", ""};
  if (bundle::looks_like_archive(file)) return kArchive;
  char magic[4] = {};
  std::ifstream(file, std::ios::binary).read(magic, sizeof magic);
  if (std::string_view(magic, sizeof magic) == "PK\x03\x04") return kProgram;   // may be large, and is read by torch
  CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(file));
  if (base::is_utf8(text) && text.find("run_repro") != text.npos) return kScript;
  return base::Error{"neither an exported program nor a repro script of torch's", file.string(), "it is no zip archive, and no text that calls run_repro", "", ""};
}

// Unpacking executes nothing. The bundle is read before it gets its place, so that what is no bundle leaves nothing behind.
base::Status import_archive(const fs::path& file, const fs::path& output) {
  std::error_code ec;
  if (fs::exists(output, ec)) return base::Error{"exists", output.string(), "", "-o for another place", ""};
  CUTAWAY_TRY_ASSIGN(const bundle::UnpackedBundle unpacked, bundle::unpack_bundle(file));
  CUTAWAY_TRY(bundle::read_bundle(unpacked.path));
  fs::copy(unpacked.path, output, fs::copy_options::recursive, ec);
  if (ec) return base::Error{"cannot be written", output.string(), ec.message(), "", ""};
  return {};
}

}  // namespace

base::Result<ImportReport> import_file(const Programs& programs, const ImportOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  CUTAWAY_TRY_ASSIGN(const Kind kind, kind_of(options.file));
  const bool is_archive = std::string_view(kind.name) == kArchive.name;
  if (!options.is_trusted && !is_archive) return base::Error{"importing this file runs code that it brings along", options.file.string(), kind.runs, "--trust, when you know who wrote it", ""};
  const fs::path output = options.output.empty() ? options.file.stem() : options.output;
  std::error_code ec;
  if (fs::exists(output, ec) && !bundle::looks_like_bundle(output)) return base::Error{"exists, and is no bundle", output.string(), "", "-o for another place", ""};
  if (is_archive) {
    CUTAWAY_TRY(import_archive(options.file, output));
  } else {
    if (options.say) options.say(std::string("--trust: ") + options.file.string() + " is " + kind.what + ": " + kind.runs);

    std::vector<std::string> words = {kind.name, options.file.string(), "-o", output.string()};
    const auto add = [&](const char* flag, const std::string& value) { if (!value.empty()) { words.emplace_back(flag); words.push_back(value); } };
    add("--backend", options.backend);
    add("--accuracy", options.accuracy);
    add("--data", options.data.string());
    if (options.max_bytes > 0) add("--max-bytes", std::to_string(options.max_bytes));
    if (options.random_inputs) words.emplace_back("--random-inputs");
    CUTAWAY_TRY(run_python_program(programs, "cutaway.importer", words, options.file.string(), options.timeout_ms, options.say));
  }

  CUTAWAY_TRY_ASSIGN(const bundle::Bundle b, bundle::read_bundle(output));
  ImportReport report;
  report.file = options.file.string();
  report.bundle = output.string();
  report.kind = kind.name;
  report.stage = b.manifest.stage;
  report.backend = b.manifest.backend;
  report.accuracy = b.manifest.accuracy;
  report.nodes = ir::count_nodes(b.graph);
  report.inputs = b.manifest.inputs.size();
  for (const bundle::InputRef& in : b.manifest.inputs) report.seeded += in.kind == bundle::InputRef::Kind::seeded;
  if (fs::exists(b.path / "repro.py", ec)) report.repro = (b.path / "repro.py").string();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

std::string ImportReport::text() const {
  return "imported  " + bundle + ": " + base::count_of(nodes, "node") + ", " + base::count_of(inputs, "input") + (seeded ? ", " + std::to_string(seeded) + " of them random by a seed: the file holds no data for them" : "") +
         "\nstage     " + (stage.empty() ? "not known" : stage) + ", backend " + (backend.empty() ? "not known (--backend)" : backend) + (accuracy.empty() ? "" : ", compares numbers (" + accuracy + ")") + "\nnext      cutaway run " + bundle + "\n";
}

std::string ImportReport::to_json() const {
  Json::Object j = common_keys("pass", {}, backend, bundle, repro, seconds, "");
  j["stage"] = stage.empty() ? Json() : Json(stage);
  j["file"] = Json(file);
  j["file_kind"] = Json(kind);
  j["nodes_before"] = Json(static_cast<int64_t>(nodes));
  j["inputs"] = Json(static_cast<int64_t>(inputs));
  j["seeded"] = Json(static_cast<int64_t>(seeded));
  j["accuracy"] = accuracy.empty() ? Json() : Json(accuracy);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
