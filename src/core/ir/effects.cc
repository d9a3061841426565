// Which nodes must stay although nothing uses their results.
#include <algorithm>
#include <array>

#include "core/ir/edit.h"

namespace cutaway::ir {
namespace {

template <size_t N> bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Operators that update running statistics although their schemas do not say so. The argument that switches it is `training`
// (of instance_norm: use_input_stats), the sixth of each.
bool updates_statistics(const Node& n, const OpName& op) {
  constexpr std::array<std::string_view, 6> by_flag = {"aten::batch_norm",       "aten::native_batch_norm", "aten::_batch_norm_impl_index",
                                                       "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::instance_norm"};
  if (op.name == "aten::batch_norm_update_stats") return true;
  if (!contains(by_flag, op.name) || (n.args.size() > 3 && n.args[3].is_none())) return false;   // no running mean
  const Argument* flag = n.args.size() > 5 ? &n.args[5] : nullptr;
  for (const auto& [key, a] : n.kwargs)
    if (key == "training" || key == "use_input_stats") flag = &a;
  const bool* value = flag ? flag->as<bool>() : nullptr;
  return !value || *value;
}

// Without a schema: torch's ways of naming what writes. Out-variants with names of their own ("max.dim_max") are missed by the
// name, so a keyword `out` counts too.
bool writes_by_name(const Node& n, const OpName& op) {
  const std::string_view name = std::string_view(op.name).substr(op.name.find("::") + 2);
  constexpr std::array<std::string_view, 5> augmented = {"__iand__", "__ilshift__", "__ior__", "__irshift__", "__ixor__"};
  constexpr std::array<std::string_view, 4> silent = {"_batch_norm_with_update", "_native_batch_norm_legit", "fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper"};
  if (contains(augmented, name) || (contains(silent, name) && op.overload != "no_stats")) return true;
  if (name.ends_with("_") && !name.ends_with("__")) return true;
  if (op.overload == "out" || std::string_view(op.overload).ends_with("_out")) return true;
  return std::any_of(n.kwargs.begin(), n.kwargs.end(), [](const auto& k) { return k.first == "out"; });
}

bool is_random_by_name(const OpName& op) {
  constexpr std::array<std::string_view, 37> names = {
      "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial", "normal", "poisson",
      "binomial", "dropout", "native_dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "rrelu", "rrelu_with_noise",
      "uniform", "exponential", "geometric", "log_normal", "cauchy", "random", "_fused_dropout", "_sample_dirichlet", "_standard_gamma",
      "fractional_max_pool2d", "fractional_max_pool3d", "normal_functional", "rrelu_with_noise_functional", "lstm", "gru", "rnn_tanh", "rnn_relu", "miopen_rnn"};
  constexpr std::array<std::string_view, 10> attention = {"scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_attention_math",
      "_scaled_dot_product_flash_attention_for_cpu", "_flash_attention_forward", "_efficient_attention_forward", "_scaled_dot_product_fused_attention_overrideable",
      "_triton_scaled_dot_attention"};
  const std::string_view name = std::string_view(op.name).substr(op.name.find("::") + 2);
  return contains(names, name) || contains(attention, name) || name.starts_with("_cudnn_") || name.ends_with("_mps") || name.starts_with("_flash_attention_forward") ||
         (name.starts_with("_scaled_dot_product_") && name.ends_with("_attention_backward")) || name == "_fused_sdp_choice" || name == "_nested_tensor_softmax_with_shape";
}

}  // namespace

bool has_effects(const Node& n, const SchemaTable* schemas) {
  if (n.results.empty()) return true;
  if (n.kind != Node::Kind::op) {
    bool found = false;
    for (const Block& region : n.regions)
      for (const Node& inner : region.nodes) found = found || has_effects(inner, schemas);
    return found;
  }
  const std::optional<OpName> op = split_op_name(n.target);
  if (!op) return true;
  if (updates_statistics(n, *op)) return true;
  if (const Schema* schema = schemas ? schemas->find(n.target) : nullptr) {
    return schema->is_random || std::any_of(schema->args.begin(), schema->args.end(), [](const Schema::Arg& a) { return a.is_written; });
  }
  return writes_by_name(n, *op) || is_random_by_name(*op);
}

}  // namespace cutaway::ir
