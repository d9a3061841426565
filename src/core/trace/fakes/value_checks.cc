#include "core/trace/value_checks.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>

namespace cutaway::trace {
namespace {

// In torch each of them asks only inside TORCH_CHECK: q within [0, 1]. Not here: cov, which also decides by a value whether to divide.
constexpr std::array<std::string_view, 4> kChecking = {"aten::quantile", "aten::quantile.scalar", "aten::nanquantile", "aten::nanquantile.scalar"};
thread_local std::string_view current;

bool is_flag(const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() && v.toTensor().dim() == 0 && v.toTensor().scalar_type() == at::kBool; }

}  // namespace

std::string_view checking_operator(std::string_view full_name) {
  const auto* const found = std::find(kChecking.begin(), kChecking.end(), full_name);
  return found == kChecking.end() ? std::string_view() : *found;
}

ValueChecks::ValueChecks(std::string_view checking_operator) : before_(current) { current = checking_operator; }
ValueChecks::~ValueChecks() { current = before_; }
std::string_view ValueChecks::asking() { return current; }
bool ValueChecks::is_question(const OperatorInfo& info, const torch::jit::Stack& stack) {
  return !current.empty() && info.full_name == "aten::equal" && is_flag(stack[stack.size() - 2]) && is_flag(stack.back());
}

bool ValueChecks::is_check_of_backward(const OperatorInfo& info) {
  if (info.full_name != "aten::allclose") return false;
  const auto node = torch::autograd::get_current_node();
  if (!node) return false;
  const std::string name = node->name();
  return name.starts_with("LinalgSvdBackward") || name.starts_with("LinalgEigBackward") || name.starts_with("LinalgEighBackward");
}

}  // namespace cutaway::trace
