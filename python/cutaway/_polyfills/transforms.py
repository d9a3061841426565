"""``torch.func``: its wrappers around C++."""

from __future__ import annotations

from typing import Any

import torch
from torch._functorch import eager_transforms as _eager_transforms


def add_batch_dim(tensor: Any, dim: int, level: int) -> Any:
    return torch._C._functorch._add_batch_dim(tensor, dim + tensor.ndim if dim < 0 else dim, level)


def remove_batch_dim(tensor: Any, level: int, size: int, dim: int) -> Any:
    return torch._C._functorch._remove_batch_dim(tensor, level, size, dim)


def vmap_increment_nesting(size: int, randomness: str) -> int:
    return torch._C._functorch._vmap_increment_nesting(size, randomness)


def vmap_decrement_nesting() -> int:
    return torch._C._functorch._vmap_decrement_nesting()


def jvp_increment_nesting() -> int:
    return torch._C._functorch._jvp_increment_nesting()


def jvp_decrement_nesting() -> int:
    return torch._C._functorch._jvp_decrement_nesting()


def unwrap_for_grad(tensor: Any, level: int) -> Any:
    return torch._C._functorch._unwrap_for_grad(tensor, level)


def enter_dual_level() -> int:
    return torch._C._enter_dual_level()


def exit_dual_level(*, level: int) -> None:
    torch._C._exit_dual_level(level=level)


def make_dual(tensor: Any, tangent: Any, *, level: int = 0) -> Any:
    return torch._VF._make_dual(tensor, tangent, level=level)  # type: ignore[attr-defined]


def unpack_dual(dual: Any, *, level: int) -> Any:
    return torch._VF._unpack_dual(dual, level=level)  # type: ignore[attr-defined]


def gradients_of_transform(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool = False, create_graph: bool = True
) -> Any:
    """What a transform asks autograd for: zeros for what the outputs do not depend on."""
    given = [None] * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(out, grad) for out, grad in zip(outputs, given, strict=False) if out.requires_grad]
    if not pairs:
        return tuple([torch.zeros_like(x) for x in inputs])
    found = torch.autograd.grad(
        tuple([out for out, _ in pairs]),
        inputs,
        None if grad_outputs is None else tuple([grad for _, grad in pairs]),
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return tuple([torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)])


REPLACEMENTS: dict[Any, Any] = {_eager_transforms._autograd_grad: gradients_of_transform}

# torch.func goes through wrappers that an export may look into; other versions of torch have fewer of them.
try:
    from torch._functorch import predispatch as _predispatch
except ImportError:
    _predispatch = None  # type: ignore[assignment]
for _name, _replacement in {
    "_add_batch_dim": add_batch_dim,
    "_remove_batch_dim": remove_batch_dim,
    "_vmap_increment_nesting": vmap_increment_nesting,
    "_vmap_decrement_nesting": vmap_decrement_nesting,
    "_jvp_increment_nesting": jvp_increment_nesting,
    "_jvp_decrement_nesting": jvp_decrement_nesting,
    "_unwrap_for_grad": unwrap_for_grad,
    "_enter_dual_level": enter_dual_level,
    "_exit_dual_level": exit_dual_level,
    "_make_dual": make_dual,
    "_unpack_dual": unpack_dual,
}.items():
    if (_found := getattr(_predispatch, _name, None)) is not None:
        REPLACEMENTS[_found] = _replacement
