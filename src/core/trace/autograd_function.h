// Autograd functions of the user's (torch.autograd.Function, torch::autograd::Function) in the history of a tensor. They have a backward
// of their own and no operator that tells of them.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace cutaway::trace {

/// The node itself, or what wrote to the view of a tensor, when it is such a function; else null.
const torch::autograd::Node* autograd_function(const torch::autograd::Node&);
/// One whose backward is Python.
bool is_python_function(const torch::autograd::Node&);
/// Whether one stands in the history of a view between it and its base.
bool has_autograd_function(const at::Tensor& view, const at::Tensor& base);

}  // namespace cutaway::trace
