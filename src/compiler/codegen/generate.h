// The whole way from a graph to source texts: rewrites, fusion, loop form, text. No libtorch, no compiler, no files.
// Main function: generate.
#pragma once
#include <string>
#include <vector>

#include "compiler/codegen/attention.h"
#include "compiler/codegen/convolution.h"
#include "compiler/codegen/draw.h"
#include "compiler/codegen/emit_cpp.h"
#include "compiler/codegen/emit_cuda.h"
#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"
#include "compiler/codegen/plan.h"
#include "compiler/codegen/product.h"
#include "compiler/codegen/rewrite.h"
#include "compiler/codegen/scatter.h"
#include "core/debug/events.h"

namespace cutaway::codegen {

struct Options {
  int lanes = 8;
  RewriteOptions rewrites;
  Fuel fuel;
  int64_t kernels = INT64_MAX;   ///< groups and products that become kernels; the others stay operators
  bool products = true;          ///< matrix products by the kernel of our own
  bool plan = true;              ///< values share memory where this is safe
  std::set<std::string, std::less<>> without;   ///< kernels that stay operators, by name
  const ir::Graph* symbolic = nullptr;   ///< the graph has the numbers of one call where this one has symbols: texts then serve every size
  bool stores_all = false;       ///< kernels give every value that they compute, not those alone that somebody wants: for who looks inside
  std::string planted;           ///< for tests: "rewrites:softmax", "fusions:…", "kernels:…" or "rules:…": what it made gives wrong numbers (planted.h)
};

/// A kernel of the fused graph. Those that compute the same on other buffers share the text of the first.
struct Generated {
  Kernel kernel;
  size_t text = 0;     ///< into Program::texts
  Work work;
  std::vector<int64_t> sizes;   ///< what its text reads behind the buffers, where it serves every size
};
struct Text {
  std::string function;   ///< its name in the text
  std::string source;     ///< without the prelude
  Work work;
  std::optional<CudaLaunch> cuda;   ///< of a kernel for a CUDA card: its source is CUDA C++
  std::string key;        ///< of a text that serves every size: without names, equal for equal texts of other graphs and sizes
};

struct Program {
  ir::Graph rewritten;            ///< before fusion
  ir::Graph graph;                ///< fused: a kernel is a call `native.k3` whose region holds what it computes
  std::vector<Generated> kernels;
  std::vector<Text> texts;
  std::vector<Product> products;
  std::vector<Draw> draws;
  std::vector<Scatter> scatters;
  std::vector<ConvGradient> conv_gradients;
  std::vector<AttentionCall> attentions;
  std::vector<Rewritten> rewrites;
  std::vector<Decision> decisions;
  MemoryPlan memory;              ///< of `graph`
  /// All texts for the processor with their prelude: one file.
  std::string source(int lanes) const;
  bool has_cpu_texts() const;
  bool has_cuda_texts() const;
  /// Those for CUDA cards, whose numbers are given; all when none are.
  std::string cuda_source(const std::vector<size_t>& which = {}) const;
};
/// The prelude and these.
std::string file_of(const std::vector<const Text*>&, int lanes);

/// The graph is functional, as ahead-of-time autograd gives it: nothing writes to an argument.
Program generate(const ir::Graph&, const Options&, debug::Sink* = nullptr);

}  // namespace cutaway::codegen
