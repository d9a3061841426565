// The walk that import.h declares: state of one import, and the two ways to read a node.
#pragma once
#include <ATen/core/ivalue.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "app/casters/errors.h"
#include "app/fx/import.h"
#include "app/fx/values.h"

namespace cutaway::fx {

/// What an fx node stands for: values of the graph and literals, nested as in Python; and the same as Python objects with fake
/// tensors, when the walk evaluates.
struct Binding {
  ir::Argument argument;
  nanobind::object fake;
};
using Environment = std::unordered_map<PyObject*, Binding>;

class FxWalk {
 public:
  explicit FxWalk(nanobind::handle root) : root_(nanobind::borrow(root)) {}

  /// True when nothing needs to run: every call is an operator or symbolic arithmetic, with its result in meta["val"].
  bool results_are_known(nanobind::handle graph_module) const;
  /// The nodes of `graph_module` into `block`; placeholders must be bound in `env`, or are taken by `placeholder`.
  void walk(nanobind::handle graph_module, const std::string& prefix, Environment& env, ir::Block& block);
  /// Switches to running every node on fake tensors.
  void evaluate_nodes() { evaluating_ = true; }
  /// Undoes state that the graph entered and did not leave (an import that failed half-way).
  void leave_states();

  /// The input for a placeholder, typed by meta["val"] where it is there, else by `example` (may be null).
  ir::ValueId add_user_input(nanobind::handle fx_node, nanobind::handle example, Environment& env);
  ir::ValueId add_lifted(const std::string& name, const std::string& qualified_name, ir::InputKind kind, nanobind::handle tensor, const ir::Type* type = nullptr);
  /// Inputs in their final order; call once.
  Imported take();

  const FxWords words;
  ir::Graph graph;
  [[noreturn]] void refuse(nanobind::handle fx_node, base::Error error) const;
  ir::Argument argument_of(nanobind::handle fx_node, nanobind::handle python, Tuples tuples, const Environment& env) const;

 private:
  // Nodes with known results (known.cc).
  void add_op(nanobind::handle fx_node, nanobind::handle value, Environment& env, ir::Block& block);
  void add_symbolic(nanobind::handle fx_node, const std::string& name, nanobind::handle value, Environment& env, ir::Block& block);
  void add_scope(nanobind::handle graph_module, nanobind::handle fx_node, const std::string& prefix, Environment& env, ir::Block& block);
  void bind_attribute(nanobind::handle graph_module, nanobind::handle fx_node, const std::string& prefix, Environment& env);
  bool bind_item(nanobind::handle fx_node, Environment& env);
  /// One value a leaf of `value`; `returns` as in ir::Node. The Argument has the same nesting.
  ir::Argument define_results(nanobind::handle fx_node, nanobind::handle value, ir::Node& node);
  ir::Argument define_leaf(nanobind::handle fx_node, std::string name, nanobind::handle value, ir::Node& node);

  // Nodes that run (evaluate.cc).
  void evaluate(nanobind::handle graph_module, nanobind::handle fx_node, const std::string& prefix, Environment& env, ir::Block& block);
  bool change_state(nanobind::handle fx_node, const std::string& name, const nanobind::object& args, const nanobind::object& kwargs, Environment& env);
  struct Recording { ir::Graph graph; std::vector<at::Tensor> inputs; std::vector<at::Tensor> constants; nanobind::object result; };
  Recording record(nanobind::handle fx_node, const std::vector<at::Tensor>& tensors, const nanobind::object& function, const nanobind::object& args, const nanobind::object& kwargs);
  std::vector<ir::Argument> splice(nanobind::handle fx_node, Recording& recording, ir::Block& into, ir::LocationId location, bool at_top);
  nanobind::object fake_of(ir::ValueId id);
  void remember(ir::ValueId id, const at::Tensor& fake);

  nanobind::object root_;
  bool evaluating_ = false;
  Dims dims_;
  std::vector<ir::Input> user_inputs_, lifted_inputs_;
  nanobind::list lifted_;
  std::unordered_map<std::string, ir::ValueId> attributes_;              // qualified name -> input
  std::unordered_map<ir::ValueId, nanobind::object> input_fakes_;        // of attributes
  std::unordered_map<const void*, ir::ValueId> value_of_tensor_;         // newest value of a fake's TensorImpl
  std::vector<at::Tensor> alive_;                                        // so that those addresses stay unique
  ir::RegionState state_;
  std::vector<nanobind::object> entered_;                                // autocast and inference-mode contexts to leave
};

/// "sym.add" for operator.add and so on, else empty: arithmetic on sizes.
std::string symbolic_name(nanobind::handle function);
/// "torch.nn.functional.linear", "operator.add": as torch.fx names a function.
std::string qualified_name(nanobind::handle function);
std::string python_text(nanobind::handle);
/// The nodes as a list of their own: fx's iterator starts again once it has ended, and nanobind asks an ended one twice.
nanobind::list nodes_of(nanobind::handle graph_module);

}  // namespace cutaway::fx
