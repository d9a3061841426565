#include "app/flows/bisect_flow.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "app/flows/permission.h"
#include "app/flows/report_flow.h"
#include "app/flows/report_json.h"
#include "app/flows/start.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/capabilities/parts.h"
#include "core/ir/edit.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {
namespace {

using oracle::Application;
using oracle::Switches;
using oracle::TrialResult;
namespace fs = std::filesystem;

enum class Finding { passes, same_failure, other };

/// One trial of the search: parts off, recorded options dropped.
struct Question { Switches switches; std::string dropped; };

class BisectFlow {
 public:
  BisectFlow(const Programs& programs, const BisectOptions& options) : programs_(programs), options_(options) {}
  base::Result<BisectReport> run();

 private:
  void step(const std::string& text) const { if (options_.on_step) options_.on_step(text); }
  base::Status open(const fs::path& bundle);
  base::Status look_at_start();
  base::Result<std::vector<TrialResult>> ask(const std::vector<Question>&);
  base::Result<std::vector<Finding>> find_out(const std::vector<Question>&);
  base::Result<std::optional<Culprit>> find_part();
  base::Result<std::optional<Culprit>> find_by_name(const std::vector<std::string>& parts);
  base::Result<int64_t> find_application(const std::string& part);
  base::Status try_options();
  base::Status reduce();
  base::Status verify();
  base::Status write_down();
  Place place() const { return {options_.bundle, options_.archive}; }
  Finding finding_of(const TrialResult&) const;

  const Programs& programs_;
  const BisectOptions& options_;
  BisectReport report_;
  std::optional<base::TemporaryDirectory> scratch_;
  bundle::Bundle subject_;                      // what is asked about: the bundle, and later its smallest form
  std::unique_ptr<worker::Client> worker_;
  bundle::FailureSignature wanted_;
  std::vector<Application> applications_;       // of the start
  uint64_t repeats_ = 1;
  bool finished_ = false;
};

base::Status BisectFlow::open(const fs::path& path) {
  CUTAWAY_TRY_ASSIGN(subject_, open_to_run({path, options_.backend, options_.match, options_.is_trusted, worker_ ? nullptr : options_.on_step}));
  if (worker_) return {};
  using capabilities::Parts;
  const Parts parts = capabilities::row_of(subject_.manifest.backend).parts;
  if (parts == Parts::none)
    return base::Error{"the backend " + base::quote(subject_.manifest.backend) + " has no parts that can be switched off", place().shown(), "bisect knows the parts of torch's Inductor and of native", "cutaway minify, or --backend inductor", ""};
  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-bisect-"));
  scratch_.emplace(std::move(scratch));
  CUTAWAY_TRY(base::make_directories(scratch_->path() / "cache", base::Sync::fast));
  WorkerOptions worker_options{(scratch_->path() / "cache").string(), subject_.manifest.environment, options_.is_trusted, {}, std::string(capabilities::table_of(parts).loads)};
  worker_options.is_interrupted = options_.is_interrupted;
  worker_options.program = program_of(subject_.manifest);
  worker_options.imports_libraries = !subject_.manifest.libraries.empty();
  worker_ = make_worker(programs_, subject_.manifest.backend, worker_options);
  report_.bundle = place().shown();
  report_.backend = subject_.manifest.backend;
  report_.accuracy = accuracy_of(options_.accuracy, subject_.manifest);
  report_.flags = flags_text(options_.backend, options_.accuracy, options_.is_trusted);
  report_.nodes = ir::count_nodes(subject_.graph);
  return {};
}

base::Result<std::vector<TrialResult>> BisectFlow::ask(const std::vector<Question>& questions) {
  oracle::Trial t;
  t.store = subject_.path.string();
  t.accuracy = report_.accuracy;
  t.only_forward = options_.only_forward;
  t.is_trusted = options_.is_trusted;
  const uint64_t max_bytes = memory_limit(options_.max_bytes, subject_.manifest);
  std::vector<worker::Request> requests;
  for (const Question& q : questions) {
    t.subject = {subject_.graph, subject_.manifest};
    if (!q.dropped.empty()) t.subject.manifest.options.erase(q.dropped);
    for (const auto& [name, value] : q.switches.options) t.subject.manifest.options.erase(name);
    t.switches = q.switches;
    requests.push_back({oracle::trial_to_json(t), options_.timeout_ms, max_bytes});
  }
  report_.trials += requests.size();
  CUTAWAY_TRY_ASSIGN(std::vector<worker::Response> responses, worker_->ask(requests, options_.jobs));
  std::vector<TrialResult> results;
  for (const auto& r : responses) results.push_back(oracle::result_of(r));
  return results;
}

Finding BisectFlow::finding_of(const TrialResult& r) const {
  if (r.outcome == TrialResult::Outcome::pass) return Finding::passes;
  return r.outcome == TrialResult::Outcome::failure && oracle::is_same_failure(wanted_, r.signature, r.message, options_.match) ? Finding::same_failure : Finding::other;
}

// A failure that comes and goes passes only when it passed as often as its rate requires.
base::Result<std::vector<Finding>> BisectFlow::find_out(const std::vector<Question>& questions) {
  CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> results, ask(questions));
  std::vector<Finding> findings;
  for (const TrialResult& r : results) findings.push_back(finding_of(r));
  for (size_t i = 0; i < questions.size() && repeats_ > 1; ++i) {
    if (findings[i] != Finding::passes) continue;
    CUTAWAY_TRY_ASSIGN(std::vector<TrialResult> more, ask(std::vector<Question>(repeats_ - 1, questions[i])));
    for (const TrialResult& r : more)
      if (findings[i] == Finding::passes) findings[i] = finding_of(r);
  }
  return findings;
}

