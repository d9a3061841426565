#include "app/flows/run_flow.h"

#include <chrono>
#include <cstdio>

#include "app/flows/move_device.h"
#include "app/flows/permission.h"
#include "app/flows/report_flow.h"
#include "app/flows/report_json.h"
#include "app/flows/start.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"
#include "core/ir/edit.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {

using base::Json;
using oracle::TrialResult;

std::string_view outcome_word(int exit_code) {
  switch (exit_code) {
    case kPasses: return "pass";
    case kFailsAsRecorded: return "failure";
    case kFailsOtherwise: return "other_failure";
    case kEagerFails: return "eager_fails";
    case kStartDoesNotFail: return "pass";
    default: return "error";
  }
}

std::string accuracy_of(const std::string& asked, const bundle::Manifest& m) {
  if (!asked.empty()) return asked;
  return !m.accuracy.empty() ? m.accuracy : m.failure.kind == "accuracy" ? "accuracy" : "none";
}

base::Result<RunReport> run_bundle(const Programs& programs, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, open_to_run({options.bundle, options.backend, options.match, options.is_trusted, options.on_step}));
  if (!options.device.empty()) CUTAWAY_TRY(move_to_device(b, options.device));
  for (const auto& [name, value] : options.switches.options) b.manifest.options.erase(name);   // what the caller says holds
  oracle::Switches switches = options.switches;
  std::erase_if(switches.options, [](const auto& option) { return option.second == kDefaultOption; });
  const Place place{options.bundle, options.archive};
  if (options.has_profile) switches.profile = std::filesystem::absolute(place.file("profile.json")).string();
  if ((!switches.code.empty() || !switches.write_code.empty() || !switches.profile.empty()) && !capabilities::row_of(b.manifest.backend).has_code)
    return base::Error{"only the backend native has code of its own to read, to write or to time", "", "this bundle runs with " + (b.manifest.backend.empty() ? "no backend" : b.manifest.backend), "--backend native", ""};
  RunReport report;
  report.bundle = options.bundle.string();
  report.backend = b.manifest.backend;
  report.nodes = ir::count_nodes(b.graph);
  if (std::error_code ec; std::filesystem::exists(b.path / "repro.py", ec)) report.repro = (b.path / "repro.py").string();
  report.accuracy = accuracy_of(options.accuracy, b.manifest);
  report.flags = flags_text(options.backend, options.accuracy, options.is_trusted);

  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-run-"));
  WorkerOptions worker_options{options.cache_directory.empty() ? scratch.path().string() : options.cache_directory, b.manifest.environment, options.is_trusted, {}};
  worker_options.serves_many = false;
  worker_options.is_interrupted = options.is_interrupted;
  worker_options.program = program_of(b.manifest);
  worker_options.imports_libraries = !b.manifest.libraries.empty();
  std::unique_ptr<worker::Client> own;
  if (!options.worker) own = make_worker(programs, b.manifest.backend, worker_options);
  worker::Client* client = own ? own.get() : options.worker;
  oracle::Trial trial;
  trial.subject = {b.graph, b.manifest};
  trial.store = b.path.string();
  trial.accuracy = report.accuracy;
  trial.only_forward = options.only_forward;
  trial.is_trusted = options.is_trusted;
  trial.threads = options.threads;
  trial.before = options.before;
  trial.switches = switches;
  const worker::Request request{oracle::trial_to_json(trial), options.timeout_ms, memory_limit(options.max_bytes, b.manifest)};
  CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, client->ask({&request, 1}, 1));
  report.result = oracle::result_of(responses.front());
  const TrialResult& r = report.result;
  const bundle::FailureSignature& recorded = b.manifest.failure;
  report.has_record = !recorded.kind.empty();
  switch (r.outcome) {
    case TrialResult::Outcome::pass: report.exit_code = kPasses; break;
    case TrialResult::Outcome::failure:
      report.is_recorded_failure = recorded.kind.empty() || oracle::is_same_failure(recorded, r.signature, r.message, options.match);
      report.exit_code = report.is_recorded_failure ? kFailsAsRecorded : kFailsOtherwise;
      break;
    case TrialResult::Outcome::eager_fails: report.exit_code = kEagerFails; break;
    case TrialResult::Outcome::invalid:
    case TrialResult::Outcome::done: return base::Error{"the bundle cannot be run", options.bundle.string(), r.message, "", ""};
  }
  if (options.has_profile)
    if (auto page = write_report(place); page.ok()) report.page = page->string();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::string RunReport::text() const {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) { out += report_line(key, value, 10); };
  const auto ms = [](double v) { char b[32]; std::snprintf(b, sizeof b, v < 10 ? "%.2f ms" : "%.0f ms", v); return std::string(b); };
  switch (exit_code) {
    case kPasses: line("passes", "with " + backend + (accuracy == "none" ? "" : ", and the numbers agree with eager")); break;
    case kFailsAsRecorded: line("FAILS", std::string(has_record ? "as recorded, with " : "with ") + backend + ": " + oracle::describe(result.signature, result.message)); break;
    case kFailsOtherwise: line("FAILS", "in another way than recorded, with " + backend + ": " + oracle::describe(result.signature, result.message)); break;
    case kEagerFails: line("eager", "itself fails: " + (result.signature.kind.empty() ? "" : oracle::describe(result.signature, result.message))); break;
    default: break;
  }
  if (!result.user_frame.empty()) line("at", result.user_frame);
  if (result.eager_ms > 0) line("times", "eager " + ms(result.eager_ms) + ", compile " + ms(result.compile_ms) + ", run " + ms(result.run_ms));
  if (!result.message.empty()) {
    std::string text = result.message.substr(0, 2000);
    if (result.message.size() > 2000) text += "\n… (--json has all of it)";
    out += text + "\n";
  }
  if (!page.empty()) line("report", page);
  if (exit_code == kFailsAsRecorded || exit_code == kFailsOtherwise) line("next", "cutaway minify " + bundle + flags);
  return out;
}

std::string RunReport::to_json() const {
  Json::Object j = common_keys(outcome_word(exit_code), result.signature, backend, bundle, repro, seconds, result.message);
  j["nodes_before"] = Json(static_cast<int64_t>(nodes));
  j["accuracy"] = Json(accuracy);
  j["eager_ms"] = Json(result.eager_ms);
  j["compile_ms"] = Json(result.compile_ms);
  j["run_ms"] = Json(result.run_ms);
  j["new_kernels"] = Json(result.new_kernels);
  j["verdict"] = Json();
  if (!result.verdict.empty())
    if (auto verdict = Json::parse(result.verdict, "verdict"); verdict.ok()) j["verdict"] = std::move(*verdict);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
