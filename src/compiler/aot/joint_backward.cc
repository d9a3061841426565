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

}  // namespace

base::Status JointRecording::run_backward(trace::Recorder& recorder, std::vector<IValue>& written) {
  std::vector<at::Tensor> roots, tangents, leaves, fakes;
  for (size_t r = 0; r < joint_.results.size(); ++r)
    if (joint_.results[r].requires_grad) joint_.tangents.push_back(r);
  if (joint_.tangents.empty()) return {};
  joint_.has_backward = true;
  for (const Wrapped& w : wrapped_) fakes.push_back(w.fake);
  trace::require_backward_device(fakes);
  for (const size_t r : joint_.tangents) {
    const at::Tensor& value = result_values_[r];
    // At run time a tangent that is laid out differently is copied: the graph was recorded for this layout.
    const at::Tensor fake = fake_like(value, value.sizes(), value.is_non_overlapping_and_dense() ? value.strides().vec() : row_major(value.sizes()));
    recorder.add_input(fake, {"tangent" + std::to_string(tangents.size())});
    roots.push_back(result_wrappers_[r]);
    tangents.push_back(wrap(fake));
  }
  for (size_t p = 0; p < wrapped_.size(); ++p)
    if (joint_.primals[p].requires_grad) leaves.push_back(wrapped_[p].leaf);
  if (leaves.empty()) return Error{.what = "an output requires grad and no input does", .place = captured_.name};
  const auto nodes = nodes_behind(roots);
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
