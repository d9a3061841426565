#include "core/trace/fakes/constant_folding.h"

#include <ATen/core/List.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::trace {
namespace {

// Position ids and masks. What is larger is not asked about, and working it out would take memory.
constexpr int64_t kMostElements = int64_t{1} << 22;
// Values of longer chains are worked out on the way, so that the last question does not go down too deep.
constexpr uint32_t kMostDepth = 100;

bool can_be_known(const at::Tensor& t) {
  if (auto* fake = fake_impl(t)) return fake->has_constant();
  return t.device().is_cpu() && !t.requires_grad() && t.numel() <= kMostElements && !is_constant_written(t);
}
at::Tensor known_value(const at::Tensor& t) {
  if (!t.defined() || !can_be_known(t)) return {};
  auto* fake = fake_impl(t);
  return fake ? fake->constant() : t;
}
bool is_empty_factory(const OperatorInfo& info) { return info.value_name.find("empty") != std::string::npos; }   // its value is whatever lies in memory

template <class F> bool all_tensors(const c10::IValue& v, F&& f) {
  if (v.isTensor()) return !v.toTensor().defined() || f(v.toTensor());
  if (!v.isList()) return true;
  const auto kind = v.toList().elementType()->kind();
  if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::OptionalType) return true;
  for (const c10::IValue& e : v.toListRef())
    if (!all_tensors(e, f)) return false;
  return true;
}

}  // namespace

bool are_known(const OperatorInfo& info, const torch::jit::Stack& stack) {
  if (info.is_mutable || info.is_random || is_empty_factory(info)) return false;
  bool has_tensor = false;
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i) {
    if (stack[i].isDevice() && !stack[i].toDevice().is_cpu()) return false;
    // Most calls end here: the first tensor is not known.
    if (!all_tensors(stack[i], [&](const at::Tensor& t) { has_tensor = true; return can_be_known(t); })) return false;
  }
  return has_tensor || info.name.name.starts_with("aten::");
}

std::optional<torch::jit::Stack> known_arguments(const torch::jit::Stack& arguments) {
  torch::jit::Stack known;
  known.reserve(arguments.size());
  for (const auto& v : arguments) {
    if (v.isTensor() && v.toTensor().defined()) {
      auto value = known_value(v.toTensor());
      if (!value.defined()) return std::nullopt;
      known.emplace_back(std::move(value));
    } else if (v.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& t : v.toTensorVector()) {
        list.push_back(known_value(t));
        if (!list.back().defined()) return std::nullopt;
      }
      known.emplace_back(std::move(list));
    } else if (v.isList() && v.toList().elementType()->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& e : v.toListRef()) {
        if (!e.isTensor()) { list.push_back(std::nullopt); continue; }
        auto value = known_value(e.toTensor());
        if (!value.defined()) return std::nullopt;
        list.push_back(std::optional<at::Tensor>(std::move(value)));
      }
      known.emplace_back(std::move(list));
    } else {
      known.push_back(v);
    }
  }
  return known;
}

namespace {

thread_local uint64_t asked = 0;

void note(uint64_t part) { asked = (asked ^ part) * 0x9e3779b97f4a7c15ull + (asked >> 29); }
void note(const at::Tensor& t) {
  if (!t.defined()) return;
  for (const int64_t n : t.sizes()) note(static_cast<uint64_t>(n));
  if (t.dim() != 0 || !t.device().is_cpu() || t.nbytes() > 16) return;
  uint64_t number[2] = {0, 0};   // a number of the program's may come as a tensor without dimensions
  std::memcpy(number, t.const_data_ptr(), t.nbytes());
  note(number[0]);
  note(number[1]);
}
void note(const c10::IValue& v) {
  if (v.isInt()) note(static_cast<uint64_t>(v.toInt()));
  else if (v.isDouble()) note(std::bit_cast<uint64_t>(v.toDouble()));
  else if (v.isBool()) note(v.toBool() ? 1 : 2);
  else if (v.isComplexDouble()) { note(std::bit_cast<uint64_t>(v.toComplexDouble().real())); note(std::bit_cast<uint64_t>(v.toComplexDouble().imag())); }
  else if (v.isTensor()) note(v.toTensor());
  else if (v.isList()) for (const c10::IValue& e : v.toListRef()) note(e);
}

}  // namespace

uint64_t take_asked_values() { return std::exchange(asked, 0); }

torch::jit::Stack run_really(const c10::OperatorHandle& op, torch::jit::Stack arguments) {
  note(std::hash<std::string>()(op.operator_name().name));
  for (const c10::IValue& v : arguments) note(v);
  const c10::impl::ExcludeDispatchKeyGuard real(c10::autograd_dispatch_keyset.add(kBelowKey).add(kAboveKey).add(c10::DispatchKey::Functionalize));
  op.callBoxed(&arguments);
  return arguments;
}

at::Tensor KnownCall::result(size_t index) {
  if (!is_done_) work_out();
  return index < results_.size() ? results_[index] : at::Tensor();
}

void KnownCall::work_out() {
  is_done_ = true;
  auto known = known_arguments(arguments_);
  arguments_.clear();
  if (!known) return;
  torch::jit::Stack values;
  try {
    values = run_really(op_, std::move(*known));
  } catch (const c10::Error&) {
    return;   // eager's own error: the program meets it when it runs; here the value stays unknown
  }
  for (const auto& v : values) {
    if (v.isTensor()) results_.push_back(v.toTensor());
    else if (v.isTensorList()) for (const at::Tensor& t : v.toTensorVector()) results_.push_back(t);
  }
}

void remember_call(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack arguments, const torch::jit::Stack& results) {
  uint32_t depth = 0;
  for (const auto& v : arguments)
    all_tensors(v, [&](const at::Tensor& t) {
      if (auto* fake = fake_impl(t)) depth = std::max(depth, fake->constant_depth() + 1);
      return true;
    });
  const auto call = std::make_shared<KnownCall>(op, std::move(arguments), depth > kMostDepth ? 0 : depth);
  size_t index = 0;
  const auto remember = [&](const at::Tensor& t) {
    if (auto* fake = fake_impl(t); fake && t.device().is_cpu() && t.numel() <= kMostElements) fake->set_constant(call, index);
    ++index;
  };
  for (size_t i = results.size() - info.return_count; i < results.size(); ++i) {
    if (results[i].isTensor()) remember(results[i].toTensor());
    else if (results[i].isTensorList()) for (const at::Tensor& t : results[i].toTensorVector()) remember(t);
  }
  if (depth > kMostDepth) call->result(0);
}

}  // namespace cutaway::trace
