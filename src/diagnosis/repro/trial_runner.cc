#include "diagnosis/repro/trial_runner.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <cstdint>

#include "compiler/backends/backend.h"
#include "core/base/text.h"
#include "core/exec/forward_backward.h"
#include "core/exec/interpreter.h"
#include "core/exec/region_state.h"
#include "core/ir/text.h"
#include "core/tensor/make.h"
#include "core/tensor/tensor_store.h"
#include "diagnosis/compare/same_values.h"
#include "diagnosis/oracle/signature.h"
#include "diagnosis/oracle/trust.h"
#include "diagnosis/repro/analyze.h"
#include "diagnosis/repro/exception_facts.h"
#include "diagnosis/worker/phase.h"

namespace cutaway::repro {
namespace {

using oracle::Trial;
using oracle::TrialResult;
using Values = std::vector<c10::IValue>;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }

TrialResult refused(TrialResult::Outcome outcome, const base::Error& e) {
  TrialResult r;
  r.outcome = outcome;
  r.message = e.text();
  return r;
}

// The source line of the op that raised in this thread's last Program::run.
std::string frame_of_error(const ir::Graph& g) {
  const int64_t wanted = exec::Program::error_position();
  std::string frame;
  int64_t position = 0;
  if (wanted >= 0)
    ir::for_each_node(g.body, [&](const ir::Node& n) {
      if (n.kind == ir::Node::Kind::op && position++ == wanted && n.location != ir::kNoLocation) {
        const ir::Location& l = g.locations[n.location];
        frame = l.file + ":" + std::to_string(l.line) + " " + l.function;
      }
    });
  return frame;
}

void describe_failure(TrialResult& r, const ExceptionFacts& f, const std::string& stage) {
  r.outcome = TrialResult::Outcome::failure;
  r.signature.kind = !f.signal.empty() ? "crash" : f.is_memory ? "memory" : "exception";
  r.signature.stage = stage;
  r.signature.signal = f.signal;
  if (!f.signal.empty()) {
    r.message = f.message;
    return;
  }
  r.signature.type = f.type;
  r.signature.message = oracle::normalise_message(f.message);
  r.signature.op = oracle::operator_in(f.message);
  r.signature.user_frame = f.user_frame;
  r.suspects = f.suspects;
  r.new_kernels = f.new_kernels;
  r.message = f.message + (f.trace.empty() ? "" : "\n\n" + f.trace);
}

struct Run {
  Values outputs, gradients, inputs_after;
  Values all() const {
    Values v = outputs;
    v.insert(v.end(), gradients.begin(), gradients.end());
    v.insert(v.end(), inputs_after.begin(), inputs_after.end());
    return v;
  }
};

class TrialRun {
 public:
  explicit TrialRun(const Trial& t) : trial_(t), graph_(t.subject.graph), manifest_(t.subject.manifest) {}
  TrialResult run();

 private:
  /// What every run of the graph starts from.
  struct Ready { Values inputs; exec::Program program; exec::StateSetting state; };
  base::Result<Ready> prepare() const;
  base::Result<Values> load() const;
  Run execute(const exec::Runnable&, const Values& inputs) const;
  TrialResult compare_with_eager();
  TrialResult record();
  TrialResult retype();
  TrialResult compact();
  std::vector<std::string> names(const Run&) const;

