// The run-time wrapper: a captured graph differentiated ahead of time, as something to call. It behaves as the eager program would:
// outputs that are views are views, inputs that the program writes to are written, gradients flow through one autograd node.
// Main type: Function. Forward and backward are compiled separately by whatever `Compile` is; backward when it first runs.
#pragma once
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/aot/joint.h"
#include "compiler/aot/partition.h"
#include "core/base/result.h"
#include "core/exec/compiled_graph.h"
#include "core/exec/forward_backward.h"

namespace cutaway::aot {

/// Turns a functional graph into something that runs it.
using Compile = std::function<base::Result<std::shared_ptr<exec::CompiledGraph>>(const ir::Graph&, const std::vector<c10::IValue>& examples, debug::Sink*)>;

struct FunctionOptions {
  std::string name = "model";
  Partition partition = Partition::min_cut;
  bool takes_symbols = true;     ///< false: the compiler gets graphs whose sizes are numbers
  Compile compile;               ///< empty: the reference interpreter, below autograd
  bool runs_refused = false;     ///< of Specialized: inputs of a kind that is refused run operator by operator, and an event says why
  debug::Sink* sink = nullptr;   ///< must outlive the first backward run when `compile` uses it
  trace::Callable program;                  ///< these four as in JointOptions
  std::function<void()> program_end;
  std::function<ir::Location()> location;
  bool accumulates = false;
};

/// Of the graph that a `Compile` on this thread was called with: how many of its last outputs are for the backward graph alone. Callers never see those.
size_t hidden_outputs();

/// "model__forward_0": model, kind (joint, forward, backward, inference) and the number of the function in this process.
std::string get_aot_graph_name(const std::string& model, const std::string& kind, uint64_t number);

class Function {
 public:
  /// For inputs like the examples, in the present grad mode; where sizes of the captured graph's inputs are symbols, for other sizes too as far
  /// as the joint graph is the same. In a Python process the caller must not hold the GIL.
  static base::Result<std::shared_ptr<Function>> make(const ir::Graph& captured, const std::vector<c10::IValue>& examples, FunctionOptions = {});

  /// True when run() would take these: as the examples in all but their data.
  bool accepts(const std::vector<c10::IValue>& inputs) const;
  /// Runs on one value for each input of the captured graph, and gives its outputs. Boxed: empties its inputs. Thread-safe.
  /// Throws c10::ValueError when an input differs from its example in more than its data, c10::NotImplementedError when inputs that
  /// did not share a storage do now and one of them is written to. Torch's other exceptions pass through.
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs) const;
  /// The same for inputs that accepts() has just said yes to. `failure`, where given, says whether it had written to anything.
  std::vector<c10::IValue> run_accepted(std::vector<c10::IValue>& inputs, exec::RunFailure* failure = nullptr) const;
  /// Forward and, once it has run, backward, as they were compiled.
  std::vector<std::shared_ptr<exec::CompiledGraph>> compiled() const;

  /// True when a backward pass that begins at some of the outputs would hand none to what made an input that only other outputs depend on, and that would show:
  /// a hook is called, a function of Python's gets zeros, an operator finds that what it saved is freed. In eager such a pass does not come there.
  bool would_pass_none(const std::vector<c10::IValue>& inputs) const;

  const Joint& joint() const;
  const Split& graphs() const;
  /// True once backward was compiled.
  bool has_compiled_backward() const;

  struct State;   ///< internal: shared with the autograd nodes of runs

 private:
  explicit Function(std::shared_ptr<State>);
  static base::Result<std::shared_ptr<Function>> make(const ir::Graph& captured, const std::vector<c10::IValue>& examples, Joint, FunctionOptions, uint64_t number, bool is_interpreted);
  std::shared_ptr<State> state_;
};

}  // namespace cutaway::aot
