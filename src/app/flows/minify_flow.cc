#include "app/flows/minify_flow.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <utility>

#include "app/flows/guesses.h"
#include "app/flows/permission.h"
#include "app/flows/report_flow.h"
#include "app/flows/report_json.h"
#include "app/flows/shrink_first.h"
#include "app/flows/start.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/subprocess.h"
#include "core/base/text.h"
#include "core/bundle/archive.h"
#include "core/capabilities/capabilities.h"
#include "core/ir/text.h"
#include "core/script/repro_script.h"
#include "core/script/script.h"
#include "diagnosis/minify/prune.h"
#include "diagnosis/minify/sizes.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/trust.h"
#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {
namespace {

using base::Json;
using oracle::TrialResult;
namespace fs = std::filesystem;
constexpr uint64_t kLeastLooks = 8;   // at a result that passed, before it counts as not failing any more

class MinifyFlow {
 public:
  MinifyFlow(const Programs& programs, const MinifyOptions& options) : programs_(programs), options_(options), jobs_(options.jobs) {}
  base::Result<MinifyReport> run();

 private:
  void step(const std::string& text) const { if (options_.on_step) options_.on_step(text); }
  base::Status open();
  void load_python();
  ScriptLimits script_limits() const { return {options_.timeout_ms, max_bytes_, options_.is_trusted}; }
  base::Status record();
  base::Status check_output() const;
  base::Status cut_to_nodes();
  base::Status look_at_start();
  base::Status shrink_large_inputs();
  base::Result<bool> shows_in_one_of_each_kind();
  base::Result<std::vector<TrialResult>> ask_backend(const std::vector<const minify::Case*>&);
  base::Result<std::vector<TrialResult>> ask_backend(const minify::Case& c, int times) { return ask_backend(std::vector<const minify::Case*>(static_cast<size_t>(times), &c)); }
  base::Result<TrialResult> ask_helper(oracle::Trial::Task, const minify::Case&);
  int64_t candidate_timeout_ms() const;
  base::Status reduce();
  base::Status ask_without_nodes();
  base::Status write_result();
  base::Status reduce_and_verify();
  base::Status write_others();
  void write_script(const fs::path& bundle, const minify::Case&);
  base::Status verify();
  RunReport shown_by_script() const;
  void write_page();
  Json clean_process() const;
  std::string certificate() const;

  const Programs& programs_;
  const MinifyOptions& options_;
  MinifyReport report_;
  fs::path output_, work_;
  minify::Case start_;
  std::optional<store::Store> store_;
  std::unique_ptr<worker::Client> helper_, own_backend_;   // helper: records values, infers shapes; the same process where the backend is native
  worker::Client* backend_ = nullptr;                  // the caller's, or our own
  std::optional<oracle::StoredValues> values_;
  struct Early { minify::Case guess; TrialResult result; };
  std::optional<Early> early_;                         // a guess that was tried beside the start
  oracle::Trial pattern_;
  std::string cache_;                                  // where all of them keep compiled kernels
  bundle::FailureSignature wanted_;
  uint64_t repeats_ = 1, max_bytes_ = 0;
  double record_ms_ = 0;
  minify::Outcome outcome_;
  bool finished_ = false;
  int jobs_ = 1;                                       // at once; fewer than asked for where each takes much memory
  uint64_t early_candidates_ = 0;
  std::optional<EarlyPython> python_;                  // waits for the result's repro.py
};

/// Said before the search, not after it. The result of an earlier reduction may be replaced, and what an interrupted one left.
base::Status MinifyFlow::check_output() const {
  std::error_code ec;
  if (!fs::exists(output_, ec) || (fs::is_directory(output_, ec) && fs::is_empty(output_, ec))) return {};
  if (bundle::looks_like_bundle(output_) && (fs::exists(output_ / "certificate.json", ec) || fs::exists(work_, ec))) return {};
  return base::Error{"would be overwritten", output_.string(), "it is not the result of a reduction", "-o with another name", ""};
}

base::Status MinifyFlow::open() {
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, open_to_run({options_.bundle, options_.backend, options_.match, options_.is_trusted, options_.worker ? nullptr : options_.on_step}));   // a caller with a worker has said it, or has written the bundle
  max_bytes_ = memory_limit(options_.max_bytes, b.manifest);
  std::string name = options_.bundle.lexically_normal().string();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  output_ = options_.output.empty() ? fs::path(name + "-minimal") : options_.output;
  work_ = output_.string() + ".work";
  std::error_code ec;
  CUTAWAY_TRY(check_output());
  if (!options_.resume) fs::remove_all(work_, ec);
  CUTAWAY_TRY(base::make_directories(work_ / "cache", base::Sync::fast));
  CUTAWAY_TRY_ASSIGN(store_, store::Store::open(work_ / "store", store::Store::Open::create, store::Durability::fast));
  CUTAWAY_TRY_ASSIGN(store::Store from, bundle::open_store(b));
  for (const auto& in : b.manifest.inputs)
    if (in.kind == bundle::InputRef::Kind::data) CUTAWAY_TRY(from.copy_to(*store_, in.tensor.storage));
  start_ = {std::move(b.graph), std::move(b.manifest)};
  pattern_.store = fs::absolute(work_ / "store", ec).string();
  pattern_.accuracy = accuracy_of(options_.accuracy, start_.manifest);
  pattern_.only_forward = options_.only_forward;
  pattern_.is_trusted = options_.is_trusted;
  report_.bundle = options_.bundle.string();
  report_.flags = flags_text(options_.backend, options_.accuracy, options_.is_trusted);
  report_.output = output_.string();
  report_.backend = start_.manifest.backend;
  report_.before = report_.after = minify::score(start_);
  if (options_.elements_before > 0) report_.before.elements = options_.elements_before;

