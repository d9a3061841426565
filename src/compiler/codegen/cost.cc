#include "compiler/codegen/cost.h"

#include <map>

namespace cutaway::codegen {
namespace {

int64_t touched(const Kernel& k, const Access& a, ir::DType dtype) {
  int64_t bytes = ir::dtype_bytes(dtype);
  for (size_t d = 0; d < k.sizes.size() && d < a.strides.size(); ++d) bytes *= a.strides[d] ? k.sizes[d] : 1;
  return bytes;
}

int64_t weight(Op op) {
  switch (op) {
    case Op::load: case Op::load_if: case Op::load_at: case Op::constant: case Op::cast: case Op::rounded: return 0;
    case Op::fma: return 2;
    default: return is_costly(op) ? kFunctionOperations : 1;
  }
}

}  // namespace

Cost cost_of(const Kernel& k) {
  Cost c;
  std::map<uint32_t, int64_t> read;   // a buffer that is read in several ways counts by its widest
  for (const Term& t : k.terms) {
    if (reads_memory(t.op)) {
      int64_t& most = read[t.buffer];
      most = std::max(most, touched(k, t.access, t.memory));
    }
    const bool walks = is_reduction(t.op) || t.level == Level::element;
    c.operations += weight(t.op) * (walks ? k.rows() * k.inner() : t.level == Level::row ? k.rows() : k.inner());
  }
  for (const auto& [buffer, bytes] : read) c.bytes += bytes;
  for (const Store& s : k.stores) c.bytes += touched(k, s.access, s.memory);
  return c;
}

Cost cost_of(const ConvGradient& c) {
  const Window& w = c.window;
  const int64_t size = ir::dtype_bytes(c.dtype), x = c.batch * w.channels * w.height * w.width, y = c.batch * c.outputs * w.out_height * w.out_width, taps = w.channels * w.size[0] * w.size[1];
  const int64_t each = (c.grad_x ? 1 : 0) + (c.grad_weight ? 1 : 0);
  return {size * ((c.grad_x ? x : 0) + (c.grad_weight ? x : 0) + y * (each + (c.grad_bias ? 1 : 0)) + each * c.outputs * taps), 2 * each * y * taps};
}

Cost cost_of(const AttentionCall& a) {
  const int64_t heads = a.batch * a.heads, pairs = heads * a.rows * a.keys;
  return {4 * (2 * heads * (a.rows + a.keys) * a.width + (a.mask ? a.rows * a.keys : 0)), (a.is_causal ? pairs / 2 : pairs) * (4 * a.width + kFunctionOperations)};
}

Cost cost_of(const Product& p) {
  const int64_t size = ir::dtype_bytes(p.dtype);
  const auto matrices = [&](const Product::Operand& o) { return o.batch ? p.batch : 1; };
  if (const auto& w = p.window) return {size * (p.m * p.k + p.batch * (w->channels * w->height * w->width + p.m * p.n) + (p.bias ? p.m : 0)), 2 * p.batch * p.m * p.n * p.k};
  return {size * (matrices(p.a) * p.m * p.k + matrices(p.b) * p.k * p.n + p.batch * p.m * p.n + (p.bias ? p.n : 0)), 2 * p.batch * p.m * p.n * p.k};
}

}  // namespace cutaway::codegen
