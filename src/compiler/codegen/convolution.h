// Convolutions in one and two dimensions for the hand-written kernels: their geometry, read off a node, and the call of their gradients.
// A forward convolution is a Product (product.h) with such a geometry.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// Pairs are (rows, columns); one dimension is columns alone.
struct Window {
  int64_t channels = 0, height = 1, width = 1;           ///< of the input
  int64_t out_height = 1, out_width = 1;
  int64_t size[2] = {1, 1}, step[2] = {1, 1}, pad[2] = {0, 0}, dilation[2] = {1, 1};
  int64_t x_strides[4] = {};                             ///< of the input: batch, channel, row, column
};

/// None, with the reason, for what stays torch's: groups, transposed ones, three dimensions, weights or results that are not laid out row after row.
std::optional<Window> window_of(const ir::Graph&, ir::ValueId x, ir::ValueId weight, ir::ValueId result, const ir::Argument* step_first, std::string& reason);

struct ConvGradient {
  std::string name;                  ///< "c3": the call in the fused graph is native.c3
  std::vector<Buffer> buffers;
  ir::DType dtype = ir::DType::f32;  ///< f32 or f64
  int64_t batch = 1, outputs = 1;
  Window window;
  struct Operand { uint32_t buffer = 0; int64_t offset = 0; };
  Operand grad, x, weight;
  std::optional<uint32_t> grad_x, grad_weight, grad_bias;
  std::vector<ir::ValueId> results;  ///< those that there are, in order
  std::string text() const;
};

std::optional<ConvGradient> conv_gradient_of(const ir::Graph&, const Origins&, const ir::Node&);

}  // namespace cutaway::codegen
