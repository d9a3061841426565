#include "core/trace/fakes/shape_inference.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/fakes/memo_key.h"

namespace cutaway::trace {
namespace {

std::atomic<uint64_t> own_rules{0}, cpp_metas{0}, dispatched{0}, memo_hits{0};
thread_local uint64_t operators_here = 0;
void count_operator(std::atomic<uint64_t>& counter) {
  ++counter;
  ++operators_here;
}
std::mutex dispatched_mutex;
std::unordered_map<std::string, uint64_t>& dispatched_names() {
  static auto* names = new std::unordered_map<std::string, uint64_t>;
  return *names;
}

// A memo per thread needs no lock. It is emptied when it grows beyond this many calls: programs repeat few.
constexpr size_t kMemoLimit = 1 << 16;
thread_local std::unordered_map<std::string, ResultShapes> memo;

}  // namespace

void write_memo_key(const OperatorInfo& info, const torch::jit::Stack& stack, std::string& key) {
  key.clear();
  if (!info.is_memoizable) return;
  KeyWriter w(key, [](auto& key, const at::Tensor& t) {
    if (t.layout() != at::kStrided || t.is_quantized()) return false;
    key.number(static_cast<uint8_t>(t.scalar_type()));
    key.number(static_cast<uint8_t>(t.unsafeGetTensorImpl()->is_wrapped_number() | t.is_conj() << 1 | t.is_neg() << 2));
    key.number(static_cast<int8_t>(t.device().type()));
    key.numbers(t.sizes());
    key.numbers(t.strides());
    return true;
  });
  w.number(reinterpret_cast<uintptr_t>(&info));
  w.number(static_cast<uint8_t>(at::get_default_dtype_as_scalartype()));   // arange, zeros and true division ask for it
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i)
    if (!w.value(stack[i])) { key.clear(); return; }
}

const ResultShapes* find_memo(const std::string& key) {
  const auto it = memo.find(key);
  if (it == memo.end()) return nullptr;
  count_operator(memo_hits);
  return &it->second;
}
void store_memo(const std::string& key, ResultShapes shapes) {
  if (memo.size() >= kMemoLimit) memo.clear();
  memo.insert_or_assign(key, std::move(shapes));
}

bool describe_results(const OperatorInfo& info, const torch::jit::Stack& stack, const std::vector<const c10::StorageImpl*>& arguments, ResultShapes& out) {
  std::vector<const c10::StorageImpl*> seen = arguments;
  auto add = [&](const at::Tensor& t) {
    TensorShape s;
    if (!t.defined()) {
      s.is_defined = false;
    } else {
      if (t.layout() != at::kStrided || t.storage_offset() != 0 || t.is_conj() || t.is_neg()) return false;
      const auto* storage = t.storage().unsafeGetStorageImpl();
      if (std::find(seen.begin(), seen.end(), storage) != seen.end()) return false;
      seen.push_back(storage);
      s.dtype = t.scalar_type();
      s.sizes.assign(t.sizes().begin(), t.sizes().end());
      s.strides.assign(t.strides().begin(), t.strides().end());
    }
    out.tensors.push_back(std::move(s));
    return true;
  };
  for (size_t i = stack.size() - info.return_count; i < stack.size(); ++i) {
    if (stack[i].isTensor()) {
      out.lengths.push_back(-1);
      if (!add(stack[i].toTensor())) return false;
    } else if (stack[i].isTensorList()) {
      const auto list = stack[i].toTensorVector();
      out.lengths.push_back(static_cast<int32_t>(list.size()));
      for (const auto& t : list)
        if (!add(t)) return false;
    } else {
      return false;
    }
  }
  return true;
}

