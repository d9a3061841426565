"""Captured graphs with symbolic sizes, as graphs of ours with symbolic sizes.

torch's capture gives such a graph its sizes as inputs of their own. A captured call's region is a recording at one size, so
the graph is imported at a few choices of sizes, and what differs between them becomes an expression (``trace::unify``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import _native
from ._native import Graph, GraphInput

__all__ = ["compile_dynamic", "import_symbolic", "is_symbolic"]


def is_symbolic(gm: torch.fx.GraphModule) -> bool:
    return any(_symbols_of(_value(node)) for node in gm.graph.nodes if node.op == "placeholder")


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))


def _symbols_of(value: Any) -> dict[str, int]:
    """Sizes of a tensor that are symbols themselves: name -> dimension."""
    if not isinstance(value, torch.Tensor):
        return {}
    sizes: list[Any] = list(value.size())
    return {str(n.node.expr): d for d, n in enumerate(sizes) if isinstance(n, torch.SymInt) and n.node.expr.is_Symbol}


def _at(n: Any, numbers: dict[str, int]) -> int:
    """A size or a stride where the symbols have these numbers; those that are not among them as they were seen."""
    if not isinstance(n, torch.SymInt):
        return int(n)
    known = {s: numbers[str(s)] for s in n.node.expr.free_symbols if str(s) in numbers}
    left = n.node.expr.subs(known)
    return int(left) if left.is_Integer else int(n.node.shape_env.size_hint(left))


def _fake_at(value: torch.Tensor, given: torch.Tensor, numbers: dict[str, int]) -> torch.Tensor:
    sizes, strides = [_at(n, numbers) for n in value.size()], [_at(n, numbers) for n in value.stride()]
    meta = torch.empty_strided(sizes, strides, dtype=value.dtype, device="meta", requires_grad=given.requires_grad)
    return _native.make_fake(meta, str(given.device))


def import_symbolic(gm: torch.fx.GraphModule, inputs: Sequence[Any], concrete: Callable[[Any], Any]) -> Graph | None:
    """The graph, with ``taken`` (which of the inputs it takes) and ``symbols`` (their numbers now); None where no size is left symbolic.

    ``gm`` is the caller's own copy. A size that an input tensor shows is no input any more: it is asked of that tensor.
    """
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    values = [_value(n) for n in placeholders]
    if len(placeholders) != len(inputs):
        return None
    shown: dict[str, tuple[int, int]] = {}  # symbol -> (input, dimension)
    for i, value in enumerate(values):
        for name, d in _symbols_of(value).items():
            shown.setdefault(name, (i, d))
    if not shown:
        return None
    numbers = {name: int(concrete(inputs[i].size(d))) for name, (i, d) in shown.items()}
    kept: list[int] = []
    for i, node in enumerate(placeholders):
        name = str(values[i].node.expr) if isinstance(values[i], torch.SymInt) else ""
        if name not in shown:
            kept.append(i)
            continue
        tensor, d = shown[name]
        with gm.graph.inserting_after(placeholders[-1]):
            size = gm.graph.call_method("size", (placeholders[tensor], d))
        node.replace_all_uses_with(size)
        gm.graph.erase_node(node)
    for node in gm.graph.nodes:
        for key in ("example_value", "val"):
            node.meta.pop(key, None)
    recorded: list[Graph] = []

    def record(chosen: Sequence[int]) -> tuple[Graph, list[torch.Tensor]]:
        at = dict(zip(numbers, chosen, strict=True))
        fakes = []
        for i in kept:
            if isinstance(values[i], torch.Tensor):
                fakes.append(_fake_at(values[i], inputs[i], at))
            else:
                fakes.append(concrete(inputs[i]))
        graph = Graph.from_fx(gm, fakes)
        recorded.append(graph)
        kinds = [i.kind for i in graph.inputs if i.kind != "user"]
        return graph, [t for t, kind in zip(graph.lifted, kinds, strict=True) if kind == "constant"]

    made, _, guards, statics, _ = _native._record_symbolic(record, list(numbers.items()))
    if len(statics) == len(numbers) or guards.check(_fakes_of(recorded[0], values, inputs, kept, numbers, concrete)):
        return None
    made.lifted, made.symbols = recorded[0].lifted, {n: v for n, v in numbers.items() if n not in statics}
    made.taken = kept
    return made


def _fakes_of(
    graph: Graph,
    values: list[Any],
    inputs: Sequence[Any],
    kept: list[int],
    numbers: dict[str, int],
    concrete: Callable[[Any], Any],
) -> list[Any]:
    from ._graph import all_inputs

    given = [
        _fake_at(values[i], inputs[i], numbers) if isinstance(values[i], torch.Tensor) else concrete(inputs[i])
        for i in kept
    ]
    return all_inputs(graph, given)


def compile_dynamic(
    graph: Graph, inputs: Sequence[Any], compile_: Callable[[torch.fx.GraphModule, list[Any]], Any]
) -> Callable[..., Any]:
    """What a backend makes of the graph when torch's capture hands it over with symbolic sizes.

    Captured once more, with those sizes marked that the graph has symbols for. The backend's exception is raised as it
    is, not as torch.compile would wrap it; the first run, which capture needs, is eager's.
    """
    import torch._dynamo

    problem: list[BaseException] = []
    captured: list[bool] = []

    def backend(gm: torch.fx.GraphModule, examples: list[Any]) -> Any:
        try:
            made = compile_(gm, examples)
        except Exception as error:
            problem.append(error)
            made = None
        return lambda *given: made(*given) if captured and made is not None else gm.forward(*given)

    module = graph.to_fx()
    compiled: Any = torch.compile(module, backend=backend, fullgraph=True)

    def marked(given: Sequence[Any]) -> list[Any]:
        for value, dims in zip(given, dynamic, strict=True):
            for d in dims:
                torch._dynamo.maybe_mark_dynamic(value, d)
        return list(given)

    dynamic = [symbolic_dimensions(i) for i in graph.inputs]
    first = [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v for v in inputs]
    compiled(*marked(first))
    if problem:
        raise problem[0]
    captured.append(True)
    return lambda *given: compiled(*marked(given))


def symbolic_dimensions(value: GraphInput) -> list[int]:
    """Of an input of a graph: its dimensions whose size is not a number."""
    return [d for d, size in enumerate(value.sizes) if not size.isdigit()]
