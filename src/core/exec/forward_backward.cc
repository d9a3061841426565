#include <cstdint>

#include "core/exec/forward_backward.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/exec/random_state.h"
#include "core/tensor/make.h"

namespace cutaway::exec {
namespace {

using base::Error;
using base::Result;
using c10::IValue;

/// The parts of a list, a tuple or a dict; null for anything else.
std::optional<std::vector<IValue>> parts_of(const IValue& v) {
  if (v.isTuple()) return v.toTupleRef().elements().vec();
  if (v.isList()) return v.toListRef().vec();
  if (v.isGenericDict()) {
    std::vector<IValue> parts;
    for (const auto& item : v.toGenericDict()) parts.push_back(item.value());
    return parts;
  }
  return std::nullopt;
}

template <class F> void for_each_tensor(const IValue& v, F&& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) f(v.toTensor());
  } else if (auto parts = parts_of(v)) {
    for (const IValue& p : *parts) for_each_tensor(p, f);
  }
}
std::vector<at::Tensor> tensors_in(const std::vector<IValue>& values) {
  std::vector<at::Tensor> found;
  for (const IValue& v : values) for_each_tensor(v, [&](const at::Tensor& t) { found.push_back(t); });
  return found;
}

Result<at::Tensor> loss_of(const IValue& v);

Result<at::Tensor> mean_of_parts(const std::vector<IValue>& parts) {
  if (parts.empty()) return Error{.what = "an empty list cannot be reduced to a loss"};
  at::Tensor total;
  for (const IValue& p : parts) {
    CUTAWAY_TRY_ASSIGN(at::Tensor part, loss_of(p));
    total = total.defined() ? total + part : part;
  }
  return total / static_cast<double>(parts.size());
}

Result<at::Tensor> loss_of(const IValue& v) {
  if (v.isTensor() && v.toTensor().defined()) {
    const at::Tensor& t = v.toTensor();
    return t.sum() / static_cast<double>(t.numel());   // not mean(), which refuses integers
  }
  if (auto parts = parts_of(v)) return mean_of_parts(*parts);
  return Error{.what = "an output of kind " + v.tagKind() + " cannot be reduced to a loss", .hint = "run forward only"};
}

/// Without what is no tensor and without what is then empty. A graph may return sizes and none beside its tensors.
std::optional<IValue> tensors_only(const IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() ? std::optional(v) : std::nullopt;
  auto parts = parts_of(v);
  if (!parts) return std::nullopt;
  std::vector<IValue> kept;
  for (const IValue& p : *parts)
    if (auto k = tensors_only(p)) kept.push_back(std::move(*k));
  if (kept.empty()) return std::nullopt;
  return IValue(c10::ivalue::Tuple::create(std::move(kept)));
}

void run_backward_of_mean(const std::vector<IValue>& outputs) {
  std::vector<IValue> kept;
  for (const IValue& v : outputs)
    if (auto k = tensors_only(v)) kept.push_back(std::move(*k));
  auto loss = reduce_to_scalar_loss(kept);
  TORCH_CHECK_TYPE(loss.ok(), loss.error().text());
  at::Tensor scalar = std::move(loss).value();
  if (scalar.is_complex()) scalar = at::real(scalar) + at::imag(scalar);
  scalar.backward();
}

void run_backward_of_cotangents(const std::vector<IValue>& outputs) {
  std::vector<at::Tensor> roots, gradients;
  const std::vector<at::Tensor> tensors = tensors_in(outputs);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].requires_grad()) continue;
    roots.push_back(tensors[i].layout() == at::kStrided ? tensors[i] : tensors[i].to_dense());
    gradients.push_back(cotangent(roots.back(), i));
  }
  torch::autograd::backward(roots, gradients);
}

bool is_floating_tensor(const IValue& v) { return v.isTensor() && v.toTensor().defined() && (v.toTensor().is_floating_point() || v.toTensor().is_complex()); }

/// Tensors that are not cloned for a run: their gradients, and their values where the run changed them, are put back.
class HeldScope {
 public:
  explicit HeldScope(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
    for (const at::Tensor& t : tensors_) before_.push_back({t.detach().clone(), t.is_leaf() ? t.grad() : at::Tensor()});
  }
  ~HeldScope() {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const at::Tensor& t = tensors_[i];
      if (t.is_leaf()) t.mutable_grad() = before_[i].gradient;
      // Writing counts as a change in autograd's eyes, so that nothing is written without need.
      if (!at::equal(t.detach(), before_[i].value)) t.detach().copy_(before_[i].value);
    }
  }
  HeldScope(const HeldScope&) = delete;
  HeldScope& operator=(const HeldScope&) = delete;

 private:
  struct Before { at::Tensor value, gradient; };
  const std::vector<at::Tensor>& tensors_;
  std::vector<Before> before_;
};

}  // namespace

Runnable runnable(const Program& program) {
  return [&program](std::vector<IValue>& inputs) { return program.run(inputs); };
}

bool requires_bwd_pass(const std::vector<IValue>& outputs) {
  bool found = false;
  for (const IValue& v : outputs) for_each_tensor(v, [&](const at::Tensor& t) { found |= t.requires_grad(); });
  return found;
}