  const Trial& trial_;
  const ir::Graph& graph_;
  const bundle::Manifest& manifest_;
};

base::Result<Values> TrialRun::load() const {
  CUTAWAY_TRY_ASSIGN(store::Store store, store::Store::open(trial_.store, store::Store::Open::existing_or_empty));
  return tensor::load_inputs(manifest_.inputs, store);
}

base::Result<TrialRun::Ready> TrialRun::prepare() const {
  CUTAWAY_TRY_ASSIGN(Values inputs, load());
  CUTAWAY_TRY_ASSIGN(exec::Program program, exec::Program::prepare(graph_));
  CUTAWAY_TRY_ASSIGN(exec::StateSetting state, exec::prepare_state(manifest_.state));
  return Ready{std::move(inputs), std::move(program), std::move(state)};
}

Run TrialRun::execute(const exec::Runnable& f, const Values& inputs) const {
  exec::ForwardBackwardOptions options;
  options.only_forward = trial_.only_forward || manifest_.stage == "aot";
  exec::RunResults results = exec::run_fwd_maybe_bwd(f, inputs, options, manifest_.seed);
  Run run;
  run.outputs = std::move(results.outputs);
  for (auto& t : results.input_gradients) run.gradients.emplace_back(std::move(t));
  for (auto& t : results.inputs_after) run.inputs_after.emplace_back(std::move(t));
  return run;
}

std::vector<std::string> TrialRun::names(const Run& run) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < run.outputs.size(); ++i) names.push_back("output " + std::to_string(i));
  for (size_t i = 0; i < run.gradients.size(); ++i) names.push_back("gradient " + std::to_string(i));
  for (size_t i = 0; i < run.inputs_after.size(); ++i) names.push_back("input " + std::to_string(i) + " after the run");
  return names;
}

TrialResult TrialRun::compare_with_eager() {
  TrialResult r;
  auto ready = prepare();
  if (!ready.ok()) return refused(TrialResult::Outcome::invalid, ready.error());
  const Values& inputs = ready->inputs;
  const exec::Program& program = ready->program;
  exec::StateScope scope(ready->state);

  // Eager first: a candidate that eager cannot run says nothing about a compiler.
  const exec::Runnable eager = [&](Values& in) { return program.run(in); };
  worker::set_phase("eager");
  Run reference;
  auto start = Clock::now();
  try {
    reference = execute(eager, inputs);
  } catch (...) {
    ExceptionFacts facts = describe_exception(std::current_exception());
    describe_failure(r, facts, "eager");
    r.outcome = TrialResult::Outcome::eager_fails;
    r.user_frame = frame_of_error(graph_);
    return r;
  }
  r.eager_ms = ms_since(start);

  const bool checks_numbers = trial_.accuracy != "none";
  compare::Options options;
  options.tol = trial_.tolerance;
  options.equal_nan = true;
  options.ignore_non_fp = trial_.accuracy == "accuracy";
  Values fp64;
  if (checks_numbers) {
    // The same rules on eager twice: an eager that does not repeat itself cannot judge.
    try {
      const Run again = execute(eager, inputs);
      if (auto v = compare::same_values(reference.all(), again.all(), {}, options, names(reference)); !v) {
        r.outcome = TrialResult::Outcome::eager_fails;
        r.message = "eager differs from itself: " + v.text();
        return r;
      }
      const ir::Graph wide = tensor::cast_to_fp64(graph_);
      if (auto p = exec::Program::prepare(wide); p.ok())
        fp64 = execute([&](Values& in) { return p->run(in); }, tensor::cast_to_fp64(inputs)).all();
    } catch (...) {
      fp64.clear();   // not every program runs in double precision; the comparison then has no fp64 reference and says so
    }
  }

  auto backend = backends::find_backend(manifest_.backend.empty() ? "eager" : manifest_.backend);
  if (!backend.ok()) return refused(TrialResult::Outcome::invalid, backend.error());
  if (!trial_.switches.empty() && !(*backend)->has_parts())
    return refused(TrialResult::Outcome::invalid, {"the backend " + base::quote(manifest_.backend) + " has no parts that can be switched off", "", "", "", ""});
  (*backend)->configure({manifest_.stage, manifest_.tracing_mode, manifest_.options, manifest_.extra, false, trial_.switches});
  Run result;
  worker::set_phase("backend");
  try {
    start = Clock::now();
    auto compiled = (*backend)->compile(graph_, inputs, nullptr);
    if (!compiled.ok()) return refused(TrialResult::Outcome::invalid, compiled.error());
    r.compile_ms = ms_since(start);
    start = Clock::now();
    result = execute([&](Values& in) { return (*compiled)->run(in); }, inputs);
    r.run_ms = ms_since(start);
    r.new_kernels = (*compiled)->new_kernels();
  } catch (...) {
    (r.compile_ms == 0 ? r.compile_ms : r.run_ms) = ms_since(start);   // who asks again wants to know what that costs
    describe_failure(r, describe_exception(std::current_exception()), "backend");
    return r;
  }
  worker::set_phase("compare");
  r.outcome = TrialResult::Outcome::pass;
  if (!checks_numbers) return r;
  const compare::Verdict verdict = compare::same_values(reference.all(), result.all(), fp64, options, names(reference));
  r.verdict = verdict.to_json();
  r.message = verdict.text();
  const bool ok = trial_.accuracy == "strict" ? verdict.outcome == compare::Outcome::equal : static_cast<bool>(verdict);
  if (!ok) {
    r.outcome = TrialResult::Outcome::failure;
    r.signature.kind = "accuracy";
    r.signature.stage = "backend";
    r.signature.message = verdict.reason;
  }
  return r;
}

