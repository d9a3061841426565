#include "app/flows/sweep_flow.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "app/flows/permission.h"
#include "app/flows/sweep_journal.h"
#include "app/flows/sweep_page.h"
#include "app/flows/triage_flow.h"
#include "core/base/text.h"
#include "core/bundle/archive.h"
#include "core/capabilities/capabilities.h"
#include "core/ir/edit.h"
#include "core/ir/text.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/worker_oracle.h"

namespace cutaway::flows {

namespace fs = std::filesystem;
using oracle::TrialResult;

namespace {

constexpr std::string_view kRecorded = "recorded", kAsWritten = "as written";

struct Subject {
  enum class Kind : uint8_t { bundle, random, script } kind = Kind::bundle;
  std::string name;
  fs::path path;
  uint64_t seed = 0;
};

/// A subject in memory; what it was unpacked into lives as long as this.
struct Loaded {
  minify::Case subject;
  fs::path store;                                   ///< with the blobs of its inputs; empty: they have none
  std::shared_ptr<bundle::BundleArgument> holder;
  std::string digest;                               ///< of the graph
};

/// A cell that is ready to be asked about.
struct Prepared {
  SweepCell cell;
  minify::Case subject;
  std::shared_ptr<const Loaded> loaded;
};

bool is_trained(const minify::Case& c) {
  return std::any_of(c.manifest.inputs.begin(), c.manifest.inputs.end(), [](const bundle::InputRef& in) { return in.kind != bundle::InputRef::Kind::literal && in.tensor.requires_grad; });
}

std::string as_file_name(std::string_view text) {
  std::string out;
  for (char c : text) out += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return out.substr(0, 80);
}

/// The operators of a graph in order: two minimal graphs with the same ones, which fail in the same way, are taken for one bug.
std::string operators_of(const std::string& graph_text) {
  auto graph = ir::parse(graph_text);
  if (!graph.ok()) return graph_text;
  std::string out;
  ir::for_each_node(graph->body, [&](const ir::Node& n) { out += n.target + " "; });
  return out;
}

std::string short_signature(const std::string& backend, const bundle::FailureSignature& s) { return base::join({backend, s.kind, s.type, s.signal, s.kind == "accuracy" ? "" : s.op + "|" + s.message}, "|"); }

class Sweep {
 public:
  Sweep(const Programs& programs, const SweepOptions& options) : programs_(programs), options_(options) {}
  base::Result<SweepReport> run();

 private:
  base::Status find_subjects();
  base::Status add_folder(const std::string& name);
  base::Status answer_cells();
  base::Status answer_script(const Subject&);
  base::Status ask_pending();
  base::Status reduce_failures();
  base::Result<SweepFailure> reduce(const SweepCell&, size_t number);
  base::Result<Loaded> load(const Subject&);
  base::Result<Prepared> prepare(const SweepCell&, std::shared_ptr<const Loaded>);
  base::Result<ir::Graph> retype(const ir::Graph&);
  std::vector<SweepCell> cells_of(const Subject&, const Loaded&) const;
  base::Status note(SweepCell);
  void say(const std::string& text) const { if (options_.on_step) options_.on_step(text); }
  bool is_interrupted() const { return options_.is_interrupted && options_.is_interrupted(); }

  /// A worker for this backend and these variables, with a folder of kernels of its own.
  struct Served {
    std::unique_ptr<worker::Client> client;
    std::string cache;
  };
  base::Result<Served*> worker_for(const std::string& backend, const bundle::Manifest&);

