// Matrix products: not loops of ours, but a call of the hand-written kernel, with views folded into the strides of its operands.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/convolution.h"
#include "compiler/codegen/fuse.h"
#include "compiler/codegen/loops.h"

namespace cutaway::codegen {

/// C[batch, m, n] = A[batch, m, k] B[batch, k, n] + bias[n]. With a window it is a convolution: A is the weight (a row an output channel), B what the
/// windows of the input cover (a column a position), and the bias has one number a row.
struct Product {
  std::string name;                  ///< "p3": the call in the fused graph is native.p3
  std::vector<Buffer> buffers;       ///< what it reads, then the one that it writes; an operand that is read twice stands once
  ir::DType dtype = ir::DType::f32;  ///< f32 or f64
  int64_t batch = 1, m = 0, n = 0, k = 0;
  struct Operand { uint32_t buffer = 0; int64_t offset = 0, batch = 0, row = 0, column = 0; };
  Operand a, b, c;
  std::optional<Operand> bias;       ///< column is its stride, which is 1
  std::optional<Window> window;      ///< b is then the input, and b.batch the distance of its images
  /// What follows for each tile: a text of the program, and which buffer each of its own is.
  std::optional<size_t> epilogue;
  std::vector<uint32_t> epilogue_buffers;
  /// "p3: [128, 256] x [256, 1024] f32"
  std::string text() const;
};

/// None, with the reason, for what stays torch's: other dtypes, empty operands, a result that is not laid out row after row.
std::optional<Product> product_of(const ir::Graph&, const Origins&, const ir::Node&, std::string* reason = nullptr);

}  // namespace cutaway::codegen