TrialResult TrialRun::record() {
  TrialResult r;
  auto ready = prepare();
  if (!ready.ok()) return refused(TrialResult::Outcome::invalid, ready.error());
  const Values& inputs = ready->inputs;
  const exec::Program& program = ready->program;
  auto store = store::Store::open(trial_.store, store::Store::Open::existing, store::Durability::fast);
  if (!store.ok()) return refused(TrialResult::Outcome::invalid, store.error());
  exec::StateScope scope(ready->state);
  // Only top-level values can become inputs, and those of captured calls appear as the results of their regions.
  std::map<std::string, at::Tensor> values;
  exec::Hooks hooks;
  hooks.after = [&](size_t, const ir::Node& n, std::vector<c10::IValue>& results) {
    for (size_t i = 0; i < results.size() && i < n.results.size(); ++i)
      if (results[i].isTensor() && results[i].toTensor().defined()) values[graph_.value(n.results[i]).name] = results[i].toTensor();
  };
  exec::RunOptions options;
  options.hooks = &hooks;
  base::Status problem;
  std::map<std::string, std::string> region_result;   // a captured call's value -> the value inside its region that it is
  for (const ir::Node& n : graph_.body.nodes)
    if (!n.regions.empty())
      for (size_t i = 0; i < n.results.size() && i < n.regions[0].outputs.size(); ++i)
        if (auto* ref = n.regions[0].outputs[i].as<ir::ValueRef>()) region_result[graph_.value(n.results[i]).name] = graph_.value(ref->id).name;
  try {
    execute([&](Values& in) { return program.run(in, options); }, inputs);
  } catch (...) {
    describe_failure(r, describe_exception(std::current_exception()), "eager");
    r.outcome = TrialResult::Outcome::eager_fails;
    r.user_frame = frame_of_error(graph_);
    return r;
  }
  for (const ir::Node& n : graph_.body.nodes)
    for (ir::ValueId id : n.results) {
      const std::string& name = graph_.value(id).name;
      auto alias = region_result.find(name);
      auto it = values.find(alias == region_result.end() ? name : alias->second);
      if (it == values.end()) continue;
      auto saved = tensor::save_inputs(*store, {it->second.detach()});
      if (saved.ok()) r.values.emplace(name, std::move(saved->front()));
    }
  r.outcome = TrialResult::Outcome::done;
  return r;
}

TrialResult TrialRun::retype() {
  auto typed = exec::infer_types(graph_);
  if (!typed.ok()) return refused(TrialResult::Outcome::invalid, typed.error());
  TrialResult r;
  ir::PrintOptions print;
  print.header = true;
  r.graph = ir::print(*typed, print);
  r.outcome = TrialResult::Outcome::done;
  return r;
}