  cache_ = !options_.cache_directory.empty() ? options_.cache_directory : fs::absolute(work_ / "cache", ec).string();
  WorkerOptions worker_options{cache_, start_.manifest.environment, options_.is_trusted, {}};
  worker_options.is_interrupted = options_.is_interrupted;
  worker_options.program = program_of(start_.manifest);
  worker_options.imports_libraries = !start_.manifest.libraries.empty();
  worker_options.on = options_.on;
  if (!options_.worker) own_backend_ = make_worker(programs_, start_.manifest.backend, worker_options);
  worker_options.on.clear();
  backend_ = own_backend_ ? own_backend_.get() : options_.worker;
  CUTAWAY_TRY(backend_->start());
  if (needs_python(start_.manifest.backend) && !has_operators_of_program(start_.manifest)) {
    worker_options.program.clear();
    worker_options.imports_libraries = false;   // it asks torch's own operators
    helper_ = make_worker(programs_, capabilities::up_to(capabilities::Stage::capture), worker_options);
    CUTAWAY_TRY(helper_->start());
  }
  load_python();
  return {};
}

// Most of what a repro.py takes is Python and torch coming up: on another core they do so beside the search. A user's program is not run beside itself.
void MinifyFlow::load_python() {
  const bundle::Manifest& m = start_.manifest;
  if (jobs_ < 2 || !needs_python(m.backend) || !script::runs_with_torch_alone(m) || !program_of(m).empty()) return;
  if (auto python = EarlyPython::start(programs_, m, script_limits()); python.ok()) python_.emplace(*std::move(python));
}

// What eager computes at every node. The helper does it while the backend's server loads.
base::Status MinifyFlow::record() {
  if (values_) return {};
  CUTAWAY_TRY_ASSIGN(TrialResult recorded, ask_helper(oracle::Trial::Task::record, start_));
  // Operators that Python defines (Inductor's prims, a user's library) do not exist in the native helper.
  if (recorded.outcome == TrialResult::Outcome::invalid && helper_) {
    helper_.reset();
    CUTAWAY_TRY_ASSIGN(recorded, ask_helper(oracle::Trial::Task::record, start_));
  }
  if (recorded.outcome != TrialResult::Outcome::done) return base::Error{"cannot record the values of the graph", options_.bundle.string(), recorded.message, "", ""};
  if (!recorded.message.empty()) step(recorded.message);
  values_.emplace(std::move(recorded.values));
  return {};
}

base::Result<std::vector<TrialResult>> MinifyFlow::ask_backend(const std::vector<const minify::Case*>& cases) {
  std::vector<worker::Request> requests;
  for (const minify::Case* c : cases) {
    oracle::Trial t = pattern_;
    t.subject = *c;
    requests.push_back({oracle::trial_to_json(t), options_.timeout_ms, max_bytes_});
  }
  CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, backend_->ask(requests, jobs_));
  std::vector<TrialResult> results;
  for (const auto& r : responses) results.push_back(oracle::result_of(r));
  return results;
}

base::Result<TrialResult> MinifyFlow::ask_helper(oracle::Trial::Task task, const minify::Case& c) {
  oracle::Trial t = pattern_;
  t.task = task;
  t.subject = c;
  const worker::Request request{oracle::trial_to_json(t), 0, 0};
  CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, (helper_ ? helper_.get() : backend_)->ask({&request, 1}, 1));
  if (task == oracle::Trial::Task::record) record_ms_ = responses.front().ms - responses.front().waited_ms;
  return oracle::result_of(responses.front());
}

