#include "diagnosis/repro/analyze.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "core/exec/interpreter.h"
#include "core/exec/region_state.h"
#include "core/ir/edit.h"
#include "core/tensor/tensor_store.h"
#include "diagnosis/compare/same_values.h"
#include "diagnosis/oracle/signature.h"
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

/// What was measured of a stretch.
struct Measured {
  bool is_measured = false;
  int looks = 0, bad = 0;
  compare::Verdict verdict;   // of the worst look
  std::string problem;        // why it is not measured
  bool is_bad() const { return bad > 0; }
};

// The comparison's words, but for the two that read otherwise of a node.
std::string words(Outcome o) {
  if (o == Outcome::raised) return "raises";
  if (o == Outcome::refused) return "not measured";
  return std::string(compare::outcome_name(o));
}

class Analyzer {
 public:
  Analyzer(const Trial& trial, Meter& meter, Values inputs)
      : trial_(trial), graph_(trial.subject.graph), meter_(meter), inputs_(std::move(inputs)), local_(graph_.body.nodes.size()) {}
  TrialResult run();

 private:
  size_t count() const { return graph_.body.nodes.size(); }
  bool has_time() const { return trial_.every_node || std::chrono::duration<double>(Clock::now() - start_).count() < trial_.budget_s; }
  bool look_at_whole(TrialResult&);
  Measured measure(const Stepper&, Stretch);
  Measured measure(Stretch);
  bool is_bad(Stretch s) { return measure(s).is_bad(); }
  void find_first();
  void halve(Stretch);
  void shorten(Stretch);
  void measure_nodes(const std::vector<size_t>& nodes);
  void measure_others();
  void conclude(TrialResult&);

  const Trial& trial_;
  const ir::Graph& graph_;
  Meter& meter_;
  Values inputs_;
  Clock::time_point start_ = Clock::now();
  Analysis analysis_;
  std::vector<Measured> local_;
  Cumulative cumulative_;
  compare::Verdict whole_;      // of the worst look
  int looks_ = 1;               // at each stretch; more when the backend is flaky
};

/// False when there is nothing to analyze; the result then says why.
bool Analyzer::look_at_whole(TrialResult& r) {
  Clock::time_point begin = Clock::now();
  const Reference reference = meter_.reference(graph_, inputs_);
  r.eager_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (!reference.problem.empty()) {
    r.outcome = TrialResult::Outcome::eager_fails;
    r.message = reference.problem;
    return false;
  }
  const compare::Verdict again = meter_.repeat_eager(graph_, inputs_, reference);
  analysis_.eager = again.outcome == Outcome::equal ? Analysis::Repeat::identical : again ? Analysis::Repeat::same : Analysis::Repeat::differs;
  if (!again) {
    r.outcome = TrialResult::Outcome::eager_fails;
    r.message = "eager differs from itself: " + again.text();
    return false;
  }
  if (reference.fp64.empty()) analysis_.remarks.push_back("the graph has no fp64 run: rounding and error cannot be told apart beyond the tolerance");

  // A fault may show in some compilations only, or in some runs of one.
  Values first;
  int wanted = 2;
  for (int i = 0; i < wanted; ++i) {
    const bool fresh = i == 0 || wanted > 2 || r.compile_ms < kAffordableMs;
    Look look = meter_.look(graph_, inputs_, reference, fresh ? Meter::Compile::anew : Meter::Compile::once);
    if (!look.problem.empty()) {
      r.outcome = TrialResult::Outcome::invalid;
      r.message = look.problem;
      return false;
    }
    if (!look.exception && trial_.accuracy == "accuracy") {   // what is not floating point does not count at the end of the graph, as for `run`
      compare::Options rules = meter_.rules();
      rules.ignore_non_fp = true;
      look.verdict = compare::same_values(reference.eager, look.results, reference.fp64, rules, reference.names);
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
        r.signature.kind = look.exception->is_memory ? "memory" : "exception";
        r.signature.type = look.exception->type;
        r.signature.message = oracle::normalise_message(look.exception->message);
        r.signature.op = oracle::operator_in(look.exception->message);
        r.signature.user_frame = look.exception->user_frame;
      }
    }
    if (look.exception) continue;
    if (first.empty()) first = std::move(look.results);
    else {
      const compare::Verdict same = compare::same_values(first, look.results, {}, meter_.rules(), reference.names);
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
    r.signature.stage = "backend";
    if (r.signature.kind.empty()) {
      r.signature.kind = "accuracy";
      r.signature.message = whole_.reason;
    }
  }
  return true;
}