base::Status BisectFlow::look_at_start() {
  step("checking that " + report_.bundle + " fails with " + report_.backend);
  // Each look writes its applications to a file of its own; the first file is as good as any.
  int looks = 0;
  const auto log = [&](int look) { return (scratch_->path() / ("applications-" + std::to_string(look))).string(); };
  CUTAWAY_TRY_ASSIGN(Start start, flows::look_at_start([&](int times) {
    std::vector<Question> questions(static_cast<size_t>(times));
    for (Question& q : questions) q.switches.log = log(looks++);
    return ask(questions);
  }, subject_.manifest.failure, options_.match, report_.bundle));
  report_.start = std::move(start.result);
  report_.exit_code = start.exit_code;
  report_.message = std::move(start.message);
  finished_ = start.exit_code != 0;
  wanted_ = report_.start.signature;
  repeats_ = start.repeats;
  if (auto text = base::read_file(log(0)); text.ok()) applications_ = oracle::read_applications(*text);
  return {};
}

// The number of applications after which it fails: with one fewer it passes. Several points at once, as many as workers run side by side.
base::Result<int64_t> BisectFlow::find_application(const std::string& part) {
  int64_t passes = 0, fails = std::count_if(applications_.begin(), applications_.end(), [&](const Application& a) { return a.part == part; });
  while (fails - passes > 1) {
    const int64_t points = std::min<int64_t>(options_.jobs, fails - passes - 1);
    std::vector<Question> questions;
    std::vector<int64_t> limits;
    for (int64_t i = 1; i <= points; ++i) {
      limits.push_back(passes + (fails - passes) * i / (points + 1));
      questions.emplace_back().switches.limits[part] = limits.back();
    }
    step("  " + part + ": " + std::to_string(passes) + " pass, " + std::to_string(fails) + " fail");
    CUTAWAY_TRY_ASSIGN(std::vector<Finding> findings, find_out(questions));
    for (int64_t i = 0; i < points; ++i) {
      if (findings[static_cast<size_t>(i)] != Finding::passes) { fails = limits[static_cast<size_t>(i)]; break; }
      passes = limits[static_cast<size_t>(i)];
    }
  }
  return fails;
}