base::Status MinifyFlow::cut_to_nodes() {
  CUTAWAY_TRY(record());
  std::vector<bool> removed(start_.graph.body.nodes.size(), true);
  for (size_t i = options_.only_nodes->first; i < std::min(options_.only_nodes->second, removed.size()); ++i) removed[i] = false;
  minify::remove_nodes(start_, std::move(removed), {&*values_, nullptr});
  return {};
}

// From here on the smaller one is the start, if there is one. Nothing of the large one stays in the store.
base::Status MinifyFlow::shrink_large_inputs() {
  const bundle::FailureSignature& recorded = start_.manifest.failure;
  if (options_.only_nodes || !options_.passes.empty() || recorded.kind.empty()) return {};
  ShrinkOptions options{{recorded, options_.match, pattern_, options_.timeout_ms, max_bytes_, 1}, options_.time_budget_s > 0 ? options_.time_budget_s / 4 : 180, options_.on_step};
  CUTAWAY_TRY_ASSIGN(std::optional<Shrunk> found, shrink_first(start_, *backend_, helper_ ? *helper_ : *backend_, options));
  if (found) {
    step(found->text());
    start_ = std::move(found->smaller);
    early_candidates_ = found->candidates;
    std::vector<base::Digest> kept;
    for (const auto& in : start_.manifest.inputs)
      if (in.kind == bundle::InputRef::Kind::data) kept.push_back(in.tensor.storage);
    CUTAWAY_TRY(store_->collect(kept));
  }
  if (const uint64_t bytes = minify::bytes_shown(start_); bytes > kLargeInputs) {
    jobs_ = 1;
    step("its inputs take " + base::human_bytes(bytes) + ", and nothing smaller fails: one candidate at a time, and " + base::human_bytes(oracle::kMostRecordedBytes) + " of its values at most are kept on disk");
  }
  return {};
}

base::Status MinifyFlow::look_at_start() {
  if (options_.only_nodes) CUTAWAY_TRY(cut_to_nodes());
  step("checking that " + options_.bundle.string() + " fails with " + report_.backend);
  // The whole graph takes seconds to compile: a first guess beside it costs no time. A hang is measured by time, so that one runs alone, and
  // an exception that names no operator will point to its kernel, which is a better guess.
  const bundle::FailureSignature& recorded = start_.manifest.failure;
  const std::string& op = options_.op_hint.empty() ? recorded.op : options_.op_hint;
  const bool is_recorded = helper_ && record().ok();   // where it is not, the start tells why: eager may fail itself
  if (is_recorded && recorded.kind == "exception" && op.empty()) {
    CUTAWAY_TRY_ASSIGN(const bool shows, shows_in_one_of_each_kind());
    if (shows) return {};
  }
  if (is_recorded && jobs_ > 1 && recorded.kind != "hang" && (recorded.kind != "exception" || !op.empty()))
    if (minify::Guesses guesses = make_guesses(start_, *values_, {op, {}}); !guesses.empty()) early_.emplace(Early{std::move(guesses.front()), {}});
  bool is_first = true;
  const auto ask = [&](int times) -> base::Result<std::vector<TrialResult>> {
    if (options_.known_start && std::exchange(is_first, false)) return std::vector<TrialResult>{*options_.known_start};
    std::vector<const minify::Case*> cases(static_cast<size_t>(times), &start_);
    const bool has_guess = early_ && std::exchange(is_first, false);
    if (has_guess) cases.push_back(&early_->guess);
    CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> results, ask_backend(cases));
    if (has_guess) {
      early_->result = std::move(results.back());
      results.pop_back();
    }
    for (const TrialResult& r : results) report_.new_kernels += r.new_kernels;
    return results;
  };
  CUTAWAY_TRY_ASSIGN(Start start, flows::look_at_start(ask, recorded, options_.match, options_.bundle.string()));
  report_.start = std::move(start.result);
  report_.start_rate = start.rate;
  report_.exit_code = start.exit_code;
  report_.message = std::move(start.message);
  finished_ = start.exit_code != 0;
  wanted_ = report_.start.signature;
  repeats_ = start.repeats;
  start_.manifest.options.merge(std::map<std::string, std::string>(report_.start.options));   // without them it would be another failure
  return {};
}