TrialResult TrialRun::compact() {
  auto inputs = load();
  if (!inputs.ok()) return refused(TrialResult::Outcome::invalid, inputs.error());
  auto store = store::Store::open(trial_.store, store::Store::Open::existing_or_empty);
  if (!store.ok()) return refused(TrialResult::Outcome::invalid, store.error());
  // A view of a large storage that nothing else looks at keeps only what it sees.
  std::map<const void*, int> users;
  for (const auto& v : *inputs)
    if (v.isTensor() && v.toTensor().defined()) ++users[v.toTensor().storage().unsafeGetStorageImpl()];
  TrialResult r;
  r.inputs = manifest_.inputs;
  Values plain;
  std::vector<size_t> positions;
  for (size_t i = 0; i < inputs->size(); ++i) {
    if (manifest_.inputs[i].kind != bundle::InputRef::Kind::data) continue;
    at::Tensor t = (*inputs)[i].toTensor();
    if (users[t.storage().unsafeGetStorageImpl()] == 1 && t.storage().nbytes() > t.nbytes()) {
      at::Tensor copy = at::empty_strided(t.sizes(), t.is_non_overlapping_and_dense() ? t.strides() : t.contiguous().strides(), t.options().requires_grad(false));
      { at::NoGradGuard no_grad; copy.copy_(t.detach()); }
      t = copy.requires_grad_(t.requires_grad());
    }
    plain.emplace_back(t);
    positions.push_back(i);
  }
  auto saved = tensor::save_inputs(*store, plain);
  if (!saved.ok()) return refused(TrialResult::Outcome::invalid, saved.error());
  for (size_t k = 0; k < positions.size(); ++k) r.inputs[positions[k]] = std::move((*saved)[k]);
  r.outcome = TrialResult::Outcome::done;
  return r;
}

TrialResult TrialRun::run() {
  if (!trial_.is_trusted && trial_.task != Trial::Task::retype)
    if (auto risks = oracle::needs_trust(graph_, manifest_); !risks.empty())
      return refused(TrialResult::Outcome::invalid, {"this bundle " + risks.front(), "", "", "--trust, when you know who wrote it", ""});
  switch (trial_.task) {
    case Trial::Task::run: return compare_with_eager();
    case Trial::Task::record: return record();
    case Trial::Task::retype: return retype();
    case Trial::Task::compact: return compact();
    case Trial::Task::analyze: return analyze(trial_);
  }
  return {};
}

}  // namespace

TrialResult run_trial(const Trial& trial) {
  if (!trial.only_forward) {
    // What such a backend computes has no history, so eager must not be asked for gradients either.
    if (auto backend = backends::find_backend(trial.subject.manifest.backend.empty() ? "eager" : trial.subject.manifest.backend); backend.ok() && (*backend)->is_forward_only()) {
      Trial forward = trial;
      forward.only_forward = true;
      return run_trial(forward);
    }
  }
  if (at::get_num_threads() != trial.threads) at::set_num_threads(trial.threads);
  try {
    return TrialRun(trial).run();
  } catch (...) {   // a fault of ours or of torch outside the candidate's own run: never taken for the bug
    TrialResult r;
    const ExceptionFacts f = describe_exception(std::current_exception());
    r.outcome = TrialResult::Outcome::invalid;
    r.message = f.type + ": " + f.message;
    return r;
  }
}

std::string handle_request(const std::string& body) {
  auto trial = oracle::trial_from_json(body);
  if (!trial.ok()) return oracle::result_to_json(refused(TrialResult::Outcome::invalid, trial.error()));
  return oracle::result_to_json(run_trial(*trial));
}

void warm_up() {
  at::set_num_threads(1);
  auto x = at::ones({8, 8}), w = at::ones({8, 8}).requires_grad_(true);
  const at::Tensor y = at::relu(at::mm(x, w)).sum();
  // Beside CUDA the engine of autograd would start its threads and wake the driver: a forked child could use neither.
  if (!c10::impl::hasDeviceGuardImpl(at::kCUDA)) y.backward();
}

}  // namespace cutaway::repro