  const Programs& programs_;
  const SweepOptions& options_;
  SweepReport report_;
  std::vector<Subject> subjects_;
  std::optional<SweepJournal> journal_;
  std::optional<base::TemporaryDirectory> scratch_;
  std::map<std::string, Served> workers_;
  std::unique_ptr<worker::Client> typer_;
  std::vector<Prepared> pending_;
  uint64_t failures_ = 0;
};

base::Status Sweep::add_folder(const std::string& name) {
  const size_t before = subjects_.size();
  std::vector<fs::path> found;
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(name, fs::directory_options::skip_permission_denied, ec); !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
    if (it->is_directory(ec) && bundle::looks_like_bundle(it->path())) {
      found.push_back(it->path());
      it.disable_recursion_pending();
    } else if (it->is_regular_file(ec) && it->path().extension() == ".tar" && bundle::looks_like_archive(it->path())) {
      found.push_back(it->path());
    }
  }
  std::sort(found.begin(), found.end());
  for (fs::path& path : found) subjects_.push_back({Subject::Kind::bundle, path.string(), path});
  if (subjects_.size() == before) return base::Error{"there is no bundle in this folder", name, "", "a folder with bundles, a bundle, its .tar, a script, or --random N", ""};
  return {};
}

base::Status Sweep::find_subjects() {
  for (const std::string& name : options_.subjects) {
    std::error_code ec;
    if (!fs::exists(name, ec)) return base::Error{"there is no such file or folder", name, "", "", ""};
    if (fs::is_directory(name, ec) && !bundle::looks_like_bundle(name)) {
      CUTAWAY_TRY(add_folder(name));
    } else if (fs::path(name).extension() == ".py") {
      subjects_.push_back({Subject::Kind::script, name, name});
    } else {
      subjects_.push_back({Subject::Kind::bundle, name, name});
    }
  }
  for (uint64_t i = 0; i < options_.random_graphs; ++i) {
    const uint64_t seed = options_.random.seed + i;
    subjects_.push_back({Subject::Kind::random, "random graph " + std::to_string(seed) + " of " + std::to_string(options_.random.nodes), {}, seed});
  }
  if (subjects_.empty()) return base::Error{"there is nothing to sweep", "", "", "bundles, folders of them or scripts; or --random 100", ""};
  return {};
}

base::Result<Sweep::Served*> Sweep::worker_for(const std::string& backend, const bundle::Manifest& m) {
  std::string key = backend + "|" + program_of(m) + (m.libraries.empty() ? "" : "|libraries");
  for (const auto& [name, value] : m.environment) key += "|" + name + "=" + value;
  if (const auto found = workers_.find(key); found != workers_.end()) return &found->second;
  const fs::path cache = scratch_->path() / ("cache-" + std::to_string(workers_.size()));
  CUTAWAY_TRY(base::make_directories(cache, base::Sync::fast));
  WorkerOptions o{cache.string(), m.environment, options_.is_trusted, {}};
  o.is_interrupted = options_.is_interrupted;
  o.program = program_of(m);
  o.imports_libraries = !m.libraries.empty();
  o.on = options_.on;
  Served served{make_worker(programs_, backend, o), cache.string()};
  return &workers_.emplace(key, std::move(served)).first->second;
}

// On this machine always: it costs a millisecond.
base::Result<ir::Graph> Sweep::retype(const ir::Graph& graph) {
  if (!typer_) {
    WorkerOptions o;
    o.is_interrupted = options_.is_interrupted;
    typer_ = make_worker(programs_, capabilities::up_to(capabilities::Stage::capture), o);
  }
  return oracle::WorkerTyper(*typer_).retype(graph);
}

base::Result<Loaded> Sweep::load(const Subject& s) {
  Loaded loaded;
  if (s.kind == Subject::Kind::random) {
    generate::RandomOptions random = options_.random;
    random.seed = s.seed;
    generate::RandomCase made = generate::random_case(random);
    loaded.subject = {std::move(made.graph), std::move(made.manifest)};
    CUTAWAY_TRY_ASSIGN(loaded.subject.graph, retype(loaded.subject.graph));
  } else {
    CUTAWAY_TRY_ASSIGN(bundle::BundleArgument argument, bundle::open_argument(s.path));
    loaded.holder = std::make_shared<bundle::BundleArgument>(std::move(argument));
    CUTAWAY_TRY_ASSIGN(bundle::Bundle b, bundle::read_bundle(loaded.holder->path));
    CUTAWAY_TRY(check_trust(b, options_.is_trusted, {}));
    loaded.store = b.path;
    loaded.subject = {std::move(b.graph), std::move(b.manifest)};
  }
  loaded.digest = ir::digest(loaded.subject.graph).hex();
  return loaded;
}

std::vector<SweepCell> Sweep::cells_of(const Subject& s, const Loaded& loaded) const {
  const auto or_one = [](auto list, auto value) { if (list.empty()) list.push_back(value); return list; };
  const std::string recorded = loaded.subject.manifest.backend;
  std::vector<SweepCell> cells;
  for (const std::string& backend : or_one(options_.backends, recorded.empty() ? std::string("native") : recorded))
    for (const std::string& dtype : or_one(options_.dtypes, std::string(kRecorded)))
      for (const int64_t batch : or_one(options_.batches, int64_t{0}))
        for (const std::string& mode : or_one(options_.modes, std::string(is_trained(loaded.subject) ? "training" : "inference"))) {
          SweepCell c;
          c.subject = s.name;
          c.backend = backend;
          c.dtype = dtype;
          c.batch = batch;
          c.mode = mode;
          c.graph = loaded.digest;
          cells.push_back(std::move(c));
        }
  return cells;
}

// The case of a cell, in its dtype and at its batch size. An Error: there is no such form of it.
base::Result<Prepared> Sweep::prepare(const SweepCell& cell, std::shared_ptr<const Loaded> loaded) {
  Prepared p{cell, loaded->subject, loaded};
  p.subject.manifest.backend = cell.backend;
  if (cell.mode == "training" && !is_trained(p.subject)) return base::Error{.what = "no input asks for gradients"};
  const Variation variation{cell.dtype == kRecorded ? std::nullopt : ir::dtype_from_name(cell.dtype), cell.batch};
  if (!variation.is_any()) return p;
  CUTAWAY_TRY(vary(p.subject, variation));
  CUTAWAY_TRY_ASSIGN(p.subject.graph, retype(p.subject.graph));
  return p;
}

base::Status Sweep::note(SweepCell cell) {
  if (cell.outcome == "failure") ++failures_;
  CUTAWAY_TRY(journal_->add(cell));
  report_.cells.push_back(std::move(cell));
  if (options_.on_progress) options_.on_progress(report_.cells.size(), failures_);
  return {};
}

base::Status Sweep::ask_pending() {
  while (!pending_.empty() && !is_interrupted()) {
    // One worker at a time, with all that waits for it.
    CUTAWAY_TRY_ASSIGN(Served* const served, worker_for(pending_.front().cell.backend, pending_.front().subject.manifest));
    std::vector<Prepared> now, later;
    for (Prepared& p : pending_) {
      CUTAWAY_TRY_ASSIGN(const Served* const its, worker_for(p.cell.backend, p.subject.manifest));
      (its == served ? now : later).push_back(std::move(p));
    }
    pending_ = std::move(later);
    std::vector<worker::Request> requests;
    for (const Prepared& p : now) {
      oracle::Trial t;
      t.subject = p.subject;
      t.store = (p.loaded->store.empty() ? scratch_->path() : p.loaded->store).string();
      t.accuracy = options_.accuracy;
      t.only_forward = p.cell.mode == "inference";
      t.is_trusted = options_.is_trusted;
      requests.push_back({oracle::trial_to_json(t), options_.timeout_ms, memory_limit(options_.max_bytes, p.subject.manifest)});
    }
    auto responses = served->client->ask(requests, options_.jobs);
    if (!responses.ok()) {
      if (is_interrupted()) return {};
      say(now.front().cell.backend + " cannot be asked: " + responses.error().text());
      for (Prepared& p : now) {   // not an answer: a later run asks again
        p.cell.outcome = "not_run";
        p.cell.message = responses.error().what;
        report_.cells.push_back(std::move(p.cell));
      }
      continue;
    }
    for (size_t i = 0; i < now.size(); ++i) {
      const TrialResult r = oracle::result_of((*responses)[i]);
      SweepCell& c = now[i].cell;
      switch (r.outcome) {
        case TrialResult::Outcome::pass: c.outcome = "pass"; break;
        case TrialResult::Outcome::failure: c.outcome = "failure"; break;
        case TrialResult::Outcome::eager_fails: c.outcome = "eager_fails"; break;
        case TrialResult::Outcome::invalid:
        case TrialResult::Outcome::done: c.outcome = "unfit"; break;
      }
      c.signature = r.signature;
      constexpr size_t kMostText = 2000;   // the whole is in the bundle that a failure becomes
      c.message = r.message.substr(0, kMostText);
      c.eager_ms = r.eager_ms;
      c.compile_ms = r.compile_ms;
      c.run_ms = r.run_ms;
      CUTAWAY_TRY(note(std::move(c)));
    }
  }
  return {};
}

// A script says itself what it compiles and with which backend: triage watches it.
base::Status Sweep::answer_script(const Subject& s) {
  SweepCell c;
  c.subject = s.name;
  c.backend = kAsWritten;
  c.dtype = kRecorded;
  c.mode = "script";
  CUTAWAY_TRY_ASSIGN(const std::string text, base::read_file(s.path));
  c.graph = base::digest_text(text).hex();
  if (const SweepCell* known = journal_->cell(c.key()); known && known->graph == c.graph) {
    ++report_.answered_before;
    report_.cells.push_back(*known);
    return {};
  }
  TriageOptions o;
  o.script = {s.path.string()};
  o.output = options_.output / "scripts" / as_file_name(s.name);
  o.accuracy = options_.accuracy;
  o.jobs = options_.jobs;
  o.timeout_ms = options_.timeout_ms;
  o.max_bytes = options_.max_bytes;
  o.time_budget_s = options_.reduction_budget_s;
  o.is_interrupted = options_.is_interrupted;
  auto triaged = triage_script(programs_, o);
  if (is_interrupted()) return {};
  if (!triaged.ok()) {
    c.outcome = "not_run";
    c.message = triaged.error().text();
    report_.cells.push_back(std::move(c));
    return {};
  }
  c.outcome = triaged->exit_code == kPasses ? "pass" : triaged->exit_code == kEagerFails ? "eager_fails" : "failure";
  c.signature = triaged->signature;
  c.message = triaged->message;
  if (c.outcome == "failure") {
    SweepFailure f;
    f.description = triaged->signature.kind.empty() ? triaged->message : oracle::describe(triaged->signature, triaged->message);
    f.backend = triaged->backend;
    f.bundle = triaged->bundle;
    f.repro = triaged->repro;
    f.report = triaged->report;
    if (triaged->minimal) {
      f.graph = triaged->minimal->graph_text;
      f.nodes = triaged->minimal->after.nodes;
      f.is_verified = triaged->minimal->exit_code == 0;
    }
    f.cells = {c.key()};
    CUTAWAY_TRY(journal_->add(c.key(), f));
  }
  return note(std::move(c));
}

base::Status Sweep::answer_cells() {
  const size_t most_pending = static_cast<size_t>(options_.jobs) * 8;   // few enough that a kill loses little
  for (const Subject& s : subjects_) {
    if (is_interrupted()) break;
    if (s.kind == Subject::Kind::script) {
      say("triage of " + s.name);
      CUTAWAY_TRY(answer_script(s));
      continue;
    }
    auto read = load(s);
    if (!read.ok()) {
      if (is_interrupted()) break;
      if (s.kind != Subject::Kind::random) return std::move(read).error();
      SweepCell c;
      c.subject = s.name;
      c.outcome = "unfit";
      c.message = read.error().text();
      report_.cells.push_back(std::move(c));
      continue;
    }
    const auto loaded = std::make_shared<const Loaded>(*std::move(read));
    for (SweepCell& cell : cells_of(s, *loaded)) {
      if (const SweepCell* known = journal_->cell(cell.key()); known && known->graph == cell.graph) {
        ++report_.answered_before;
        if (known->outcome == "failure") ++failures_;
        report_.cells.push_back(*known);
        continue;
      }
      auto prepared = prepare(cell, loaded);
      if (prepared.ok()) {
        pending_.push_back(*std::move(prepared));
      } else if (!is_interrupted()) {
        cell.outcome = "unfit";
        cell.message = prepared.error().text();
        CUTAWAY_TRY(note(std::move(cell)));
      }
    }
    if (pending_.size() >= most_pending) CUTAWAY_TRY(ask_pending());
  }
  return ask_pending();
}

base::Result<SweepFailure> Sweep::reduce(const SweepCell& cell, size_t number) {
  const auto subject = std::find_if(subjects_.begin(), subjects_.end(), [&](const Subject& s) { return s.name == cell.subject; });
  CUTAWAY_TRY_ASSIGN(Loaded read, load(*subject));
  const auto loaded = std::make_shared<const Loaded>(std::move(read));
  CUTAWAY_TRY_ASSIGN(Prepared p, prepare(cell, loaded));
  p.subject.manifest.accuracy = options_.accuracy == "none" ? "" : options_.accuracy;
  p.subject.manifest.failure = {};   // what the subject had recorded is another failure
  const std::string digits = std::to_string(number);
  const fs::path folder = options_.output / "failures" / (std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits + "-" + as_file_name(fs::path(cell.subject).filename().string() + "-" + cell.column()));
  CUTAWAY_TRY_ASSIGN(const store::Store blobs, store::Store::open(loaded->store.empty() ? scratch_->path() : loaded->store, loaded->store.empty() ? store::Store::Open::create : store::Store::Open::existing));
  CUTAWAY_TRY(base::make_directories(folder.parent_path(), base::Sync::fast));
  CUTAWAY_TRY(bundle::write_bundle(folder, p.subject.graph, p.subject.manifest, blobs));
  CUTAWAY_TRY_ASSIGN(Served* const served, worker_for(cell.backend, p.subject.manifest));
  MinifyOptions o;
  o.bundle = folder;
  o.output = folder.string() + "-minimal";
  o.backend = cell.backend;
  o.accuracy = options_.accuracy;
  o.jobs = options_.jobs;
  o.timeout_ms = options_.timeout_ms;
  o.max_bytes = options_.max_bytes;
  o.time_budget_s = options_.reduction_budget_s;
  o.is_trusted = options_.is_trusted;
  o.only_forward = cell.mode == "inference";
  o.worker = served->client.get();
  o.cache_directory = served->cache;
  o.is_interrupted = options_.is_interrupted;
  o.on_progress = [&](const minify::Progress&) { return !is_interrupted(); };
  std::error_code ec;
  o.resume = fs::exists(o.output, ec);   // a sweep that was killed in here
  CUTAWAY_TRY_ASSIGN(const MinifyReport m, minify_bundle(programs_, o));
  SweepFailure f;
  f.backend = cell.backend;
  f.description = oracle::describe(cell.signature, cell.message);
  f.cells = {cell.key()};
  f.bundle = folder.string();
  if (m.graph_text.empty()) {
    f.note = m.refusal();
    return f;
  }
  f.bundle = m.output;
  f.repro = m.repro;
  f.report = m.report;
  f.graph = m.graph_text;
  f.nodes = m.after.nodes;
  f.is_verified = m.exit_code == 0;
  f.note = m.exit_code == 0 ? "" : m.message;
  return f;
}

base::Status Sweep::reduce_failures() {
  std::map<std::string, size_t> by_signature, by_graph;   // -> place among the failures
  uint64_t reduced = 0;
  size_t number = 0;
  for (const SweepCell& cell : report_.cells) {
    if (cell.outcome != "failure") continue;
    ++number;
    const std::string signature = short_signature(cell.backend, cell.signature);
    // One exception message is one failure. Wrong numbers look alike, whatever they come from: only the minimal graph tells them apart.
    if (cell.signature.kind != "accuracy")
      if (const auto found = by_signature.find(signature); found != by_signature.end()) {
        report_.failures[found->second].cells.push_back(cell.key());
        continue;
      }
    SweepFailure f;
    if (const SweepFailure* known = journal_->reduced(cell.key())) {
      f = *known;
    } else if (reduced >= options_.most_reduced || is_interrupted()) {
      f.backend = cell.backend;
      f.description = oracle::describe(cell.signature, cell.message);
      f.cells = {cell.key()};
      f.note = is_interrupted() ? "interrupted before it was cut down" : "not cut down: " + base::count_of(options_.most_reduced, "other failure") + " came first (--most-minified)";
    } else {
      say("cutting down " + cell.subject + " (" + cell.column() + ")");
      auto made = reduce(cell, number);
      if (!made.ok()) {
        if (is_interrupted()) { report_.was_interrupted = true; }
        f.backend = cell.backend;
        f.description = oracle::describe(cell.signature, cell.message);
        f.cells = {cell.key()};
        f.note = "it could not be cut down: " + made.error().text();
      } else {
        f = *std::move(made);
        CUTAWAY_TRY(journal_->add(cell.key(), f));
      }
      ++reduced;
    }
    const std::string identity = f.graph.empty() ? "unreduced|" + signature + (cell.signature.kind == "accuracy" ? "|" + f.note : "") : signature + "|" + operators_of(f.graph);
    const auto [place, is_new] = by_graph.emplace(identity, report_.failures.size());
    if (is_new) report_.failures.push_back(std::move(f));
    else report_.failures[place->second].cells.push_back(cell.key());
    by_signature.emplace(signature, place->second);
  }
  return {};
}

base::Result<SweepReport> Sweep::run() {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& name : options_.dtypes)
    if (name != kRecorded && (!ir::dtype_from_name(name) || !ir::is_floating(*ir::dtype_from_name(name)))) return base::Error{.what = "--dtypes " + base::quote(name) + " is not a floating dtype", .hint = "f32, bf16, f16, f64 or recorded"};
  for (const std::string& mode : options_.modes)
    if (mode != "training" && mode != "inference") return base::Error{.what = "--modes " + base::quote(mode) + " is not a mode", .hint = "training, inference"};
  CUTAWAY_TRY(find_subjects());
  CUTAWAY_TRY(base::make_directories(options_.output));
  CUTAWAY_TRY_ASSIGN(journal_, SweepJournal::open(options_.output / "sweep.jsonl", "accuracy " + options_.accuracy, options_.resume));
  CUTAWAY_TRY_ASSIGN(base::TemporaryDirectory scratch, base::TemporaryDirectory::make("cutaway-sweep-"));
  scratch_.emplace(std::move(scratch));
  CUTAWAY_TRY(store::Store::open(scratch_->path(), store::Store::Open::create));
  CUTAWAY_TRY(answer_cells());
  std::map<std::string, size_t> order;   // as the subjects were named, whatever came first
  for (const Subject& s : subjects_) order.emplace(s.name, order.size());
  std::stable_sort(report_.cells.begin(), report_.cells.end(), [&](const SweepCell& a, const SweepCell& b) { return order[a.subject] < order[b.subject]; });
  CUTAWAY_TRY(reduce_failures());
  report_.was_interrupted = report_.was_interrupted || is_interrupted();
  report_.output = options_.output.string();
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CUTAWAY_TRY(base::write_file_atomic(options_.output / "sweep.json", report_.to_json() + "\n"));
  CUTAWAY_TRY(base::write_file_atomic(options_.output / "sweep.html", sweep_page(report_)));
  report_.page = (options_.output / "sweep.html").string();
  return std::move(report_);
}

}  // namespace

base::Result<SweepReport> sweep(const Programs& programs, const SweepOptions& given) {
  SweepOptions options = given;
  if (options.output.empty()) options.output = "cutaway_sweep";
  return Sweep(programs, options).run();
}

}  // namespace cutaway::flows
