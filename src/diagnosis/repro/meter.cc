#include "diagnosis/repro/meter.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "core/debug/process.h"
#include "core/ir/edit.h"
#include "diagnosis/worker/phase.h"

namespace cutaway::repro {
namespace {
using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }
}  // namespace

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

Meter::Meter(const oracle::Trial& subject, const Surroundings& around, std::map<std::string, std::string> options, std::unique_ptr<backends::Backend> backend)
    : subject_(&subject), around_(&around), options_(std::move(options)), backend_(std::move(backend)) {}

base::Result<Meter> Meter::make(const oracle::Trial& subject, const Surroundings& around) {
  const bundle::Manifest& m = subject.subject.manifest;
  CUTAWAY_TRY_ASSIGN(std::unique_ptr<backends::Backend> backend, backends::find_backend(m.backend.empty() ? "eager" : m.backend));
  std::map<std::string, std::string> options = m.options;
  options.merge(options_to_draw_as_eager(subject.subject.graph, m));
  return Meter(subject, around, std::move(options), std::move(backend));
}

Reference Meter::reference(const ir::Graph& graph, const Values& inputs, Passes passes) const {
  worker::set_phase("eager");
  Reference r;
  try {
    auto judge = make_judge(*subject_, *around_, graph, inputs, {passes, true, looks_at_layout_});
    if (judge.ok()) r.judge = std::move(*judge);
    else r.problem = judge.error().text();
  } catch (...) {
    const ExceptionFacts f = describe_exception(std::current_exception());
    r.problem = f.type + ": " + f.message;
  }
  return r;
}

Look Meter::look(const ir::Graph& graph, const Values& inputs, const Reference& reference, Compile compile, Passes passes) {
  worker::set_phase("backend");
  Look look;
  try {
    auto start = Clock::now();
    std::shared_ptr<backends::CompiledGraph> compiled;
    std::string key = ir::canonical_text(graph);
    if (auto it = cache_.find(key); compile == Compile::once && it != cache_.end()) compiled = it->second;
    if (!compiled) {
      configure(graph, false);
      auto made = backend_->compile(graph, inputs, debug::process_sink());
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
    look.results = run_once(*subject_, *around_, [&](Values& in) { return compiled->run(in); }, inputs, passes);
    look.run_ms = ms_since(start);
  } catch (...) {
    look.exception = describe_exception(std::current_exception());
    worker::set_phase("compare");
    look.verdict.outcome = compare::Outcome::raised;
    look.verdict.reason = look.exception->type + ": " + look.exception->message;
    return look;
  }
  worker::set_phase("compare");
  look.verdict = reference.judge->judge(look.results);
  return look;
}

void Meter::configure(const ir::Graph& part, bool is_observed) {
  const bundle::Manifest& m = subject_->subject.manifest;
  backend_->configure({m.stage, m.tracing_mode, options_, extra_for_backend(part, m, subject_->subject.graph), is_observed, {}, true});
}

std::optional<Values> Meter::observe(const ir::Graph& graph, const Values& inputs, const backends::ValueObserver& observer) {
  const std::string key = "observed " + ir::canonical_text(graph);
  std::shared_ptr<backends::CompiledGraph>& compiled = cache_[key];
  if (!compiled) {
    configure(graph, true);
    auto made = backend_->compile(graph, inputs, debug::process_sink());
    if (!made.ok()) return std::nullopt;
    compiled = std::move(*made);
    ++compiled_;
  }
  if (!compiled->tells_values()) return std::nullopt;
  return run_once(*subject_, *around_, [&](Values& in) { return compiled->run_observed(in, observer); }, inputs, Passes::forward).outputs;
}

std::vector<backends::Kernel> Meter::kernels(const ir::Graph& graph) const {
  const auto it = cache_.find(ir::canonical_text(graph));
  return it == cache_.end() || !it->second ? std::vector<backends::Kernel>() : it->second->kernels();
}

bool Meter::is_bad(const compare::Verdict& v) const {
  return subject_->accuracy == "strict" ? v.outcome != compare::Outcome::equal : !is_same(v.outcome);
}

}  // namespace cutaway::repro
