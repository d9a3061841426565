#include "compiler/aot/backward_node.h"

#include <ATen/core/grad_mode.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/trace/node_pointer.h"

namespace cutaway::aot {

at::Tensor BackwardNode::tangent(at::Tensor given, size_t index) const {
  const Function::State::Shape& recorded = piece->inputs[index];
  std::optional<Function::State::Shape> numbered;
  const Function::State::Shape& shape = recorded.symbolic_sizes.empty() ? recorded : numbered.emplace(recorded.at(symbols));
  const auto options = at::TensorOptions().dtype(shape.dtype).device(shape.device);
  if (!given.defined()) return at::empty_strided(shape.sizes, shape.strides, options).zero_();   // an output that the loss does not use
  TORCH_CHECK_NOT_IMPLEMENTED(given.layout() == at::kStrided, "a gradient of layout ", given.layout(), " came to a graph that was differentiated ahead of time, for strided ones");
  if (given.is_conj() || given.is_neg() || !shape.has_strides_of(given)) return at::empty_strided(shape.sizes, shape.strides, options).copy_(given);
  return given;
}

BackwardNode::Given::Given(const c10::IValue& v) {
  if (!v.isTensor() || !v.toTensor().defined()) {
    value = v;
    return;
  }
  const at::Tensor& t = v.toTensor();
  requires_grad = t.requires_grad();
  version = t.is_inference() ? 0 : static_cast<uint32_t>(t._version());
  if (t.is_leaf()) leaf = c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr());
  else value = v;
}

c10::IValue BackwardNode::Given::get() const {
  if (!value.isNone() && !value.isTensor()) return value;
  const at::Tensor t = value.isTensor() ? value.toTensor() : at::Tensor(leaf.lock());
  if (!t.defined() || t.requires_grad() != requires_grad || (!t.is_inference() && t._version() != version)) return {};
  return t;
}

BackwardNode::HeldCut::HeldCut(const at::Tensor& t) : data(t.tensor_data()), edge(torch::autograd::impl::gradient_edge(t)), version(static_cast<uint32_t>(t._version())) {}

at::Tensor BackwardNode::HeldCut::get() const {
  if (data._version() != version) return {};
  return at::alias(torch::autograd::make_variable(data.tensor_data(), edge));   // an alias: nobody's hooks are called for it
}

std::optional<torch::autograd::variable_list> BackwardNode::run_operators(const torch::autograd::variable_list& tangents) const {
  if (given.empty() || at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA)) return std::nullopt;
  const auto handed = tangents.begin() + static_cast<std::ptrdiff_t>(piece->tangents.size());
  if (std::any_of(handed, tangents.end(), [](const at::Tensor& t) { return t.defined(); })) return std::nullopt;   // by a piece that could not do this
  const bool creates_graph = at::GradMode::is_enabled();
  const at::AutoGradMode with_grad(true);
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    inputs.push_back(given[i].get());
    if (state->inputs[i] && !inputs.back().isTensor()) return std::nullopt;
  }
  torch::autograd::variable_list roots, leaves, starts;
  for (const size_t p : state->differentiated) {   // through a view each: one tensor may be several inputs
    const auto& which = state->joint.primals[p].inputs;
    leaves.push_back(at::alias(inputs[which.front()].toTensor()));
    for (const size_t i : which) inputs[i] = leaves.back();
  }
  std::vector<size_t> leaf_of(state->joint.cuts.size(), leaves.size() + piece->cuts.size());
  for (size_t i = 0; i < piece->cuts.size(); ++i) {
    if (!state->cut_outputs[piece->cuts[i]]) continue;
    leaf_of[piece->cuts[i]] = leaves.size();
    leaves.push_back(cuts[i].get());
    if (!leaves.back().defined()) return std::nullopt;
    inputs.emplace_back(leaves.back());
  }
  const std::vector<c10::IValue> outputs = state->operators(*piece).run(inputs);
  for (size_t i = 0; i < piece->tangents.size(); ++i) {
    if (!tangents[i].defined()) continue;
    const ForwardResult& result = state->joint.results[state->joint.tangents[piece->tangents[i]]];
    const at::Tensor& output = outputs[result.index].toTensor();
    roots.push_back(result.what == ForwardResult::For::base && output.is_view() ? at::Tensor(output._base()) : output);
    starts.push_back(tangents[i]);
  }
  auto found = torch::autograd::grad(roots, leaves, starts, /*retain_graph=*/true, creates_graph, /*allow_unused=*/true);
  torch::autograd::variable_list gradients(piece->targets.size() + piece->further.size());
  for (size_t o = 0; o < piece->targets.size(); ++o) {   // a gradient that comes in terms comes as the first of them
    using To = BackwardPiece::Target::To;
    const auto& target = piece->targets[o];
    const size_t leaf = target.to == To::primal ? target.index : target.to == To::cut ? leaf_of[target.index] : found.size();
    if (leaf < found.size()) gradients[o] = std::exchange(found[leaf], at::Tensor());
  }
  for (size_t i = 0; i < piece->further.size(); ++i) gradients[piece->targets.size() + i] = found[piece->further[i]];
  return gradients;
}

