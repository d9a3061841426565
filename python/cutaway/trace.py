"""Recording: run a Python program once and get the operators of torch that it called, as a graph."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils import _pytree as pytree

from . import _native
from ._native import (
    FakeMode,
    Graph,
    dispatcher_operators,
    is_fake,
    make_fake,
    make_fakes,
    shape_counters,
    shape_rule_names,
)

__all__ = [
    "FakeMode",
    "dispatcher_operators",
    "is_fake",
    "make_fake",
    "make_fakes",
    "record",
    "shape_counters",
    "shape_rule_names",
]

_PASSED_OVER = [os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep]


@contextlib.contextmanager
def _state_replaced(module: torch.nn.Module, by_id: Mapping[int, torch.Tensor]) -> Iterator[None]:
    """Parameters and buffers are the given tensors for a while; whatever the program does to them, the module's own come back."""
    before = []
    for m in module.modules():
        for state in (m._parameters, m._buffers):
            before.append((state, dict(state)))
            for name, tensor in list(state.items()):
                if tensor is not None:
                    state[name] = by_id[id(tensor)]  # type: ignore[assignment]
    try:
        yield
    finally:
        for state, values in before:
            state.clear()
            state.update(values)  # type: ignore[arg-type]  # both kinds of state at once


@contextlib.contextmanager
def _module_paths(module: torch.nn.Module, location: Any) -> Iterator[None]:
    """Tells `location` which submodule is running."""
    names = {id(m): name for name, m in module.named_modules()}

    def enter(m: torch.nn.Module, _: Any) -> None:
        location.enter_module(names.get(id(m), ""))

    def leave(m: torch.nn.Module, *_: Any) -> None:
        location.leave_module()

    hooks = [
        torch.nn.modules.module.register_module_forward_pre_hook(enter),
        torch.nn.modules.module.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def record(
    f: Callable[..., Any],
    inputs: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    where: Literal["above", "below"] = "above",
    fake: bool = True,
    name: str = "graph",
) -> Graph:
    """The graph of the operators that ``f(*inputs, **kwargs)`` calls, above or below autograd.

    With ``fake`` nothing is computed and no memory is taken: tensors have metadata only, and a program that asks for a value
    (``item``, ``nonzero``, ``if tensor:``) is refused with the operator's name. Parameters and buffers of a module become inputs with
    their qualified names, other tensors that the program reaches become constants; both are kept in ``graph.lifted``, in the order of
    those inputs. ``graph.output_spec`` is the pytree structure of what ``f`` returned.
    """
    leaves, spec = pytree.tree_flatten((tuple(inputs), dict(kwargs or {})))
    names: list[tuple[str, str, str]] = []
    state: list[torch.Tensor] = []
    module = f if isinstance(f, torch.nn.Module) else None
    if module is not None:
        for kind, tensors in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
            for qualified, tensor in tensors:
                state.append(tensor)
                names.append((qualified.replace(".", "_"), kind, qualified))
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    names += [(f"arg{i}", "user", "") for i in range(len(positions))]
    given = [*state, *(leaves[i] for i in positions)]
    shown = make_fakes(given) if fake else given
    for i, tensor in zip(positions, shown[len(state) :], strict=True):
        leaves[i] = tensor
    args, keywords = pytree.tree_unflatten(leaves, spec)
    location = _native._PythonLocation(_PASSED_OVER)
    output_spec: list[Any] = []

    def run() -> list[Any]:
        flat, structure = pytree.tree_flatten(f(*args, **keywords))
        output_spec.append(structure)
        return flat

    with contextlib.ExitStack() as stack:
        if module is not None:
            if fake:
                by_id = {id(real): shown[i] for i, real in enumerate(state)}
                stack.enter_context(_state_replaced(module, by_id))
            stack.enter_context(_module_paths(module, location))
        graph, constants = _native._record(run, shown, names, where, fake, name, location)
    graph.lifted = [*state, *constants]
    graph.output_spec = output_spec[0]
    return graph
