// var, std, sum and mean of everything, max and min, softmax that knows empty rows.
#include <cstdint>

#include <ATen/ATen.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/mean_meta_dispatch.h>
#include <ATen/ops/sum_meta_dispatch.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::Tensor;

Sizes reduced(const Tensor& x, at::OptionalIntArrayRef dims, bool keepdim) {
  const bool all = !dims || dims->empty();
  std::bitset<at::dim_bitset_size> mask;
  if (all) mask.set();
  else mask = at::dim_list_to_bitset(*dims, x.dim());
  Sizes sizes;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (!mask[i]) sizes.push_back(x.size(i));
    else if (keepdim) sizes.push_back(1);
  }
  return sizes;
}
void check_floating(const Tensor& x, const char* op) {
  TORCH_CHECK(at::isFloatingType(x.scalar_type()) || at::isComplexType(x.scalar_type()), op, " only support floating point and complex dtypes");
}
Tensor spread(const Tensor& x, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>&, bool keepdim) {
  check_floating(x, "std and var");
  return contiguous_meta(c10::toRealValueType(x.scalar_type()), reduced(x, dims, keepdim));
}
std::tuple<Tensor, Tensor> spread_mean(const Tensor& x, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>&, bool keepdim) {
  check_floating(x, "std_mean and var_mean");
  const auto sizes = reduced(x, dims, keepdim);
  return {contiguous_meta(c10::toRealValueType(x.scalar_type()), sizes), contiguous_meta(x.scalar_type(), sizes)};
}
Tensor extreme(const Tensor& x) {
  TORCH_CHECK(x.numel() > 0, "max and min: expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  return contiguous_meta(x.scalar_type(), {});
}
Tensor sum(const Tensor& x, std::optional<at::ScalarType> dtype) { return at::meta::sum(x, at::IntArrayRef{}, false, dtype); }
Tensor mean(const Tensor& x, std::optional<at::ScalarType> dtype) { return at::meta::mean(x, at::IntArrayRef{}, false, dtype); }

Tensor safe_softmax(const Tensor& x, int64_t dim, std::optional<at::ScalarType> dtype) {
  at::maybe_wrap_dim(dim, x.dim());
  return contiguous_meta(dtype.value_or(x.scalar_type()), x.sizes());
}

}  // namespace

void add_reduction_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, var_correction, spread);
  CUTAWAY_SHAPE_RULE(t, std_correction, spread);
  CUTAWAY_SHAPE_RULE(t, var_mean_correction, spread_mean);
  CUTAWAY_SHAPE_RULE(t, std_mean_correction, spread_mean);
  CUTAWAY_SHAPE_RULE(t, max, extreme);
  CUTAWAY_SHAPE_RULE(t, min, extreme);
  CUTAWAY_SHAPE_RULE(t, sum, sum);
  CUTAWAY_SHAPE_RULE(t, mean, mean);
  CUTAWAY_SHAPE_RULE(t, _safe_softmax, safe_softmax);
}

}  // namespace cutaway::trace::detail
