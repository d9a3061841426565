// Autograd nodes are held by c10::intrusive_ptr in newer torch and by std::shared_ptr in older: one way to make one for both.
#pragma once
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace cutaway::trace {

using NodePointer = decltype(torch::autograd::Edge::function);

template <class T, class... Args> auto make_node(Args&&... args) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>) {
    return std::shared_ptr<T>(new T(std::forward<Args>(args)...), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<T>(std::forward<Args>(args)...);
  }
}

}  // namespace cutaway::trace
