"""Ahead-of-time autograd from Python: record a program, differentiate it, train with it. The work is done in C++."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from . import _native
from ._graph import _from_fx, all_inputs
from ._native import AotBySize, AotFunction, AotGraph, Error, Graph

__all__ = ["Aot", "aot", "aot_eager", "native"]

Partition = Literal["min_cut", "save_all"]


class Aot:
    """A recorded program that runs as forward and backward graphs. Called like the program it was made of."""

    def __init__(
        self, graph: Graph, runner: AotGraph, function: AotFunction, given: list[Any], example: tuple[Any, Any] | None
    ) -> None:
        self.captured = graph
        self.runner = runner
        self.function = function  #: for the inputs it was recorded with: joint, forward, backward, saved_bytes
        self._example = example
        first: dict[int, int] = {}
        # Recorded with one tensor in two places, the graph knows it in the first alone.
        self._twice = [(first.setdefault(id(x), i), i) for i, x in enumerate(given) if isinstance(x, torch.Tensor)]
        self._twice = [(i, j) for i, j in self._twice if i != j] if example is not None else []
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
            values = all_inputs(self.captured, args)
            guards = getattr(self.captured, "size_guards", None)
            if guards is not None and (problem := guards.check(values)):
                raise Error(f"the graph is not the program's at these sizes\n   because: {problem}")
            return self.runner.run(values)
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
        values = all_inputs(self.captured, user)
        for i, j in self._twice:
            if values[i] is not values[j]:
                raise Error(f"inputs {i} and {j} were one tensor when the program was recorded, and are two now")
        outputs = self.runner.run(values)
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
    Parameters and buffers of a module are the tensors that it has now. A program with autograd functions of its own, or that takes gradients
    itself, is run anew for each kind of inputs; the tensors that need gradients must then be arguments or the module's.
    ``partition`` says what forward saves: the fewest bytes from which backward can be computed by cheap operators ("min_cut"), or
    whatever backward uses ("save_all"). Raises cutaway.Error, with the operator and the line, for what cannot be differentiated so.
    """
    example = None
    if isinstance(f, Graph):
        graph = f
        given = all_inputs(graph, inputs)
    else:
        from .trace import DataDependentError, record

        leaves, spec = pytree.tree_flatten((tuple(inputs), dict(kwargs or {})))
        example = ([None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        refused_before = _native._refused_above_autograd()
        try:
            graph = record(f, inputs, kwargs, name=name or "model")
        except DataDependentError:
            raise
        except (Error, NotImplementedError):
            # Refused, perhaps for what a recording below autograd sees: the engine runs it.
            if not torch.is_grad_enabled() or _native._refused_above_autograd() == refused_before:
                raise
            return _aot_of_program(f, leaves, spec, example, name or "model", partition, backend)
        given = all_inputs(graph, tensors)
    runner = AotGraph(graph, name=name or graph.name or "model", partition=partition, backend=backend)
    return Aot(graph, runner, runner.find(given), given, example)


def _aot_of_program(
    f: Callable[..., Any],
    leaves: list[Any],
    spec: Any,
    example: tuple[Any, Any],
    name: str,
    partition: Partition,
    backend: str,
) -> Aot:
    """The joint graph straight from the Python program, which runs once for each kind of inputs."""
    from . import trace

    modules, state, names = trace._state_of(f)
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[i] for i in positions]
    names = [*names, *((f"arg{i}", "user", "") for i in range(len(positions)))]
    location = _native._PythonLocation(trace._PASSED_OVER)
    structure: list[Any] = []
    replaced = contextlib.ExitStack()  # a checkpoint runs parts of the program again while backward is recorded

    def program(values: list[Any]) -> list[Any]:
        by_id = {id(real): shown for real, shown in zip(state, values, strict=False)}
        given = list(leaves)
        for i, value in zip(positions, values[len(state) :], strict=True):
            given[i] = value
        args, keywords = pytree.tree_unflatten(given, spec)
        replaced.enter_context(trace._state_replaced(modules, by_id))
        with trace._module_paths(modules, location), trace._saved_tensors_hooks_refused(), _Unheard():
            flat, output_spec = pytree.tree_flatten(f(*args, **keywords))
        structure[:] = [output_spec]
        return flat

    graph = _native.aot_signature(name, [*state, *tensors], names)
    graph.lifted = state
    given = all_inputs(graph, tensors)
    for accumulates in (False, True):
        runner = AotGraph(graph, name, partition, backend, program, replaced.close, location, accumulates)
        try:
            function = runner.find(given)
            break
        except RuntimeError as e:
            # Its backward is run by the engine inside the engine, which torch allows only where gradients are accumulated.
            if accumulates or "use_reentrant=True" not in str(e):
                raise
    graph.output_spec = structure[0]
    return Aot(graph, runner, function, given, example)


class _Unheard(TorchFunctionMode):
    """Refuses, inside a program that is recorded, what would happen once, while recording, and never again."""

    _refused = (
        torch.Tensor.register_hook,
        torch.Tensor.register_post_accumulate_grad_hook,
        torch.Tensor.retain_grad,
        torch.Tensor.backward,
    )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._refused:
            raise Error(
                f"Tensor.{func.__name__} inside the program is refused\n"
                "   because: a graph has no operator for it, and without it gradients would be wrong"
            )
        return func(*args, **(kwargs or {}))


class _BySize:
    """A module of Dynamo's with symbolic sizes; finding the graph for a call is C++'s (compiler/aot/by_size.h)."""

    def __init__(self, module: torch.fx.GraphModule, shown: Sequence[Any], backend: str) -> None:
        self._given = module
        plain, read = _without_item(module)
        symbols = _symbols_of(shown)
        record = functools.partial(_record_at_sizes, plain)
        symbolic = functools.partial(_record_symbolic, plain, shown, read, list(symbols))
        because = "" if symbols else "a size is told by no tensor"
        self.graphs = AotBySize(read, list(symbols.values()), because, symbolic, record, backend)

    def __call__(self, *given: Any) -> Any:
        outputs = self.graphs.run(list(given))
        return self._given(*given) if outputs is None else outputs  # None: no graph would be used twice


def _record_at_sizes(module: torch.fx.GraphModule, args: Sequence[Any]) -> Graph:
    from .trace import record

    return record(module, args, name="model")


def _record_symbolic(
    module: torch.fx.GraphModule,
    shown: Sequence[Any],
    read: Sequence[int],
    names: Sequence[str],
    args: Sequence[Any],
    numbers: Sequence[int],
) -> tuple[Graph, list[Any], Any, list[int]] | str:
    """One graph for all sizes, and the symbols that stay numbers. The module has no branches, so that its operators are the same."""
    from .trace import _record_once

    lifted: list[Any] = []

    def at(values: Sequence[int]) -> tuple[Graph, list[torch.Tensor]]:
        here = dict(zip(names, values, strict=True))
        given: list[Any] = []
        sizes: dict[tuple[int | str, int], int] = {}
        for i, (arg, stands) in enumerate(zip(args, shown, strict=True)):
            if i in read:
                given.append(arg)
            elif isinstance(arg, torch.Tensor):
                shape = [_evaluate(size, here) for size in stands.shape]
                if shape != list(arg.shape):
                    sizes.update({(i, d): size for d, size in enumerate(shape)})
                given.append(arg)
            else:
                given.append(_evaluate(stands, here))
        graph = _record_once(module, given, None, "above", True, "model", sizes)
        lifted[:] = lifted or [graph.lifted]
        kinds = [i.kind for i in graph.inputs if i.kind != "user"]
        return graph, [t for t, kind in zip(graph.lifted, kinds, strict=True) if kind == "constant"]

    try:
        graph, _, guards, statics, _ = _native._record_symbolic(at, list(zip(names, numbers, strict=True)))
    except (Error, NotImplementedError) as e:
        return str(e)
    if len(statics) == len(names):
        return "; ".join(statics.values())
    return graph, lifted[0], guards, [i for i, name in enumerate(names) if name in statics]


def _without_item(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[int]]:
    """Dynamo hands a float over as a tensor and reads it by `item`: the module with the float as an input, and which inputs those are."""
    graph = torch.fx.Graph()
    output = graph.graph_copy(module.graph, {})
    graph.output(output)
    read: list[int] = []
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    for i, node in enumerate(placeholders):
        users = list(node.users)
        value = node.meta.get("example_value")
        if not users or not isinstance(value, torch.Tensor) or value.dim() or value.dtype is not torch.float64:
            continue
        if all(u.op == "call_method" and u.target == "item" for u in users):
            read.append(i)
            for user in users:
                user.replace_all_uses_with(node)
                graph.erase_node(user)
    copied = torch.fx.GraphModule(module, graph)
    type(copied).__call__ = torch.nn.Module.__call__  # type: ignore[method-assign]  # fx's own prints what is raised at sizes that do not fit
    return copied, read


def _symbols_of(shown: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Where to read each symbol: input and dimension. Empty when one of them is told by no size of a tensor."""
    places: dict[str, tuple[int, int]] = {}
    needed: set[str] = set()
    for i, value in enumerate(shown):
        for d, size in enumerate(value.shape if isinstance(value, torch.Tensor) else (value,)):
            if not isinstance(size, torch.SymInt):
                if isinstance(size, (torch.SymFloat, torch.SymBool)):
                    return {}
                continue
            expression = size.node.expr
            needed |= {str(s) for s in expression.free_symbols}
            if expression.is_symbol and isinstance(value, torch.Tensor):
                places.setdefault(str(expression), (i, d))
    return places if needed <= set(places) else {}


def _evaluate(value: Any, symbols: Mapping[str, int]) -> Any:
    if not isinstance(value, torch.SymInt):
        return value
    expression = value.node.expr
    return int(expression.subs({s: symbols[str(s)] for s in expression.free_symbols}))


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(s, torch.SymInt) for s in value.shape)
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def aot_eager(module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """A backend for torch.compile: our ahead-of-time autograd, then the graphs operator by operator."""
    return _for_torch(module, example_inputs, "eager", options)


def native(module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """A backend for torch.compile (``backend="cutaway"``): our ahead-of-time autograd, then fused kernels in C++."""
    return _for_torch(module, example_inputs, "native", options)


def _for_torch(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], backend: str, options: Mapping[str, Any]
) -> Callable[..., Any]:
    if options:
        raise Error(f"the backend takes no options: {', '.join(options)}")
    shown = [node.meta.get("example_value") for node in module.graph.nodes if node.op == "placeholder"]
    if any(_is_symbolic(x) for x in (*shown, *example_inputs)):
        return _BySize(module, shown, backend)
    graph = _captured(module, example_inputs)
    runner = AotGraph(graph, name="model", backend=backend)
    if not graph.lifted and len(graph.inputs) == len(example_inputs):
        return runner
    if len(graph.inputs) == len(graph.lifted) + len(example_inputs):
        return lambda *args: runner.run(all_inputs(graph, args))
    return lambda *args: runner.run(all_inputs(graph, [a for a in args if isinstance(a, torch.Tensor)]))


def _captured(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Graph:
    """Dynamo's graph as ours: imported call by call or, where a call gives results that an import cannot hold, run and recorded."""
    try:
        return _from_fx(module, list(inputs))
    except Error:
        from .trace import record

        return record(module, inputs, name="model")
