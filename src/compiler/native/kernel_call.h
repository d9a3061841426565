// A compiled kernel as something that a program calls in place of the operators it was made of.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "compiler/codegen/generate.h"
#include "compiler/native/frozen.h"
#include "compiler/native/toolchain.h"
#include "core/exec/interpreter.h"

namespace cutaway::native {

/// A tensor whose numbers lie in its memory and nowhere else: no wrapper of a transform, no subclass of Python's, no zeros without memory.
bool is_plain(const at::Tensor&);
/// Modes and transforms want to see every operator.
bool somebody_watches();

/// A kernel's region as a graph of its own: inputs are the call's arguments, outputs its results.
ir::Graph region_graph(const ir::Graph& fused, const ir::Node& call);

class KernelCall final : public exec::BoundCall {
 public:
  /// Computes, given the addresses of the buffers in the kernel's order.
  using Body = std::function<void(void* const* buffers)>;
  /// The region of `call`, a node of the program's fused graph, is the kernel's reference. Both must outlive this. What the program's memory plan has a place
  /// for lies in the `Arena` of the program, where one is open. `sizes` lie behind the buffers, for a text that serves every size; behind these lies what tells of bad indices (`checks_indices`: see codegen::Kernel).
  KernelCall(Body, const codegen::Program&, const ir::Node& call, const std::vector<codegen::Buffer>&, std::vector<int64_t> alignment = {}, std::vector<int64_t> sizes = {}, bool checks_indices = false);
  ~KernelCall() override;
  void run(std::vector<c10::IValue>& stack) const override;
  /// Buffer `number` is a weight that may be kept packed: its address, or null, lies behind everything else.
  void freeze(uint32_t number, std::unique_ptr<FrozenWeight>);

 private:
  struct Tensor { c10::ScalarType dtype; c10::Device device; std::vector<int64_t> sizes, strides; int64_t alignment = 1, offset = -1; };   ///< offset: in the arena, in elements; -1: not there
  static at::Tensor make(const Tensor&, const c10::Storage* arena);
  bool are_as_expected(const std::vector<c10::IValue>&) const;
  void run_region(std::vector<c10::IValue>& stack) const;

  Body body_;
  bool checks_indices_;
  std::vector<Tensor> reads_, writes_;
  std::vector<int64_t> sizes_;
  std::unique_ptr<FrozenWeight> frozen_;
  size_t frozen_read_ = 0;             ///< its place among the reads
  std::vector<size_t> order_;          ///< by buffer: its place among the reads, or (behind them) among the writes
  const codegen::Program& program_;
  const ir::Graph& fused_;
  const ir::Node& call_;
  mutable std::mutex mutex_;
  mutable std::optional<exec::Program> operators_;   ///< of the region, when first needed
};

/// A compiled loop kernel, spread over torch's threads.
KernelCall::Body loop_body(std::shared_ptr<Library>, void (*function)(void* const* buffers, int64_t begin, int64_t end), codegen::Work);
/// Random numbers of torch's default generator, drawn by our own loops.
KernelCall::Body draw_body(const codegen::Draw&);
/// Whether eager draws its numbers on this machine as our loops do: tried once. Where it does not, operators draw.
bool draws_are_eagers();
/// Additions at places that indices name, by the hand-written kernel.
KernelCall::Body scatter_body(const codegen::Scatter&);
/// Attention; where it meets what it cannot do (a row without finite scores) the operator runs instead.
KernelCall::Body attention_body(const codegen::AttentionCall&);
/// Gradients of a convolution, by the hand-written kernels.
KernelCall::Body conv_gradient_body(const codegen::ConvGradient&);
/// Torch's threads, for the hand-written kernels.
void spread_over_threads(void*, int64_t parts, void (*body)(void*, int64_t), void* context);
/// The matrix product of our own, likewise.
/// With an epilogue, `function` computes it for rows and columns of a tile.
using EpilogueFunction = void (*)(void* const* buffers, int64_t begin, int64_t end, int64_t first, int64_t past);
/// The weight of a product as `native:freeze` keeps it; null where the product reads it as it lies.
std::unique_ptr<FrozenWeight> frozen_weight(const codegen::Product&);
KernelCall::Body product_body(const codegen::Product&, std::shared_ptr<Library> = nullptr, EpilogueFunction = nullptr);

}  // namespace cutaway::native
