// The reference interpreter: runs a Graph by boxed calls of torch's dispatcher. On fake tensors it is shape inference.
// Main type: Program, a graph made ready once (operators resolved, literals converted, last uses known) and run many times.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/debug/events.h"
#include "core/ir/graph.h"
#include "core/ir/verify.h"

namespace cutaway::exec {

/// Torch's operators as schemas for the verifier and for edits. Loads nothing; asks the dispatcher.
const ir::SchemaTable& dispatcher_schemas();

/// Called around each op, in regions too. Position counts ops in program order. `args` are those of the schema, defaults filled in;
/// `results` are flat, one for each of the node's results, and `after` may replace them.
struct Hooks {
  std::function<void(size_t position, const ir::Node&, const std::vector<c10::IValue>& args)> before;
  std::function<void(size_t position, const ir::Node&, std::vector<c10::IValue>& results)> after;
};

struct RunOptions {
  const Hooks* hooks = nullptr;
  debug::Sink* sink = nullptr;
  bool free_early = true;   ///< values are dropped at their last use
  /// Random states by name, for generator arguments of the graph. "default" (the operator's own choice) and a device's text (its default
  /// generator) are known without this.
  const std::unordered_map<std::string, at::Generator>* generators = nullptr;
};

/// What runs in place of a call's region: a kernel that was compiled for it. It takes the call's arguments, in order, and gives its results.
struct BoundCall {
  virtual ~BoundCall() = default;
  /// `stack` holds the arguments and then the results. Thread-safe.
  virtual void run(std::vector<c10::IValue>& stack) const = 0;
};
/// By the name of the call: "native.k3".
using BoundCalls = std::unordered_map<std::string, std::shared_ptr<const BoundCall>>;

class Program {
 public:
  /// Refuses, by name and place, an operator that torch does not know, a literal that its schema does not take, a control-flow operator.
  /// Calls without a row in `calls` run by the operators in their regions. Hooks see operators alone.
  static base::Result<Program> prepare(const ir::Graph&, BoundCalls calls = {});
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
  /// Runs on these inputs and gives what the graph returns, one value for each output; lists, tuples and dicts inside keep their form, an
  /// undefined tensor is none. Boxed: the vector is emptied, so inputs are freed at their last use. Torch's exceptions pass through
  /// untouched; error_position() then tells which op raised. Thread-safe: a run keeps everything to itself.
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs, const RunOptions& = {}) const;
  /// Op at which this thread's last run raised; -1 when it did not.
  static int64_t error_position();
  const ir::Graph& graph() const;

  struct Plan;   ///< plan.h

 private:
  explicit Program(std::shared_ptr<const Plan>);
  std::shared_ptr<const Plan> plan_;
};

/// The graph with every type recomputed from its inputs' types, by running it on fake tensors (memoized by operator and types).
base::Result<ir::Graph> infer_types(const ir::Graph&);

/// IValue <-> literal. A tensor has no literal.
base::Result<c10::IValue> to_ivalue(const ir::Argument&, const std::function<c10::IValue(ir::ValueId)>& value);

}  // namespace cutaway::exec
