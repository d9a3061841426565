#include "core/trace/shape_rules/shape_rules.h"

namespace cutaway::trace {
namespace {
const KernelTable& rules() {
  static const KernelTable table = [] {
    KernelTable t;
    detail::add_pointwise_rules(t);
    detail::add_reduction_rules(t);
    detail::add_indexing_rules(t);
    detail::add_factory_rules(t);
    detail::add_normalization_rules(t);
    detail::add_convolution_rules(t);
    detail::add_attention_rules(t);
    detail::add_linear_algebra_rules(t);
    return t;
  }();
  return table;
}
}  // namespace

const c10::KernelFunction* find_shape_rule(const std::string& full_name) {
  const auto it = rules().find(full_name);
  return it == rules().end() ? nullptr : &it->second;
}

std::vector<std::string> table_rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : rules()) names.push_back(name);
  return names;
}

}  // namespace cutaway::trace