// One node of each kind is often a small part of a large graph. Where that raises what was recorded, the whole graph, whose compilation takes
// the longest of all, need not be run.
base::Result<bool> MinifyFlow::shows_in_one_of_each_kind() {
  constexpr size_t kSmallPart = 4;
  minify::Guesses guesses = make_guesses(start_, *values_, {});
  if (guesses.empty() || guesses.back().graph.body.nodes.size() * kSmallPart > start_.graph.body.nodes.size()) return false;
  const minify::Case& part = guesses.back();
  const auto shows = [&](const std::vector<TrialResult>& results) {
    for (const TrialResult& r : results) report_.new_kernels += r.new_kernels;
    return std::all_of(results.begin(), results.end(), [&](const TrialResult& r) {
      return r.outcome == TrialResult::Outcome::failure && oracle::is_same_failure(start_.manifest.failure, r.signature, r.message, options_.match);
    });
  };
  CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> results, ask_backend(part, 1));
  if (!shows(results)) return false;
  if (const int looks = more_looks(results.front()); looks > 0) {
    CUTAWAY_TRY_ASSIGN(const std::vector<TrialResult> more, ask_backend(part, looks));
    if (!shows(more)) return false;   // it comes and goes: how often, the whole graph has to tell
  }
  report_.start = std::move(results.front());
  report_.start_was_run = false;
  wanted_ = report_.start.signature;
  early_.emplace(Early{std::move(guesses.back()), report_.start});
  early_->result.new_kernels = 0;   // counted already
  return true;
}

// Every accepted candidate of a hang costs the whole limit. Candidates are smaller than the start, and the end is verified with the limit that
// the user gave, so while searching a multiple of what eager took with the whole graph will do.
int64_t MinifyFlow::candidate_timeout_ms() const {
  constexpr double kMargin = 20;
  constexpr int64_t kLeastNative = 1'000, kLeastPython = 30'000;   // in Python a compiler runs
  if (wanted_.kind != "hang") return options_.timeout_ms;
  return std::min(options_.timeout_ms, std::max(needs_python(report_.backend) ? kLeastPython : kLeastNative, static_cast<int64_t>(kMargin * record_ms_)));
}

base::Status MinifyFlow::reduce() {
  CUTAWAY_TRY(record());
  oracle::OracleOptions oracle_options{wanted_, options_.match, pattern_, candidate_timeout_ms(), max_bytes_, jobs_};
  if (wanted_.kind == "hang") oracle_options.least_timeout_ms = needs_python(report_.backend) ? 2'000 : 1'000;
  oracle::WorkerOracle oracle(*backend_, oracle_options);
  oracle::WorkerTyper typer(helper_ ? *helper_ : *backend_);
  minify::Options engine;
  // Two hangs at once prove nothing, so that each would be asked again alone: one at a time takes half of it.
  engine.jobs = wanted_.kind == "hang" ? 1 : jobs_;
  engine.only_passes = options_.passes;
  engine.time_budget_s = options_.time_budget_s;
  engine.repeats = repeats_;
  engine.journal = (work_ / "journal.jsonl").string();
  if (options_.on_progress)
    engine.on_progress = [&](minify::Progress p) {
      p.new_kernels = report_.new_kernels + oracle.new_kernels();
      return options_.on_progress(p);
    };
  // Answers are only worth keeping for the same question.
  engine.question = Json(Json::Array{report_.backend, pattern_.accuracy, options_.match, pattern_.only_forward, wanted_.kind, wanted_.type, wanted_.signal, options_.match.empty() ? wanted_.message : ""}).text();
  minify::Answer start_answer;
  start_answer.kind = minify::Answer::Kind::same_failure;
  start_answer.signature = wanted_;
  engine.known.emplace_back(minify::digest(start_), start_answer);
  if (early_) {
    report_.new_kernels += early_->result.new_kernels;
    const minify::Answer answer = oracle.answer(early_->result, false);
    if (answer.is_certain && (answer.kind != minify::Answer::Kind::passes || repeats_ == 1)) engine.known.emplace_back(minify::digest(early_->guess), answer);
  }
  const minify::Guesses guesses = make_guesses(start_, *values_, {options_.op_hint.empty() ? wanted_.op : options_.op_hint, report_.start.suspects, wanted_.kind == "hang"});
  CUTAWAY_TRY_ASSIGN(outcome_, minify::minify(start_, guesses, oracle, typer, *values_, nullptr, engine));
  if (oracle.broken()) return *oracle.broken();
  report_.candidates = outcome_.candidates + (early_ ? 1 : 0) + early_candidates_;
  report_.search_seconds = outcome_.seconds;
  report_.cached = outcome_.cached;
  report_.new_kernels += oracle.new_kernels();
  report_.one_minimal = outcome_.one_minimal;
  report_.stopped_early = outcome_.stopped_early;
  return {};
}

