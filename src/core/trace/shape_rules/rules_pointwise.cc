// relu, where, arithmetic with a number, masks, copies: operators that work element by element.
#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/add_meta_dispatch.h>
#include <ATen/ops/clamp_min_meta_dispatch.h>
#include <ATen/ops/div_meta_dispatch.h>
#include <ATen/ops/eq_meta_dispatch.h>
#include <ATen/ops/mul_meta_dispatch.h>
#include <ATen/ops/ne_meta_dispatch.h>
#include <ATen/ops/remainder_meta_dispatch.h>
#include <ATen/ops/sub_meta_dispatch.h>

#include "core/trace/shape_rules/layout_of_result.h"
#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace::detail {
namespace {

using at::Scalar;
using at::Tensor;

Tensor number(const Scalar& s) {
  auto t = make_meta(s.type(), {}, {});
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}
Tensor unary(const Tensor& x, at::ScalarType dtype) {
  auto it = at::TensorIteratorConfig().add_owned_output(Tensor()).add_owned_const_input(x).check_all_same_dtype(false).declare_static_dtype_and_device(dtype, x.device()).build();
  return it.output();
}
void check_fits(const Tensor& self, const Tensor& other, const char* op) {
  TORCH_CHECK(at::is_expandable_to(other.sizes(), self.sizes()), op, ": a tensor of sizes ", other.sizes(), " cannot be broadcast to sizes ", self.sizes());
}

Tensor relu(const Tensor& x) {
  TORCH_CHECK(x.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return at::meta::clamp_min(x, 0);
}
Tensor& relu_(Tensor& x) {
  TORCH_CHECK(x.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return x;
}
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte, "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              condition.scalar_type());
  const auto dtype = at::result_type(self, other);
  auto it = at::TensorIteratorConfig().add_owned_output(Tensor()).add_owned_const_input(condition).add_owned_const_input(self).add_owned_const_input(other)
                .check_all_same_dtype(false).declare_static_dtype_and_device(dtype, condition.device()).build();
  return it.output();
}
Tensor add(const Tensor& x, const Scalar& y, const Scalar& alpha) { return at::meta::add(x, number(y), alpha); }
Tensor sub(const Tensor& x, const Scalar& y, const Scalar& alpha) { return at::meta::sub(x, number(y), alpha); }
Tensor mul(const Tensor& x, const Scalar& y) { return at::meta::mul(x, number(y)); }
Tensor div(const Tensor& x, const Scalar& y) { return at::meta::div(x, number(y)); }
Tensor rsub(const Tensor& x, const Scalar& y, const Scalar& alpha) { return at::meta::sub(number(y), x, alpha); }
Tensor rsub_tensor(const Tensor& x, const Tensor& y, const Scalar& alpha) { return at::meta::sub(y, x, alpha); }
Tensor remainder(const Tensor& x, const Scalar& y) { return at::meta::remainder(x, number(y)); }
Tensor& add_(Tensor& x, const Scalar& y, const Scalar& alpha) { auto n = number(y); return at::meta::add_(x, n, alpha); }
Tensor& sub_(Tensor& x, const Scalar& y, const Scalar& alpha) { auto n = number(y); return at::meta::sub_(x, n, alpha); }
Tensor& mul_(Tensor& x, const Scalar& y) { auto n = number(y); return at::meta::mul_(x, n); }
Tensor& div_(Tensor& x, const Scalar& y) { auto n = number(y); return at::meta::div_(x, n); }
Tensor logical_not(const Tensor& x) { return unary(x, at::kBool); }
Tensor logical_binary(const Tensor& x, const Tensor& y) {
  auto it = at::TensorIteratorConfig().add_owned_output(Tensor()).add_owned_const_input(x).add_owned_const_input(y).check_all_same_dtype(false)
                .declare_static_dtype_and_device(at::kBool, x.device()).build();
  return it.output();
}
Tensor abs(const Tensor& x) { return unary(x, c10::isComplexType(x.scalar_type()) ? c10::toRealValueType(x.scalar_type()) : x.scalar_type()); }
Tensor isnan(const Tensor& x) { return at::meta::ne(x, x); }

Tensor masked_fill(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  return contiguous_meta(self.scalar_type(), at::infer_size_dimvector(self.sizes(), mask.sizes()));
}
Tensor masked_fill_scalar(const Tensor& self, const Tensor& mask, const Scalar&) { return masked_fill(self, mask); }
Tensor masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill only supports a 0-dimensional value tensor, but got tensor with ", value.dim(), " dimension(s).");
  return masked_fill(self, mask);
}
Tensor& masked_fill_scalar_(Tensor& self, const Tensor& mask, const Scalar&) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  check_fits(self, mask, "masked_fill_");
  return self;
}
Tensor& masked_fill_tensor_(Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(), " dimension(s).");
  return masked_fill_scalar_(self, mask, 0);
}

