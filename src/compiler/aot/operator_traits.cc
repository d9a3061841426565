#include "compiler/aot/operator_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "core/exec/interpreter.h"
#include "core/exec/scalar_ops.h"

namespace cutaway::aot {
namespace {

// Pointwise operators, copies and constants, by their names without overload. Not here: reductions, products, convolutions, norms,
// attention, gathers; anything whose result is not worth a read of its inputs; empty, which would come out different.
constexpr std::string_view kCheap[] = {
    "_conj_physical", "_to_copy", "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "angle", "arange", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cat", "ceil", "celu", "clamp",
    "clamp_max", "clamp_min", "clone", "complex", "constant_pad_nd", "copy", "copysign", "cos", "cosh", "deg2rad", "div", "elu", "eq", "erf",
    "erfc", "exp", "exp2", "expm1", "eye", "fill", "flip", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "full", "full_like", "ge", "gelu",
    "gelu_backward", "glu", "gt", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "heaviside", "hypot", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "ldexp", "le", "leaky_relu", "lerp", "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid_forward", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "lt", "masked_fill", "maximum", "minimum", "mish", "mul", "nan_to_num", "ne", "neg", "new_full", "new_ones",
    "new_zeros", "nextafter", "ones", "ones_like", "polar", "pow", "rad2deg", "reciprocal", "relu", "relu6", "remainder", "repeat", "roll", "round",
    "rsqrt", "rsub", "scalar_tensor", "select_scatter", "sgn", "sigmoid", "sigmoid_backward", "sign", "signbit", "silu", "silu_backward", "sin",
    "sinc", "sinh", "slice_backward", "slice_scatter", "softplus", "softshrink", "sqrt", "square", "stack", "sub", "tan", "tanh", "tanh_backward",
    "threshold", "threshold_backward", "tril", "triu", "trunc", "where", "xlogy", "zeros", "zeros_like"};

bool is_cheap(const c10::OperatorName& name) {
  if (!name.name.starts_with("aten::")) return false;
  static_assert(std::is_sorted(std::begin(kCheap), std::end(kCheap)));
  return std::binary_search(std::begin(kCheap), std::end(kCheap), std::string_view(name.name).substr(6));
}

int viewed_argument(const c10::FunctionSchema& schema) {
  if (schema.name() == "aten::_unsafe_view") return 0;   // its schema promises that nobody looks at the argument again; the memory is the same
  for (const c10::Argument& r : schema.returns()) {
    const auto* alias = r.alias_info();
    if (!alias || alias->isWrite()) continue;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* from = schema.arguments()[i].alias_info();
      if (!from) continue;
      for (const auto& set : from->beforeSets())
        if (alias->beforeSets().contains(set) || alias->isWildcardBefore()) return static_cast<int>(i);
    }
  }
  return OperatorTraits::kFresh;
}

OperatorTraits find(const std::string& target) {
  OperatorTraits traits;
  const auto name = ir::split_op_name(target);
  const auto op = name ? c10::Dispatcher::singleton().findSchema({name->name, name->overload}) : std::nullopt;
  const auto* schema = exec::dispatcher_schemas().find(target);
  if (schema && exec::find_scalar_op(target)) {   // arithmetic on sizes: never saved, since what is saved are tensors
    traits.is_cheap = true;
    return traits;
  }
  traits.must_stay = !op || !schema || schema->is_random || std::any_of(schema->args.begin(), schema->args.end(), [](const ir::Schema::Arg& a) { return a.is_written; });
  if (!op) return traits;
  for (const auto& a : op->schema().arguments()) traits.argument_names.push_back(a.name());
  traits.viewed_argument = viewed_argument(op->schema());
  traits.is_cheap = !traits.must_stay && is_cheap(op->operator_name());
  return traits;
}

}  // namespace

const OperatorTraits& operator_traits(const std::string& target) {
  static thread_local std::unordered_map<std::string, OperatorTraits> known;
  const auto it = known.find(target);
  return it != known.end() ? it->second : known.emplace(target, find(target)).first->second;
}

ir::ValueId viewed_value(const ir::Node& node) {
  const OperatorTraits& traits = operator_traits(node.target);
  if (traits.viewed_argument < 0) return ir::kNoValue;
  const auto position = static_cast<size_t>(traits.viewed_argument);
  const ir::Argument* argument = position < node.args.size() ? &node.args[position] : nullptr;
  for (const auto& [key, a] : node.kwargs)
    if (key == traits.argument_names[position]) argument = &a;
  const auto* ref = argument ? argument->as<ir::ValueRef>() : nullptr;
  return ref ? ref->id : ir::kNoValue;
}

}  // namespace cutaway::aot