base::Result<std::optional<Culprit>> BisectFlow::find_part() {
  std::vector<std::string> parts;
  for (const capabilities::PartRow& row : capabilities::table_of(capabilities::row_of(subject_.manifest.backend).parts).parts)
    if (std::any_of(applications_.begin(), applications_.end(), [&](const Application& a) { return a.part == row.name; })) parts.emplace_back(row.name);
  std::vector<Question> questions;
  for (const std::string& part : parts) questions.emplace_back().switches.without = {part};
  step("switching parts off, one whole part at a time: " + base::join(parts));
  CUTAWAY_TRY_ASSIGN(std::vector<Finding> findings, find_out(questions));
  std::vector<std::string> guilty, broken;   // broken: what is left of the compiler without that part fails in another way
  for (size_t i = 0; i < parts.size(); ++i) {
    if (findings[i] == Finding::passes) guilty.push_back(parts[i]);
    if (findings[i] == Finding::other) broken.push_back(parts[i]);
  }
  if (guilty.empty()) return find_by_name(broken);
  Culprit found;
  found.part = guilty.front();
  CUTAWAY_TRY_ASSIGN(const int64_t number, find_application(found.part));
  for (const Application& a : applications_) {
    if (a.part != found.part) continue;
    ++found.of;
    if (a.number == number - 1) found.application = a;
  }
  // Is it this name alone? Then the name says it in any other graph too.
  Question by_name;
  by_name.switches.without = {found.part + ":" + found.application.name};
  CUTAWAY_TRY_ASSIGN(findings, find_out({by_name}));
  found.is_alone = findings.front() == Finding::passes;
  for (const std::string& part : guilty)
    if (part != found.part) report_.also.emplace_back().part = part;
  return std::optional(std::move(found));
}

base::Result<std::optional<Culprit>> BisectFlow::find_by_name(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    std::vector<Culprit> names;
    int64_t count = 0;
    for (const Application& a : applications_) {
      if (a.part != part) continue;
      ++count;
      if (std::none_of(names.begin(), names.end(), [&](const Culprit& c) { return c.application.name == a.name; })) names.push_back({part, a, 0, true, {}, {}, {}});
    }
    step("switching off " + part + " by name: " + base::count_of(names.size(), "name"));
    std::vector<Question> questions;
    for (const Culprit& c : names) questions.emplace_back().switches.without = {part + ":" + c.application.name};
    CUTAWAY_TRY_ASSIGN(std::vector<Finding> findings, find_out(questions));
    for (size_t i = 0; i < names.size(); ++i) {
      if (findings[i] != Finding::passes) continue;
      names[i].of = count;
      return std::optional(names[i]);
    }
  }
  return std::optional<Culprit>();
}

base::Status BisectFlow::try_options() {
  std::vector<Question> questions;
  std::vector<Culprit> rows;
  const std::map<std::string, std::string>& recorded = subject_.manifest.options;
  for (const auto& [name, value] : recorded) {
    questions.emplace_back().dropped = name;
    rows.push_back({{}, {}, 0, false, name, value, std::string(kDefaultOption)});
  }
  for (const capabilities::OptionRow& row : capabilities::table_of(capabilities::row_of(subject_.manifest.backend).parts).options) {
    const std::string name(row.name), careful(row.careful);
    const auto it = recorded.find(name);
    if (it != recorded.end() && it->second == careful) continue;
    questions.emplace_back().switches.options[name] = careful;
    rows.push_back({{}, {}, 0, false, name, it == recorded.end() ? "" : it->second, careful});
  }
  if (rows.empty()) return {};
  step("trying " + base::count_of(rows.size(), "option") + " of Inductor");
  CUTAWAY_TRY_ASSIGN(std::vector<Finding> findings, find_out(questions));
  std::set<std::string> dropped;   // the default cures already: another value says no more
  for (size_t i = 0; i < rows.size(); ++i)
    if (findings[i] == Finding::passes && dropped.insert(rows[i].option).second) report_.also.push_back(rows[i]);
  return {};
}

base::Status BisectFlow::reduce() {
  MinifyOptions o;
  o.bundle = options_.bundle;
  o.output = options_.output;
  o.backend = options_.backend;
  o.accuracy = options_.accuracy;
  o.match = options_.match;
  o.jobs = options_.jobs;
  o.timeout_ms = options_.timeout_ms;
  o.max_bytes = options_.max_bytes;
  o.is_trusted = options_.is_trusted;
  o.only_forward = options_.only_forward;
  o.on_progress = options_.on_progress;
  o.on_step = options_.on_step;
  if (report_.guilty && report_.guilty->part == "lowerings") {
    o.op_hint = report_.guilty->application.name;
    if (o.op_hint.ends_with(".default")) o.op_hint.resize(o.op_hint.size() - std::string_view(".default").size());
  }
  CUTAWAY_TRY_ASSIGN(report_.minified, minify_bundle(programs_, o));
  return {};
}