Tensor clone(const Tensor& x, std::optional<at::MemoryFormat> format) { return like_meta(x, x.scalar_type(), format); }
Tensor to_copy(const Tensor& x, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout, std::optional<at::Device>, std::optional<bool>, bool,
               std::optional<at::MemoryFormat> format) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == at::kStrided, "a conversion to layout ", *layout, " cannot be traced: only strided tensors can");
  const auto type = dtype.value_or(x.scalar_type());
  if (format && *format != at::MemoryFormat::Preserve) return formatted_meta(type, x.sizes(), *format);
  if (x.is_non_overlapping_and_dense()) return make_meta(type, x.sizes(), x.strides());
  return formatted_meta(type, x.sizes(), x.suggest_memory_format());
}
Tensor& copy_(Tensor& self, const Tensor& source, bool) {
  check_fits(self, source, "copy_");
  return self;
}
Tensor& fill_scalar_(Tensor& self, const Scalar&) { return self; }
Tensor& fill_tensor_(Tensor& self, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(), " dimensions.");
  return self;
}
Tensor& zero_(Tensor& self) { return self; }

std::tuple<Tensor, Tensor> native_dropout(const Tensor& x, double, std::optional<bool>) { return {like_meta(x, x.scalar_type()), like_meta(x, at::kBool)}; }
Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {   // grad * (mask in its dtype * scale)
  return at::meta::mul(grad, at::meta::mul(make_meta(grad.scalar_type(), mask.sizes(), mask.strides()), number(scale)));
}
Tensor bernoulli(const Tensor& x, std::optional<at::Generator>) { return like_meta(x, x.scalar_type()); }
Tensor bernoulli_p(const Tensor& x, double, std::optional<at::Generator>) { return like_meta(x, x.scalar_type()); }
Tensor& bernoulli_(Tensor& x, double, std::optional<at::Generator>) { return x; }
Tensor& draw_(Tensor& x, double, double, std::optional<at::Generator>) { return x; }
Tensor& exponential_(Tensor& x, double, std::optional<at::Generator>) { return x; }
Tensor& random_(Tensor& x, std::optional<at::Generator>) { return x; }

}  // namespace

void add_pointwise_rules(KernelTable& t) {
  CUTAWAY_SHAPE_RULE(t, relu, relu);
  CUTAWAY_SHAPE_RULE(t, relu_, relu_);
  CUTAWAY_SHAPE_RULE(t, where_self, where);
  CUTAWAY_SHAPE_RULE(t, add_Scalar, add);
  CUTAWAY_SHAPE_RULE(t, sub_Scalar, sub);
  CUTAWAY_SHAPE_RULE(t, mul_Scalar, mul);
  CUTAWAY_SHAPE_RULE(t, div_Scalar, div);
  CUTAWAY_SHAPE_RULE(t, rsub_Scalar, rsub);
  CUTAWAY_SHAPE_RULE(t, rsub_Tensor, rsub_tensor);
  CUTAWAY_SHAPE_RULE(t, remainder_Scalar, remainder);
  CUTAWAY_SHAPE_RULE(t, add__Scalar, add_);
  CUTAWAY_SHAPE_RULE(t, sub__Scalar, sub_);
  CUTAWAY_SHAPE_RULE(t, mul__Scalar, mul_);
  CUTAWAY_SHAPE_RULE(t, div__Scalar, div_);
  CUTAWAY_SHAPE_RULE(t, logical_not, logical_not);
  CUTAWAY_SHAPE_RULE(t, logical_and, logical_binary);
  CUTAWAY_SHAPE_RULE(t, logical_or, logical_binary);
  CUTAWAY_SHAPE_RULE(t, logical_xor, logical_binary);
  CUTAWAY_SHAPE_RULE(t, abs, abs);
  CUTAWAY_SHAPE_RULE(t, isnan, isnan);
  CUTAWAY_SHAPE_RULE(t, masked_fill_Scalar, masked_fill_scalar);
  CUTAWAY_SHAPE_RULE(t, masked_fill_Tensor, masked_fill_tensor);
  CUTAWAY_SHAPE_RULE(t, masked_fill__Scalar, masked_fill_scalar_);
  CUTAWAY_SHAPE_RULE(t, masked_fill__Tensor, masked_fill_tensor_);
  CUTAWAY_SHAPE_RULE(t, clone, clone);
  CUTAWAY_SHAPE_RULE(t, _to_copy, to_copy);
  CUTAWAY_SHAPE_RULE(t, copy_, copy_);
  CUTAWAY_SHAPE_RULE(t, fill__Scalar, fill_scalar_);
  CUTAWAY_SHAPE_RULE(t, fill__Tensor, fill_tensor_);
  CUTAWAY_SHAPE_RULE(t, zero_, zero_);
  CUTAWAY_SHAPE_RULE(t, native_dropout, native_dropout);
  CUTAWAY_SHAPE_RULE(t, native_dropout_backward, native_dropout_backward);
  CUTAWAY_SHAPE_RULE(t, bernoulli, bernoulli);
  CUTAWAY_SHAPE_RULE(t, bernoulli_p, bernoulli_p);
  CUTAWAY_SHAPE_RULE(t, bernoulli__float, bernoulli_);
  CUTAWAY_SHAPE_RULE(t, uniform_, draw_);
  CUTAWAY_SHAPE_RULE(t, normal_, draw_);
  CUTAWAY_SHAPE_RULE(t, exponential_, exponential_);
  CUTAWAY_SHAPE_RULE(t, random_, random_);
}

}  // namespace cutaway::trace::detail
