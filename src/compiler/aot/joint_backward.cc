#include "compiler/aot/joint_recording.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <unordered_set>

#include "core/exec/node_place.h"
#include "core/trace/autograd_function.h"
#include "core/trace/fake_tensor.h"

namespace cutaway::aot {
namespace {

std::vector<int64_t> row_major(at::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

std::vector<torch::autograd::Node*> nodes_behind(const std::vector<at::Tensor>& roots) {
  std::vector<torch::autograd::Node*> queue;
  std::unordered_set<const torch::autograd::Node*> met;
  const auto meet = [&](torch::autograd::Node* n) { if (n && met.insert(n).second) queue.push_back(n); };
  for (const at::Tensor& r : roots) meet(r.grad_fn().get());
  for (size_t head = 0; head < queue.size(); ++head)
    for (const auto& edge : queue[head]->next_edges()) meet(edge.function.get());
  return queue;
}

// Between the two a derivative computes. What is recorded elsewhere the engine adds up.
struct Enter final : torch::autograd::FunctionPreHook {
  bool& inside;
  explicit Enter(bool& i) : inside(i) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override { inside = true; return grads; }
};
struct Leave final : torch::autograd::FunctionPostHook {
  bool& inside;
  explicit Leave(bool& i) : inside(i) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) override { inside = false; return outputs; }
};

// Keeps what a node gets: the whole gradient of a tensor.
struct Watch final : torch::autograd::FunctionPreHook {
  uint32_t number;
  at::Tensor& kept;
  Watch(uint32_t n, at::Tensor& k) : number(n), kept(k) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    if (grads[number].defined()) kept = inner_of(grads[number]);
    return grads;
  }
};

using Slot = std::pair<const torch::autograd::Node*, uint32_t>;
Slot slot_of(const at::Tensor& t) { return {t.grad_fn().get(), t.output_nr()}; }
std::set<Slot> slots_behind(const std::vector<torch::autograd::Node*>& nodes) {
  std::set<Slot> slots;
  for (auto* n : nodes)
    for (const auto& edge : n->next_edges())
      if (edge.function) slots.emplace(edge.function.get(), edge.input_nr);
  return slots;
}

}  // namespace

const at::Tensor& JointRecording::wrapper_at(const Cut& cut) const {
  switch (cut.at) {
    case Cut::At::result: return result_wrappers_[cut.index];
    case Cut::At::output: return output_wrappers_[cut.index];
    case Cut::At::primal: break;
  }
  return wrapped_[cut.index].given;
}

base::Status JointRecording::find_cuts(const std::vector<torch::autograd::Node*>& nodes) {
  const std::set<Slot> reached = slots_behind(nodes);
  const auto is_reached = [&](const at::Tensor& t) { return t.grad_fn() && reached.contains(slot_of(t)); };
  for (size_t i = 0; i < joint_.tangents.size(); ++i)
    if (is_reached(result_wrappers_[joint_.tangents[i]])) joint_.cuts.push_back({Cut::At::result, joint_.tangents[i], i});
  size_t tangent = joint_.tangents.size();
  std::vector<size_t> rebuilt;
  for (size_t o = 0; o < joint_.outputs.size(); ++o) {
    const OutputRule& rule = joint_.outputs[o];
    const bool is_view = rule.from == OutputRule::From::view_of_primal || (rule.from == OutputRule::From::view_of_result && !result_wrappers_[rule.index].is_same(output_wrappers_[o]));
    if (!is_view || !rule.requires_grad) continue;
    rebuilt.push_back(o);
    if (is_reached(output_wrappers_[o])) joint_.cuts.push_back({Cut::At::output, o, tangent++});
  }
  for (size_t p = 0; p < joint_.primals.size(); ++p)
    if (joint_.primals[p].writes_metadata && !joint_.primals[p].writes_data && is_reached(wrapped_[p].given)) joint_.cuts.push_back({Cut::At::primal, p, tangent++});
  for (const size_t o : rebuilt) CUTAWAY_TRY(find_way(o, rebuilt));
  for (auto& [o, steps] : views_)
    if (const auto through = joint_.outputs[o].through) steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(step_counts_.at(*through)));
  return {};
}

// A view of a view: its gradient comes by both.
base::Status JointRecording::find_way(size_t o, const std::vector<size_t>& rebuilt) {
  const auto steps_of = [&](size_t which) -> const ViewSteps& { return std::ranges::find(views_, which, [](const auto& v) { return v.first; })->second; };
  OutputRule& rule = joint_.outputs[o];
  const ViewSteps& own = steps_of(o);
  step_counts_[o] = own.size();
  std::set<Slot> behind;
  for (const size_t other : rebuilt) {
    if (other == o || joint_.outputs[other].from != rule.from || joint_.outputs[other].index != rule.index) continue;
    if (behind.empty()) behind = slots_behind(nodes_behind({output_wrappers_[o]}));
    if (!behind.contains(slot_of(output_wrappers_[other]))) continue;
    const ViewSteps& first = steps_of(other);
    if (own.size() < first.size() || !std::equal(first.begin(), first.end(), own.begin()))
      return Error{.what = "output " + std::to_string(o) + " is a view of output " + std::to_string(other) + " in a way that cannot be rebuilt", .place = captured_.name};
    if (!rule.through || steps_of(*rule.through).size() < first.size()) rule.through = other;   // the nearest
  }
  return {};
}

