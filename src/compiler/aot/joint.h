// Ahead-of-time autograd: a captured graph, run on functionalized fake tensors under the recorder below autograd, forward and then
// backward through torch's own engine. What comes out is one functional graph of both, the joint graph, and the facts that the
// run-time wrapper needs to give callers what eager would have given them (mutated inputs, views, what requires grad).
// Not here: the split into two graphs (partition.h), running them (function.h).
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/debug/events.h"
#include "core/exec/size_check.h"
#include "core/ir/graph.h"
#include "core/trace/recorder.h"
#include "core/symbolic/guard.h"

namespace cutaway::aot {

/// A tensor that the joint graph takes: an input of the captured graph, or the whole storage that several of them share.
struct Primal {
  std::vector<size_t> inputs;        ///< of the captured graph: one, or those that are views of the storage
  bool is_base = false;              ///< one-dimensional over the whole storage; each input is as_strided of it
  bool requires_grad = false;
  bool writes_data = false;          ///< the program changes its values: they come out of the forward graph and are copied back
  bool writes_under_no_grad = false; ///< every such change is hidden from autograd, so the copy is too
  bool requires_grad_after = false;  ///< the new values carry gradients
  uint32_t write_count = 0;          ///< changes that eager counts in the version of the tensor
  bool writes_metadata = false;      ///< t_, unsqueeze_ and the like: sizes, strides and offset become those below
  std::vector<ir::Dim> new_sizes, new_strides;
  ir::Dim new_offset;
};

/// How the caller gets one output of the captured graph.
struct OutputRule {
  enum class From : uint8_t {
    value,          ///< a result of the forward graph
    primal,         ///< the input itself
    view_of_primal, ///< `view` applied to a primal, after it has its new values
    view_of_result, ///< `view` applied to a result of the forward graph that several outputs share
    output,         ///< the same tensor as an earlier output
    literal,        ///< no tensor: `literal`
  };
  From from = From::value;
  size_t index = 0;                  ///< of the forward result, the primal, the captured input (primal) or the earlier output
  bool requires_grad = false;
  std::optional<ir::Graph> view;     ///< one tensor in, one out; run under the caller's autograd
  c10::IValue literal;
  std::optional<size_t> through = std::nullopt;   ///< of a view: another output, made by a view too, that `view` is applied to, so that gradients come by it
};
/// Outputs that are made by views, each behind the one that it is made through.
std::vector<size_t> order_views(const std::vector<OutputRule>&);

/// What one forward result is for.
struct ForwardResult {
  enum class For : uint8_t { mutated_primal, output, base };
  For what = For::output;
  size_t index = 0;                  ///< of the primal or the output; of a base: the first output made from it
  bool requires_grad = false;        ///< then it has a tangent
  uint32_t write_count = 0;          ///< of what the program made and wrote to: its version in eager
};

/// What the caller gets and other results are computed from. Its whole gradient is what autograd has there, where hooks may change it: backward is cut at such places
/// (cut_backward.h).
struct Cut {
  enum class At : uint8_t {
    result,   ///< a forward result with a tangent
    output,   ///< an output that is rebuilt by views, in the caller's autograd
    primal,   ///< an input that has another shape now, for which the same holds
  };
  At at = At::result;
  size_t index = 0;                  ///< of the result, the output or the primal
  size_t tangent = 0;
  bool is_rebuilt() const { return at != At::result; }   ///< then torch differentiates it
  bool operator==(const Cut&) const = default;
};

struct Joint {
  /// Inputs: primals, constants, tangents of results, tangents of cuts that are rebuilt. Outputs: forward results, then one gradient (or none) for each primal that requires grad,
  /// then the whole gradient of each cut: its tangent and what the graph adds to it.
  ir::Graph graph;
  bool has_backward = false;         ///< false: nothing requires grad, the graph is the forward one
  std::vector<Primal> primals;
  std::vector<at::Tensor> constants;
  std::set<std::string> sums;        ///< names of values that the engine added up, in the order in which gradients came
  std::vector<size_t> tangents;      ///< by tangent: the forward result that it belongs to
  std::vector<Cut> cuts;
  std::vector<ForwardResult> results;
  std::vector<OutputRule> outputs;   ///< flat, in the order of the references in the captured graph's outputs
  std::vector<ir::Argument> output_form;   ///< the captured graph's outputs; a ValueRef holds a position in `outputs`
  std::vector<c10::IValue> frozen_inputs;  ///< by captured input: the value of one that is no tensor; a run must give the same
  std::vector<ir::Type> input_types;       ///< by captured input: what the examples were; a run must give the same
  symbolic::SymbolValues symbols;          ///< of sizes that are expressions, with their numbers in the examples; empty: all sizes are numbers
  std::vector<symbolic::Guard> guards;        ///< about the symbols: all must hold in a run
  std::shared_ptr<exec::SizeCheck> size_check;   ///< must hold too; null: sizes are sums and products of the symbols, or cannot be checked
  std::string static_because;              ///< why symbols of the captured graph have become numbers
};

struct JointOptions {
  std::string name = "model";
  debug::Sink* sink = nullptr;
  /// Runs in place of the captured graph, which then only tells names and kinds of the inputs: for a program that no graph above autograd can
  /// hold, such as one with autograd functions of its own. Its outputs are flat. Tensors that require grad must be among the inputs.
  trace::Callable program;
  std::function<void()> program_end;        ///< called when backward has run too, or has failed; must not throw; may be empty
  std::function<ir::Location()> location;   ///< the user's line, asked while `program` runs; may be empty
  /// Gradients are taken from the leaves after backward(): a program that runs autograd's engine inside backward (reentrant checkpoint)
  /// hands them over there.
  bool accumulates = false;
};

/// Records the joint graph of a captured graph for inputs like these (real or fake; only metadata and sharing of storages count).
/// With grad mode off, or when nothing requires grad, there is no backward part. Refuses by name: operators that fake tensors or
/// functionalization cannot run, storages replaced (set_, resize_), inputs that share a storage of which one is written while
/// gradients are wanted. In a Python process the caller must not hold the GIL.
base::Result<Joint> record_joint(const ir::Graph& captured, const std::vector<c10::IValue>& examples, const JointOptions& = {});

}  // namespace cutaway::aot
