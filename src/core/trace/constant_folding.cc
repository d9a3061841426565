#include <cstdint>

#include "core/trace/constant_folding.h"

#include <ATen/core/List.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fake_impl.h"

namespace cutaway::trace {
namespace {

// Position ids and small masks. What is larger is not asked about, and computing it would cost time and memory.
constexpr int64_t kMostElements = 4096;

at::Tensor known_value(const at::Tensor& t) {
  if (!t.defined()) return {};
  if (auto* fake = fake_impl(t)) return fake->constant();
  if (!t.device().is_cpu() || t.requires_grad() || t.numel() > kMostElements || is_constant_written(t)) return {};
  return t;
}

bool foldable_factory(const OperatorInfo& info) {
  return info.name.name.starts_with("aten::") && info.value_name.find("empty") == std::string::npos;
}

}  // namespace

std::optional<torch::jit::Stack> known_arguments(const OperatorInfo& info, const torch::jit::Stack& stack) {
  if (info.is_mutable || info.is_random) return std::nullopt;
  // Most calls end here: the first tensor is not known.
  bool has_tensor = false;
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i) {
    if (stack[i].isDevice() && !stack[i].toDevice().is_cpu()) return std::nullopt;
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    has_tensor = true;
    if (!known_value(stack[i].toTensor()).defined()) return std::nullopt;
  }
  torch::jit::Stack known;
  known.reserve(info.argument_count);
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i) {
    const auto& v = stack[i];
    if (v.isTensor() && v.toTensor().defined()) {
      known.emplace_back(known_value(v.toTensor()));
    } else if (v.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& t : v.toTensorVector()) {
        list.push_back(known_value(t));
        if (!list.back().defined()) return std::nullopt;
        has_tensor = true;
      }
      known.emplace_back(std::move(list));
    } else if (v.isList() && v.toList().elementType()->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& e : v.toListRef()) {
        if (!e.isTensor()) { list.push_back(std::nullopt); continue; }
        auto value = known_value(e.toTensor());
        if (!value.defined()) return std::nullopt;
        list.push_back(std::optional<at::Tensor>(std::move(value)));
        has_tensor = true;
      }
      known.emplace_back(std::move(list));
    } else {
      known.push_back(v);
    }
  }
  if (!has_tensor && !foldable_factory(info)) return std::nullopt;
  return known;
}

torch::jit::Stack run_really(const c10::OperatorHandle& op, torch::jit::Stack arguments) {
  const c10::impl::ExcludeDispatchKeyGuard real(c10::autograd_dispatch_keyset.add(kBelowKey).add(kAboveKey).add(c10::DispatchKey::Functionalize));
  op.callBoxed(&arguments);
  return arguments;
}

void attach_values(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack arguments, const torch::jit::Stack& results) {
  if (info.value_name.find("empty") != std::string::npos) return;   // its value is whatever lies in memory
  const size_t first = results.size() - info.return_count;
  auto is_small = [](const at::Tensor& t) { return fake_impl(t) && t.device().is_cpu() && t.numel() <= kMostElements; };
  for (size_t i = first; i < results.size(); ++i) {
    if (results[i].isTensor() && is_small(results[i].toTensor())) continue;
    if (!results[i].isTensorList()) return;
    for (const at::Tensor& t : results[i].toTensorVector())
      if (!is_small(t)) return;
  }
  torch::jit::Stack values;
  try {
    values = run_really(op, std::move(arguments));
  } catch (const c10::Error&) {
    return;   // eager's own error: the program meets it when it runs; here the value stays unknown
  }
  auto attach = [](const at::Tensor& fake, const at::Tensor& value) {
    if (fake.sizes() == value.sizes() && fake.scalar_type() == value.scalar_type()) fake_impl(fake)->set_constant(value);
  };
  for (size_t i = 0; i < info.return_count; ++i) {
    if (values[i].isTensor()) { attach(results[first + i].toTensor(), values[i].toTensor()); continue; }
    const auto fakes = results[first + i].toTensorVector(), real = values[i].toTensorVector();
    for (size_t j = 0; j < fakes.size(); ++j) attach(fakes[j], real[j]);
  }
}

}  // namespace cutaway::trace
