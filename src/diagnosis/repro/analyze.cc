#include "diagnosis/repro/analyze.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <unordered_map>

#include "core/exec/interpreter.h"
#include "core/ir/edit.h"
#include "core/tensor/tensor_store.h"
#include "diagnosis/oracle/fx_name.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/repro/analysis_log.h"
#include "diagnosis/repro/cumulative.h"
#include "diagnosis/repro/meter.h"
#include "diagnosis/repro/stepper.h"

namespace cutaway::repro {
namespace {

using compare::Outcome;
using oracle::Analysis;
using oracle::Trial;
using oracle::TrialResult;
using Clock = std::chrono::steady_clock;

constexpr double kCheapMs = 150;        // a compilation that may be repeated a dozen times
constexpr double kAffordableMs = 5000;  // one that may be repeated once
constexpr int kCheapLooks = 12;
constexpr double kMissed = 1e-4;        // how likely a flaky part may be taken for a right one
constexpr int kMaxLooks = 60;
constexpr size_t kNeighbours = 3;       // nodes around the first wrong one that are measured before the others

struct Stretch {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

/// A kernel of the compiled graph as nodes: what is measured together, because nobody sees inside.
struct Unit {
  std::string kernel;
  std::vector<size_t> positions;   // rising; other nodes may lie between
};

/// What was measured of a stretch.
struct Measured {
  bool is_measured = false;
  int looks = 0, bad = 0;
  compare::Verdict verdict;   // of the worst look
  std::string problem;        // why it is not measured
  bool is_bad() const { return bad > 0; }
};

// The comparison's words, but for the two that read otherwise of a node.
std::string words(Outcome o);
std::string words(const compare::Verdict& v) {
  if (v.outcome == Outcome::raised)   // a part that ended its process
    for (const char* end : {"crashes", "hangs"})
      if (v.reason.starts_with(end)) return end;
  return words(v.outcome);
}
std::string words(Outcome o) {
  if (o == Outcome::raised) return "raises";
  if (o == Outcome::refused) return "not measured";
  return std::string(compare::outcome_name(o));
}

class Analyzer {
 public:
  Analyzer(const Trial& trial, const Surroundings& around, Meter& meter, Values inputs)
      : trial_(trial), around_(around), graph_(trial.subject.graph), meter_(meter), inputs_(std::move(inputs)), local_(graph_.body.nodes.size()), unit_of_(graph_.body.nodes.size(), kNone), log_(trial.progress) {}
  TrialResult run();

 private:
  size_t count() const { return graph_.body.nodes.size(); }
  bool has_time() const { return trial_.every_node || std::chrono::duration<double>(Clock::now() - start_).count() < trial_.budget_s; }
  bool look_at_whole(TrialResult&);
  Look look(const std::string& key, const ir::Graph&, const Values&, const Reference&, Meter::Compile);
  void find_units();
  Measured measure(const Stepper&, const std::vector<size_t>& positions);
  Measured measure_unit(const Stepper&, size_t unit);
  Measured measure_unit(size_t unit);
  void look_inside(size_t unit);
  bool find_stored(size_t unit);
  void tell_of_storing();
  void measure_units(const std::vector<size_t>& units);
  Measured measure(Stretch);
  bool is_bad(Stretch s) { return measure(s).is_bad(); }
  void find_first();
  void halve(Stretch);
  void shorten(Stretch);
  void measure_nodes(const std::vector<size_t>& nodes);
  void measure_others();
  void conclude(TrialResult&);

