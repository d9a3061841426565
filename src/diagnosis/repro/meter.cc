#include "diagnosis/repro/meter.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "core/exec/forward_backward.h"
#include "core/exec/interpreter.h"
#include "core/ir/edit.h"
#include "core/tensor/make.h"
#include "diagnosis/compare/same_values.h"
#include "diagnosis/worker/phase.h"

namespace cutaway::repro {
namespace {
using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }
}  // namespace

struct Meter::Ran {
  Values all;
  std::vector<std::string> names;
};

double error_of(const compare::Verdict& v) {
  double error = 0;
  const auto add = [&](const compare::Verdict& part) {
    if (!part.stats) {
      if (part.parts.empty() && !is_same(part.outcome)) error = NAN;   // another shape or kind: there is no difference to take
      return;
    }
    const compare::TensorStats& s = *part.stats;
    if (s.nan_reference != s.nan_result) error = NAN;
    else if (s.inf_reference != s.inf_result && !std::isnan(error)) error = std::numeric_limits<double>::infinity();
    else if (s.max_abs > error) error = s.max_abs;   // false for NaN on either side
  };
  add(v);
  for (const compare::Verdict& part : v.parts) add(part);
  return error;
}

Meter::Meter(const oracle::Trial& subject, std::unique_ptr<backends::Backend> backend) : subject_(&subject), backend_(std::move(backend)) {
  rules_.tol = subject.tolerance;
  rules_.equal_nan = true;
}

base::Result<Meter> Meter::make(const oracle::Trial& subject) {
  const bundle::Manifest& m = subject.subject.manifest;
  CUTAWAY_TRY_ASSIGN(std::unique_ptr<backends::Backend> backend, backends::find_backend(m.backend.empty() ? "eager" : m.backend));
  backend->configure({m.stage, m.tracing_mode, m.options, m.extra});
  return Meter(subject, std::move(backend));
}

template <class F> Meter::Ran Meter::execute(F&& f, const Values& inputs, Run run) const {
  exec::ForwardBackwardOptions options;
  options.only_forward = run == Run::forward || subject_->only_forward || subject_->subject.manifest.stage == "aot";
  exec::RunResults results = exec::run_fwd_maybe_bwd(f, inputs, options, subject_->subject.manifest.seed);
  Ran ran;
  const auto append = [&](auto& from, const char* before, const char* after) {
    for (size_t i = 0; i < from.size(); ++i) {
      ran.names.push_back(before + std::to_string(i) + after);
      ran.all.emplace_back(std::move(from[i]));
    }
  };
  append(results.outputs, "output ", "");
  append(results.input_gradients, "gradient ", "");
  append(results.inputs_after, "input ", " after the run");
  return ran;
}

Reference Meter::reference(const ir::Graph& graph, const Values& inputs, Run run) const {
  worker::set_phase("eager");
  Reference r;
  auto program = exec::Program::prepare(graph);
  if (!program.ok()) {
    r.problem = program.error().text();
    return r;
  }
  try {
    Ran ran = execute([&](Values& in) { return program->run(in); }, inputs, run);
    r.eager = std::move(ran.all);
    r.names = std::move(ran.names);
  } catch (...) {
    const ExceptionFacts f = describe_exception(std::current_exception());
    r.problem = f.type + ": " + f.message;
    return r;
  }
  try {
    if (auto wide = exec::Program::prepare(tensor::cast_to_fp64(graph)); wide.ok())
      r.fp64 = execute([&](Values& in) { return wide->run(in); }, tensor::cast_to_fp64(inputs), run).all;
  } catch (...) {
    r.fp64.clear();   // not every program runs in double precision; the comparison then has no fp64 reference
  }
  return r;
}

compare::Verdict Meter::repeat_eager(const ir::Graph& graph, const Values& inputs, const Reference& reference) const {
  auto program = exec::Program::prepare(graph);
  if (!program.ok()) throw std::logic_error("a graph that ran cannot be prepared again");
  const Ran again = execute([&](Values& in) { return program->run(in); }, inputs, Run::forward_and_backward);
  return compare::same_values(reference.eager, again.all, {}, rules_, reference.names);
}

Look Meter::look(const ir::Graph& graph, const Values& inputs, const Reference& reference, Compile compile, Run run) {
  worker::set_phase("backend");
  Look look;
  try {
    auto start = Clock::now();
    std::shared_ptr<backends::CompiledGraph> compiled;
    std::string key = ir::canonical_text(graph);
    if (auto it = cache_.find(key); compile == Compile::once && it != cache_.end()) compiled = it->second;
    if (!compiled) {
      auto made = backend_->compile(graph, inputs, nullptr);
      if (!made.ok()) {
        look.problem = made.error().text();
        look.verdict.outcome = compare::Outcome::refused;
        return look;
      }
      compiled = std::move(*made);
      ++compiled_;
      cache_[std::move(key)] = compiled;
    }
    look.compile_ms = ms_since(start);
    start = Clock::now();
    look.results = execute([&](Values& in) { return compiled->run(in); }, inputs, run).all;
    look.run_ms = ms_since(start);
  } catch (...) {
    look.exception = describe_exception(std::current_exception());
    worker::set_phase("compare");
    look.verdict.outcome = compare::Outcome::raised;
    look.verdict.reason = look.exception->type + ": " + look.exception->message;
    return look;
  }
  worker::set_phase("compare");
  look.verdict = compare::same_values(reference.eager, look.results, reference.fp64, rules_, reference.names);
  return look;
}

bool Meter::observe(const ir::Graph& graph, const Values& inputs, const backends::ValueObserver& observer) {
  const bundle::Manifest& m = subject_->subject.manifest;
  const std::string key = "observed " + ir::canonical_text(graph);
  std::shared_ptr<backends::CompiledGraph>& compiled = cache_[key];
  if (!compiled) {
    backend_->configure({m.stage, m.tracing_mode, m.options, m.extra, true});
    auto made = backend_->compile(graph, inputs, nullptr);
    backend_->configure({m.stage, m.tracing_mode, m.options, m.extra});
    if (!made.ok()) return false;
    compiled = std::move(*made);
    ++compiled_;
  }
  if (!compiled->tells_values()) return false;
  execute([&](Values& in) { return compiled->run_observed(in, observer); }, inputs, Run::forward);
  return true;
}

std::vector<backends::Kernel> Meter::kernels(const ir::Graph& graph) const {
  const auto it = cache_.find(ir::canonical_text(graph));
  return it == cache_.end() || !it->second ? std::vector<backends::Kernel>() : it->second->kernels();
}

bool Meter::is_bad(const compare::Verdict& v) const {
  return subject_->accuracy == "strict" ? v.outcome != compare::Outcome::equal : !is_same(v.outcome);
}

}  // namespace cutaway::repro
