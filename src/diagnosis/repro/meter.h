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
#include "diagnosis/compare/same.h"
#include "diagnosis/oracle/trial.h"
#include "diagnosis/repro/exception_facts.h"

namespace cutaway::repro {

using Values = std::vector<c10::IValue>;

/// What eager does, and the fp64 run of it where there is one: outputs, gradients of inputs, and inputs as the run left them, as one list.
struct Reference {
  Values eager, fp64;
  std::vector<std::string> names;
  std::string problem;   ///< eager cannot run this; the rest is empty then
};

/// One comparison of the backend with a reference.
struct Look {
  compare::Verdict verdict;                ///< Outcome::raised when it raised
  std::optional<ExceptionFacts> exception;
  Values results;                          ///< of the backend
  std::string problem;                     ///< the backend was not asked: this graph cannot be put to it
  double compile_ms = 0, run_ms = 0;
};

/// Largest absolute difference of any part; NaN when NaN stands on one side only or the parts cannot be subtracted.
double error_of(const compare::Verdict&);

class Meter {
 public:
  /// `subject` gives backend, seed, stage and accuracy; its graph is not looked at.
  static base::Result<Meter> make(const oracle::Trial& subject);

  enum class Run { forward, forward_and_backward };
  /// Torch's exceptions become `problem`.
  Reference reference(const ir::Graph&, const Values& inputs, Run = Run::forward_and_backward) const;
  enum class Compile { once, anew };
  Look look(const ir::Graph&, const Values& inputs, const Reference&, Compile = Compile::once, Run = Run::forward_and_backward);
  /// Runs the graph compiled as ever, but for telling its values. False when the backend cannot; then nothing was told. Throws what it throws.
  bool observe(const ir::Graph&, const Values& inputs, const backends::ValueObserver&);
  /// Only graphs after ahead-of-time autograd name their values as the compiler does.
  bool may_observe() const { return backend_->can_observe() && subject_->subject.manifest.stage == "aot"; }
  /// Eager again, against the reference.
  compare::Verdict repeat_eager(const ir::Graph&, const Values& inputs, const Reference&) const;

  /// Is this what is looked for? Wrong or raised; in strict mode any difference.
  bool is_bad(const compare::Verdict&) const;
  /// Rules for parts: there the inputs are equal, so that integers and masks have to be equal too.
  const compare::Options& rules() const { return rules_; }
  int64_t compiled() const { return compiled_; }
  /// Of a graph that was looked at; empty where the backend does not tell.
  std::vector<backends::Kernel> kernels(const ir::Graph&) const;

 private:
  Meter(const oracle::Trial& subject, std::unique_ptr<backends::Backend> backend);
  struct Ran;
  template <class F> Ran execute(F&&, const Values& inputs, Run) const;

  const oracle::Trial* subject_;
  std::unique_ptr<backends::Backend> backend_;
  compare::Options rules_;
  std::unordered_map<std::string, std::shared_ptr<backends::CompiledGraph>> cache_;   // by canonical text: equal operators, types and literals
  int64_t compiled_ = 0;
};

}  // namespace cutaway::repro
