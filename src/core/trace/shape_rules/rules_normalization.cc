// Layer, group and batch normalization, forward and backward.
#include <cstdint>

#include <ATen/ATen.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::Tensor;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Mask = std::array<bool, 3>;

// Statistics of a half-precision input with float parameters are kept in float; else they have the input's dtype.
at::ScalarType statistics_dtype(const Tensor& x, std::initializer_list<const OptionalTensor*> parameters) {
  if (!at::isReducedFloatingType(x.scalar_type())) return x.scalar_type();
  for (const auto* p : parameters)
    if (is_given(*p) && (*p)->scalar_type() == at::kFloat) return at::kFloat;
  return x.scalar_type();
}

Triple layer_norm(const Tensor& x, c10::SymIntArrayRef normalized, const OptionalTensor& weight, const OptionalTensor& bias, double) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(normalized);
  const auto n = static_cast<int64_t>(shape.size());
  TORCH_CHECK(n >= 1, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = ", shape);
  TORCH_CHECK(!is_given(weight) || weight->sizes() == shape, "Expected weight to be of same shape as normalized_shape, but got weight of shape ", weight->sizes(),
              " and normalized_shape = ", shape);
  TORCH_CHECK(!is_given(bias) || bias->sizes() == shape, "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias->sizes(),
              " and normalized_shape = ", shape);
  TORCH_CHECK(x.dim() >= n && x.sizes().slice(x.dim() - n) == shape, "Given normalized_shape=", shape, ", expected input with shape [*", shape, "], but got input of size", x.sizes());
  Sizes statistics(x.sizes());
  for (int64_t i = x.dim() - n; i < x.dim(); ++i) statistics[i] = 1;
  const auto dtype = statistics_dtype(x, {&weight, &bias});
  return {contiguous_meta(x.scalar_type(), x.sizes()), contiguous_meta(dtype, statistics), contiguous_meta(dtype, statistics)};
}
Triple layer_norm_backward(const Tensor&, const Tensor& x, c10::SymIntArrayRef normalized, const Tensor&, const Tensor&, const OptionalTensor& weight, const OptionalTensor& bias, Mask mask) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(normalized);
  Triple r;
  if (mask[0]) std::get<0>(r) = contiguous_meta(x.scalar_type(), x.sizes());
  if (mask[1]) std::get<1>(r) = is_given(weight) ? like_meta(*weight, weight->scalar_type(), at::MemoryFormat::Contiguous) : contiguous_meta(x.scalar_type(), shape);
  if (mask[2]) std::get<2>(r) = is_given(bias) ? like_meta(*bias, bias->scalar_type(), at::MemoryFormat::Contiguous) : contiguous_meta(x.scalar_type(), shape);
  return r;
}

Triple group_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, c10::SymInt n, c10::SymInt, c10::SymInt, int64_t group, double) {
  const auto dtype = statistics_dtype(x, {&weight, &bias});
  const Sizes statistics{n.expect_int(), group};
  return {formatted_meta(x.scalar_type(), x.sizes(), x.suggest_memory_format()), contiguous_meta(dtype, statistics), contiguous_meta(dtype, statistics)};
}
Triple group_norm_backward(const Tensor&, const Tensor& x, const Tensor&, const Tensor&, const OptionalTensor& weight, c10::SymInt, c10::SymInt c, c10::SymInt, int64_t, Mask mask) {
  const auto dtype = is_given(weight) ? weight->scalar_type() : x.scalar_type();
  Triple r;
  if (mask[0]) std::get<0>(r) = formatted_meta(x.scalar_type(), x.sizes(), x.suggest_memory_format());
  if (mask[1]) std::get<1>(r) = contiguous_meta(dtype, {c.expect_int()});
  if (mask[2]) std::get<2>(r) = contiguous_meta(dtype, {c.expect_int()});
  return r;
}

