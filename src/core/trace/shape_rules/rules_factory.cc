// Tensors out of nothing: zeros, full, arange, the _like and new_ families.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::Scalar;
using at::Tensor;
using DType = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Flag = std::optional<bool>;
using Format = std::optional<at::MemoryFormat>;

at::ScalarType default_dtype() { return at::get_default_dtype_as_scalartype(); }
void check_layout(const Layout& layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == at::kStrided, "a tensor of layout ", *layout, " cannot be traced: only strided tensors can");
}
Tensor make_result(c10::SymIntArrayRef sizes, at::ScalarType dtype, const Layout& layout) {
  check_layout(layout);
  return contiguous_meta(dtype, C10_AS_INTARRAYREF_SLOW(sizes));
}
at::ScalarType dtype_of(const Scalar& fill) {
  if (fill.isBoolean()) return at::kBool;
  if (fill.isIntegral(false)) return at::kLong;
  return fill.isComplex() ? c10::toComplexType(default_dtype()) : default_dtype();
}
Tensor filled(c10::SymIntArrayRef sizes, DType dtype, Layout layout, Device, Flag) { return make_result(sizes, dtype.value_or(default_dtype()), layout); }
Tensor full(c10::SymIntArrayRef sizes, const Scalar& fill, DType dtype, Layout layout, Device, Flag) { return make_result(sizes, dtype ? *dtype : dtype_of(fill), layout); }
Tensor scalar_tensor(const Scalar&, DType dtype, Layout layout, Device, Flag) { return make_result({}, dtype.value_or(default_dtype()), layout); }

Tensor like(const Tensor& x, DType dtype, Layout layout, Device, Flag, Format format) {
  check_layout(layout);
  return like_meta(x, dtype.value_or(x.scalar_type()), format);
}
Tensor full_like(const Tensor& x, const Scalar&, DType dtype, Layout layout, Device device, Flag pin, Format format) { return like(x, dtype, layout, device, pin, format); }
Tensor new_filled(const Tensor& x, c10::SymIntArrayRef sizes, DType dtype, Layout layout, Device, Flag) { return make_result(sizes, dtype.value_or(x.scalar_type()), layout); }
Tensor new_full(const Tensor& x, c10::SymIntArrayRef sizes, const Scalar&, DType dtype, Layout layout, Device, Flag) {
  return make_result(sizes, dtype.value_or(x.scalar_type()), layout);
}
Tensor new_empty_strided(const Tensor& x, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, DType dtype, Layout layout, Device, Flag) {
  check_layout(layout);
  return make_meta(dtype.value_or(x.scalar_type()), C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

Tensor arange_start_step(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype, Layout layout, Device, Flag) {
  check_layout(layout);
  const bool integral = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  const auto type = dtype ? *dtype : integral ? at::kLong : default_dtype();
  const double by = step.toDouble();
  TORCH_CHECK(by != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start.toDouble()) && std::isfinite(end.toDouble()), "unsupported range: ", start.toDouble(), " -> ", end.toDouble());
  TORCH_CHECK((by > 0 && end.toDouble() >= start.toDouble()) || (by < 0 && end.toDouble() <= start.toDouble()), "upper bound and larger bound inconsistent with step sign");
  int64_t size = 0;
  if (at::isIntegralType(type, false) && type == at::kLong) {
    // In integers where the type is: a double loses the last digits of large bounds.
    const int64_t s = start.toLong(), e = end.toLong(), n = step.toLong();
    TORCH_CHECK(n != 0, "step must be nonzero");
    size = static_cast<int64_t>(std::ceil(static_cast<double>(e - s) / static_cast<double>(n)));
  } else {
    size = static_cast<int64_t>(std::ceil((end.toDouble() - start.toDouble()) / by));
  }
  return contiguous_meta(type, {size});
}
Tensor arange_start(const Scalar& start, const Scalar& end, DType dtype, Layout layout, Device device, Flag pin) { return arange_start_step(start, end, 1, dtype, layout, device, pin); }
Tensor arange(const Scalar& end, DType dtype, Layout layout, Device device, Flag pin) { return arange_start_step(0, end, 1, dtype, layout, device, pin); }

}  // namespace

void add_factory_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, zeros, filled);
  CUTAWAY_SHAPE_RULE(t, ones, filled);
  CUTAWAY_SHAPE_RULE(t, rand, filled);
  CUTAWAY_SHAPE_RULE(t, randn, filled);
  CUTAWAY_SHAPE_RULE(t, full, full);
  CUTAWAY_SHAPE_RULE(t, scalar_tensor, scalar_tensor);
  CUTAWAY_SHAPE_RULE(t, empty_like, like);
  CUTAWAY_SHAPE_RULE(t, zeros_like, like);
  CUTAWAY_SHAPE_RULE(t, ones_like, like);
  CUTAWAY_SHAPE_RULE(t, rand_like, like);
  CUTAWAY_SHAPE_RULE(t, randn_like, like);
  CUTAWAY_SHAPE_RULE(t, full_like, full_like);
  CUTAWAY_SHAPE_RULE(t, new_empty, new_filled);
  CUTAWAY_SHAPE_RULE(t, new_zeros, new_filled);
  CUTAWAY_SHAPE_RULE(t, new_ones, new_filled);
  CUTAWAY_SHAPE_RULE(t, new_full, new_full);
  CUTAWAY_SHAPE_RULE(t, new_empty_strided, new_empty_strided);
  CUTAWAY_SHAPE_RULE(t, arange, arange);
  CUTAWAY_SHAPE_RULE(t, arange_start, arange_start);
  CUTAWAY_SHAPE_RULE(t, arange_start_step, arange_start_step);
}

}  // namespace cutaway::trace::detail