Result<at::Tensor> reduce_to_scalar_loss(const std::vector<IValue>& outputs) { return mean_of_parts(outputs); }

at::Tensor cotangent(const at::Tensor& output, size_t position) {
  // repro.py makes the same numbers: integers of 0 to 13 from the seeded generator of inputs, then without the zero in their middle.
  constexpr uint64_t kSeed = 20'240;
  at::NoGradGuard no_grad;
  bundle::TensorRecord record;
  record.dtype = ir::DType::i64;
  record.sizes = {output.numel() * (output.is_complex() ? 2 : 1)};
  record.strides = {1};
  auto drawn = tensor::rand_strided(record, kSeed + position, tensor::Range{0, 14});
  TORCH_CHECK(drawn.ok(), drawn.ok() ? "" : drawn.error().text());
  at::Tensor numbers = ((*drawn - 7).add_(drawn->ge(7))).to(at::kDouble).div_(4);
  if (output.is_complex()) numbers = at::view_as_complex(numbers.view({-1, 2}));
  return numbers.view(output.sizes()).to(output.scalar_type()).to(output.device());
}

RunResults run_fwd_maybe_bwd(const Runnable& run, const std::vector<IValue>& inputs, const ForwardBackwardOptions& options, const RandomStart& start) {
  RandomStateScope random(start);
  std::vector<IValue> own = options.disable_clone ? inputs : tensor::clone_keeping_aliases(inputs);
  const HeldScope held(options.held);
  RunResults results;
  for (size_t i = 0; i < own.size(); ++i)   // the run may empty the list; these stay
    for_each_tensor(own[i], [&](const at::Tensor& t) {
      results.inputs_after.push_back(t);
      results.input_of.push_back(i);
    });
  for (size_t i = 0; i < options.held.size(); ++i) {
    results.inputs_after.push_back(options.held[i]);
    results.input_of.push_back(own.size() + i);
  }
  for (const at::Tensor& t : results.inputs_after) {
    if (!t.requires_grad()) continue;
    if (!t.is_leaf()) t.retain_grad();
    t.mutable_grad() = at::Tensor();
  }
  // Asked before the run: an operator in place may make an input require grad that did not.
  std::vector<at::Tensor> differentiated;
  for (size_t i = 0; i < results.inputs_after.size(); ++i)
    if (results.inputs_after[i].requires_grad()) {
      differentiated.push_back(results.inputs_after[i]);
      results.gradient_of.push_back(results.input_of[i]);
    }
  results.outputs = run(own);
  if (!options.only_forward) {
    if (requires_bwd_pass(results.outputs)) {
      std::optional<StateScope> no_autocast, state;
      if (options.backward_state) {
        no_autocast.emplace(autocast_off());   // what is on around the call is not on here, unless it says so
        state.emplace(*options.backward_state);
      }
      options.loss == Loss::mean ? run_backward_of_mean(results.outputs) : run_backward_of_cotangents(results.outputs);
      results.ran_backward = true;
    }
    for (const at::Tensor& t : differentiated) results.input_gradients.push_back(t.grad().defined() ? t.grad() : at::zeros_like(t));
  }
  // What is held goes back to what it was; what the run made of it stays in the results.
  for (size_t i = results.inputs_after.size() - options.held.size(); i < results.inputs_after.size(); ++i) {
    at::NoGradGuard no_grad;
    results.inputs_after[i] = results.inputs_after[i].detach().clone();
  }
  if (options.ignore_non_fp) {
    std::vector<IValue> kept;
    for (IValue& v : results.outputs)
      if (is_floating_tensor(v) || parts_of(v)) kept.push_back(std::move(v));
    results.outputs = std::move(kept);
  }
  return results;
}

std::vector<IValue> collect_results(const RunResults& results, const std::vector<IValue>& inputs, const std::vector<ir::Input>& kinds) {
  TORCH_CHECK_VALUE(inputs.size() == kinds.size(), inputs.size(), " inputs for a graph that has ", kinds.size());
  std::vector<IValue> parameter_gradients, parameters, buffers, input_gradients;
  size_t at = 0, gradient = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for_each_tensor(inputs[i], [&](const at::Tensor& before) {
      const at::Tensor& after = results.inputs_after.at(at++);
      const bool is_parameter = kinds[i].kind == ir::InputKind::parameter;
      if (is_parameter) parameters.emplace_back(after);
      if (kinds[i].kind == ir::InputKind::buffer) buffers.emplace_back(after);
      if (before.requires_grad() && gradient < results.input_gradients.size())
        (is_parameter ? parameter_gradients : input_gradients).emplace_back(results.input_gradients[gradient++]);
    });
  }
  auto tuple = [](std::vector<IValue> items) { return IValue(c10::ivalue::Tuple::create(std::move(items))); };
  return {tuple(results.outputs), IValue(), tuple(std::move(parameter_gradients)), tuple(std::move(parameters)), tuple(std::move(buffers)), tuple(std::move(input_gradients))};
}

}  // namespace cutaway::exec
