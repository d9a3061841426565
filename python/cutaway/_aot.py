"""Ahead-of-time autograd from Python: record a program, differentiate it, train with it. The work is done in C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils import _pytree as pytree

from . import _native
from ._graph import all_inputs
from ._native import AotFunction, AotGraph, Error, Graph

__all__ = ["Aot", "aot", "aot_eager"]

Partition = Literal["min_cut", "save_all"]


class Aot:
    """A recorded program that runs as forward and backward graphs. Called like the program it was made of."""

    def __init__(self, graph: Graph, runner: AotGraph, function: AotFunction, example: tuple[Any, Any] | None) -> None:
        self.captured = graph
        self.runner = runner
        self.function = function  #: for the inputs it was recorded with: joint, forward, backward, saved_bytes
        self._lifted: list[Any] = list(getattr(graph, "lifted", None) or [])
        self._example = example
        self._spec = getattr(graph, "output_spec", None)

    @property
    def joint(self) -> Graph:
        return self.function.joint

    @property
    def forward(self) -> Graph:
        return self.function.forward

    @property
    def backward(self) -> Graph | None:
        return self.function.backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._example is None:
            return self.runner.run(all_inputs(self.captured, args))
        leaves, spec = pytree.tree_flatten((args, kwargs))
        example, example_spec = self._example
        if spec != example_spec:
            raise Error("the arguments have another structure than those the program was recorded with")
        user = []
        for given, then in zip(leaves, example, strict=True):
            if isinstance(given, torch.Tensor):
                user.append(given)
            elif given != then:
                raise Error(f"the program was recorded with {then!r}, not {given!r}")
        outputs = self.runner.run(all_inputs(self.captured, user))
        return pytree.tree_unflatten(list(outputs), self._spec) if self._spec is not None else outputs


def aot(
    f: Callable[..., Any] | Graph,
    inputs: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    partition: Partition = "min_cut",
    backend: str = "eager",
) -> Aot:
    """Differentiates a program ahead of time: ``f(*inputs, **kwargs)`` is recorded above autograd, or is a graph already.

    Forward and backward become two functional graphs, which ``backend`` compiles; the result is called like ``f`` and trains like it.
    ``partition`` says what forward saves: the fewest bytes from which backward can be computed by cheap operators ("min_cut"), or
    whatever backward uses ("save_all"). Raises cutaway.Error, with the operator and the line, for what cannot be differentiated so.
    """
    example = None
    if isinstance(f, Graph):
        graph = f
        given = all_inputs(graph, inputs)
    else:
        from .trace import record

        graph = record(f, inputs, kwargs, name=name or "model")
        leaves, spec = pytree.tree_flatten((tuple(inputs), dict(kwargs or {})))
        example = ([None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
        given = all_inputs(graph, [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
    runner = AotGraph(graph, name=name or graph.name or "model", partition=partition, backend=backend)
    return Aot(graph, runner, runner.find(given), example)


def aot_eager(module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """A backend for torch.compile: our ahead-of-time autograd, then the graphs operator by operator."""
    if options:
        raise Error(f"the backend takes no options: {', '.join(options)}")
    graph = _native_graph(module, example_inputs)
    runner = AotGraph(graph, name="model")
    lifted = list(getattr(graph, "lifted", None) or [])
    if not lifted:
        return runner
    return lambda *args: runner.run(all_inputs(graph, args))


def _native_graph(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Graph:
    graph, lifted = _native.import_fx(module, list(example_inputs))
    graph.lifted = lifted
    return graph
