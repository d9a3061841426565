"""``Tensor.backward``: the gradients of all leaves, as ``torch.autograd.grad`` gives them, and what autograd does with each."""

from __future__ import annotations

from typing import Any

import torch

from .answers import give_up


def gradient_leaves(tensors: tuple[Any, ...]) -> list[Any]:
    """The leaves that a backward pass from these tensors arrives at. Capture answers this itself."""
    raise NotImplementedError


def gradient_layout(leaf: Any, gradient: Any, is_shared: bool) -> str:
    """What a new gradient becomes: "kept" as it is, or a copy, "contiguous" or "as the leaf". Capture answers this itself."""
    raise NotImplementedError


def _run_backward(tensors: Any, gradients: Any, retain_graph: Any, create_graph: Any, inputs: Any) -> None:
    if create_graph is not False:
        give_up("a backward pass is run with create_graph")
    leaves = gradient_leaves(tensors)
    if inputs is not None:
        if isinstance(inputs, torch.Tensor):
            inputs = (inputs,)
        for x in inputs:
            if not any([x is leaf for leaf in leaves]):
                give_up("a backward pass is run for tensors that are no leaves of it")
        leaves = list(inputs)
    elif not leaves:
        give_up("a backward pass is run from a tensor that depends on nothing that requires grad")
    found = torch.autograd.grad(tensors, leaves, gradients, retain_graph=retain_graph, allow_unused=True)
    with torch.no_grad():
        for leaf, gradient in zip(leaves, found, strict=True):
            if gradient is None:
                continue
            if leaf.grad is not None:
                leaf.grad.add_(gradient)
                continue
            is_shared = len([g for g in (*found, *gradients) if g is gradient]) > 1
            layout = gradient_layout(leaf, gradient, is_shared)
            if layout == "contiguous":
                gradient = gradient.clone(memory_format=torch.contiguous_format)
            elif layout == "as the leaf":
                gradient = torch.empty_like(leaf).copy_(gradient)
            leaf.grad = gradient


def tensor_backward(
    self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False, inputs: Any = None
) -> None:
    _run_backward((self,), (gradient,), retain_graph, create_graph, inputs)


def autograd_backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    if grad_variables is not None:
        give_up("a backward pass is run with grad_variables")
    if isinstance(tensors, torch.Tensor):
        tensors = (tensors,)
        if grad_tensors is not None:
            grad_tensors = (grad_tensors,)
    if isinstance(grad_tensors, torch.Tensor):
        give_up("a backward pass is run with one gradient for several tensors")
    tensors = tuple(tensors)
    gradients = (None,) * len(tensors) if grad_tensors is None else tuple(grad_tensors)
    _run_backward(tensors, gradients, retain_graph, create_graph, inputs)


REPLACEMENTS: dict[Any, Any] = {torch.Tensor.backward: tensor_backward, torch.autograd.backward: autograd_backward}
