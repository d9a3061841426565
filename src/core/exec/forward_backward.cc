#include <cstdint>

#include "core/exec/forward_backward.h"

#include <ATen/ATen.h>

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

void run_backward(const std::vector<IValue>& outputs) {
  std::vector<IValue> kept;
  for (const IValue& v : outputs)
    if (auto k = tensors_only(v)) kept.push_back(std::move(*k));
  auto loss = reduce_to_scalar_loss(kept);
  TORCH_CHECK_TYPE(loss.ok(), loss.error().text());
  at::Tensor scalar = std::move(loss).value();
  if (scalar.is_complex()) scalar = at::real(scalar) + at::imag(scalar);
  scalar.backward();
}

bool is_floating_tensor(const IValue& v) { return v.isTensor() && v.toTensor().defined() && (v.toTensor().is_floating_point() || v.toTensor().is_complex()); }

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

RunResults run_fwd_maybe_bwd(const Runnable& run, const std::vector<IValue>& inputs, const ForwardBackwardOptions& options, uint64_t seed) {
  RandomStateScope random(seed);
  std::vector<IValue> own = options.disable_clone ? inputs : tensor::clone_keeping_aliases(inputs);
  RunResults results;
  results.inputs_after = tensors_in(own);   // the run may empty the list; these stay
  for (const at::Tensor& t : results.inputs_after) {
    if (!t.requires_grad()) continue;
    if (!t.is_leaf()) t.retain_grad();
    t.mutable_grad() = at::Tensor();
  }
  // Asked before the run: an operator in place may make an input require grad that did not.
  std::vector<at::Tensor> differentiated;
  for (const at::Tensor& t : results.inputs_after)
    if (t.requires_grad()) differentiated.push_back(t);
  results.outputs = run(own);
  if (!options.only_forward) {
    if (requires_bwd_pass(results.outputs)) {
      run_backward(results.outputs);
      results.ran_backward = true;
    }
    for (const at::Tensor& t : differentiated) results.input_gradients.push_back(t.grad().defined() ? t.grad() : at::zeros_like(t));
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
