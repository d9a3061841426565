// Measures how far a backend is from eager on one graph and one set of values: the step that `analyze` repeats on parts of a graph.
// Main type: Meter. It compiles equal graphs once. Crashes and hangs are the caller's (a fork server's) business.
#pragma once
#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/backends/backend.h"
#include "core/ir/graph.h"
#include "diagnosis/compare/judge.h"
#include "diagnosis/oracle/trial.h"
#include "diagnosis/repro/exception_facts.h"
#include "diagnosis/repro/reference.h"

namespace cutaway::repro {

/// What eager does, and the fp64 run of it where there is one.
struct Reference {
  std::shared_ptr<compare::Judge> judge;
  std::string problem;   ///< eager cannot run this; there is no judge then
};

/// One comparison of the backend with a reference.
struct Look {
  compare::Verdict verdict;                ///< Outcome::raised when it raised
  std::optional<ExceptionFacts> exception;
  exec::RunResults results;                ///< of the backend
  std::string problem;                     ///< the backend was not asked: this graph cannot be put to it
  double compile_ms = 0, run_ms = 0;
};

/// Largest absolute difference of any part; NaN when NaN stands on one side only or the parts cannot be subtracted.
double error_of(const compare::Verdict&);

class Meter {
 public:
  /// `subject` gives backend, seed, stage and accuracy, and its graph the names of inputs.
  static base::Result<Meter> make(const oracle::Trial& subject, const Surroundings&);

  /// Torch's exceptions become `problem`.
  Reference reference(const ir::Graph&, const Values& inputs, Passes = Passes::forward_and_backward) const;
  enum class Compile { once, anew };
  Look look(const ir::Graph&, const Values& inputs, const Reference&, Compile = Compile::once, Passes = Passes::forward_and_backward);
  /// Runs the graph compiled as ever, but for telling its values, and gives its outputs. None when the backend cannot; then nothing was told. Throws what it throws.
  std::optional<Values> observe(const ir::Graph&, const Values& inputs, const backends::ValueObserver&);
  /// Only graphs after ahead-of-time autograd name their values as the compiler does.
  bool may_observe() const { return backend_->row.observes && subject_->subject.manifest.stage == "aot"; }
  /// Is this what is looked for? Wrong or raised; in strict mode any difference.
  bool is_bad(const compare::Verdict&) const;
  /// Whether parts of the graph are looked at for strides and shared memory too: where the whole is off in those.
  void look_at_layout(bool yes) { looks_at_layout_ = yes; }
  int64_t compiled() const { return compiled_; }
  /// Of a graph that was looked at; empty where the backend does not tell.
  std::vector<backends::Kernel> kernels(const ir::Graph&) const;

 private:
  Meter(const oracle::Trial& subject, const Surroundings&, std::map<std::string, std::string> options, std::unique_ptr<backends::Backend> backend);

  void configure(const ir::Graph& part, bool is_observed);

  const oracle::Trial* subject_;
  const Surroundings* around_;
  std::map<std::string, std::string> options_;   // of the backend
  std::unique_ptr<backends::Backend> backend_;
  bool looks_at_layout_ = true;
  std::unordered_map<std::string, std::shared_ptr<backends::CompiledGraph>> cache_;   // by canonical text: equal operators, types and literals
  int64_t compiled_ = 0;
};

}  // namespace cutaway::repro