int64_t channels(const Tensor& x) {
  TORCH_CHECK(x.dim() >= 2, "batch norm expects an input of at least two dimensions, but got sizes ", x.sizes());
  return x.size(1);
}
void check_features(const OptionalTensor& t, int64_t features, const char* what) {
  TORCH_CHECK(!is_given(t) || t->numel() == features, what, " should contain ", features, " elements not ", t->numel());
}
Triple batch_norm_results(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const OptionalTensor& mean, const OptionalTensor& var, bool training) {
  const auto c = channels(x);
  check_features(weight, c, "weight");
  check_features(bias, c, "bias");
  check_features(mean, c, "running_mean");
  check_features(var, c, "running_var");
  const auto dtype = statistics_dtype(x, {&weight, &bias, &mean, &var});
  const Sizes saved{training ? c : 0};
  return {formatted_meta(x.scalar_type(), x.sizes(), x.suggest_memory_format()), contiguous_meta(dtype, saved), contiguous_meta(dtype, saved)};
}
Triple batch_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const OptionalTensor& mean, const OptionalTensor& var, bool training, double, double) {
  return batch_norm_results(x, weight, bias, mean, var, training);
}
Triple batch_norm_legit(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, Tensor& mean, Tensor& var, bool training, double, double) {
  return batch_norm_results(x, weight, bias, mean, var, training);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, Tensor& mean, Tensor& var, double, double) {
  auto [out, saved_mean, saved_var] = batch_norm_results(x, weight, bias, mean, var, true);
  return {out, saved_mean, saved_var, contiguous_meta(at::kByte, {0})};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> batch_norm_functional(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& mean, const Tensor& var, bool training,
                                                                          double, double) {
  auto [out, saved_mean, saved_scale] = batch_norm_results(x, weight, bias, mean, var, training);
  return {std::move(out), std::move(saved_mean), std::move(saved_scale), like_meta(mean, mean.scalar_type()), like_meta(var, var.scalar_type())};
}
Triple batch_norm_no_stats(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, bool training, double, double) {
  return batch_norm_results(x, weight, bias, {}, {}, training);
}
Triple batch_norm_no_training(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& mean, const Tensor& var, double, double) {
  return batch_norm_results(x, weight, bias, mean, var, false);
}
Triple batch_norm_backward(const Tensor&, const Tensor& x, const OptionalTensor& weight, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, bool,
                           double, Mask mask) {
  const auto dtype = is_given(weight) ? weight->scalar_type() : x.scalar_type();
  Triple r;
  if (mask[0]) std::get<0>(r) = formatted_meta(x.scalar_type(), x.sizes(), x.suggest_memory_format());
  if (mask[1]) std::get<1>(r) = contiguous_meta(dtype, {channels(x)});
  if (mask[2]) std::get<2>(r) = contiguous_meta(dtype, {channels(x)});
  return r;
}

}  // namespace

void add_normalization_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, native_layer_norm, layer_norm);
  CUTAWAY_SHAPE_RULE(t, native_layer_norm_backward, layer_norm_backward);
  CUTAWAY_SHAPE_RULE(t, native_group_norm, group_norm);
  CUTAWAY_SHAPE_RULE(t, native_group_norm_backward, group_norm_backward);
  CUTAWAY_SHAPE_RULE(t, native_batch_norm, batch_norm);
  CUTAWAY_SHAPE_RULE(t, _native_batch_norm_legit, batch_norm_legit);
  CUTAWAY_SHAPE_RULE(t, _batch_norm_with_update, batch_norm_with_update);
  CUTAWAY_SHAPE_RULE(t, _native_batch_norm_legit_functional, batch_norm_functional);
  CUTAWAY_SHAPE_RULE(t, _native_batch_norm_legit_no_stats, batch_norm_no_stats);
  CUTAWAY_SHAPE_RULE(t, _native_batch_norm_legit_no_training, batch_norm_no_training);
  CUTAWAY_SHAPE_RULE(t, native_batch_norm_backward, batch_norm_backward);
}

}  // namespace cutaway::trace::detail
