#include "app/flows/triage_flow.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "app/flows/analyze_flow.h"
#include "app/flows/report_flow.h"
#include "app/flows/report_json.h"
#include "app/flows/shrink_first.h"
#include "app/flows/start.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/capabilities/capabilities.h"
#include "core/debug/debug_directory.h"
#include "core/script/repro_script.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {
namespace {

using base::Json;
using capabilities::Stage;
using oracle::TrialResult;
namespace fs = std::filesystem;

std::string first_line(std::string_view text, size_t most = 110) {
  std::string line(text.substr(0, text.find('\n')));
  if (line.size() <= most) return line;
  while (most > 0 && (static_cast<unsigned char>(line[most]) & 0xc0) == 0x80) --most;   // not inside a character
  return line.substr(0, most) + "…";
}

const std::string& kEager = capabilities::up_to(Stage::capture);   // what the rows are compared with
constexpr int64_t kLeastPatienceMs = 20'000;   // of something that may compile
constexpr const char *kIllConditioned = "ill-conditioned", *kNotJudged = "not judged", *kCloser = "closer to fp64";   // as the observer writes them

bool has_node_of(const ir::Graph& g, const std::string& op) {
  return std::any_of(g.body.nodes.begin(), g.body.nodes.end(), [&](const ir::Node& n) { return n.target == op; });
}

std::string ending_in_words(const Observation& seen) {
  if (seen.ending == Observation::Ending::hung) return seen.phase.empty() ? "hung, outside of compiled code" : "hung";
  if (seen.signal.empty()) return "lost a process that it had started" + (seen.process.empty() ? "" : ", " + seen.process);
  if (seen.signal.starts_with("exit ")) return "was ended with status " + seen.signal.substr(5);
  return "died of " + seen.signal;
}

class TriageFlow {
 public:
  TriageFlow(const Programs& programs, const TriageOptions& options) : programs_(programs), options_(options) {
    // The script runs two or three times, and its graph in more processes: torch is loaded for them once.
    programs_.launcher = std::make_shared<worker::Launcher>(programs.python, std::vector<std::pair<std::string, std::string>>{{"PYTHONUNBUFFERED", "1"}});
    programs_.launcher->stop_when([this] { return !is_reducing_ && options_.is_interrupted && options_.is_interrupted(); });
  }
  base::Result<TriageReport> run();

 private:
  void step(const std::string& text) const { if (options_.on_step) options_.on_step(text); }
  base::Status prepare();
  base::Result<Observation> watch(int level, const std::string& name, bool is_compile_off = false, const std::string& after = "capture", const std::string& backend = "", bool draws_as_eager = false);
  base::Status find_failure();
  base::Status explain_capture();
  base::Result<bool> look_behind_doubt();
  base::Result<bool> try_harder(TrialResult& whole);
  base::Status try_earlier_graphs();
  base::Status ablate();
  base::Status shrink_large_inputs();
  base::Status explain_threads();
  base::Status explain_own();
  base::Result<AblationRun> whole_script(const std::string& stage, const std::string& backend);
  base::Result<TrialResult> ask(const std::string& backend);
  /// Trials of the saved graph with another manifest, after these bundles in the same process.
  base::Result<std::vector<TrialResult>> ask_often(const bundle::Manifest&, const std::vector<std::string>& before, int times);
  base::Result<bool> shows(const bundle::Manifest&, int times, TrialResult& whole);
  base::Result<bool> ask_program();
  base::Status keep_manifest(const bundle::Manifest&);
  bool is_as_seen(const oracle::TrialResult&) const;
  void start_worker(const std::string& backend);
  void analyze();
  base::Status reduce();
  void name_first_wrong(const ir::Graph&);

