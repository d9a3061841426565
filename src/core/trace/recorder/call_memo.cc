#include "core/trace/recorder/call_memo.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "core/trace/dispatch_keys.h"
#include "core/trace/fakes/fake_impl.h"
#include "core/trace/fakes/memo_key.h"
#include "core/trace/node_pointer.h"
#include "core/trace/recorder.h"
#include "core/trace/fakes/shape_inference.h"

namespace cutaway::trace {
namespace {

struct Answer {
  ResultShapes shapes;
  std::vector<bool> requires_grad;   ///< by tensor
  std::vector<c10::Device> devices;  ///< likewise
  bool has_history = false;
};

constexpr size_t kMostCalls = 1 << 16;   // emptied when it grows beyond this many calls
thread_local std::unordered_map<std::string, Answer> answers;

std::atomic<uint64_t> refused = 0;   // the engine may have a thread of its own

/// The engine comes here only when a program runs backward while it is recorded.
struct Unrecorded final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { refuse_backward(); }
  std::string name() const override { return "UnrecordedBackward"; }
};

/// Settings that decide which kernels a composite operator picks, and so the layout of what it gives.
uint32_t kernel_choice() {
  const at::Context& c = at::globalContext();
  const bool flags[] = {c10::GradMode::is_enabled(), c.deterministicAlgorithms(), c.userEnabledMkldnn(), c.userEnabledCuDNN(), c.userEnabledFlashSDP(), c.userEnabledMemEfficientSDP(),
                        c.userEnabledMathSDP(), c.userEnabledCuDNNSDP(), c.userEnabledNNPACK()};
  uint32_t bits = static_cast<uint32_t>(at::get_default_dtype_as_scalartype());
  for (const bool f : flags) bits = bits << 1 | static_cast<uint32_t>(f);
  return bits;
}

bool has_tangent(const at::Tensor& t) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(t.unsafeGetTensorImpl()->autograd_meta());
  return meta && meta->fw_grad_;
}

template <class F> void for_each_tensor(const c10::IValue& v, F&& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) f(v.toTensor());
  } else if (v.isList()) {
    const auto kind = v.toList().elementType()->kind();
    if (kind == c10::TypeKind::TensorType || kind == c10::TypeKind::OptionalType)
      for (const c10::IValue& e : v.toListRef()) for_each_tensor(e, f);
  }
}

}  // namespace

void count_refused_above_autograd() { ++refused; }
uint64_t refused_above_autograd() { return refused; }
void refuse_backward() {
  count_refused_above_autograd();
  TORCH_CHECK_NOT_IMPLEMENTED(false, "backward inside a recording above autograd is refused: record below autograd to see it");
  std::abort();   // not reached: the check throws
}

MemoizedCall::MemoizedCall(const OperatorInfo& info, const torch::jit::Stack& stack) : info_(info) {
  if (!info.gives_fresh_tensors || WorldRun::current()) return;   // what it is made of may have sizes of this world
  const auto local = c10::impl::tls_local_dispatch_key_set();
  using K = c10::DispatchKey;
  if (local.included_.has_any(c10::DispatchKeySet({K::Python, K::PythonTLSSnapshot, K::PythonDispatcher, K::Functionalize, K::FuncTorchDynamicLayerFrontMode, K::FuncTorchDynamicLayerBackMode}))) return;
  static thread_local std::string key;
  key.clear();
  std::array<const c10::TensorImpl*, 8> met{};   // the same tensor twice may be another case: attention of a tensor to itself
  size_t count = 0;
  bool has_fake = false;
  KeyWriter w(key, [&](auto& key, const at::Tensor& t) {
    const auto* impl = t.unsafeGetTensorImpl();
    const auto* fake = fake_impl(t);
    if (!fake) {   // a number as a tensor: an operator that is made of others might read it
      if (info.is_composite || !impl->is_wrapped_number() || t.requires_grad()) return false;
      key.tag('#');
      key.number(static_cast<uint8_t>(t.scalar_type()));
      return true;
    }
    if (fake->has_constant() || has_tangent(t)) return false;
    has_fake = true;
    const auto same = std::find(met.begin(), met.begin() + count, impl);
    if (same == met.begin() + count && count < met.size()) met[count++] = impl;
    key.number(static_cast<uint8_t>(same - met.begin()));
    key.number(t.key_set().raw_repr());
    key.number(static_cast<uint8_t>(t.scalar_type()));
    key.number(static_cast<int8_t>(t.device().index()));
    key.number(static_cast<uint8_t>(impl->is_wrapped_number() | t.requires_grad() << 1));
    key.numbers(t.sizes());
    key.numbers(t.strides());
    return true;
  });
  w.number(reinterpret_cast<uintptr_t>(&info));
  w.number(kernel_choice());
  w.number(local.included_.raw_repr());
  w.number(local.excluded_.raw_repr());
  if (!(local.excluded_ & c10::autocast_dispatch_keyset).operator==(c10::autocast_dispatch_keyset))
    for (const auto type : {c10::kCPU, c10::kCUDA, c10::kXPU, c10::kMPS}) w.number(static_cast<uint8_t>(at::autocast::get_autocast_dtype(type)));
  for (size_t i = stack.size() - info.argument_count; i < stack.size(); ++i)
    if (!w.value(stack[i])) return;
  if (has_fake) key_ = key;
}

