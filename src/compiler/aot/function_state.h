// What a Function and the autograd nodes of its runs share. Internal to compiler/aot.
#pragma once
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "compiler/aot/cut_backward.h"
#include "compiler/aot/function.h"
#include "compiler/aot/partial_backward.h"
#include "core/exec/interpreter.h"
#include "core/exec/symbols.h"

namespace cutaway::aot {

/// Recorded below autograd and autocast, so it runs there: nothing is cast or saved a second time.
struct BelowAutograd {
  at::AutoDispatchBelowADInplaceOrView autograd;
  c10::impl::ExcludeDispatchKeyGuard autocast{c10::autocast_dispatch_keyset};
};

/// An input that differs from its example in more than its data.
struct Mismatch {
  enum class Why : uint8_t { value, type, offset, sharing, guard };
  size_t input = 0;
  Why why = Why::type;
};

struct Function::State {
  /// Sizes and strides that a tensor of a run must have.
  struct Shape {
    at::ScalarType dtype = at::kFloat;
    c10::Device device = c10::kCPU;
    std::vector<int64_t> sizes, strides;              ///< where they are expressions: at the sizes of the examples
    std::vector<ir::Dim> symbolic_sizes, symbolic_strides;   ///< empty when all are numbers
    int64_t offset = 0;
    bool requires_grad = false, is_conj = false, is_neg = false;
    /// Where sizes are 1 strides do not count.
    bool has_strides_of(const at::Tensor&) const;
    /// With the numbers of a run in place of symbols.
    Shape at(const exec::SymbolValues&) const;
  };

  Joint joint;
  Split graphs;
  FunctionOptions options;
  std::shared_ptr<exec::CompiledGraph> forward;
  std::vector<std::optional<Shape>> inputs;         ///< by captured input; none for what is no tensor
  struct View { exec::Program program; std::vector<std::string> symbol_inputs; };
  std::vector<std::optional<View>> views;           ///< by output
  std::vector<bool> is_shared_result;               ///< by forward result: the graph returns an input, or one value twice
  std::vector<bool> is_used_after;                  ///< by primal: the wrapper needs it once forward has run
  std::vector<size_t> written;                      ///< primals with new values or shapes
  std::vector<size_t> differentiated;               ///< primals that require grad
  /// Primals that some of the outputs lead to and others do not. In eager a pass that begins at the others does not come by what made them.
  std::vector<size_t> half_reached;
  /// A node that does nothing, and tells nobody, when all it gets is none. Python's make zeros of it, those of operators ask for what may be freed.
  static bool takes_none(torch::autograd::Node&);
  bool would_pass_none(const std::vector<c10::IValue>& given) const;
  /// The captured graph with flat outputs, where running it again gives what it gave: nothing is random and no input is written to.
  std::optional<ir::Graph> again;
  /// By cut: its position among the flat outputs; none for one that the caller gets as the base of a view alone.
  std::vector<std::optional<size_t>> cut_outputs;
  void find_cut_outputs();
  bool is_plain_form = true;                        ///< the outputs are a flat list
  bool checks_offsets = false;                      ///< storage offsets of inputs count
  bool is_for_grad_mode = true;                     ///< false: recorded with grad mode off for inputs that require grad

  bool is_symbolic() const { return !joint.symbols.empty(); }
  /// The numbers of the symbols in a run on these, when they agree and the guards hold.
  std::optional<exec::SymbolValues> read_symbols(const std::vector<c10::IValue>& given) const;
  exec::SymbolSources symbol_sources;               ///< in the captured graph's inputs

  std::optional<Mismatch> mismatch(const std::vector<c10::IValue>& given) const;   ///< as many as there are inputs

  /// A backward graph, compiled when it first runs.
  struct Backward : BackwardGraph {
    std::shared_ptr<exec::CompiledGraph> runnable;
    std::map<std::map<std::string, int64_t>, std::shared_ptr<exec::CompiledGraph>> runnable_at;   ///< for a compiler that takes no symbols: one for each choice of sizes
    std::atomic<exec::CompiledGraph*> ready{nullptr};
    std::vector<size_t> unpack_order;                 ///< positions in `saved`, in the order in which the graph reads them
    void find_order();
  };
  /// What one autograd node of a run does. Its inputs are `tangents`, then what other pieces hand over.
  struct Piece {
    Backward whole;
    std::vector<size_t> saved;                        ///< positions in Split::saved
    std::vector<size_t> tangents;                     ///< of Joint::tangents
    std::vector<Shape> inputs;
    std::vector<BackwardPiece::Target> targets;       ///< by output of its graph
    TangentFacts facts;
    /// What it leads to by other pieces that it hands something to (or by a cut that is no output), and not itself: `differentiated` ones, to which it has edges without gradients, for a run
    /// of the operators alone.
    std::vector<size_t> further;
    std::vector<size_t> cuts;                         ///< that it leads to, itself or by those pieces
    std::map<std::vector<bool>, std::unique_ptr<Backward>> parts;   ///< by the inputs that are given; null: the whole graph does it
    std::optional<exec::Program> operators;
  };
  std::vector<std::unique_ptr<Piece>> pieces;         ///< as they run
  base::Status make_pieces(bool in_terms);
  /// Of `again`, where the cuts that the piece leads to are further inputs. Made when first asked for.
  const exec::Program& operators(Piece&);
  /// For a run that is given these inputs and no others.
  Backward& backward_for(Piece&, const std::vector<bool>& given);
  exec::CompiledGraph& compiled(Backward&, const std::vector<c10::IValue>& examples, const exec::SymbolValues&);
  /// Every one that there is, forward first.
  std::vector<std::shared_ptr<exec::CompiledGraph>> all_compiled();
  bool has_backward() const { return has_compiled_.load(std::memory_order_acquire); }

 private:
  std::optional<Mismatch> other_sharing(const std::vector<c10::IValue>& given) const;
  std::mutex mutex_;
  std::atomic<bool> has_compiled_{false};
};

}  // namespace cutaway::aot
