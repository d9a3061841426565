#include "app/flows/analyze_flow.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <cstdio>

#include "app/flows/report_flow.h"
#include "app/flows/report_json.h"
#include "app/flows/shrink_first.h"
#include "app/flows/start.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/ir/edit.h"
#include "diagnosis/minify/sizes.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {
namespace {

using base::Json;
using oracle::Analysis;
using oracle::TrialResult;

int exit_code_of(const TrialResult& r, const bundle::FailureSignature& recorded, const std::string& match) {
  switch (r.outcome) {
    case TrialResult::Outcome::pass: return r.analysis && r.analysis->first_wrong >= 0 ? 0 : kStartDoesNotFail;
    case TrialResult::Outcome::failure:
      // A child that died leaves no table: the failure is another one than wrong numbers.
      if (!r.analysis) return kFailsOtherwise;
      return recorded.kind.empty() || oracle::is_same_failure(recorded, r.signature, r.message, match) ? 0 : kFailsOtherwise;
    case TrialResult::Outcome::eager_fails: return kEagerFails;
    default: return kUnreadable;
  }
}

std::string repeat_text(Analysis::Repeat r) {
  switch (r) {
    case Analysis::Repeat::identical: return "identical";
    case Analysis::Repeat::same: return "equal within the tolerance, not bit for bit";
    case Analysis::Repeat::differs: return "DIFFERS";
    case Analysis::Repeat::unknown: break;
  }
  return "not known";
}

}  // namespace

namespace {

namespace fs = std::filesystem;
constexpr int kMostTries = 40;
constexpr double kShrinkSeconds = 180;

// Follows the file in which the worker says what it does (diagnosis/repro/analysis_log.h).
class AnalysisProgress {
 public:
  AnalysisProgress(fs::path file, std::function<void(const std::string&)> say) : file_(std::move(file)), say_(std::move(say)), thread_([this] { follow(); }) {}
  ~AnalysisProgress() { finish(); }
  /// The part that was begun and not ended; empty: none.
  std::string finish() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
    read();
    return part_;
  }

