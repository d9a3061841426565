// One recording of a joint graph: the steps of record_joint() and what they hand on to each other. The steps are in files of their own:
// joint_inputs.cc (primals, what is written to them), joint_forward.cc (the run of the program), joint_outputs.cc (how callers get outputs),
// joint_backward.cc (the engine's run). Internal to compiler/aot.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/aot/functional.h"
#include "compiler/aot/joint.h"
#include "core/exec/interpreter.h"
#include "core/trace/node_pointer.h"

namespace cutaway::aot {

using base::Error;
using base::Result;
using c10::IValue;

class JointRecording {
 public:
  JointRecording(const ir::Graph& captured, const std::vector<IValue>& examples, const JointOptions& options) : captured_(captured), examples_(examples), options_(options) {}

  /// `merged`: first inputs of the groups that share a storage and become one primal. Tells through `again` which groups must be merged.
  Result<Joint> run(const std::set<size_t>& merged, std::set<size_t>& again);

 private:
  struct Wrapped { at::Tensor fake, leaf, given; trace::NodePointer history; uint32_t version = 0; };

  Result<Joint> record(std::set<size_t>& again);
  base::Status check_functional();
  Error refusal(const std::string& because) const;

  // Inputs (joint_inputs.cc)
  base::Status make_primals(const std::set<size_t>& merged);
  void wrap_primals();
  /// A program that has run backward left gradients where nobody would find them.
  base::Status check_leaves() const;
  /// Gradients flow to inputs only.
  base::Status check_constants() const;
  base::Status read_mutations(std::set<size_t>& again);

  // The run of the program (joint_forward.cc)
  /// The captured graph with its outputs laid flat, ready to run.
  Result<exec::Program> prepare();
  std::vector<IValue> run_forward();
  /// Functional forms take writes that eager refuses (to a view of several, to an `out` of another dtype): the operators themselves run first, on fakes.
  void check_writes();
  /// The user's line of the operator that runs, in the captured graph.
  ir::LocationId line() const;
  ir::Location here() const;

  // What it returns (joint_outputs.cc)
  size_t add_result(ForwardResult result, const at::Tensor& wrapper, const at::Tensor& inner);
  base::Status read_outputs(const std::vector<IValue>& outputs);
  static bool any_requires_grad(const std::vector<IValue>& outputs, const std::vector<size_t>& which);
  base::Status from_primal(OutputRule& rule, size_t o, const at::Tensor& out, size_t p);
  /// An output that the program wrote to is laid out as in eager.
  base::Status check_layout(size_t o, const at::Tensor& out) const;
  /// An output that is rebuilt by views has their gradients, and no others.
  base::Status check_views_alone(size_t o, const at::Tensor& out, const at::Tensor& base) const;
  /// One of several outputs that share a storage, and gradients are wanted: the tensor they are views of leaves the forward graph, and they
  /// are made from it where autograd sees it. Otherwise a write to one would not reach the gradients of the others.
  base::Status from_shared(OutputRule& rule, size_t o, const at::Tensor& out, const at::Tensor& shared, std::unordered_map<const c10::StorageImpl*, size_t>& base_results);

  // Backward (joint_backward.cc)
  base::Status run_backward(trace::Recorder& recorder, std::vector<IValue>& written);
  /// `nodes`: all that is behind the results.
  base::Status find_cuts(const std::vector<torch::autograd::Node*>& nodes);
  base::Status find_way(size_t output, const std::vector<size_t>& rebuilt);
  const at::Tensor& wrapper_at(const Cut&) const;
  /// What forward gives is read before backward runs: a backward of the program's own must leave it as it is.
  base::Status check_backward(const std::vector<at::Tensor>& tangents) const;
  /// In eager they are drawn when backward runs, or drawn again from the state that forward had (a checkpoint); a graph would draw others.
  base::Status check_randomness(size_t first_of_backward) const;

  static constexpr size_t kNone = static_cast<size_t>(-1);
  const ir::Graph& captured_;
  const std::vector<IValue>& examples_;
  const JointOptions& options_;
  Joint joint_;
  std::optional<exec::Program> program_;          // the captured graph; none when options_.program runs
  std::vector<Wrapped> wrapped_;                  // by primal
  std::vector<size_t> primal_of_;                 // by captured input; kNone for what is no tensor
  std::vector<at::Tensor> shapes_;                // the example tensors
  std::vector<IValue> given_;                     // what the program got
  std::unordered_map<const c10::StorageImpl*, std::vector<size_t>> sharing_;   // distinct inputs of a storage
  std::vector<at::Tensor> result_wrappers_, result_values_;
  std::vector<at::Tensor> output_wrappers_;       // by output; undefined for what is no tensor
  std::vector<at::Tensor> after_forward_;         // by primal: what the wrapper held when forward had run
  std::map<size_t, at::Tensor> bases_;            // by forward result: the fake that views are made of
  std::vector<std::pair<size_t, ViewSteps>> views_;
  std::map<size_t, size_t> step_counts_;          // by output that is a view and has gradients: views from the base on
  std::vector<ir::LocationId> locations_;         // by position of the captured operator
  std::vector<uint64_t> starts_;                  // by position: the first sequence number of autograd nodes that it made
  size_t position_ = kNone;
  bool in_derivative_ = true;                     // in backward: one computes, and what is recorded is no sum of the engine's
  std::set<size_t> sums_;                         // nodes that are
};

/// Gives `given` a history that hands gradients on to `leaf`: a program may write to it, as to no leaf.
trace::NodePointer pass_on(at::Tensor& given, const at::Tensor& leaf);
/// A fake tensor of the dtype and device of `t`; nothing is recorded.
at::Tensor fake_like(const at::Tensor& t, at::IntArrayRef sizes, at::IntArrayRef strides);

}  // namespace cutaway::aot
