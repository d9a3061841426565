// A captured graph for inputs of any kind: a Function is made for each kind of inputs when they first come, and kept.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/aot/function.h"
#include "core/exec/interpreter.h"

namespace cutaway::aot {

class Specialized {
 public:
  /// `limit`: after that many kinds a run on yet another one is refused, as something is wrong with the caller's guards.
  Specialized(ir::Graph captured, FunctionOptions, size_t limit = 64);
  /// As Function::run. An Error of Function::make is thrown as c10::Error. Thread-safe. The captured graph itself runs, operator by operator
  /// under autograd, while hooks for saved tensors are on, which see and may change what eager saves; for inputs with tangents of forward-mode differentiation; where grad mode is off and the graph
  /// turns it on half-way (the rest of a function that broke inside no_grad), as a Function has a backward for all of its operators or none;
  /// where the graph enters or leaves inference mode, whose tensors a Function does not make; after a few values of a float input; where a backward pass of a Function would come by more than eager's (would_pass_none); and for kinds that are
  /// refused, with FunctionOptions::runs_refused.
  /// `failure`, where given, says how far a run came that raised: in a forward graph, which writes to nothing; in the captured graph's own operators.
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs, exec::RunFailure* failure = nullptr);
  /// The function for inputs like these, made now if there is none.
  base::Result<std::shared_ptr<Function>> find(const std::vector<c10::IValue>& inputs);
  std::vector<std::shared_ptr<Function>> functions() const;
  const ir::Graph& captured() const { return captured_; }

 private:
  const ir::Graph captured_;
  const FunctionOptions options_;
  const size_t limit_;
  const bool has_floats_;            // each value of a float is a kind of its own
  const bool turns_grad_on_, makes_inference_tensors_;
  std::atomic<bool> said_{false};
  std::atomic<int> refusals_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Function>> functions_;
  std::shared_ptr<Function> last_;   // callers mostly stay with one kind
  std::optional<exec::Program> eager_;

  std::shared_ptr<Function> find_or_say(const std::vector<c10::IValue>& inputs);
  std::vector<c10::IValue> run_eagerly(std::vector<c10::IValue>& inputs, exec::RunFailure* failure);
};

}  // namespace cutaway::aot
