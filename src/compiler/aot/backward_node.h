// The autograd nodes of one run of a Function, one for each piece of the backward graph: each holds what forward saved, and runs its piece. Internal to compiler/aot.
#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <utility>
#include <vector>

#include "compiler/aot/function_state.h"

namespace cutaway::aot {

struct BackwardNode final : torch::autograd::Node {
  std::shared_ptr<Function::State> state;
  Function::State::Piece* piece = nullptr;
  std::vector<torch::autograd::SavedVariable> saved;
  /// What the captured graph got, to run it again: a leaf is held by others, or it is gone.
  struct Given {
    c10::weak_intrusive_ptr<c10::TensorImpl> leaf{c10::intrusive_ptr<c10::TensorImpl>()};
    c10::IValue value;
    uint32_t version = 0;
    bool requires_grad = false;
    explicit Given(const c10::IValue&);
    c10::IValue get() const;      ///< None: it is gone, or was written to
  };
  std::vector<Given> given;
  /// An output that is an input here. The tensor itself may be given a history that leads back to this node.
  struct HeldCut {
    at::Tensor data;
    torch::autograd::Edge edge;
    uint32_t version = 0;
    explicit HeldCut(const at::Tensor&);
    at::Tensor get() const;   ///< undefined: it was written to
  };
  std::vector<HeldCut> cuts;    ///< by cut that the piece leads to; none where the operators do not run again
  symbolic::SymbolValues symbols;   ///< of the run, when the graphs have any
  std::vector<bool> is_spent;   ///< by input: eager would have freed what its backward pass reads
  std::vector<bool> last_given; ///< tangents of the latest run
  bool passes_none = false;     ///< what it leads to does nothing when it gets no gradient
  bool is_last_run = false;   ///< the engine is about to release what is saved

  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  void will_release_variables() override { is_last_run = true; }
  void release_variables() override;
  std::string name() const override { return "AotBackward"; }

 private:
  std::vector<bool> spent_after_run() const;
  at::Tensor tangent(at::Tensor given, size_t index) const;
  /// Gradients by eager's own operators, which have derivatives and names; none where they cannot run again.
  std::optional<torch::autograd::variable_list> run_operators(const torch::autograd::variable_list& tangents) const;
};

/// What stands before a BackwardNode with several outputs, one for each: a pass that does not begin at an output does not come by its hooks.
struct EntryNode final : torch::autograd::Node {
  const BackwardNode* behind = nullptr;   ///< held by the edge
  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override { return std::move(tangents); }
  std::string name() const override { return "AotBackward"; }
};

}  // namespace cutaway::aot
