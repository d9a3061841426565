// Fused attention on the CPU, forward and backward.
#include <cstdint>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::Tensor;

// Gradients are made as [batch, length, heads, …] and seen with length and heads exchanged; the result is laid out as the query.
Tensor heads_inside(at::ScalarType dtype, int64_t batch, int64_t heads, int64_t length, int64_t width) {
  return make_meta(dtype, {batch, heads, length, width}, {length * heads * width, width, heads * width, 1});
}
Tensor heads_inside_like(const Tensor& t) { return heads_inside(t.scalar_type(), t.size(0), t.size(1), t.size(2), t.size(3)); }

std::tuple<Tensor, Tensor> flash_for_cpu(const Tensor& q, const Tensor& k, const Tensor& v, double, bool, const OptionalTensor&, std::optional<double>) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}");
  const int64_t batch = q.size(0), heads = q.size(1), length = q.size(2);
  const auto accumulated = at::toOpMathType(q.scalar_type());
  return {like_meta(q, q.scalar_type()), make_meta(accumulated, {batch, heads, length}, {length * heads, 1, heads})};
}
std::tuple<Tensor, Tensor, Tensor> flash_for_cpu_backward(const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&, const Tensor&, double, bool, const OptionalTensor&,
                                                          std::optional<double>) {
  return {heads_inside_like(q), heads_inside_like(k), heads_inside_like(v)};
}

}  // namespace

void add_attention_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, _scaled_dot_product_flash_attention_for_cpu, flash_for_cpu);
  CUTAWAY_SHAPE_RULE(t, _scaled_dot_product_flash_attention_for_cpu_backward, flash_for_cpu_backward);
}

}  // namespace cutaway::trace::detail