// One node is left, and any would do if none does as well.
base::Status MinifyFlow::ask_without_nodes() {
  if (outcome_.smallest.graph.body.nodes.size() != 1) return {};
  minify::Case none = outcome_.smallest;
  none.graph.body.nodes.clear();
  none.graph.body.outputs.clear();
  for (const ir::Input& in : none.graph.inputs)
    if (none.graph.value(in.value).type.is_tensor()) none.graph.body.outputs.emplace_back(ir::ValueRef{in.value});
  if (none.graph.body.outputs.empty()) return {};
  CUTAWAY_TRY_ASSIGN(const std::vector<TrialResult> results, ask_backend(none, 1));
  const TrialResult& r = results.front();
  report_.needs_no_node = r.outcome == TrialResult::Outcome::failure && oracle::is_same_failure(wanted_, r.signature, r.message, options_.match);
  return {};
}

base::Status MinifyFlow::write_result() {
  minify::Case& small = outcome_.smallest;
  CUTAWAY_TRY_ASSIGN(TrialResult compacted, ask_helper(oracle::Trial::Task::compact, small));
  if (compacted.outcome != TrialResult::Outcome::done) return base::Error{"cannot store the smallest inputs", output_.string(), compacted.message, "", ""};
  if (!compacted.inputs.empty()) small.manifest.inputs = std::move(compacted.inputs);
  small.manifest.failure = wanted_;
  small.manifest.accuracy = wanted_.kind == "accuracy" ? pattern_.accuracy : "";   // it says by itself how it fails
  report_.needs_trust = !oracle::needs_trust(small.graph, small.manifest).empty();
  if (wanted_.kind == "hang") small.manifest.extra["patience_s"] = Json(static_cast<double>(options_.timeout_ms) / 1000).text();   // how long repro.py waits
  report_.after = minify::score(small);
  report_.graph_text = ir::print(small.graph);
  CUTAWAY_TRY(bundle::write_bundle(output_, small.graph, small.manifest, *store_));
  write_script(output_, small);
  return write_others();
}

// A bundle is complete without its script, so that one which cannot be written is said and no more.
void MinifyFlow::write_script(const fs::path& bundle, const minify::Case& c) {
  if (base::Status status = script::write_repro_script(bundle, c.graph, c.manifest); !status.ok()) step(bundle.string() + " has no repro.py: " + status.error().text());
}

base::Status MinifyFlow::write_others() {
  int number = 0;
  for (const minify::OtherFailure& o : outcome_.others) {
    minify::Case c = o.example;
    c.manifest.failure = o.signature;
    const fs::path path = output_ / "other" / std::to_string(++number);
    CUTAWAY_TRY(base::make_directories(path.parent_path(), base::Sync::fast));
    CUTAWAY_TRY(bundle::write_bundle(path, c.graph, c.manifest, *store_));
    write_script(path, c);
    report_.others.push_back({oracle::describe(o.signature), path.string(), o.count});
  }
  return {};
}

/// How the result failed, where its repro.py has shown it.
RunReport MinifyFlow::shown_by_script() const {
  RunReport r;
  r.exit_code = kFailsAsRecorded;
  r.result = report_.start;
  r.result.signature = wanted_;
  return r;
}