bool MemoizedCall::answer(torch::jit::Stack* stack) {
  if (key_.empty()) return false;
  const auto known = answers.find(key_);
  if (known == answers.end()) {   // it will run, and what it gives is compared with what it got
    for (size_t i = stack->size() - info_.argument_count; i < stack->size(); ++i)
      for_each_tensor((*stack)[i], [&](const at::Tensor& t) { if (t.has_storage()) storages_.push_back(t.storage().unsafeGetStorageImpl()); });
    return false;
  }
  const Answer& a = known->second;
  count_memo_hit();
  NodePointer history;
  if (a.has_history) {
    torch::autograd::edge_list edges;
    for (size_t i = stack->size() - info_.argument_count; i < stack->size(); ++i)
      for_each_tensor((*stack)[i], [&](const at::Tensor& t) {
        if (t.requires_grad()) edges.push_back(torch::autograd::impl::gradient_edge(t));
      });
    history = make_node<Unrecorded>();
    history->set_next_edges(std::move(edges));
  }
  torch::jit::drop(*stack, info_.argument_count);
  size_t next = 0;
  const auto make = [&]() -> at::Tensor {
    const size_t i = next++;
    const TensorShape& s = a.shapes.tensors[i];
    if (!s.is_defined) return {};
    at::Tensor t = make_fresh_fake(s.dtype, s.sizes, s.strides, a.devices[i]);
    if (a.requires_grad[i]) torch::autograd::set_history(t, history);
    return t;
  };
  for (const int32_t length : a.shapes.lengths) {
    if (length < 0) {
      stack->emplace_back(make());
      continue;
    }
    std::vector<at::Tensor> list;
    list.reserve(static_cast<size_t>(length));
    for (int32_t i = 0; i < length; ++i) list.push_back(make());
    stack->emplace_back(std::move(list));
  }
  return true;
}

void MemoizedCall::remember(const torch::jit::Stack& stack) const {
  if (key_.empty()) return;
  Answer a;
  bool is_plain = true;
  for (size_t i = stack.size() - info_.return_count; i < stack.size(); ++i)
    for_each_tensor(stack[i], [&](const at::Tensor& t) {
      const auto* fake = fake_impl(t);
      is_plain = is_plain && fake && !fake->has_constant() && !has_tangent(t) && !fake->is_wrapped_number() && (!t.requires_grad() || !t.is_leaf());
    });
  // A view of something made inside the operator is as good as a fresh tensor: nobody else can reach its base.
  if (!is_plain || !describe_results(info_, stack, storages_, a.shapes)) return;
  const auto add = [&](const at::Tensor& t) {
    a.requires_grad.push_back(t.defined() && t.requires_grad());
    a.devices.push_back(t.defined() ? t.device() : c10::Device(c10::kCPU));
    a.has_history = a.has_history || a.requires_grad.back();
  };
  for (size_t i = stack.size() - info_.return_count; i < stack.size(); ++i) {
    if (stack[i].isTensor()) add(stack[i].toTensor());
    else for (const at::Tensor& t : stack[i].toTensorVector()) add(t);
  }
  if (answers.size() >= kMostCalls) answers.clear();
  answers.insert_or_assign(key_, std::move(a));
}

}  // namespace cutaway::trace