  const Trial& trial_;
  const Surroundings& around_;
  const ir::Graph& graph_;
  Meter& meter_;
  Values inputs_;
  Clock::time_point start_ = Clock::now();
  Analysis analysis_;
  std::vector<Measured> local_;
  std::vector<size_t> unit_of_;        // by node: the first kernel that computes it, or kNone
  Cumulative cumulative_;
  AnalysisLog log_;
  std::vector<Unit> units_;            // none: the backend does not tell its kernels, and every node is measured for itself
  static constexpr size_t kNone = SIZE_MAX;
  std::optional<exec::RunResults> first_look_;
  compare::Verdict whole_;      // of the worst look
  int looks_ = 1;               // at each stretch; more when the backend is flaky
};

/// One comparison, said beforehand: a part may end this process. One that has done so in an earlier try is not tried again.
Look Analyzer::look(const std::string& key, const ir::Graph& graph, const Values& values, const Reference& reference, Meter::Compile compile) {
  if (const auto dead = trial_.dead_parts.find(key); dead != trial_.dead_parts.end()) {
    Look look;
    look.exception.emplace();
    look.exception->type = dead->second == "hang" ? "hangs" : dead->second == "memory" ? "runs out of memory" : "crashes";
    look.exception->message = dead->second;
    look.exception->is_memory = dead->second == "memory";
    look.verdict.outcome = Outcome::raised;
    look.verdict.reason = look.exception->type + (dead->second.starts_with("SIG") ? " with " + dead->second : "");
    return look;
  }
  log_.part(key);
  if (trial_.part_timeout_s > 0) ::alarm(static_cast<unsigned>(trial_.part_timeout_s));
  Look look = meter_.look(graph, values, reference, compile);
  ::alarm(0);
  log_.done();
  return look;
}

/// False when there is nothing to analyze; the result then says why.
bool Analyzer::look_at_whole(TrialResult& r) {
  log_.say("comparing the whole graph with eager and with fp64");
  Clock::time_point begin = Clock::now();
  const Reference reference = meter_.reference(graph_, inputs_);
  r.eager_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (!reference.problem.empty()) {
    r.outcome = TrialResult::Outcome::eager_fails;
    r.message = reference.problem;
    return false;
  }
  const compare::Judge& judge = *reference.judge;
  const compare::Verdict again = judge.repeat_eager();
  analysis_.eager = again.outcome == Outcome::equal ? Analysis::Repeat::identical : again ? Analysis::Repeat::same : Analysis::Repeat::differs;
  if (!again) {
    r.outcome = TrialResult::Outcome::eager_fails;
    r.message = "eager differs from itself: " + again.text();
    return false;
  }
  if (!judge.fp64()) analysis_.remarks.push_back("the graph has no fp64 run: rounding and error cannot be told apart beyond the tolerance");

  // A fault may show in some compilations only, or in some runs of one.
  std::optional<exec::RunResults>& first = first_look_;
  int wanted = 2;
  for (int i = 0; i < wanted; ++i) {
    const bool fresh = i == 0 || wanted > 2 || r.compile_ms < kAffordableMs;
    Look look = this->look("whole", graph_, inputs_, reference, fresh ? Meter::Compile::anew : Meter::Compile::once);
    if (!look.problem.empty()) {
      r.outcome = TrialResult::Outcome::invalid;
      r.message = look.problem;
      return false;
    }
    const bool bad = meter_.is_bad(look.verdict);
    ++analysis_.looks;
    analysis_.bad_looks += bad;
    if (i == 0) {
      r.compile_ms = look.compile_ms;
      r.run_ms = look.run_ms;
      if (look.compile_ms + look.run_ms + r.eager_ms < kCheapMs) wanted = kCheapLooks;
    }
    if (i == 0 || (bad && (analysis_.bad_looks == 1 || look.verdict.outcome > whole_.outcome))) {
      whole_ = look.verdict;
      if (look.exception) {
        const auto dead = trial_.dead_parts.find("whole");
        const bool is_dead = dead != trial_.dead_parts.end();
        r.signature.kind = look.exception->is_memory ? "memory" : !is_dead ? "exception" : dead->second == "hang" ? "hang" : "crash";
        if (is_dead) {
          if (r.signature.kind == "crash") r.signature.signal = dead->second;
          continue;
        }
        r.signature.type = look.exception->type;
        r.signature.message = oracle::normalise_message(look.exception->message);
        r.signature.op = oracle::operator_in(look.exception->message);
        r.signature.user_frame = look.exception->user_frame;
      }
    }
    if (look.exception) continue;
    if (!first) first = std::move(look.results);
    else {
      const compare::Verdict same = compare::compare_runs(*first, look.results, nullptr, judge.rules());
      const Analysis::Repeat now = same.outcome == Outcome::equal ? Analysis::Repeat::identical : same ? Analysis::Repeat::same : Analysis::Repeat::differs;
      analysis_.backend = std::max(analysis_.backend, now);
    }
  }
  if (analysis_.bad_looks > 0 && analysis_.bad_looks < analysis_.looks) {
    analysis_.backend = Analysis::Repeat::differs;
    const double rate = static_cast<double>(analysis_.bad_looks) / static_cast<double>(analysis_.looks);
    looks_ = std::clamp(static_cast<int>(std::ceil(std::log(kMissed) / std::log(1 - rate))), 2, kMaxLooks);
  }
  analysis_.error = error_of(whole_);
  r.verdict = whole_.to_json();
  r.message = whole_.text();
  r.outcome = analysis_.bad_looks ? TrialResult::Outcome::failure : TrialResult::Outcome::pass;
  if (analysis_.bad_looks) {
    if (r.signature.kind.empty()) r.signature = signature_of(whole_);
    r.signature.stage = "backend";
    // Parts are looked at for what the whole is off in: one that only has other strides has nothing to do with wrong numbers.
    meter_.look_at_layout(!whole_.stats);
  } else {
    meter_.look_at_layout(false);
  }
  return true;
}

Measured Analyzer::measure(const Stepper& stepper, const std::vector<size_t>& positions) {
  Measured m;
  std::vector<ir::ValueId> lifted;
  ir::Graph part = ir::extract_subgraph(graph_, positions, &lifted);
  if (part.body.outputs.empty())   // nothing uses it: what it computes is still worth a look
    for (ir::ValueId id : part.body.nodes.back().results) part.body.outputs.emplace_back(ir::ValueRef{id});
  const Values values = stepper.values(lifted);
  const Reference reference = meter_.reference(part, values);
  ++analysis_.pieces;
  if (!reference.problem.empty()) {
    m.problem = reference.problem;
    return m;
  }
  m.is_measured = true;
  while (m.looks < looks_) {
    Look look = this->look(base::Hasher().add(ir::canonical_text(part)).finish().hex(), part, values, reference, looks_ > 1 ? Meter::Compile::anew : Meter::Compile::once);
    if (!look.problem.empty()) {
      m = Measured();
      m.problem = look.problem;
      return m;
    }
    const bool bad = meter_.is_bad(look.verdict);
    if (m.looks == 0 || (bad && m.bad == 0) || look.verdict.outcome > m.verdict.outcome) m.verdict = std::move(look.verdict);
    ++m.looks;
    m.bad += bad;
  }
  return m;
}

Measured Analyzer::measure(Stretch s) {
  Stepper stepper(graph_, inputs_, around_.random);
  stepper.advance(s.begin);
  std::vector<size_t> positions(s.size());
  std::iota(positions.begin(), positions.end(), s.begin);
  log_.say_now_and_then("measuring nodes " + std::to_string(s.begin) + " to " + std::to_string(s.end - 1) + " of " + std::to_string(count()));
  Measured m = measure(stepper, positions);
  if (s.size() == 1) local_[s.begin] = m;
  return m;
}

/// Kernels that share a node as one: after capture a node is a whole call, which may be computed in several steps.
std::vector<Unit> united(std::vector<Unit> units) {
  std::vector<Unit> out;
  for (Unit& unit : units) {
    std::set<size_t> positions(unit.positions.begin(), unit.positions.end());
    std::erase_if(out, [&](const Unit& other) {
      if (std::none_of(other.positions.begin(), other.positions.end(), [&](size_t i) { return positions.count(i) > 0; })) return false;
      positions.insert(other.positions.begin(), other.positions.end());
      unit.kernel = other.kernel + " + " + unit.kernel;
      return true;
    });
    unit.positions.assign(positions.begin(), positions.end());
    out.push_back(std::move(unit));
  }
  return out;
}

/// The kernels of the compiled graph as nodes of ours, where the compiler tells them.
void Analyzer::find_units() {
  const std::vector<backends::Kernel> kernels = meter_.kernels(graph_);
  if (kernels.empty()) return;
  std::unordered_map<std::string, size_t> position;
  for (size_t i = 0; i < count(); ++i)
    for (ir::ValueId id : graph_.body.nodes[i].results) position.emplace(oracle::fx_name(graph_.value(id).name), i);
  std::set<std::string> distinct;
  for (const backends::Kernel& k : kernels) {
    std::set<size_t> nodes;
    for (const std::string& name : k.nodes)
      if (auto it = position.find(name); it != position.end()) nodes.insert(it->second);
    if (nodes.empty()) continue;
    units_.push_back({k.name, {nodes.begin(), nodes.end()}});
  }
  if (trial_.subject.manifest.stage != "aot") units_ = united(std::move(units_));
  for (const Unit& unit : units_) distinct.insert(ir::canonical_text(ir::extract_subgraph(graph_, unit.positions)));
  std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.positions.back() < b.positions.back(); });
  std::fill(unit_of_.begin(), unit_of_.end(), kNone);
  for (size_t u = units_.size(); u-- > 0;)
    for (size_t i : units_[u].positions) unit_of_[i] = u;
  analysis_.kernels = static_cast<int64_t>(kernels.size());
  analysis_.distinct_kernels = static_cast<int64_t>(distinct.size());
}

/// The kernel's nodes on eager's values. What it holds for others is measured with it; what stays inside has no value of its own.
Measured Analyzer::measure_unit(const Stepper& stepper, size_t unit) {
  const std::vector<size_t>& positions = units_[unit].positions;
  Measured m = measure(stepper, positions);
  std::vector<ir::ValueId> produced;
  ir::extract_subgraph(graph_, positions, nullptr, &produced);
  for (size_t i : positions) {
    const std::vector<ir::ValueId>& results = graph_.body.nodes[i].results;
    const bool is_seen = std::any_of(results.begin(), results.end(), [&](ir::ValueId id) { return std::find(produced.begin(), produced.end(), id) != produced.end(); });
    if ((is_seen || positions.size() == 1) && !local_[i].is_measured) local_[i] = m;
  }
  return m;
}

Measured Analyzer::measure_unit(size_t unit) {
  Stepper stepper(graph_, inputs_, around_.random, {units_[unit].positions});
  stepper.advance(units_[unit].positions.back());
  return measure_unit(stepper, unit);
}

/// The kernel once more on eager's values, and this time it stores what it holds: the first value that is wrong had right operands. False: the backend does not
/// store them, or what it stores is right.
bool Analyzer::find_stored(size_t unit) {
  const std::vector<size_t>& positions = units_[unit].positions;
  if (positions.size() < 2 || !meter_.may_observe()) return false;
  std::vector<ir::ValueId> lifted;
  const ir::Graph part = ir::extract_subgraph(graph_, positions, &lifted);
  Stepper stepper(graph_, inputs_, around_.random, {positions});
  stepper.advance(positions.back());
  const Cumulative inside = measure_cumulative(trial_, part, stepper.values(lifted), meter_, analysis_.remarks);
  for (size_t i = 0; i < inside.nodes.size() && i < positions.size(); ++i) {
    if (!inside.nodes[i]) return false;   // one that stayed in registers may be the first
    if (!meter_.is_bad(*inside.nodes[i])) continue;
    analysis_.first_wrong = static_cast<int64_t>(positions[i]);
    analysis_.together_with = -1;
    for (size_t p : positions) local_[p].is_measured = false;   // what was measured was the whole kernel
    Measured& local = local_[positions[i]];
    local.is_measured = true;
    local.looks = local.bad = 1;
    local.problem.clear();
    local.verdict = *inside.nodes[i];
    return true;
  }
  if (!inside.nodes.empty() && inside.materialised > 0) analysis_.remarks.push_back("kernel " + units_[unit].kernel + " is wrong, and right when it stores its intermediate values: the fault is in how they are computed together");
  return false;
}

/// Storing every value is another program than the one that was wrong: whether its outputs are the same is said.
void Analyzer::tell_of_storing() {
  if (!cumulative_.outputs || !first_look_) return;
  exec::RunResults stored = *first_look_;
  stored.outputs = *cumulative_.outputs;
  const compare::Verdict v = compare::compare_runs(*first_look_, stored, nullptr, {});
  if (v.outcome == Outcome::equal) return;
  analysis_.remarks.push_back("storing every value changes the result: " + (v.parts.empty() ? v.reason : v.parts.front().path + ": " + v.parts.front().reason));
}

/// Which node of a wrong kernel: the first whose stored value is wrong, the first that is wrong alone, else all of them together.
void Analyzer::look_inside(size_t unit) {
  const std::vector<size_t>& positions = units_[unit].positions;
  if (find_stored(unit)) return;
  analysis_.first_wrong = -1;
  for (size_t i : positions) {
    if (positions.size() > 1) measure(Stretch{i, i + 1});
    if (local_[i].is_bad() && analysis_.first_wrong < 0) analysis_.first_wrong = static_cast<int64_t>(i);
  }
  analysis_.together_with = -1;
  if (analysis_.first_wrong >= 0) return;
  analysis_.first_wrong = static_cast<int64_t>(positions.back());
  if (positions.size() > 1) analysis_.together_with = static_cast<int64_t>(positions.front());
}

void Analyzer::measure_units(const std::vector<size_t>& units) {
  std::vector<std::vector<size_t>> groups;
  for (size_t u : units) groups.push_back(units_[u].positions);
  Stepper stepper(graph_, inputs_, around_.random, groups);
  size_t number = 0;
  for (size_t u : units) {
    log_.say_now_and_then("measured " + std::to_string(number++) + " of " + std::to_string(units.size()) + " kernels");
    const std::vector<size_t>& positions = units_[u].positions;
    if (std::any_of(positions.begin(), positions.end(), [&](size_t i) { return local_[i].is_measured || !local_[i].problem.empty(); })) continue;
    if (!has_time()) return;
    stepper.advance(positions.back());
    measure_unit(stepper, u);
  }
}

/// From a stretch that is wrong to the first wrong node in it: `analysis_.first_wrong`, which alone is wrong, or the end of the shortest wrong stretch.
void Analyzer::halve(Stretch s) {
  if (s.size() == 1) measure(s);
  while (s.size() > 1) {
    const size_t middle = s.begin + s.size() / 2;
    const Measured left = measure(Stretch{s.begin, middle});
    if (left.is_bad()) {
      s.end = middle;
      continue;
    }
    const Measured right = measure(Stretch{middle, s.end});
    if (!right.is_bad()) return shorten(s);
    s.begin = middle;
  }
  analysis_.first_wrong = static_cast<int64_t>(s.begin);
}

/// Both ends are moved inwards as long as the stretch stays wrong.
void Analyzer::shorten(Stretch s) {
  size_t right = s.begin, wrong = s.end;   // [begin, right) is right, [begin, wrong) is wrong
  while (wrong - right > 1) {
    const size_t middle = right + (wrong - right) / 2;
    (is_bad({s.begin, middle}) ? wrong : right) = middle;
  }
  const size_t end = wrong;
  size_t begin = s.begin, limit = end;     // [begin, end) is wrong, [limit, end) is right or empty
  while (limit - begin > 1) {
    const size_t middle = begin + (limit - begin) / 2;
    (is_bad({middle, end}) ? begin : limit) = middle;
  }
  analysis_.first_wrong = static_cast<int64_t>(end - 1);
  if (end - begin > 1) analysis_.together_with = static_cast<int64_t>(begin);
}

void Analyzer::find_first() {
  if (whole_.outcome != Outcome::raised) cumulative_ = measure_cumulative(trial_, graph_, inputs_, meter_, analysis_.remarks);
  tell_of_storing();
  for (size_t i = 0; i < cumulative_.nodes.size(); ++i) {
    if (!cumulative_.nodes[i] || !meter_.is_bad(*cumulative_.nodes[i])) continue;
    if (unit_of_[i] != kNone && measure_unit(unit_of_[i]).is_bad()) return look_inside(unit_of_[i]);
    if (is_bad({i, i + 1})) {
      analysis_.first_wrong = static_cast<int64_t>(i);
      return;
    }
    if (is_bad({0, i + 1})) return halve({0, i + 1});   // wrong together with nodes before it
    break;
  }
  if (analysis_.bad_looks == 0) return;
  const bool any = std::any_of(cumulative_.nodes.begin(), cumulative_.nodes.end(), [&](const auto& v) { return v && meter_.is_bad(*v); });
  if (!any && whole_.outcome != Outcome::raised)
    analysis_.remarks.push_back("no value along the graph is wrong: the failure needs values that are fused away, is in the gradients, or does not always show");
  halve({0, count()});
}

void Analyzer::measure_nodes(const std::vector<size_t>& nodes) {
  Stepper stepper(graph_, inputs_, around_.random);
  for (size_t i : nodes) {
    if (local_[i].is_measured || !local_[i].problem.empty()) continue;
    if (!has_time()) return;
    stepper.advance(i);
    log_.say_now_and_then("measuring node " + std::to_string(i) + " of " + std::to_string(count()));
    local_[i] = measure(stepper, std::vector<size_t>{i});
  }
}

void Analyzer::measure_others() {
  std::vector<size_t> all(units_.empty() ? count() : units_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (!units_.empty()) {
    measure_units(all);
  } else if (analysis_.first_wrong >= 0) {
    const size_t first = static_cast<size_t>(analysis_.first_wrong);
    const size_t from = first < kNeighbours ? 0 : first - kNeighbours, to = std::min(count(), first + kNeighbours + 1);
    measure_nodes({all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(to)});
  }
  if (units_.empty()) measure_nodes(all);
  const auto is_open = [&](size_t i) { return !local_[i].is_measured && local_[i].problem.empty(); };
  int64_t left = 0;
  if (units_.empty()) for (size_t i = 0; i < count(); ++i) left += is_open(i);
  for (const Unit& u : units_) left += std::all_of(u.positions.begin(), u.positions.end(), is_open);
  if (left && !units_.empty()) analysis_.remarks.push_back(std::to_string(left) + " kernels were not measured alone: the time for them was up (--all takes as long as it needs)");
  if (left && units_.empty()) analysis_.remarks.push_back(std::to_string(left) + " nodes were not measured alone: the time for them was up (--all takes as long as it needs)");
  // One before the failure's own may be wrong too, where later nodes hid it.
  for (size_t i = 0; i < count(); ++i)
    if (local_[i].is_bad()) {
      if (analysis_.first_wrong < 0 || static_cast<int64_t>(i) < analysis_.first_wrong) {
        if (unit_of_[i] != kNone) {
          look_inside(unit_of_[i]);
        } else {
          analysis_.first_wrong = static_cast<int64_t>(i);
          analysis_.together_with = -1;
        }
      }
      break;
    }
}

void Analyzer::conclude(TrialResult& r) {
  analysis_.compiled = meter_.compiled();
  analysis_.materialised = cumulative_.materialised;
  for (size_t i = 0; i < count(); ++i) {
    const ir::Node& n = graph_.body.nodes[i];
    oracle::NodeAnalysis row;
    row.node = n.results.empty() ? "#" + std::to_string(i) : graph_.value(n.results[0]).name;
    row.op = n.kind == ir::Node::Kind::scope ? "scope" : n.target;
    if (n.location != ir::kNoLocation) {
      const ir::Location& l = graph_.locations[n.location];
      if (l.is_known()) row.source = l.file + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " " + l.function);
    }
    if (unit_of_[i] != kNone) row.kernel = units_[unit_of_[i]].kernel;
    const Measured& local = local_[i];
    const compare::Verdict* cumulative = i < cumulative_.nodes.size() && cumulative_.nodes[i] ? &*cumulative_.nodes[i] : nullptr;
    if (local.is_measured && local.verdict.outcome != Outcome::raised) row.local_error = error_of(local.verdict);
    if (cumulative) row.cumulative_error = error_of(*cumulative);
    const bool gets_wrong_input = cumulative && !is_same(cumulative->outcome) && static_cast<int64_t>(i) != analysis_.first_wrong;
    if (local.is_measured) {
      row.reason = local.verdict.reason;
      if (local.is_bad()) row.verdict = local.bad < local.looks ? "nondeterministic" : words(local.verdict);
      else if (gets_wrong_input) row.verdict = "wrong input";
      else row.verdict = words(cumulative && is_same(cumulative->outcome) ? std::max(local.verdict.outcome, cumulative->outcome) : local.verdict.outcome);
      if (local.is_bad() && local.bad < local.looks) row.reason = std::to_string(local.bad) + " of " + std::to_string(local.looks) + " looks: " + row.reason;
    } else if (cumulative) {
      row.verdict = gets_wrong_input ? "wrong input" : words(cumulative->outcome);
      row.reason = cumulative->reason;
    } else {
      row.verdict = cumulative_.materialised >= 0 ? "fused away" : "not measured";
      row.reason = !local.problem.empty() || row.kernel.empty() ? local.problem : "has no value outside of kernel " + row.kernel;
    }
    if (static_cast<int64_t>(i) == analysis_.first_wrong && analysis_.together_with >= 0) {
      row.verdict = "wrong";
      row.reason = "wrong only together with the nodes from %" + analysis_.nodes[static_cast<size_t>(analysis_.together_with)].node + " on";
    }
    analysis_.nodes.push_back(std::move(row));
  }
  r.analysis = std::move(analysis_);
}

TrialResult Analyzer::run() {
  TrialResult r;
  if (!look_at_whole(r)) return r;
  if (count() > 0) {
    // With --all a wrong value counts also when the outputs do not show it. Behind an ill-conditioned operator they cannot.
    const bool is_doubtful = r.outcome == TrialResult::Outcome::pass && whole_.outcome == Outcome::ill_conditioned;
    if (r.outcome == TrialResult::Outcome::failure || trial_.every_node || is_doubtful) {
      find_units();
      find_first();
      measure_others();
    }
    if (is_doubtful && analysis_.first_wrong >= 0) {
      const compare::Verdict& part = local_[static_cast<size_t>(analysis_.first_wrong)].verdict;
      r.outcome = TrialResult::Outcome::failure;
      r.signature = signature_of(part);
      r.message = "the whole graph is ill-conditioned, and a part of it is wrong on eager's own values\n" + part.text();
    }
  }
  conclude(r);
  return r;
}

}  // namespace

TrialResult analyze(const Trial& trial) {
  TrialResult r;
  const auto refused = [&](const base::Error& e) {
    r.outcome = TrialResult::Outcome::invalid;
    r.message = e.text();
    return r;
  };
  auto store = store::Store::open(trial.store, store::Store::Open::existing_or_empty);
  if (!store.ok()) return refused(store.error());
  auto inputs = tensor::load_inputs(trial.subject.manifest.inputs, *store);
  if (!inputs.ok()) return refused(inputs.error());
  auto around = prepare_surroundings(trial.subject.manifest);
  if (!around.ok()) return refused(around.error());
  auto meter = Meter::make(trial, *around);
  if (!meter.ok()) return refused(meter.error());
  const SurroundingsScope scope(*around);
  return Analyzer(trial, *around, *meter, std::move(*inputs)).run();
}

}  // namespace cutaway::repro