base::Status JointRecording::run_backward(trace::Recorder& recorder, std::vector<IValue>& written) {
  std::vector<at::Tensor> roots, tangents, leaves, fakes;
  for (size_t r = 0; r < joint_.results.size(); ++r)
    if (joint_.results[r].requires_grad) joint_.tangents.push_back(r);
  if (joint_.tangents.empty()) return {};
  joint_.has_backward = true;
  for (const Wrapped& w : wrapped_) fakes.push_back(w.fake);
  trace::require_backward_device(fakes);
  for (const size_t r : joint_.tangents) roots.push_back(result_wrappers_[r]);
  const auto nodes = nodes_behind(roots);
  CUTAWAY_TRY(find_cuts(nodes));
  const auto add_tangent = [&](const at::Tensor& value) {
    // At run time a tangent that is laid out differently is copied: the graph was recorded for this layout.
    const at::Tensor fake = fake_like(value, value.sizes(), value.is_non_overlapping_and_dense() ? value.strides().vec() : row_major(value.sizes()));
    recorder.add_input(fake, {"tangent" + std::to_string(tangents.size())});
    tangents.push_back(wrap(fake));
  };
  for (const size_t r : joint_.tangents) add_tangent(result_values_[r]);
  std::vector<at::Tensor> totals(joint_.cuts.size());
  for (size_t k = 0; k < totals.size(); ++k) {
    const at::Tensor& wrapper = wrapper_at(joint_.cuts[k]);
    wrapper.grad_fn()->add_pre_hook(std::make_unique<Watch>(wrapper.output_nr(), totals[k]));
    if (!joint_.cuts[k].is_rebuilt()) continue;
    roots.push_back(wrapper);
    add_tangent(inner_of(wrapper));
  }
  for (size_t p = 0; p < wrapped_.size(); ++p)
    if (joint_.primals[p].requires_grad) leaves.push_back(wrapped_[p].leaf);
  if (leaves.empty()) return Error{.what = "an output requires grad and no input does", .place = captured_.name};
  if (!options_.program && std::any_of(nodes.begin(), nodes.end(), [](const auto* n) { return trace::is_python_function(*n); }))
    return Error{.what = "an operator of this graph has a backward in Python, which is refused", .place = captured_.name,
                 .because = "recording would call it once, on tensors without values, and a run would not call it"};
  if (!options_.program)
    for (auto* n : nodes) {
      n->add_pre_hook(std::make_unique<Enter>(in_derivative_));
      n->add_post_hook(std::make_unique<Leave>(in_derivative_));
    }
  in_derivative_ = false;
  std::vector<at::Tensor> gradients;
  if (options_.accumulates) {
    torch::autograd::backward(roots, tangents);
    for (const at::Tensor& leaf : leaves) gradients.push_back(leaf.grad());
  } else {
    gradients = torch::autograd::grad(roots, leaves, tangents, std::nullopt, false, /*allow_unused=*/true);
  }
  for (const at::Tensor& g : gradients) written.push_back(g.defined() ? IValue(inner_of(g)) : IValue());
  for (const at::Tensor& t : totals) {
    if (!t.defined()) return Error{.what = "an output that others are computed from has no gradient of its own: refused", .place = captured_.name};
    written.emplace_back(t);
  }
  return check_backward(tangents);
}

base::Status JointRecording::check_backward(const std::vector<at::Tensor>& tangents) const {
  bool writes = false;
  for (size_t p = 0; p < wrapped_.size(); ++p) writes = writes || !inner_of(wrapped_[p].given).is_same(after_forward_[p]);
  for (size_t r = 0; r < result_values_.size(); ++r) writes = writes || !inner_of(result_wrappers_[r]).is_same(result_values_[r]);
  for (const at::Tensor& t : tangents) writes = writes || wrapper_of(t)->has_data_mutation();
  if (!writes) return {};
  return Error{.what = "the backward of this program writes to an input, an output or a gradient that it gets, which is refused", .place = captured_.name, .because = "forward and backward are two graphs without effects on each other"};
}

base::Status JointRecording::check_randomness(size_t first_of_backward) const {
  for (size_t i = first_of_backward; i < joint_.graph.body.nodes.size(); ++i) {
    const ir::Node& n = joint_.graph.body.nodes[i];
    if (const auto* schema = exec::dispatcher_schemas().find(n.target); schema && schema->is_random)
      return exec::at_node(Error{.what = n.target + " in the backward of a program draws random numbers: refused"}, joint_.graph, n);
  }
  return {};
}

}  // namespace cutaway::aot