  Programs programs_;
  const TriageOptions& options_;
  TriageReport report_;
  fs::path output_, whole_;
  std::string script_, shown_as_;
  std::vector<std::string> words_;           // what the observer runs
  std::optional<ScriptInput> input_;
  int64_t trial_timeout_ms_ = 0, patience_ms_ = 0;
  std::optional<base::TemporaryDirectory> scratch_;
  std::unique_ptr<worker::Client> worker_;   // of the failing graph's backend and environment
  bundle::Bundle whole_bundle_;
  uint64_t elements_before_ = 0;             // of the graph that failed in the script, where a smaller one stands for it
  double last_seconds_ = 0;                  // of the newest trial
  bool is_reducing_ = false;                 // then Ctrl-C stops with the best so far
  bool is_done_ = false;
  bool is_located_ = true;                   // false: no bundle shows the failure alone
  bool is_after_aot_ = false;                // the failing graph is one after ahead-of-time autograd
  std::optional<TrialResult> whole_hang_;    // how the whole graph hung in our worker
  std::optional<std::pair<size_t, size_t>> only_nodes_;   // the part of the whole that is wrong, where the whole is not: [first, past the last)
};

base::Status TriageFlow::prepare() {
  std::error_code ec;
  words_ = options_.script;
  const bool is_text = words_.front() == "-";
  if (is_text) {
    script_ = "standard input";
  } else if (words_.front() == "-m") {
    script_ = words_.at(1);
  } else {
    const fs::path script = options_.script.front();
    script_ = (script.has_filename() ? script : script.parent_path()).filename().string();
    CUTAWAY_TRY(check_script(script));
  }
  if (options_.output.empty()) {
    output_ = debug::RunStamp::now().folder("");
  } else {
    output_ = options_.output;
    if (fs::exists(output_, ec) && !fs::is_empty(output_, ec)) return base::Error{"the folder is in use", output_.string(), "it is not empty", "another one, or none at all: each run then gets its own", ""};
  }
  report_.output = output_.string();
  CUTAWAY_TRY(base::make_directories(output_, base::Sync::fast));
  if (is_text) {
    CUTAWAY_TRY_ASSIGN(const std::string text, read_all_input());
    const fs::path file = fs::absolute(output_) / "stdin.py";
    CUTAWAY_TRY(base::write_file_atomic(file, text, base::Sync::fast));
    words_.front() = file.string();
    shown_as_ = "-";
  }
  input_.emplace(output_ / "input");
  return {};
}

base::Result<Observation> TriageFlow::watch(int level, const std::string& name, bool is_compile_off, const std::string& after, const std::string& backend, bool draws_as_eager) {
  ObserveOptions o;
  o.script = words_;
  o.shown_as = shown_as_;
  o.input = &*input_;
  o.draws_as_eager = draws_as_eager;
  o.folder = fs::absolute(output_ / name);
  o.level = level;
  o.after = after;
  o.backend = backend;
  o.check_calls = options_.check_calls;
  o.timeout_ms = patience_ms_ > 0 ? patience_ms_ : options_.timeout_ms;
  o.quiet_ms = options_.quiet_ms;
  o.max_bytes = options_.max_bytes;
  o.is_compile_off = is_compile_off;
  o.is_interrupted = options_.is_interrupted;
  o.on_step = options_.on_step;
  CUTAWAY_TRY_ASSIGN(Observation seen, observe(programs_, o));
  if (seen.ending == Observation::Ending::interrupted) return base::Error{"interrupted", script_, "", "", ""};
  return seen;
}

// Exceptions first, because they cost nothing to look for; a death asks for a second run that writes before every step; numbers last.
base::Status TriageFlow::find_failure() {
  using Ending = Observation::Ending;
  step("running " + script_ + " with every torch.compile watched");
  CUTAWAY_TRY_ASSIGN(report_.seen, watch(2, "observed"));
  Observation& seen = report_.seen;
  for (const std::string& u : seen.unwatched) step("not watched: " + u);
  const auto itself = [&](const std::string& what) {
    report_.exit_code = kEagerFails;
    report_.message = what;
    is_done_ = true;
  };
  if (seen.ending == Ending::died || seen.ending == Ending::hung) {
    const std::string what = ending_in_words(seen);
    if (seen.graphs == 0) {
      if (seen.phase == "capture") return explain_capture();
      itself("the script itself " + what + ", before anything was compiled");
      return {};
    }
    step(script_ + " " + what + (seen.phase.empty() ? "" : seen.phase == "compile" ? " while compiling " + seen.graph : " while running " + seen.graph) + "; once more, writing before every step");
    const Observation first = seen;
    // A hang is told from slowness by how long everything before it took.
    if (seen.ending == Ending::hung) patience_ms_ = std::min(options_.timeout_ms, std::max<int64_t>(kLeastPatienceMs, static_cast<int64_t>(20'000 * seen.longest_phase_s)));
    if (first.phase.empty()) {   // not inside compiled code: perhaps it has nothing to do with it
      CUTAWAY_TRY_ASSIGN(Observation eager, watch(2, "observed_eager", true));
      if (eager.ending == first.ending && eager.signal == first.signal) {
        itself("the script itself " + what + ", without torch.compile too");
        return {};
      }
    }
    CUTAWAY_TRY_ASSIGN(seen, watch(3, "observed_again"));
    if (seen.ending == Ending::failed) return {};
    if (seen.ending == Ending::finished) report_.message = "it " + what + " in the first run and not in the second";
    if (seen.phase.empty() && first.phase.empty()) report_.message = "it " + what + " outside compiled code; the graph that ran last is looked at";
    if (seen.bundle.empty()) seen.problem = "the graph could not be written; " + (output_ / "observed_again" / "script.log").string() + " may tell why";
    const bool hung = seen.ending == Ending::hung;
    if (seen.signature.kind.empty()) seen.signature = {hung ? "hang" : "crash", "backend", "", "", hung ? "" : seen.signal, "", ""};
    return {};
  }
  if (!seen.threads_left.empty()) return explain_threads();
  if (seen.ending == Ending::failed) return seen.phase == "capture" ? explain_capture() : base::Status();
  const std::string how = seen.raised ? "raises, outside of torch.compile" : "ends with status " + std::to_string(seen.status);
  const bool is_unhappy = seen.raised || seen.status != 0;
  if (is_unhappy) {   // a script that checks its own numbers may complain of the compiler's
    step(script_ + " " + how + "; once more without torch.compile");
    CUTAWAY_TRY_ASSIGN(Observation eager, watch(2, "observed_eager", true));
    if (eager.ending != Ending::finished || eager.raised || eager.status != 0) {
      itself("the script itself " + how + ", without torch.compile too");
      return {};
    }
    report_.message = "the script " + how + ", and without torch.compile it does not";
    if (seen.graphs == 0) {
      report_.exit_code = kFailsOtherwise;
      report_.message += "; no graph was compiled";
      is_done_ = true;
      return {};
    }
  }
  if (seen.graphs == 0) {
    report_.exit_code = kPasses;
    report_.message = "torch.compile compiled nothing in this script";
    is_done_ = true;
    return {};
  }
  std::vector<Observation::Judged> judged_inside;
  if (options_.accuracy != "none") {
    step("nothing raised in " + base::count_of(static_cast<uint64_t>(seen.graphs), "graph") + "; comparing numbers with eager and with fp64");
    // After ahead-of-time autograd the graphs are the backend's own, forward and backward apart: a difference there is the backend's. One that
    // shows only around it is found after capture.
    if (seen.has_aot_stage) {
      CUTAWAY_TRY_ASSIGN(Observation after_aot, watch(4, "observed_accuracy_after_aot", false, "aot"));
      if (after_aot.ending == Ending::failed && !after_aot.bundle.empty()) {
        after_aot.has_aot_stage = true;
        if (!after_aot.call.is_known()) after_aot.call = seen.call;
        seen = std::move(after_aot);
        is_after_aot_ = true;
        return {};
      }
      judged_inside = std::move(after_aot.judged);
      step("the graphs after ahead-of-time autograd agree; looking after capture");
    }
    CUTAWAY_TRY_ASSIGN(seen, watch(4, "observed_accuracy"));
    if (seen.ending == Ending::failed) return {};
    // Of what the two say in the same words, the graphs after capture are the ones that the user wrote.
    for (const char* outcome : {kIllConditioned, kNotJudged, kCloser}) {
      const auto is_so = [&](const Observation::Judged& j) { return j.outcome == outcome; };
      const std::vector<Observation::Judged>& from = std::any_of(seen.judged.begin(), seen.judged.end(), is_so) ? seen.judged : judged_inside;
      std::copy_if(from.begin(), from.end(), std::back_inserter(report_.judged), is_so);
    }
    if (!is_unhappy && (seen.ending != Ending::finished || seen.raised)) {
      report_.exit_code = kFailsOtherwise;
      report_.message = "the script ran through, and failed when it ran again: " + first_line(seen.log_tail.substr(seen.log_tail.rfind('\n', seen.log_tail.size() > 1 ? seen.log_tail.size() - 2 : 0) + 1));
      is_done_ = true;
      return {};
    }
  }
  CUTAWAY_TRY_ASSIGN(const bool is_found, look_behind_doubt());
  if (is_found) return {};
  is_done_ = true;
  report_.exit_code = kPasses;
  if (is_unhappy && seen.has_aot_stage) {
    step("every graph agrees; once more with random numbers drawn as eager draws them");
    CUTAWAY_TRY_ASSIGN(const Observation again, watch(2, "observed_random", false, "capture", "", true));
    if (again.ending == Ending::finished && !again.raised && again.status == 0) {
      report_.message = "random numbers are drawn in another order with torch.compile, which is not a bug: with torch._inductor.config.fallback_random = True the script goes through";
      return {};
    }
  }
  if (is_unhappy) {   // what torch.compile changes is not in any graph, or too small for the comparison
    report_.exit_code = kFailsOtherwise;
    if (seen.is_own) return explain_own();
    if (std::none_of(report_.judged.begin(), report_.judged.end(), [](const Observation::Judged& j) { return j.outcome == kCloser; }))
      report_.message += "; every graph agrees with eager within the tolerance: --strict-accuracy takes any difference";
  }
  return {};
}

// The script as cutaway.compile runs it with more and more of the compiler: a row of the ablation.
base::Result<AblationRun> TriageFlow::whole_script(const std::string& stage, const std::string& backend) {
  step("running " + script_ + " with cutaway.compile up to " + stage);
  CUTAWAY_TRY_ASSIGN(const Observation seen, watch(2, "observed_" + stage, false, "capture", backend));
  const bool passes = seen.ending == Observation::Ending::finished && !seen.raised && seen.status == 0;
  const std::string kind = seen.ending == Observation::Ending::hung ? "hang" : seen.ending == Observation::Ending::died ? "crash" : "exception";
  const std::string how = seen.ending == Observation::Ending::finished ? "the script " + std::string(seen.raised ? "raises" : "ends with status " + std::to_string(seen.status)) : oracle::describe(seen.signature);
  return AblationRun{stage, passes ? "pass" : kind, seen.seconds, passes ? "the whole script, backend " + backend : first_line(how)};
}

// It complains once it is compiled, and no graph by itself is wrong: the first stage with which it complains is the guilty one.
base::Status TriageFlow::explain_own() {
  report_.ablation.push_back({kEager, "pass", std::nullopt, "the whole script without cutaway.compile"});
  const std::string used = report_.seen.backend;
  const Stage last = capabilities::row_of(used).last_stage;
  for (const Stage stage : {Stage::capture, Stage::aot}) {
    if (last == stage) break;
    CUTAWAY_TRY_ASSIGN(AblationRun row, whole_script(stage == Stage::capture ? "capture" : capabilities::up_to(stage), capabilities::up_to(stage)));
    report_.stage = capabilities::word(stage);
    report_.ablation.push_back(row);
    if (row.outcome != "pass") break;
  }
  const bool is_found = report_.ablation.back().outcome != "pass";
  if (!is_found) {
    report_.ablation.push_back({last == Stage::capture ? "capture" : used, "exception", report_.seen.seconds, first_line(report_.message)});
    report_.stage = capabilities::word(last);
  }
  report_.backend = used;
  report_.kind = "exception";
  report_.signature = {"exception", report_.stage, "", "", "", report_.message, ""};
  report_.exit_code = kFailsAsRecorded;
  report_.message += "; no graph by itself is wrong";
  return {};
}

// An ill-conditioned operator hides what is wrong before and after it from the comparison of the whole. Parts of the graph are compared on eager's own
// values; true: one of them is wrong, and the failure is told as if it had been seen in the script.
base::Result<bool> TriageFlow::look_behind_doubt() {
  for (const Observation::Judged& j : report_.judged) {
    const std::string how = j.outcome == kCloser ? " differs from eager and is closer to fp64 than eager is, not a failure: " : " is " + j.outcome + ": ";
    report_.message += (report_.message.empty() ? "" : "; ") + j.graph + how + j.reason;
    if (j.bundle.empty()) continue;
    step(j.graph + " is " + j.outcome + ": comparing its operators one by one");
    AnalyzeOptions a;
    a.bundle = j.bundle;
    a.accuracy = options_.accuracy;
    a.is_trusted = a.is_own = true;
    a.timeout_ms = options_.timeout_ms;
    a.max_bytes = options_.max_bytes;
    a.on_step = options_.on_step;
    a.is_interrupted = options_.is_interrupted;
    auto found = analyze_bundle(programs_, a);
    if (!found.ok()) {
      step("the analysis came to nothing: " + found.error().text());
      continue;
    }
    const oracle::Analysis& analysis = found->analysis;
    if (found->result.outcome != TrialResult::Outcome::failure || analysis.first_wrong < 0) continue;
    report_.message = j.graph + " as a whole is " + j.outcome + "; what is wrong in it was found part by part";
    Observation& seen = report_.seen;
    seen.bundle = j.bundle;
    seen.graph = j.graph;
    seen.signature = found->result.signature;
    seen.message = found->result.message;
    seen.backend = found->backend;
    const oracle::NodeAnalysis& n = analysis.nodes[static_cast<size_t>(analysis.first_wrong)];
    report_.first_wrong = TriageReport::FirstWrong{n.node, n.op, n.source, n.reason, n.kernel};
    report_.analysis = found->written;
    only_nodes_ = {static_cast<size_t>(analysis.together_with >= 0 ? analysis.together_with : analysis.first_wrong), static_cast<size_t>(analysis.first_wrong) + 1};
    return true;
  }
  return false;
}

// There is no graph: the script without torch.compile is the eager run.
base::Status TriageFlow::explain_capture() {
  Observation& seen = report_.seen;
  is_done_ = true;
  report_.stage = "capture";
  report_.signature = seen.signature;
  if (report_.signature.kind.empty()) {
    const bool hung = seen.ending == Observation::Ending::hung;
    report_.signature = {hung ? "hang" : "crash", "capture", "", "", seen.signal, "", ""};
  }
  report_.kind = report_.signature.kind;
  report_.exit_code = kFailsAsRecorded;
  const std::string compile = seen.is_own ? "cutaway.compile" : "torch.compile";
  step(std::string(seen.is_own ? "our" : "torch's") + " capture failed; running " + script_ + " without " + compile);
  CUTAWAY_TRY_ASSIGN(Observation eager, watch(2, "observed_eager", true));
  const bool passes = eager.ending == Observation::Ending::finished && !eager.raised && eager.status == 0;
  report_.ablation.push_back({kEager, passes ? "pass" : "eager_fails", eager.seconds, passes ? "the whole script without " + compile : "the script fails without " + compile + " too"});
  report_.ablation.push_back({"capture", report_.kind, seen.seconds, first_line(seen.message)});
  if (passes) return {};
  report_.exit_code = kEagerFails;
  report_.stage.clear();
  report_.message = "the script itself fails, without " + compile + " too";
  seen.log_tail = eager.log_tail;
  return {};
}

// Its work is done, and it does not end. No graph is to blame that anybody could cut down: the backend started something.
base::Status TriageFlow::explain_threads() {
  const std::string what = "the script's work is done, and it does not end: a thread still runs, " + report_.seen.threads_left;
  is_done_ = true;
  step(script_ + " does not end; once more without torch.compile");
  CUTAWAY_TRY_ASSIGN(Observation eager, watch(2, "observed_eager", true));
  if (!eager.threads_left.empty()) {
    report_.exit_code = kEagerFails;
    report_.message = what + ", without torch.compile too";
    return {};
  }
  CUTAWAY_TRY_ASSIGN(Observation again, watch(3, "observed_again"));   // for the bundle
  report_.seen = std::move(again);
  report_.exit_code = kFailsAsRecorded;
  report_.stage = "backend";
  report_.backend = report_.seen.backend;
  report_.kind = "hang";
  report_.signature = {"hang", "backend", "", "", "", what, ""};
  report_.bundle = report_.seen.bundle;
  report_.message = what + "; without torch.compile it ends";
  return {};
}

// One worker for all of the ablation, for the analysis and for the reduction: each trial is a process of its own anyway, and kernels are compiled once.
void TriageFlow::start_worker(const std::string& backend) {
  const bundle::Manifest& m = whole_bundle_.manifest;
  WorkerOptions worker_options{scratch_->path().string(), m.environment, true, {}, ""};
  worker_options.is_interrupted = [this] { return !is_reducing_ && options_.is_interrupted && options_.is_interrupted(); };
  worker_options.program = program_of(m);
  worker_options.imports_libraries = !m.libraries.empty();
  const std::string why = is_live(m.backend) ? "its backend is an object of its own process" : "operators of the graph are its own";
  if (!worker_options.program.empty()) worker_options.copy = report_.seen.copy;
  if (!worker_options.copy.empty()) step("a copy of " + script_ + " from before that compilation serves: " + why);
  else if (!worker_options.program.empty()) step("running " + script_ + " up to that compilation: " + why);
  worker_ = make_worker(programs_, backend, worker_options);
}

base::Result<TrialResult> TriageFlow::ask(const std::string& backend) {
  bundle::Manifest m = whole_bundle_.manifest;
  m.backend = backend;
  const auto begin = std::chrono::steady_clock::now();
  CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> results, ask_often(m, {}, 1));
  last_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::move(results.front());
}

base::Result<std::vector<TrialResult>> TriageFlow::ask_often(const bundle::Manifest& m, const std::vector<std::string>& before, int times) {
  oracle::Trial trial;
  trial.subject = {whole_bundle_.graph, m};
  trial.store = fs::absolute(whole_).string();
  trial.accuracy = report_.kind == "accuracy" ? options_.accuracy : "none";
  trial.is_trusted = true;   // this program wrote it a moment ago
  trial.before = before;
  const std::vector<worker::Request> requests(static_cast<size_t>(times), {oracle::trial_to_json(trial), trial_timeout_ms_ > 0 ? trial_timeout_ms_ : options_.timeout_ms, options_.max_bytes});
  CUTAWAY_TRY(worker_->start());
  CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, worker_->ask(requests, times == 1 ? 1 : options_.jobs));
  std::vector<TrialResult> results;
  for (const worker::Response& r : responses) results.push_back(oracle::result_of(r));
  return results;
}

/// One of `times` trials fails as the script did; that one is kept.
base::Result<bool> TriageFlow::shows(const bundle::Manifest& m, int times, TrialResult& whole) {
  CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> results, ask_often(m, {}, times));
  const auto found = std::find_if(results.begin(), results.end(), [&](const TrialResult& r) { return is_as_seen(r); });
  if (found == results.end()) return false;
  whole = std::move(*found);
  return true;
}

base::Status TriageFlow::keep_manifest(const bundle::Manifest& m) {
  CUTAWAY_TRY_ASSIGN(const store::Store store, bundle::open_store(whole_bundle_));
  CUTAWAY_TRY(bundle::write_bundle(whole_, whole_bundle_.graph, m, store));
  if (auto script = script::write_repro_script(whole_, whole_bundle_.graph, m); !script.ok()) step("no repro.py: " + script.error().text());
  whole_bundle_.manifest = m;
  return {};
}

bool TriageFlow::is_as_seen(const TrialResult& r) const {
  if (r.outcome != TrialResult::Outcome::failure) return false;
  bundle::FailureSignature seen = report_.seen.signature;
  if (seen.kind == "crash" && seen.signal.empty()) seen.signal = r.signature.signal;   // of a process that the script started: nobody knows how it died
  return seen.kind.empty() || oracle::is_same_failure(seen, r.signature, r.message, "");
}

// A backend's name or source text is not all of it: what the program has made of it, and of torch, on the way is only in its own process. From
// here on that one serves. False: it does already, or there is no program.
base::Result<bool> TriageFlow::ask_program() {
  bundle::Manifest m = whole_bundle_.manifest;
  if (is_live(m.backend) || !m.extra.count("program")) return false;
  const size_t colon = m.backend.rfind(':');
  m.backend = "live:" + m.backend.substr(colon == std::string::npos ? 0 : colon + 1);
  step("alone it does not fail as the script did");
  // Its text goes along now that the graph cannot do without it.
  if (auto told = Json::parse(m.extra.at("program"), "program"); told.ok() && told->as<Json::Object>()) {
    Json::Object fields = *told->as<Json::Object>();
    const auto text_of = [&](const char* key) { const auto* s = fields.count(key) ? fields[key].as<std::string>() : nullptr; return s ? *s : std::string(); };
    if (text_of("module").empty() && text_of("text").empty() && !text_of("path").empty())
      if (auto text = base::read_file(text_of("path")); text.ok() && base::is_utf8(*text)) fields["text"] = Json(*text);
    m.extra["program"] = Json(std::move(fields)).text();
  }
  CUTAWAY_TRY(keep_manifest(m));
  start_worker(m.backend);
  return true;
}

// The saved graph passes. What the script had and a trial has not is tried, the likeliest first; what showed the failure is recorded in the bundle.
base::Result<bool> TriageFlow::try_harder(TrialResult& whole) {
  constexpr int kBatch = 10;
  const int looks = report_.kind == "hang" ? 2 : looks_at_passing(whole);
  step("it passes alone; once more, up to " + std::to_string(looks) + " times");
  for (int asked = 0; asked < looks; asked += kBatch) {
    CUTAWAY_TRY_ASSIGN(const bool is_flaky, shows(whole_bundle_.manifest, std::min(kBatch, looks - asked), whole));
    if (is_flaky) return true;
  }
  report_.tried.push_back("it passed " + std::to_string(looks + 1) + " of " + std::to_string(looks + 1) + " runs");
  struct Attempt { std::string name, value, told; };
  std::vector<Attempt> attempts;
  if (report_.seen.threads > 1) attempts.push_back({"threads", std::to_string(report_.seen.threads), "with the script's " + std::to_string(report_.seen.threads) + " threads"});
  attempts.push_back({"compilations", "2", "compiled twice in one process"});
  for (const char* calls : {"2", "3", "4", "10"}) attempts.push_back({"calls", calls, "in call " + std::string(calls) + " of the compiled graph"});
  for (const Attempt& a : attempts) {
    bundle::Manifest m = whole_bundle_.manifest;
    m.process[a.name] = a.value;
    CUTAWAY_TRY_ASSIGN(const bool is_it, shows(m, a.name == "calls" ? 1 : 2, whole));
    if (is_it) {
      report_.message = "it fails only " + a.told;
      CUTAWAY_TRY(keep_manifest(m));
      return true;
    }
    report_.tried.push_back("it passed " + a.told);
  }
  return false;
}

// What other graphs left behind in the process: those before it, as the script compiled and ran them, then as few of them as still do.
base::Status TriageFlow::try_earlier_graphs() {
  const std::string graph = report_.seen.graph;
  step("it passes alone; running " + script_ + " once more for the graphs before it");
  CUTAWAY_TRY_ASSIGN(const Observation all, watch(3, "observed_before", false, whole_bundle_.manifest.stage == "aot" ? "aot" : "capture"));
  std::vector<std::pair<std::string, std::string>> earlier;
  for (const auto& one : all.bundles) {
    if (one.first == graph) break;
    earlier.push_back(one);
  }
  if (earlier.empty()) return {};
  const auto fails_after = [&](const std::vector<std::pair<std::string, std::string>>& graphs) -> base::Result<bool> {
    std::vector<std::string> before;
    for (const auto& [name, path] : graphs) before.push_back(path);
    CUTAWAY_TRY_ASSIGN(const std::vector<TrialResult> results, ask_often(whole_bundle_.manifest, before, 2));
    return std::any_of(results.begin(), results.end(), [&](const TrialResult& r) { return is_as_seen(r); });
  };
  CUTAWAY_TRY_ASSIGN(bool is_it, fails_after(earlier));
  if (!is_it) {
    report_.tried.push_back("it passed after the " + base::count_of(earlier.size(), "graph") + " before it in one process");
    return {};
  }
  for (size_t i = 0; i < earlier.size() && earlier.size() > 1;) {
    std::vector<std::pair<std::string, std::string>> fewer = earlier;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    CUTAWAY_TRY_ASSIGN(is_it, fails_after(fewer));
    if (is_it) earlier = std::move(fewer);
    else ++i;
  }
  std::vector<std::string> names;
  for (const auto& [name, path] : earlier) {
    names.push_back(name);
    report_.before.push_back(path);
  }
  report_.tried.push_back("it fails when " + base::join(names) + (names.size() == 1 ? " is" : " are") + " compiled and run before it in one process");
  return {};
}

base::Status TriageFlow::ablate() {
  Observation& seen = report_.seen;
  report_.signature = seen.signature;
  report_.kind = seen.signature.kind;
  report_.backend = seen.backend;
  report_.stage = "backend";
  report_.exit_code = kFailsAsRecorded;
  if (seen.bundle.empty()) {
    report_.message = seen.problem.empty() ? "no bundle was written" : seen.problem;
    is_done_ = true;
    return {};
  }
  whole_ = seen.bundle;
  report_.bundle = whole_.string();
  CUTAWAY_TRY_ASSIGN(bundle::Bundle b, bundle::read_bundle(whole_));
  const minify::Score size = minify::score({b.graph, b.manifest});
  report_.nodes = size.nodes;
  report_.elements = size.elements;
  std::string full = b.manifest.backend;
  report_.backend = full;
  step("the failing graph has " + base::count_of(size.nodes, "node") + "; running it with " + kEager + (seen.has_aot_stage ? ", " + capabilities::up_to(Stage::aot) : "") + " and " + full);

  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-triage-"));
  scratch_.emplace(std::move(scratch));
  whole_bundle_ = b;
  start_worker(full);
  if (report_.kind == "hang") trial_timeout_ms_ = std::min(options_.timeout_ms, std::max<int64_t>(kLeastPatienceMs, static_cast<int64_t>(20'000 * seen.longest_phase_s)));
  if (!only_nodes_) CUTAWAY_TRY(shrink_large_inputs());
  const auto row = [&](const std::string& backend, const TrialResult& r) {
    AblationRun a{backend, "pass", r.eager_ms + r.compile_ms + r.run_ms > 0 ? (r.compile_ms + r.run_ms) / 1000 : last_seconds_, ""};
    if (r.compile_ms + r.run_ms == 0) a.seconds = std::max(0.0, last_seconds_ - r.eager_ms / 1000);   // it ended before anybody could tell
    if (backend == kEager && r.eager_ms > 0) a.seconds = r.eager_ms / 1000;
    if (r.outcome == TrialResult::Outcome::failure) a.outcome = r.signature.kind.empty() ? "exception" : r.signature.kind;
    if (r.outcome == TrialResult::Outcome::eager_fails) a.outcome = "eager_fails";
    if (r.outcome == TrialResult::Outcome::invalid) a.outcome = "skipped";
    if (a.outcome != "pass") a.detail = first_line(r.outcome == TrialResult::Outcome::failure ? oracle::describe(r.signature, r.message) : r.message);
    report_.ablation.push_back(std::move(a));
  };
  const auto fails = [](const TrialResult& r) { return r.outcome == TrialResult::Outcome::failure; };

  CUTAWAY_TRY_ASSIGN(TrialResult eager, ask(kEager));
  row(kEager, eager);
  if (eager.outcome == TrialResult::Outcome::invalid) return base::Error{"the saved graph cannot be run", whole_.string(), eager.message, "", ""};
  if (eager.outcome != TrialResult::Outcome::pass) {
    report_.exit_code = kEagerFails;
    report_.stage.clear();
    report_.message = "eager itself fails on the captured graph: " + first_line(eager.message.empty() ? oracle::describe(eager.signature) : eager.message, 400);
    is_done_ = true;
    return {};
  }
  constexpr double kShortRun = 120;   // of a script that is worth another run for one row
  if (seen.is_own && seen.seconds > kShortRun) report_.ablation.push_back({"capture", "skipped", std::nullopt, "the script takes too long for another run"});
  if (seen.is_own && seen.seconds <= kShortRun) {
    CUTAWAY_TRY_ASSIGN(AblationRun captured, whole_script("capture", kEager));
    report_.ablation.push_back(std::move(captured));
  }
  std::optional<TrialResult> aot;
  const std::string& up_to_aot = capabilities::up_to(Stage::aot);
  const bool stops_after_aot = capabilities::row_of(full).last_stage == Stage::aot;
  if (!seen.has_aot_stage) {
    report_.ablation.push_back({up_to_aot, "skipped", std::nullopt, full.substr(full.rfind(':') + 1) + " has no ahead-of-time stage"});
  } else if (!stops_after_aot) {
    CUTAWAY_TRY_ASSIGN(aot, ask(up_to_aot));
    row(up_to_aot, *aot);
    if (report_.kind == "hang") trial_timeout_ms_ = std::min<int64_t>(options_.timeout_ms, std::max(trial_timeout_ms_, 15'000 + static_cast<int64_t>(10'000 * last_seconds_)));
  }
  if (only_nodes_) {   // the whole passes, and why is known
    report_.ablation.push_back({full, "accuracy", std::nullopt, first_line(oracle::describe(seen.signature))});
    return base::write_file_atomic(whole_ / "ablation.json", ablation_to_json(report_.ablation));
  }
  CUTAWAY_TRY_ASSIGN(TrialResult whole, ask(full));
  if (!fails(whole)) CUTAWAY_TRY(try_harder(whole));
  row(full, whole);
  if (!is_as_seen(whole)) {
    const bool passes = !fails(whole);
    CUTAWAY_TRY_ASSIGN(const bool has_program, ask_program());
    if (has_program) {
      full = report_.backend = whole_bundle_.manifest.backend;
      CUTAWAY_TRY_ASSIGN(whole, ask(full));
      if (passes && !fails(whole)) CUTAWAY_TRY(shows(whole_bundle_.manifest, 5, whole));
      row(full, whole);
      if (!fails(whole)) report_.tried.push_back("it passed in the script's own process, at that compilation");
    }
  }
  if (!fails(whole)) CUTAWAY_TRY(try_earlier_graphs());
  if (fails(whole) && !is_as_seen(whole)) {
    report_.exit_code = kFailsOtherwise;
    report_.message = "the saved graph fails, and not as the script did: " + first_line(oracle::describe(whole.signature, whole.message), 400);
    is_done_ = true;
    return {};
  }
  if (!fails(whole)) {
    report_.exit_code = kFailsOtherwise;
    report_.stage.clear();   // nobody is to blame without proof
    report_.message = "it failed in the script, and the saved graph passes when it runs alone: " + base::join(report_.tried, "; ") +
                      "; the smallest thing that still fails is " + (report_.before.empty() ? script_ : report_.seen.graph + " after " + base::count_of(report_.before.size(), "graph") + " before it");
    is_located_ = false;
    is_done_ = true;
    return {};
  }
  if (aot && fails(*aot) && oracle::is_same_failure(whole.signature, aot->signature, aot->message, "")) {
    report_.stage = "aot";
    report_.backend = up_to_aot;
  } else if (stops_after_aot) {
    report_.stage = "aot";
  }
  report_.signature = whole.signature;
  report_.signature.stage = report_.stage;
  report_.kind = whole.signature.kind;
  if (report_.kind == "hang" && report_.stage == "backend") whole_hang_ = whole;   // another look would cost the whole limit again
  if (seen.message.empty()) seen.message = whole.message;
  return base::write_file_atomic(whole_ / "ablation.json", ablation_to_json(report_.ablation));
}

// The graph with smaller inputs stands for the one that failed in the script, if it fails as that one did.
base::Status TriageFlow::shrink_large_inputs() {
  const minify::Case start{whole_bundle_.graph, whole_bundle_.manifest};
  oracle::Trial pattern;
  pattern.store = fs::absolute(whole_).string();
  pattern.accuracy = report_.kind == "accuracy" ? options_.accuracy : "none";
  pattern.is_trusted = true;   // this program wrote it a moment ago
  CUTAWAY_TRY(worker_->start());
  ShrinkOptions options{{report_.seen.signature, "", pattern, options_.timeout_ms, options_.max_bytes, 1}, 180, options_.on_step};
  CUTAWAY_TRY_ASSIGN(const std::optional<Shrunk> found, shrink_first(start, *worker_, *worker_, options));
  if (!found) return {};
  step(found->text());
  elements_before_ = minify::score(start).elements;
  CUTAWAY_TRY_ASSIGN(const store::Store store, bundle::open_store(whole_bundle_));
  const fs::path smaller = output_ / "smaller";
  CUTAWAY_TRY(bundle::write_bundle(smaller, found->smaller.graph, found->smaller.manifest, store));
  if (auto script = script::write_repro_script(smaller, found->smaller.graph, found->smaller.manifest); !script.ok()) step("no repro.py: " + script.error().text());
  whole_ = smaller;
  CUTAWAY_TRY_ASSIGN(whole_bundle_, bundle::read_bundle(smaller));
  return {};
}

// Wrong numbers have a place that no exception names: the whole graph tells it, and the reduction starts from there.
void TriageFlow::analyze() {
  if (report_.kind != "accuracy" || only_nodes_) return;
  step("analyzing where the numbers go wrong");
  AnalyzeOptions a;
  a.bundle = whole_;
  a.backend = report_.backend;
  a.accuracy = options_.accuracy;
  a.budget_s = 0;   // the first wrong node alone
  a.worker = worker_.get();
  a.is_trusted = true;   // this program wrote it a moment ago
  a.timeout_ms = options_.timeout_ms;
  a.max_bytes = options_.max_bytes;
  a.on_step = options_.on_step;
  auto found = analyze_bundle(programs_, a);
  if (!found.ok()) return step("the analysis came to nothing: " + found.error().text());
  if (found->analysis.first_wrong < 0) return step("no single place is wrong");
  const oracle::NodeAnalysis& n = found->analysis.nodes[static_cast<size_t>(found->analysis.first_wrong)];
  report_.first_wrong = TriageReport::FirstWrong{n.node, n.op, n.source, n.reason, n.kernel};
  report_.analysis = found->written;
}

void TriageFlow::name_first_wrong(const ir::Graph& g) {
  const std::vector<ir::Node>& nodes = g.body.nodes;
  if (nodes.empty() || report_.first_wrong) return;
  // In a one-minimal graph every node is needed; the failure names one of them, or it is the last one that computes.
  const auto is_named = [&](const ir::Node& n) {
    if (report_.signature.op.empty()) return false;
    if (n.target == report_.signature.op) return true;
    return std::any_of(n.regions.begin(), n.regions.end(), [&](const ir::Block& b) { return std::any_of(b.nodes.begin(), b.nodes.end(), [&](const ir::Node& m) { return m.target == report_.signature.op; }); });
  };
  auto it = std::find_if(nodes.begin(), nodes.end(), is_named);
  const ir::Node& n = it != nodes.end() ? *it : nodes.back();
  TriageReport::FirstWrong w;
  w.op = n.target;
  if (!n.results.empty()) w.node = g.values[n.results.front()].name;
  if (n.location != ir::kNoLocation) {
    const ir::Location& l = g.locations[n.location];
    if (l.is_known()) w.source = l.file + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " " + l.function);
  }
  report_.first_wrong = std::move(w);
}

base::Status TriageFlow::reduce() {
  MinifyOptions m;
  m.bundle = whole_;
  m.output = output_ / "minimal";
  if (report_.stage == "aot") m.backend = capabilities::up_to(Stage::aot);
  if (report_.kind == "accuracy") m.accuracy = options_.accuracy;
  m.jobs = options_.jobs;
  m.timeout_ms = trial_timeout_ms_ > 0 ? trial_timeout_ms_ : options_.timeout_ms;
  m.max_bytes = options_.max_bytes;
  m.time_budget_s = options_.time_budget_s;
  m.is_trusted = true;   // this program wrote it a moment ago
  if (report_.first_wrong) m.op_hint = report_.first_wrong->op;
  m.only_nodes = only_nodes_;
  m.elements_before = elements_before_;
  m.on_progress = options_.on_progress;
  m.on_step = options_.on_step;
  m.worker = worker_.get();
  m.known_start = whole_hang_;
  m.cache_directory = scratch_->path().string();
  is_reducing_ = true;
  CUTAWAY_TRY_ASSIGN(report_.minimal, minify_bundle(programs_, m));
  const MinifyReport& r = *report_.minimal;
  if (r.graph_text.empty()) {   // flaky, or it fails otherwise now
    report_.message = "the whole graph was not reduced: " + r.message;
    return {};
  }
  report_.bundle = r.output;
  report_.repro = r.repro;
  CUTAWAY_TRY_ASSIGN(bundle::Bundle small, bundle::read_bundle(r.output));
  // A failure that comes and goes may look as if it needed more nodes than it does. What fails without such a node clears it.
  if (r.exit_code == 0 && report_.first_wrong && !has_node_of(small.graph, report_.first_wrong->op)) report_.first_wrong.reset();
  name_first_wrong(small.graph);
  CUTAWAY_TRY(base::write_file_atomic(fs::path(r.output) / "ablation.json", ablation_to_json(report_.ablation)));
  CUTAWAY_TRY_ASSIGN(fs::path page, write_report(r.output));
  report_.report = page.string();
  return {};
}

base::Result<TriageReport> TriageFlow::run() {
  const auto begin = std::chrono::steady_clock::now();
  CUTAWAY_TRY(prepare());
  CUTAWAY_TRY(find_failure());
  if (!is_done_) CUTAWAY_TRY(ablate());
  // Between ahead-of-time autograd and its compiler it does not show alone: perhaps it does around both.
  if (is_done_ && !report_.tried.empty() && is_after_aot_) {
    is_after_aot_ = false;
    step("it passes alone after ahead-of-time autograd; looking after capture");
    CUTAWAY_TRY_ASSIGN(Observation outer, watch(4, "observed_accuracy"));
    if (outer.ending == Observation::Ending::failed && !outer.bundle.empty()) {
      report_.seen = std::move(outer);
      report_.ablation.clear();
      report_.message.clear();
      is_done_ = false;
      is_located_ = true;
      CUTAWAY_TRY(ablate());
    } else {
      report_.message += "; after capture every graph agrees";
    }
  }
  if (!is_done_) analyze();
  if (!is_done_) CUTAWAY_TRY(reduce());
  std::error_code ec;
  if (is_located_ && report_.repro.empty() && !report_.bundle.empty() && fs::exists(fs::path(report_.bundle) / "repro.py", ec)) report_.repro = (fs::path(report_.bundle) / "repro.py").string();
  if (report_.minimal && !report_.minimal->attach.empty()) report_.attach = report_.minimal->attach;
  else if (!report_.repro.empty()) report_.attach = attach_text(report_.repro, whole_bundle_.manifest);
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::move(report_);
}

}  // namespace

base::Result<TriageReport> triage_script(const Programs& programs, const TriageOptions& options) { return TriageFlow(programs, options).run(); }

std::string ablation_to_json(const std::vector<AblationRun>& runs) {
  Json::Array rows;
  for (const AblationRun& r : runs) rows.push_back(Json::Object{{"backend", r.backend}, {"outcome", r.outcome}, {"seconds", r.seconds ? Json(*r.seconds) : Json()}, {"detail", r.detail}});
  return Json(std::move(rows)).text(2) + "\n";
}

}  // namespace cutaway::flows