// Its repro.py in a new process; beside that the result from its files, and the same case a few times, for the rate. The files are read in a child of the worker
// that is ready: starting another took a third of a short reduction, and repro.py is the proof that nothing before matters. Where there is no
// repro.py, or where the two disagree, the files are run in a new process too.
base::Status MinifyFlow::verify() {
  RunOptions again;
  again.bundle = output_;
  again.accuracy = pattern_.accuracy;
  again.is_trusted = options_.is_trusted;
  again.only_forward = options_.only_forward;
  again.timeout_ms = options_.timeout_ms;
  again.max_bytes = options_.max_bytes;
  again.match = options_.match;
  again.is_interrupted = options_.is_interrupted;
  std::error_code ec;
  again.cache_directory = cache_;
  const bundle::Manifest& manifest = outcome_.smallest.manifest;
  const bool has_script = script::runs_with_torch_alone(manifest) && fs::exists(output_ / "repro.py", ec);
  step(std::string("running the result from its files in a clean process") + (has_script ? ", and its repro.py" : ""));
  const auto run_repro = [&] { return run_script(programs_, output_, manifest, wanted_, script_limits(), std::exchange(python_, std::nullopt)); };
  const int looks = std::clamp(more_looks(report_.start), 1, 4);
  // Two of a user's program at once may want the same port, file or device: they run one after the other.
  const bool is_program = !program_of(manifest).empty();
  std::future<base::Result<ScriptRun>> from_script;
  if (has_script) from_script = std::async(is_program ? std::launch::deferred : std::launch::async, run_repro);
  CUTAWAY_TRY_ASSIGN(const std::vector<TrialResult> warm, ask_backend(outcome_.smallest, looks));
  const bool has_same_variables = worker_environment(manifest.environment) == worker_environment(start_.manifest.environment);   // else the worker was started with some that are gone
  std::optional<base::Result<RunReport>> report;
  if (has_script && !is_program && has_same_variables) {
    again.worker = backend_;
    report = run_bundle(programs_, again);
  }
  if (is_program) backend_->end();
  base::Result<ScriptRun> script = has_script ? from_script.get() : ScriptRun{};
  if (!script.ok()) return std::move(script).error();
  const bool is_shown = has_script && script->outcome == ScriptRun::Outcome::same_failure;
  // The repro.py of a program has run it anew, in a process of its own, up to the graph that it read from the files: a second such run would show nothing more.
  std::unique_ptr<worker::Client> fresh;
  if (is_program && is_shown) {
    report = shown_by_script();
  } else if (!report || !is_shown || !report->ok() || (*report)->exit_code != kFailsAsRecorded) {
    if (!is_program) {   // several looks may follow: they share one new process, each in a child of it
      WorkerOptions once{cache_, manifest.environment, options_.is_trusted, {}};
      once.is_interrupted = options_.is_interrupted;
      once.serves_many = false;
      once.imports_libraries = !manifest.libraries.empty();
      fresh = make_worker(programs_, manifest.backend, once);
    }
    again.worker = fresh.get();
    report = run_bundle(programs_, again);
  }
  if (!report->ok()) return std::move(*report).error();
  RunReport from_files = *std::move(*report);
  report_.finish = from_files.result;
  report_.runs = looks + 1;
  report_.fails = from_files.exit_code == kFailsAsRecorded;
  for (const TrialResult& r : warm) report_.fails += r.outcome == TrialResult::Outcome::failure && oracle::is_same_failure(wanted_, r.signature, r.message, options_.match);
  // A failure that comes and goes: more looks until the files and the script have shown it too, as many as its rate requires.
  const uint64_t more = std::max(repeats_, kLeastLooks);
  for (uint64_t look = 0; from_files.exit_code == kPasses && look < more; ++look) {
    CUTAWAY_TRY_ASSIGN(from_files, run_bundle(programs_, again));
    report_.finish = from_files.result;
    ++report_.runs;
    report_.fails += from_files.exit_code == kFailsAsRecorded;
  }
  for (uint64_t look = 0; repeats_ > 1 && script->outcome == ScriptRun::Outcome::passes && look < more; ++look) {
    script = run_repro();
    if (!script.ok()) return std::move(script).error();
  }
  if (!script::runs_with_torch_alone(manifest)) script->outcome = ScriptRun::Outcome::cannot_run;
  report_.script = std::move(*script);
  report_.exit_code = kFailsOtherwise;
  if (from_files.exit_code != kFailsAsRecorded) {
    report_.message = "the smallest case did not fail as before when it was run from its files: " + from_files.text();
  } else if (has_script && report_.script.outcome != ScriptRun::Outcome::same_failure) {
    report_.message = "repro.py did not show the failure: " + report_.script.ending + "\n" + report_.script.said;
  } else {
    report_.exit_code = 0;
  }
  return {};
}

Json MinifyFlow::clean_process() const {
  const TrialResult& r = report_.finish;
  const bool is_failure = r.outcome == TrialResult::Outcome::failure;
  return Json::Object{{"outcome", is_failure && oracle::is_same_failure(wanted_, r.signature, r.message, options_.match) ? "same failure" : is_failure ? "another failure" : "passes"},
                      {"failure", is_failure ? Json(oracle::describe(r.signature)) : Json()}};
}

