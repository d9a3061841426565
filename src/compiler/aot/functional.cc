#include "compiler/aot/functional.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <torch/library.h>

#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"

namespace cutaway::aot {
namespace {

namespace functional = at::functionalization::impl;
thread_local int recordings = 0;

}  // namespace

Functionalized::Functionalized() : key_(c10::DispatchKey::Functionalize), views_(true) { ++recordings; }
Functionalized::~Functionalized() { --recordings; }

at::Tensor wrap(const at::Tensor& inner) { return functional::to_functional_tensor(inner); }

at::Tensor inner_of(const at::Tensor& t) {
  if (!wrapper_of(t)) return t;
  const at::NoGradGuard quiet;   // views are made anew below autograd's eyes
  functional::sync(t);
  return functional::from_functional_tensor(t);
}

at::FunctionalTensorWrapper* wrapper_of(const at::Tensor& t) {
  return t.defined() && functional::isFunctionalTensor(t) ? functional::unsafeGetFunctionalWrapper(t) : nullptr;
}

const c10::StorageImpl* storage_of(const at::Tensor& t) { return t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(); }

base::Result<ir::Graph> record_view(const at::Tensor& base, const ViewSteps& steps, std::string name) {
  const trace::FakeMode mode;
  trace::RecordOptions options;
  options.graph_name = std::move(name);
  options.input_names = {{"base"}};
  return trace::record([&](std::vector<c10::IValue>&) -> std::vector<c10::IValue> { return {functional::apply_view_meta_sequence(base, steps)}; }, {base}, std::move(options));
}

namespace {

// What torch does with an operator that writes nothing: runs it on the tensors inside, and wraps what comes out.
void run_inside(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  for (size_t i = first; i < stack->size(); ++i)
    if ((*stack)[i].isTensor()) (*stack)[i] = inner_of((*stack)[i].toTensor());
  {
    const c10::impl::ExcludeDispatchKeyGuard inside(c10::DispatchKey::Functionalize);
    op.callBoxed(stack);
  }
  for (size_t i = first; i < stack->size(); ++i)
    if ((*stack)[i].isTensor() && (*stack)[i].toTensor().defined()) (*stack)[i] = wrap((*stack)[i].toTensor());
}

// By its schema native_batch_norm writes nothing, yet in training it updates the running statistics. Its twin says so, and gives the same
// numbers; autograd, which is above, keeps the derivative of the one that was called.
void batch_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto args = torch::jit::last(*stack, 8);
  const auto optional = [](const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() ? std::optional<at::Tensor>(v.toTensor()) : std::nullopt; };
  auto mean = optional(args[3]), variance = optional(args[4]);
  if (recordings == 0 || !args[5].toBool() || !mean || !variance) return run_inside(op, stack);
  auto result = at::_native_batch_norm_legit(args[0].toTensor(), optional(args[1]), optional(args[2]), *mean, *variance, true, args[6].toDouble(), args[7].toDouble());
  torch::jit::drop(*stack, 8);
  torch::jit::push(*stack, std::get<0>(result), std::get<1>(result), std::get<2>(result));
}

// These update running statistics in the same hidden way and have no twin.
void refuse_hidden_write(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(recordings == 0, op.operator_name().name, " is refused: it writes to running statistics that its schema does not mark as written");
  run_inside(op, stack);
}

// cuDNN's batch norm, which torch chooses by dtype and device, becomes torch's own: the same numbers up to rounding, and an operator that says what it writes.
// What cuDNN's keeps for its backward is empty then, and its backward below does without.
void cudnn_batch_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::vector<c10::IValue> args = [&] { const auto last = torch::jit::last(*stack, 8); return std::vector<c10::IValue>(last.begin(), last.end()); }();
  const auto optional = [](const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() ? std::optional<at::Tensor>(v.toTensor()) : std::nullopt; };
  if (recordings == 0) return run_inside(op, stack);
  const at::Tensor x = args[0].toTensor();
  if (!x.is_cuda()) return refuse_hidden_write(op, stack);   // torch raises there
  auto mean = optional(args[3]), variance = optional(args[4]);
  const bool training = args[5].toBool();
  const auto result = training && mean && variance ? at::_native_batch_norm_legit(x, optional(args[1]), optional(args[2]), *mean, *variance, true, args[6].toDouble(), args[7].toDouble())
                                                   : at::native_batch_norm(x, optional(args[1]), optional(args[2]), mean, variance, training, args[6].toDouble(), args[7].toDouble());
  torch::jit::drop(*stack, 8);
  torch::jit::push(*stack, std::get<0>(result), std::get<1>(result), std::get<2>(result), x.new_empty({0}, x.options().dtype(at::kByte)));
}
void cudnn_batch_norm_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::vector<c10::IValue> args = [&] { const auto last = torch::jit::last(*stack, 9); return std::vector<c10::IValue>(last.begin(), last.end()); }();
  const auto optional = [](const c10::IValue& v) { return v.isTensor() && v.toTensor().defined() ? std::optional<at::Tensor>(v.toTensor()) : std::nullopt; };
  if (recordings == 0 || !args[8].isTensor() || args[8].toTensor().sym_numel() != 0) return run_inside(op, stack);   // something was kept: it was cuDNN's
  const auto result = at::native_batch_norm_backward(args[1].toTensor(), args[0].toTensor(), args[2].toTensor(), optional(args[3]), optional(args[4]), optional(args[5]), optional(args[6]), true,
                                                     args[7].toDouble(), {true, true, true});
  torch::jit::drop(*stack, 9);
  torch::jit::push(*stack, std::get<0>(result), std::get<1>(result), std::get<2>(result));
}

}  // namespace
}  // namespace cutaway::aot

TORCH_LIBRARY_IMPL(aten, Functionalize, m) {
  m.impl("native_batch_norm", torch::CppFunction::makeFromBoxedFunction<&cutaway::aot::batch_norm>());
  m.impl("cudnn_batch_norm", torch::CppFunction::makeFromBoxedFunction<&cutaway::aot::cudnn_batch_norm>());
  m.impl("cudnn_batch_norm_backward", torch::CppFunction::makeFromBoxedFunction<&cutaway::aot::cudnn_batch_norm_backward>());
  for (const char* name : {"miopen_batch_norm", "batch_norm_update_stats"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&cutaway::aot::refuse_hidden_write>());
}