 private:
  void follow() {
    while (!is_over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      read();
    }
  }
  void read() {
    std::ifstream in(file_);
    in.seekg(static_cast<std::streamoff>(at_));
    for (std::string line; std::getline(in, line) && !in.eof();) {   // a line without its end is still being written
      at_ += line.size() + 1;
      if (line.starts_with("part ")) part_ = line.substr(5);
      else if (line == "done") part_.clear();
      else if (line.starts_with("say ") && say_) say_(line.substr(4));
    }
  }
  fs::path file_;
  std::function<void(const std::string&)> say_;
  size_t at_ = 0;
  std::string part_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace

namespace {

/// Values at every node of a graph whose inputs take hundreds of megabytes would not fit anywhere: smaller ones that fail the same way stand for them.
base::Status shrink_large_inputs(worker::Client& client, const fs::path& place, const AnalyzeOptions& options, oracle::Trial& trial, AnalyzeReport& report) {
  const bundle::FailureSignature& recorded = trial.subject.manifest.failure;
  if (recorded.kind.empty() || minify::bytes_shown(trial.subject) <= kLargeInputs) return {};
  CUTAWAY_TRY_ASSIGN(const store::Store from, store::Store::open(trial.store, store::Store::Open::existing));
  CUTAWAY_TRY_ASSIGN(store::Store store, store::Store::open(place, store::Store::Open::create, store::Durability::fast));
  for (const bundle::InputRef& in : trial.subject.manifest.inputs)
    if (in.kind == bundle::InputRef::Kind::data) CUTAWAY_TRY(from.copy_to(store, in.tensor.storage));
  oracle::Trial pattern = trial;
  pattern.task = oracle::Trial::Task::run;
  pattern.store = place.string();
  const ShrinkOptions shrinking{{recorded, options.match, pattern, options.timeout_ms, options.max_bytes, 1}, kShrinkSeconds, options.on_step};
  CUTAWAY_TRY_ASSIGN(std::optional<Shrunk> found, shrink_first(trial.subject, client, client, shrinking));
  if (!found) return {};
  report.shrunk = found->text();
  if (options.on_step) options.on_step(report.shrunk);
  trial.subject = std::move(found->smaller);
  trial.store = place.string();
  report.elements_after = minify::score(trial.subject).elements;
  return {};
}

}  // namespace

base::Result<AnalyzeReport> analyze_bundle(const Programs& programs, const AnalyzeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, open_to_run({options.bundle, options.backend, options.match, options.is_trusted, options.worker || options.is_own ? nullptr : options.on_step}));
  AnalyzeReport report;
  const Place place{options.bundle, options.archive};
  report.bundle = place.shown();
  report.backend = b.manifest.backend;
  report.nodes = ir::count_nodes(b.graph);
  if (std::error_code ec; options.archive.empty() && fs::exists(b.path / "repro.py", ec)) report.repro = (b.path / "repro.py").string();
  report.accuracy = !options.accuracy.empty() ? options.accuracy : b.manifest.accuracy.empty() ? "accuracy" : b.manifest.accuracy;
  report.flags = flags_text(options.backend, accuracy_of(options.accuracy, b.manifest) == report.accuracy ? options.accuracy : report.accuracy, options.is_trusted);

  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-analyze-"));
  WorkerOptions worker_options{scratch.path().string(), b.manifest.environment, options.is_trusted, {}};
  worker_options.is_interrupted = options.is_interrupted;
  worker_options.program = program_of(b.manifest);
  worker_options.imports_libraries = !b.manifest.libraries.empty();
  std::unique_ptr<worker::Client> own;
  if (!options.worker) own = make_worker(programs, b.manifest.backend, worker_options);
  worker::Client* client = own ? own.get() : options.worker;
  oracle::Trial trial;
  trial.task = oracle::Trial::Task::analyze;
  trial.subject = {b.graph, b.manifest};
  trial.store = b.path.string();
  trial.accuracy = report.accuracy;
  trial.only_forward = options.only_forward;
  trial.is_trusted = options.is_trusted;
  trial.threads = options.threads;
  trial.every_node = options.every_node;
  trial.budget_s = options.budget_s;
  trial.part_timeout_s = options.part_timeout_s;
  report.elements_before = report.elements_after = minify::score(trial.subject).elements;
  if (!options.worker) CUTAWAY_TRY(shrink_large_inputs(*client, scratch.path() / "store", options, trial, report));   // who gives one has looked already
  // A part that ends the process is that part's verdict: the next try leaves it alone and knows how it ended.
  for (int tries = 0; tries < kMostTries; ++tries) {
    const fs::path log = scratch.path() / ("progress_" + std::to_string(tries));
    trial.progress = log.string();
    const worker::Request request{oracle::trial_to_json(trial), options.timeout_ms, options.max_bytes};
    AnalysisProgress progress(log, options.on_step);
    auto responses = client->ask({&request, 1}, 1);
    const std::string part = progress.finish();
    if (!responses.ok()) return std::move(responses).error();
    const worker::Response& response = responses->front();
    report.peak_kb = std::max(report.peak_kb, response.peak_kb);
    report.result = oracle::result_of(response);
    const bool is_part_hang = response.ending == worker::Ending::crash && response.signal == "SIGALRM";
    if (is_part_hang) report.result.signature.kind = "hang";
    const bool is_dead = response.ending == worker::Ending::crash || response.ending == worker::Ending::memory;
    if (!is_dead || response.phase != "backend" || part.empty() || trial.dead_parts.count(part)) break;
    trial.dead_parts[part] = is_part_hang ? "hang" : response.ending == worker::Ending::memory ? "memory" : response.signal;
    if (options.on_step) options.on_step("a part ended its process (" + trial.dead_parts[part] + "); going on without it");
  }
  if (report.result.outcome == TrialResult::Outcome::invalid || report.result.outcome == TrialResult::Outcome::done)
    return base::Error{"the bundle cannot be analyzed", place.shown(), report.result.message, "", ""};
  report.exit_code = exit_code_of(report.result, b.manifest.failure, options.match);
  if (report.result.analysis) {
    report.analysis = std::move(*report.result.analysis);
    // A bundle may lie where nobody may write; the answer does not depend on it.
    const std::filesystem::path path = place.file("analysis.json");
    if (base::write_file_atomic(path, oracle::analysis_rows(report.analysis).text(1) + "\n").ok()) {
      report.written = path.string();
      if (auto page = write_report(place); page.ok()) report.report = page->string();
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::string AnalyzeReport::text(Rows rows) const {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) { out += report_line(key, value, 14); };
  if (exit_code == kEagerFails) {
    line("eager", "itself fails");
    return out + result.message + "\n";
  }
  if (analysis.nodes.empty() && result.outcome == TrialResult::Outcome::failure) {
    line("FAILS", "with " + backend + ": " + oracle::describe(result.signature, result.message));
    out += result.message + "\n";
    line("next", "cutaway minify " + bundle + flags);
    return out;
  }
  if (analysis.first_wrong >= 0) {
    const oracle::NodeAnalysis& n = analysis.nodes[static_cast<size_t>(analysis.first_wrong)];
    line("first wrong", "%" + n.node + "   " + n.op + (n.source.empty() ? "" : "   " + n.source));
    if (!n.kernel.empty()) line("in kernel", n.kernel);
    if (!n.reason.empty()) line("because", n.reason);
    if (exit_code == kFailsOtherwise) line("FAILS", "in another way than recorded, with " + backend + ": " + oracle::describe(result.signature, result.message));
    if (result.outcome == TrialResult::Outcome::pass) line("but", "the outputs of the whole graph agree with eager");
  } else {
    line("no failure", "with " + backend + " the whole graph agrees with eager" + (analysis.looks > 1 ? " in " + std::to_string(analysis.looks) + " of " + std::to_string(analysis.looks) + " looks" : "") +
                           (rows == Rows::all ? "" : ": see `cutaway analyze --all` for each operator"));
  }
  if (const std::string table = analysis_table(analysis, rows); !table.empty()) out += "\n" + table;
  out += "\neager repeated: " + repeat_text(analysis.eager) + ".  " + backend + " repeated: " + repeat_text(analysis.backend) +
         (analysis.bad_looks && analysis.bad_looks < analysis.looks ? " (wrong in " + std::to_string(analysis.bad_looks) + " of " + std::to_string(analysis.looks) + " looks)" : "") + ".  " +
         base::count_of(analysis.nodes.size(), "node") + ", " + base::count_of(static_cast<uint64_t>(analysis.pieces), "part") + " measured (" + std::to_string(analysis.compiled) + " compiled)" +
         (analysis.kernels >= 0 ? ", " + base::count_of(static_cast<uint64_t>(analysis.kernels), "kernel") + " (" + std::to_string(analysis.distinct_kernels) + " distinct)" : "") +
         (analysis.materialised >= 0 ? ", " + std::to_string(analysis.materialised) + " materialised" : "") + ", peak " + base::human_bytes(static_cast<uint64_t>(peak_kb) * 1024) + ".\n";
  if (!shrunk.empty()) out += "note: " + shrunk + ": the numbers are of those\n";
  for (const std::string& r : analysis.remarks) out += "note: " + r + "\n";
  if (!written.empty()) line("written", written);
  if (!report.empty()) line("report", report);
  if (analysis.first_wrong >= 0) line("next", "cutaway minify " + bundle + flags + " --first " + analysis.nodes[static_cast<size_t>(analysis.first_wrong)].op);
  return out;
}

std::string AnalyzeReport::to_json() const {
  const auto path_or_null = [](const std::string& path) { return path.empty() ? Json() : Json(path); };
  Json::Object j = common_keys(exit_code == 0 ? "failure" : outcome_word(exit_code), result.signature, backend, bundle, repro, seconds, result.message);
  if (analysis.first_wrong >= 0) {
    const oracle::NodeAnalysis& n = analysis.nodes[static_cast<size_t>(analysis.first_wrong)];
    Json first = Json::Object{{"node", n.node}, {"operator", n.op}, {"source", n.source}, {"verdict", n.verdict}, {"reason", n.reason}, {"kernel", n.kernel}};
    if (analysis.together_with >= 0) first["together_with"] = Json(analysis.nodes[static_cast<size_t>(analysis.together_with)].node);
    j["first_wrong"] = std::move(first);
  }
  j["nodes_before"] = Json(static_cast<int64_t>(nodes));
  j["elements_before"] = Json(static_cast<int64_t>(elements_before));
  if (!shrunk.empty()) j["elements_after"] = Json(static_cast<int64_t>(elements_after));
  j["accuracy"] = Json(accuracy);
  j["peak_kb"] = Json(peak_kb);
  j["analysis"] = oracle::analysis_to_json(analysis);
  j["written"] = path_or_null(written);
  j["report"] = path_or_null(report);
  if (analysis.looks) j["reproduced_rate"] = Json(static_cast<double>(analysis.bad_looks) / static_cast<double>(analysis.looks));
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