torch::autograd::variable_list BackwardNode::apply(torch::autograd::variable_list&& tangents) {
  const bool creates_graph = at::GradMode::is_enabled();
  std::vector<bool> is_given;
  for (const at::Tensor& t : tangents) is_given.push_back(t.defined());
  // In eager the gradients of what the loss does not depend on are none, not zeros; and what was freed is not asked for.
  const auto is_reached = [&](size_t gradient) { const auto& from = piece->facts.tangents_of[gradient]; return std::any_of(from.begin(), from.end(), [&](size_t t) { return is_given[t]; }); };
  if (std::none_of(is_given.begin(), is_given.end(), std::identity())) return torch::autograd::variable_list(num_outputs());
  for (size_t i = 0; i < is_given.size() && !is_spent.empty(); ++i) TORCH_CHECK(!is_given[i] || !is_spent[i], torch::autograd::ERR_BACKWARD_TWICE);
  last_given = is_given;
  const std::vector<bool> spent = spent_after_run();
  const bool is_end = is_last_run && std::all_of(spent.begin(), spent.end(), std::identity());
  Function::State::Backward& part = state->backward_for(*piece, is_given);
  std::vector<c10::IValue> inputs(part.saved.size());
  inputs.reserve(part.saved.size() + part.tangents.size());
  for (const size_t at : part.unpack_order) {   // no others: the program may have written to them since; an error is about the one that eager reads first
    const size_t i = part.saved[at];
    inputs[at] = saved[i].unpack(getptr());
    if (is_end) saved[i].reset_data();   // the graph then frees it at its last use
  }
  if (creates_graph || torch::autograd::AnomalyMode::is_enabled())
    if (auto gradients = run_operators(tangents)) return std::move(*gradients);
  torch::autograd::edge_list edges;
  if (creates_graph) {   // to all that the gradients depend on: an engine that looks for an input must come by the refusal
    edges = torch::autograd::collect_next_edges(tangents);
    edges.insert(edges.end(), next_edges().begin(), next_edges().end());
  }
  std::vector<c10::IValue> outputs;
  {
    const at::NoGradGuard no_grad;
    const BelowAutograd below;
    for (const size_t i : part.tangents) inputs.emplace_back(tangent(std::move(tangents[i]), i));
    for (const std::string& name : part.symbol_inputs) inputs.emplace_back(symbols.at(name));
    outputs = state->compiled(part, inputs, symbols).run(inputs);
    if (creates_graph)   // they are about to get a history, which must not be a tangent's or an input's
      for (auto& o : outputs)
        if (o.isTensor()) o = at::alias(o.toTensor());
  }
  torch::autograd::variable_list gradients;
  gradients.reserve(num_outputs());
  for (size_t g = 0; g < outputs.size(); ++g) gradients.push_back(outputs[g].isTensor() && is_reached(g) ? std::move(outputs[g]).toTensor() : at::Tensor());
  gradients.resize(num_outputs());
  if (creates_graph) {
    const auto refuse = trace::make_node<torch::autograd::Error>("double backward is refused: " + state->graphs.backward.name + " was differentiated ahead of time, once", std::move(edges));
    for (const auto& g : gradients)
      if (g.defined()) torch::autograd::set_history(g, refuse);
  }
  return gradients;
}

std::vector<bool> BackwardNode::spent_after_run() const {
  std::vector<bool> spent = is_spent;
  spent.resize(piece->inputs.size(), false);
  for (size_t i = 0; i < last_given.size(); ++i)
    if (last_given[i])
      for (const size_t other : piece->facts.spent_with[i]) spent[other] = true;
  return spent;
}

// Outputs that the pass did not begin at keep their histories, as in eager.
void BackwardNode::release_variables() {
  if (std::exchange(is_last_run, false)) {
    is_spent = spent_after_run();
    if (!std::all_of(is_spent.begin(), is_spent.end(), std::identity())) return;
  }
  for (auto& s : saved) s.reset_data();
  given.clear();
  cuts.clear();
}

}  // namespace cutaway::aot