// Off and on, each from the files in a fresh process. What minify announces has been run so; then only "off" is left to do.
base::Status BisectFlow::verify() {
  const bool is_small = report_.minified && report_.minified->exit_code == 0;
  Culprit& g = *report_.guilty;
  if (is_small && !g.part.empty()) g.is_alone = true;   // the number belongs to the large graph, the name to both
  const std::string path = is_small ? report_.minified->output : report_.bundle;
  report_.check = "cutaway run " + path + (options_.backend.empty() ? "" : " --backend " + options_.backend) + (options_.is_trusted ? " --trust" : "") + " " + g.flag();
  RunOptions o;
  o.bundle = is_small ? fs::path(report_.minified->output) : options_.bundle;
  o.is_interrupted = options_.is_interrupted;
  o.backend = options_.backend;
  o.accuracy = report_.accuracy;
  o.match = options_.match;
  o.is_trusted = options_.is_trusted;
  o.only_forward = options_.only_forward;
  o.timeout_ms = options_.timeout_ms;
  o.max_bytes = options_.max_bytes;
  bool fails_with_it = is_small;
  if (!is_small) {
    step("running it again in a fresh process");
    CUTAWAY_TRY_ASSIGN(RunReport with, run_bundle(programs_, o));
    fails_with_it = finding_of(with.result) == Finding::same_failure;
  }
  step("running it without " + g.text() + " in a fresh process");
  if (g.part.empty()) o.switches.options[g.option] = g.off;
  else if (g.is_alone) o.switches.without = {g.part + ":" + g.application.name};
  else o.switches.limits[g.part] = g.application.number;
  bool passes_without = true;
  for (uint64_t look = 0; look < repeats_ && passes_without; ++look) {
    CUTAWAY_TRY_ASSIGN(RunReport without, run_bundle(programs_, o));
    passes_without = without.exit_code == kPasses;
  }
  report_.is_verified = fails_with_it && passes_without;
  report_.exit_code = report_.is_verified ? 0 : kFailsOtherwise;
  if (!fails_with_it) report_.message = "it did not fail again in a fresh process";
  else if (!passes_without) report_.message = "in a fresh process " + path + " fails without " + g.text() + " too";
  return {};
}

base::Status BisectFlow::write_down() {
  const bool is_small = report_.minified && report_.minified->exit_code == 0;
  const Place where = is_small ? Place{report_.minified->output, {}} : place();
  // A bundle may lie where nobody may write; the answer does not depend on it.
  if (auto written = base::write_file_atomic(where.file("bisect.json"), report_.to_json() + "\n"); !written.ok()) {
    step("not written: " + written.error().text());
    return {};
  }
  if (auto page = write_report(where); page.ok()) report_.report = page->string();
  else step("no report.html: " + page.error().text());
  return {};
}

base::Result<BisectReport> BisectFlow::run() {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  CUTAWAY_TRY(open(options_.bundle));
  CUTAWAY_TRY(look_at_start());
  if (!finished_) {
    if (!applications_.empty()) { CUTAWAY_TRY_ASSIGN(report_.guilty, find_part()); }
    // Options are tried where that is cheapest: on the smallest graph, once there is something to make one for.
    if (!report_.guilty && options_.try_options) {
      CUTAWAY_TRY(try_options());
      if (!report_.also.empty()) {
        report_.guilty = report_.also.front();
        report_.also.erase(report_.also.begin());
      }
    }
    if (!report_.guilty) {
      report_.exit_code = kFailsAsRecorded;
      report_.message = applications_.empty() ? "no part of Inductor ran before it failed" : "it fails with each of the parts and options off that can be switched off";
    } else {
      const bool found_a_part = !report_.guilty->part.empty();
      if (options_.minify) CUTAWAY_TRY(reduce());
      if (found_a_part) {
        if (report_.minified && report_.minified->exit_code == 0) CUTAWAY_TRY(open(report_.minified->output));
        if (options_.try_options) CUTAWAY_TRY(try_options());
      }
      CUTAWAY_TRY(verify());
      report_.seconds = seconds();
      CUTAWAY_TRY(write_down());
    }
  }
  report_.seconds = seconds();
  return std::move(report_);
}

}  // namespace

base::Result<BisectReport> bisect_bundle(const Programs& programs, const BisectOptions& options) { return BisectFlow(programs, options).run(); }

}  // namespace cutaway::flows
