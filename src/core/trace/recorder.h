// The dispatcher recorder: runs a callable and writes down the ATen operators it called, above or below autograd, as a Graph.
// Main types: Recorder, an active recording on this thread, and record(), which does it all.
//
// What a value is. Tensors are told apart by their TensorImpl. An operator that returns one of its arguments (add_, out=) gives a
// new value, and later uses of the tensor mean the new one; when the graph runs both are the same tensor, so views taken before see
// the write. A tensor that no recorded operator made but that shares a storage with a known one (x.data, a saved variable) is derived
// from it (detach, as_strided); any other is a constant. A number that Python wrapped into a tensor (x * 2) is a literal again.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/debug/events.h"
#include "core/ir/graph.h"

namespace cutaway::trace {

enum class Where {
  above_autograd,   ///< operators as the user called them (linear, layer_norm); the graph differentiates when it runs
  below_autograd,   ///< after autograd, autocast and functionalization: forward and backward through the engine
};

struct InputName { std::string name; ir::InputKind kind = ir::InputKind::user; std::string qualified_name; };
struct RecordOptions {
  Where where = Where::above_autograd;
  std::string graph_name = "graph";
  std::vector<InputName> input_names;                     ///< by position; missing ones are named arg0, arg1, …
  std::function<ir::Location()> location;                 ///< asked once an operator; may be empty
  /// A number for the present place, cheaper than its description: equal numbers mean equal locations, and `location` is asked once for
  /// each. 0: not known, ask. May be empty.
  std::function<uint64_t()> place;
  debug::Sink* sink = nullptr;
  /// Above autograd: numbers that only data knows become values of the graph (unknown_number.h), and so do tensors whose sizes follow from data, where else a
  /// DataDependentError is thrown.
  bool keeps_numbers = false;
  /// What torch's bindings made a tensor of where an operator takes one: the SymInt and its like that Python gave. None: a number. May be empty.
  std::function<c10::IValue(const at::Tensor&)> wrapped_number;
};

/// An active recording on this thread. Tensors met that were neither given as inputs nor made by a recorded operator become
/// constants (inputs of kind constant). Holds every tensor it met, so that addresses stay unique, until it is destroyed.
///
/// Above autograd, a change of grad mode, inference mode or autocast becomes a scope around the operators it holds for: grad and
/// inference mode where they differ from those at the start, autocast where it is on. Below autograd they have had their effect.
/// An operator whose result is a plain value of a tensor that depends on the inputs (item, equal) throws DataDependentError.
class Recorder {
 public:
  /// A list among the inputs stands for its tensors, each an input of its own (name_0, name_1, …); what is not a tensor is no input.
  Recorder(std::vector<c10::IValue> inputs, RecordOptions);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  /// One more input, after those met so far: a tangent, whose type is known only once the forward part has run; a tensor that capture meets.
  void add_input(const at::Tensor&, InputName);
  /// Nodes recorded between begin_call and end_call go into the region of one captured call.
  void begin_call(std::string qualified_name, std::vector<ir::Argument> args, std::vector<std::pair<std::string, ir::Argument>> kwargs, ir::Location);
  /// `returns` gives the structure of the flat results, as in ir::Node. A tensor made inside that is neither a result nor written in
  /// place must not be used after: finish() then fails.
  void end_call(const std::vector<c10::IValue>& results, const std::vector<int32_t>& returns);
  /// Takes back the call that is open, with the operators it recorded: it raised, or gave nothing that the graph needs.
  void cancel_call();
  /// True when an operator of the open call wrote to a tensor or drew random numbers, so that the call may not be taken back.
  bool call_has_effects() const;
  /// What the operators recorded since watch() do. Errors that only their kernels raise (kernel_errors.h) are looked for where `errors` says so.
  struct Seen { bool writes = false, updates_statistics = false, draws = false, may_raise = false; };
  void watch(bool errors);
  const Seen& seen() const;
  /// Nodes recorded so far, not counting those of the open call.
  size_t node_count() const;
  /// A backward pass inside the recording, above autograd: its operators are recorded as the others, and operators that are made of others are
  /// taken apart from here on. Refused otherwise.
  void allow_backward(bool);
  /// The argument that stands for a value of the traced program: a reference for known tensors, else a literal.
  ir::Argument argument(const c10::IValue&);
  /// A node that computes a number of others, an UnknownNumber of this recording among them. `compute` tells what it gives for numbers, and throws
  /// c10::Error where it raises.
  c10::IValue add_number(std::string target, const std::vector<c10::IValue>& args, const std::function<c10::IValue(const std::vector<c10::IValue>&)>& compute);
  /// A node that raises `message` when the graph runs and the number is not true.
  void add_check(const c10::IValue& number, std::string message);
  /// Ends the recording. The outputs may be tensors, lists of them, or anything a literal can hold.
  base::Result<ir::Graph> finish(const std::vector<c10::IValue>& outputs);
  /// Constants met, in the order of their inputs in the graph (after the given inputs).
  const std::vector<at::Tensor>& constants() const;

  struct State;   ///< internal

 private:
  std::unique_ptr<State> state_;
};

/// How many operators have raised on this thread while they were recorded or asked for their shapes. Whoever runs Python of torch's on fake tensors
/// compares it before and after: code that handled such an error went another way than it goes on real tensors.
uint64_t failed_operators();

/// How often recordings above autograd were refused, on any thread, for what a recording below it sees: a backward pass, an autograd function
/// with a backward of its own. Whoever has another way for these compares it before and after.
uint64_t refused_above_autograd();

/// Records f(inputs) whole. Exceptions of f pass through.
using Callable = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>&)>;
base::Result<ir::Graph> record(const Callable& f, std::vector<c10::IValue> inputs, RecordOptions, std::vector<at::Tensor>* constants = nullptr);

}  // namespace cutaway::trace
