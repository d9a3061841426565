#include "core/trace/autograd_function.h"

#include <torch/csrc/autograd/functions/tensor.h>

#include <string_view>
#include <typeinfo>
#include <unordered_set>
#include <vector>

namespace cutaway::trace {

const torch::autograd::Node* autograd_function(const torch::autograd::Node& node) {
  if (const auto* part = dynamic_cast<const torch::autograd::CopySlices*>(&node)) return part->fn ? autograd_function(*part->fn) : nullptr;
  if (node.name() == "KeptByCallerBackward") return nullptr;   // capture keeps the whole call as one node, with the backward that the user wrote
  const std::string_view type = typeid(node).name();   // the class of Python's is not in a header that C++ programs have
  return type.find("PyNode") != type.npos || type.find("CppNode") != type.npos ? &node : nullptr;
}

bool is_python_function(const torch::autograd::Node& node) {
  const torch::autograd::Node* f = autograd_function(node);
  return f && std::string_view(typeid(*f).name()).find("PyNode") != std::string_view::npos;
}

bool has_autograd_function(const at::Tensor& view, const at::Tensor& base) {
  std::vector<const torch::autograd::Node*> queue;
  std::unordered_set<const torch::autograd::Node*> met{base.grad_fn().get()};
  const auto meet = [&](const torch::autograd::Node* n) {
    if (n && met.insert(n).second) queue.push_back(n);
  };
  meet(view.grad_fn().get());
  for (size_t head = 0; head < queue.size(); ++head) {
    if (autograd_function(*queue[head])) return true;
    for (const auto& edge : queue[head]->next_edges()) meet(edge.function.get());
  }
  return false;
}

}  // namespace cutaway::trace