std::string MinifyFlow::certificate() const {
  Json::Object singles;
  for (const auto& [pass, n] : outcome_.single_removals) singles.emplace(pass, Json(static_cast<int64_t>(n)));
  Json::Array others;
  for (const auto& o : report_.others) others.push_back(Json::Object{{"failure", o.description}, {"candidates", Json(static_cast<int64_t>(o.count))}, {"bundle", o.path}});
  return Json(Json::Object{{"version", Json(1)}, {"one_minimal", report_.one_minimal}, {"stopped_early", report_.stopped_early}, {"needs_no_node", report_.needs_no_node}, {"single_removals_that_no_longer_fail", std::move(singles)},
                           {"candidates", Json(static_cast<int64_t>(report_.candidates))}, {"seconds", report_.seconds}, {"failure", oracle::describe(wanted_)},
                           {"failed_runs", Json(report_.fails)}, {"runs", Json(report_.runs)}, {"rate_of_the_start", report_.start_was_run ? Json(report_.start_rate) : Json()}, {"others", std::move(others)}, {"verified", report_.exit_code == 0},
                           {"clean_process", clean_process()}, {"repro", report_.script.to_json()}, {"new_kernels", Json(report_.new_kernels)},
                           {"nodes_before", Json(static_cast<int64_t>(report_.before.nodes))}, {"nodes_after", Json(static_cast<int64_t>(report_.after.nodes))},
                           {"elements_before", Json(static_cast<int64_t>(report_.before.elements))}, {"elements_after", Json(static_cast<int64_t>(report_.after.elements))}}).text(2) + "\n";
}

/// A page that cannot be written does not undo a result that stands: it is said, and that is all.
void MinifyFlow::write_page() {
  std::error_code ec;
  // Which stage is guilty was found on the bundle that this one was cut from, and holds for it too.
  if (fs::is_regular_file(fs::symlink_status(options_.bundle / "ablation.json", ec))) fs::copy_file(options_.bundle / "ablation.json", output_ / "ablation.json", fs::copy_options::overwrite_existing, ec);
  if (ec && ec != std::errc::no_such_file_or_directory) step("ablation.json was not copied: " + ec.message());
  auto page = write_report(output_);
  if (page.ok()) report_.report = page->string();
  else step("no report.html: " + page.error().text());
}

base::Status MinifyFlow::reduce_and_verify() {
  CUTAWAY_TRY(reduce());
  CUTAWAY_TRY(ask_without_nodes());
  CUTAWAY_TRY(write_result());
  return verify();
}

base::Result<MinifyReport> MinifyFlow::run() {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  CUTAWAY_TRY(open());
  CUTAWAY_TRY(shrink_large_inputs());
  CUTAWAY_TRY(look_at_start());
  if (!finished_) {
    CUTAWAY_TRY(reduce_and_verify());
    // The start has always failed, and the result comes and goes: what passed on the way, once, proves nothing. Answers that failed are good still.
    if (repeats_ == 1 && report_.fails > 0 && report_.fails < report_.runs && !outcome_.stopped_early) {
      repeats_ = repeats_for(static_cast<double>(report_.fails) / report_.runs, static_cast<size_t>(report_.runs));
      step("it fails in " + std::to_string(report_.fails) + " of " + std::to_string(report_.runs) + " runs: once more, with " + std::to_string(repeats_) + " looks at whatever passes");
      const uint64_t asked = outcome_.candidates;
      report_.others.clear();
      CUTAWAY_TRY(reduce_and_verify());
      report_.candidates += asked;
    }
    report_.seconds = seconds();
    CUTAWAY_TRY(base::write_file_atomic(output_ / "certificate.json", certificate()));
    std::error_code ec;
    if (!outcome_.stopped_early && report_.exit_code == 0) fs::remove_all(work_, ec);   // else --resume goes on from here
    if (fs::exists(output_ / "repro.py", ec)) report_.repro = (output_ / "repro.py").string();
    if (!report_.repro.empty()) report_.attach = attach_text(report_.repro, outcome_.smallest.manifest);
    write_page();
  }
  report_.seconds = seconds();
  return std::move(report_);
}

std::string rounded_seconds(double v) {
  char b[32];
  std::snprintf(b, sizeof b, v < 10 ? "%.1f" : "%.0f", v);
  return b;
}

}  // namespace

base::Result<MinifyReport> minify_bundle(const Programs& programs, const MinifyOptions& given) {
  CUTAWAY_TRY_ASSIGN(const bundle::BundleArgument argument, bundle::open_argument(given.bundle));
  if (!argument.unpacked) return MinifyFlow(programs, given).run();
  MinifyOptions options = given;
  options.bundle = argument.path;
  if (options.output.empty()) options.output = fs::path(given.bundle).replace_extension().string() + "-minimal";   // beside the archive
  CUTAWAY_TRY_ASSIGN(MinifyReport report, MinifyFlow(programs, options).run());
  report.bundle = given.bundle.string();
  return report;
}