Measured Analyzer::measure(const Stepper& stepper, Stretch s) {
  Measured m;
  std::vector<size_t> positions(s.size());
  std::iota(positions.begin(), positions.end(), s.begin);
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
    Look look = meter_.look(part, values, reference, looks_ > 1 ? Meter::Compile::anew : Meter::Compile::once);
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
  Stepper stepper(graph_, inputs_, trial_.subject.manifest.seed);
  stepper.advance(s.begin);
  Measured m = measure(stepper, s);
  if (s.size() == 1) local_[s.begin] = m;
  return m;
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
  for (size_t i = 0; i < cumulative_.nodes.size(); ++i) {
    if (!cumulative_.nodes[i] || !meter_.is_bad(*cumulative_.nodes[i])) continue;
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
  Stepper stepper(graph_, inputs_, trial_.subject.manifest.seed);
  for (size_t i : nodes) {
    if (local_[i].is_measured || !local_[i].problem.empty()) continue;
    if (!has_time()) return;
    stepper.advance(i);
    local_[i] = measure(stepper, {i, i + 1});
  }
}

void Analyzer::measure_others() {
  std::vector<size_t> all(count());
  std::iota(all.begin(), all.end(), size_t{0});
  if (analysis_.first_wrong >= 0) {
    const size_t first = static_cast<size_t>(analysis_.first_wrong);
    const size_t from = first < kNeighbours ? 0 : first - kNeighbours, to = std::min(count(), first + kNeighbours + 1);
    measure_nodes({all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(to)});
  }
  measure_nodes(all);
  const auto left = std::count_if(local_.begin(), local_.end(), [](const Measured& m) { return !m.is_measured && m.problem.empty(); });
  if (left) analysis_.remarks.push_back(std::to_string(left) + " nodes were not measured alone: the time for them was up (--all takes as long as it needs)");
  // One before the failure's own may be wrong too, where later nodes hid it.
  for (size_t i = 0; i < count(); ++i)
    if (local_[i].is_bad()) {
      if (analysis_.first_wrong < 0 || static_cast<int64_t>(i) < analysis_.first_wrong) {
        analysis_.first_wrong = static_cast<int64_t>(i);
        analysis_.together_with = -1;
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
      row.source = l.file + ":" + std::to_string(l.line) + (l.function.empty() ? "" : " " + l.function);
    }
    const Measured& local = local_[i];
    const compare::Verdict* cumulative = i < cumulative_.nodes.size() && cumulative_.nodes[i] ? &*cumulative_.nodes[i] : nullptr;
    if (local.is_measured && local.verdict.outcome != Outcome::raised) row.local_error = error_of(local.verdict);
    if (cumulative) row.cumulative_error = error_of(*cumulative);
    const bool gets_wrong_input = cumulative && !is_same(cumulative->outcome) && static_cast<int64_t>(i) != analysis_.first_wrong;
    if (local.is_measured) {
      row.reason = local.verdict.reason;
      if (local.is_bad()) row.verdict = local.bad < local.looks ? "nondeterministic" : words(local.verdict.outcome);
      else if (gets_wrong_input) row.verdict = "wrong input";
      else row.verdict = words(cumulative && is_same(cumulative->outcome) ? std::max(local.verdict.outcome, cumulative->outcome) : local.verdict.outcome);
      if (local.is_bad() && local.bad < local.looks) row.reason = std::to_string(local.bad) + " of " + std::to_string(local.looks) + " looks: " + row.reason;
    } else if (cumulative) {
      row.verdict = gets_wrong_input ? "wrong input" : words(cumulative->outcome);
      row.reason = cumulative->reason;
    } else {
      row.verdict = cumulative_.materialised >= 0 ? "fused away" : "not measured";
      row.reason = local.problem;
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
    // With --all a wrong value counts also when the outputs do not show it.
    if (r.outcome == TrialResult::Outcome::failure || trial_.every_node) {
      find_first();
      measure_others();
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
  auto state = exec::prepare_state(trial.subject.manifest.state);
  if (!state.ok()) return refused(state.error());
  auto meter = Meter::make(trial);
  if (!meter.ok()) return refused(meter.error());
  exec::StateScope scope(*state);
  return Analyzer(trial, *meter, std::move(*inputs)).run();
}

}  // namespace cutaway::repro