namespace {

// The shapes of an operator without a meta kernel (aten::_foobar, many custom ones), from a run on zeros: what torch's own fake tensors do
// for such an operator. Only where it writes to nothing, takes and gives plain tensors, and the zeros are few; its values are thrown away.
bool infer_by_running(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  if (info.is_mutable || info.is_data_dependent || !info.returns_fresh) return false;
  int64_t elements = 0;
  const auto real = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    elements += t.numel();
    if (t.layout() != at::kStrided || t.is_quantized() || elements > kMostElements) { elements = kMostElements + 1; return t; }
    return at::empty_strided(t.sizes(), t.strides(), at::TensorOptions().dtype(t.scalar_type()).device(at::kCPU)).zero_();
  };
  torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(info.argument_count), stack->end());
  for (c10::IValue& v : arguments) {
    if (v.isTensor()) v = real(v.toTensor());
    else if (v.isTensorList()) { auto list = v.toTensorVector(); for (at::Tensor& t : list) t = real(t); v = std::move(list); }
    else if (v.isDevice()) v = c10::Device(at::kCPU);
  }
  if (elements > kMostElements) return false;
  op.callBoxed(&arguments);
  bool is_plain = true;
  const auto meta = [&](const at::Tensor& t) {
    is_plain &= !t.defined() || (t.layout() == at::kStrided && !t.is_quantized());
    return t.defined() && is_plain ? at::empty_strided(t.sizes(), t.strides(), at::TensorOptions().dtype(t.scalar_type()).device(at::kMeta)) : t;
  };
  for (c10::IValue& v : arguments) {
    if (v.isTensor()) v = meta(v.toTensor());
    else if (v.isTensorList()) { auto list = v.toTensorVector(); for (at::Tensor& t : list) t = meta(t); v = std::move(list); }
    else if (!v.isNone()) return false;   // a number that it computed from the zeros
  }
  if (!is_plain) return false;   // to_sparse: how many elements it keeps depends on their values
  torch::jit::drop(*stack, info.argument_count);
  stack->insert(stack->end(), arguments.begin(), arguments.end());
  return true;
}

}  // namespace

void infer_on_meta(const c10::OperatorHandle& op, const OperatorInfo& info, torch::jit::Stack* stack) {
  // Only shapes are asked for: autograd, autocast and Python modes have had their turn above, or must not see this.
  const c10::impl::ExcludeDispatchKeyGuard below(
      (c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset)
          .add(kBelowKey).add(kAboveKey).add(c10::DispatchKey::Functionalize).add(c10::DispatchKey::Python).add(c10::DispatchKey::PythonTLSSnapshot));
  const c10::DispatchKeySet keys(c10::DispatchKey::Meta);
  if (info.own_rule) {
    count_operator(own_rules);
    info.own_rule->callBoxed(op, keys, stack);
  } else if (info.cpp_meta) {
    count_operator(cpp_metas);
    info.cpp_meta->callBoxed(op, keys, stack);
  } else {
    count_operator(dispatched);
    {
      const std::lock_guard lock(dispatched_mutex);
      ++dispatched_names()[info.full_name];
    }
    // A kernel in Python gets numbers as numbers: torch reads the value of a wrapped one, which a meta tensor has not. Shapes do not depend on it.
    const auto is_number = [](const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() && v.toTensor().is_meta() && v.toTensor().unsafeGetTensorImpl()->is_wrapped_number(); };
    const auto first = stack->end() - static_cast<std::ptrdiff_t>(info.argument_count);
    const bool has_tensor = std::any_of(first, stack->end(), [&](const c10::IValue& v) { return (v.isTensor() && !is_number(v)) || v.isTensorList(); });   // else its result would be on the CPU
    for (size_t i = stack->size() - info.argument_count; i < stack->size() && has_tensor; ++i) {
      auto& v = (*stack)[i];
      if (!is_number(v)) continue;
      at::Tensor one = at::ones({}, at::TensorOptions().dtype(v.toTensor().scalar_type()).device(at::kCPU));
      one.unsafeGetTensorImpl()->set_wrapped_number(true);
      v = std::move(one);
    }
    const torch::jit::Stack arguments = *stack;   // a call that fails may have taken them already
    try {
      op.callBoxed(stack);
    } catch (const c10::NotImplementedError&) {
      *stack = arguments;
      if (!infer_by_running(op, info, stack)) throw;
    }
  }
}

void count_view() { count_operator(own_rules); }
void count_memo_hit() { count_operator(memo_hits); }

uint64_t operators_met() { return operators_here; }
ShapeCounters shape_counters() { return {own_rules, cpp_metas, dispatched, memo_hits}; }

std::vector<std::pair<std::string, uint64_t>> dispatcher_operators() {
  std::vector<std::pair<std::string, uint64_t>> names;
  {
    const std::lock_guard lock(dispatched_mutex);
    names.assign(dispatched_names().begin(), dispatched_names().end());
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  return names;
}

}  // namespace cutaway::trace