std::string MinifyReport::refusal() const {
  switch (exit_code) {
    case 0: return "";
    case kFailsOtherwise: return "it fails, but not as recorded: " + message;
    case kEagerFails: return "eager itself fails: " + message;
    case kStartDoesNotFail: return "it does not fail: " + message;
    default: return message;
  }
}

std::string MinifyReport::proof() const {
  using Outcome = ScriptRun::Outcome;
  return std::string("re-run in a clean process: same failure") + (script.outcome == Outcome::same_failure ? "; repro.py: same failure (" + script.ending + ")" : "");
}

std::string MinifyReport::text() const {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) { out += report_line(key, value); };
  if (exit_code == kStartDoesNotFail) { line("no failure", bundle + " " + message); return out; }
  if (exit_code == kEagerFails) { line("eager", "itself fails"); return out + message + "\n"; }
  if (graph_text.empty()) { line("other failure", "the bundle fails, but not as recorded"); return out + message + "\n"; }
  line("failure", oracle::describe(start.signature, start.message) + "   (backend " + backend + ")");
  line("minimised", std::to_string(before.nodes) + " -> " + base::count_of(after.nodes, "node") + ", " + std::to_string(before.elements) + " -> " + base::count_of(after.elements, "element") + "   " +
                        base::count_of(candidates, "candidate") + ", " + rounded_seconds(seconds) + " s");
  out += "minimal graph\n";
  for (size_t at = 0; at < graph_text.size();) {
    const size_t end = std::min(graph_text.find('\n', at), graph_text.size());
    out += "    " + graph_text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  line("certainty", std::string(one_minimal ? "one-minimal" : stopped_early ? "stopped early: not known to be minimal" : "not one-minimal") + "; fails " + std::to_string(fails) + " of " +
                        std::to_string(runs) + " runs" + (start_rate < 1 ? ", the start " + std::to_string(static_cast<int>(start_rate * 100)) + " % of its runs" : "") +
                        (exit_code == 0 ? "; " + proof() : ""));
  if (needs_no_node) line("any graph", std::string(kAnyGraph));
  if (others.empty()) line("also seen", "nothing else");
  for (const Other& o : others) line("also seen", o.description + ", met by " + base::count_of(o.count, "candidate") + ", kept in " + o.path);
  if (exit_code != 0) line("NOT VERIFIED", message);
  if (!report.empty()) line("report", report);
  if (!attach.empty()) line("attach", attach);
  line("next", stopped_early ? "cutaway minify " + bundle + " -o " + output + flags + " --resume" : "cutaway run " + output + (needs_trust ? " --trust" : ""));
  return out;
}

std::string MinifyReport::to_json() const {
  const auto count = [](uint64_t n) { return Json(static_cast<int64_t>(n)); };
  Json::Array list;
  for (const Other& o : others) list.push_back(Json::Object{{"failure", o.description}, {"bundle", o.path}, {"candidates", count(o.count)}});
  const bool is_reduced = !graph_text.empty();
  Json::Object j = common_keys(exit_code == 0 ? "failure" : outcome_word(exit_code), start.signature, backend, is_reduced ? output : bundle, repro, seconds, message.empty() ? start.message : message);
  j["nodes_before"] = count(before.nodes);
  j["elements_before"] = count(before.elements);
  if (is_reduced) {
    j["nodes_after"] = count(after.nodes);
    j["elements_after"] = count(after.elements);
    j["graph"] = Json(graph_text);
  }
  j["candidates"] = count(candidates);
  j["cached"] = count(cached);
  j["new_kernels"] = Json(new_kernels);
  j["one_minimal"] = Json(one_minimal);
  j["search_seconds"] = Json(search_seconds);
  j["stopped_early"] = Json(stopped_early);
  j["needs_no_node"] = is_reduced ? Json(needs_no_node) : Json();
  j["start_rate"] = start_was_run ? Json(start_rate) : Json();
  if (runs > 0) j["reproduced_rate"] = Json(static_cast<double>(fails) / runs);
  j["others"] = Json(std::move(list));
  j["clean_process"] = is_reduced ? Json(finish.outcome == TrialResult::Outcome::failure ? oracle::describe(finish.signature) : finish.message) : Json();
  j["repro_run"] = is_reduced ? script.to_json() : Json();
  j["report"] = report.empty() ? Json() : Json(report);
  return Json(std::move(j)).text(2);
}

}  // namespace cutaway::flows
