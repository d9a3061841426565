"""Recording: run a Python program once and get the operators of torch that it called, as a graph."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils import _pytree as pytree

from . import _native
from ._native import (
    Error,
    FakeMode,
    Graph,
    SizeGuards,
    dispatcher_operators,
    is_fake,
    make_fake,
    make_fake_of_size,
    make_fakes,
    shape_counters,
    shape_rule_names,
)

__all__ = [
    "DataDependentError",
    "FakeMode",
    "SizeGuards",
    "dispatcher_operators",
    "is_fake",
    "make_fake",
    "make_fake_of_size",
    "make_fakes",
    "record",
    "shape_counters",
    "shape_rule_names",
]

_PASSED_OVER = [os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep]


@contextlib.contextmanager
def _state_replaced(
    modules: Sequence[tuple[str, torch.nn.Module]], by_id: Mapping[int, torch.Tensor]
) -> Iterator[None]:
    """Parameters and buffers are the given tensors for a while; whatever the program does to them, the module's own come back."""
    before = []
    for _, m in modules:
        for state in (m._parameters, m._buffers):
            before.append((state, dict(state)))
            for name, tensor in before[-1][1].items():
                if tensor is not None:
                    state[name] = by_id[id(tensor)]  # type: ignore[assignment]
    try:
        yield
    finally:
        for state, values in before:
            if state or values:
                state.clear()
                state.update(values)  # type: ignore[arg-type]  # both kinds of state at once


@contextlib.contextmanager
def _module_paths(modules: Sequence[tuple[str, torch.nn.Module]], location: Any) -> Iterator[None]:
    """Tells `location` which submodule is running."""
    names = {id(m): name for name, m in modules}

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


_recording = threading.local()


@functools.cache
def _watch_saved_tensors_hooks() -> None:
    """While a program is recorded, hooks that may change what backward sees are refused: no operator tells of them."""
    from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
    from torch.utils import checkpoint

    keeping = (
        save_on_cpu,
        checkpoint._checkpoint_hook,
        checkpoint._recomputation_hook,
    )  # backward sees the same values
    enter = saved_tensors_hooks.__enter__

    def checked(self: Any) -> Any:
        if getattr(_recording, "depth", 0) and not isinstance(self, keeping):
            raise Error(
                "saved_tensors_hooks inside a recorded program is refused\n"
                "   because: a graph has no operator for it, and without it gradients might be others"
            )
        return enter(self)

    saved_tensors_hooks.__enter__ = checked  # type: ignore[method-assign]


@contextlib.contextmanager
def _saved_tensors_hooks_refused() -> Iterator[None]:
    _watch_saved_tensors_hooks()
    _recording.depth = getattr(_recording, "depth", 0) + 1
    try:
        yield
    finally:
        _recording.depth -= 1


class DataDependentError(NotImplementedError):
    """A recorded program asked for the value of a tensor that depends on its inputs, or for a shape that such a value decides."""


def _translated(error: NotImplementedError) -> NotImplementedError:
    """torch hands C++ exceptions to Python by their base class: the recorder's own is told by what it says."""
    if _native._is_data_dependent(str(error)):
        return DataDependentError(*error.args).with_traceback(error.__traceback__)
    return error


Dynamic = Mapping[int | str, Mapping[int, str] | Sequence[int]]


def record(
    f: Callable[..., Any],
    inputs: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    where: Literal["above", "below"] = "above",
    fake: bool = True,
    name: str = "graph",
    dynamic: Dynamic | None = None,
) -> Graph:
    """The graph of the operators that ``f(*inputs, **kwargs)`` calls, above or below autograd.

    With ``fake`` nothing is computed and no memory is taken: tensors have metadata only, and a program that asks for a value
    (``item``, ``nonzero``, ``if tensor:``) is refused by ``DataDependentError``, which names the operator and the line. Parameters
    and buffers of a module become inputs with their qualified names, other tensors that the program reaches become constants; both
    are kept in ``graph.lifted``, in the order of those inputs. ``graph.output_spec`` is the pytree structure of what ``f`` returned.

    ``dynamic`` names sizes that may change: ``{0: {1: "length"}, "mask": {0: "batch"}}`` by position or keyword, or
    ``{0: [1]}`` for a name made up. One name is one size. The program is recorded at several sizes, and its integers become
    expressions; ``graph.size_guards`` says what must hold for other sizes, ``graph.static_sizes`` which names stay numbers and why.
    A branch of the Python program on a size shows only where the recorded sizes fall on both of its sides.
    """
    if dynamic is None:
        return _record_once(f, inputs, kwargs, where, fake, name, {})
    if not fake:
        raise ValueError("dynamic sizes need fake tensors: the program runs at sizes for which there is no data")
    symbols, places = _symbols(inputs, dict(kwargs or {}), dynamic)
    first: list[Graph] = []

    def at(values: Sequence[int]) -> tuple[Graph, list[torch.Tensor]]:
        sizes = {place: values[i] for place, i in places.items()}
        graph = _record_once(f, inputs, kwargs, where, fake, name, sizes)
        first.append(graph)
        kinds = [i.kind for i in graph.inputs if i.kind != "user"]
        return graph, [t for t, kind in zip(graph.lifted, kinds, strict=True) if kind == "constant"]

    made: Graph
    made, _, guards, statics, _ = _native._record_symbolic(at, symbols)
    made.lifted, made.output_spec = first[0].lifted, first[0].output_spec
    made.size_guards, made.static_sizes = guards, statics
    return made


def _symbols(
    inputs: Sequence[Any], kwargs: Mapping[str, Any], dynamic: Dynamic
) -> tuple[list[tuple[str, int]], dict[tuple[int | str, int], int]]:
    """Names with their present numbers, and which of them each (input, dimension) has."""
    values: dict[str, int] = {}
    places: dict[tuple[int | str, int], int] = {}
    given = {n for dims in dynamic.values() if isinstance(dims, Mapping) for n in dims.values()}
    spare = (n for n in (f"s{i}" for i in range(len(given) + 1000)) if n not in given)
    for key, dims in dynamic.items():
        tensor = inputs[key] if isinstance(key, int) else kwargs[key]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"dynamic: input {key!r} is not a tensor but a {type(tensor).__name__}")
        for dim, named in dims.items() if isinstance(dims, Mapping) else ((d, next(spare)) for d in dims):
            size = tensor.shape[dim]
            if values.setdefault(named, size) != size:
                raise ValueError(f"dynamic: {named} is {values[named]} and {size} (dimension {dim} of input {key!r})")
            places[key, dim % tensor.dim()] = list(values).index(named)
    return list(values.items()), places


def _resized(
    inputs: Sequence[Any], kwargs: Mapping[str, Any], sizes: Mapping[tuple[int | str, int], int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args: dict[int | str, Any] = dict(enumerate(inputs))
    args.update(kwargs)
    for key in {key for key, _ in sizes}:
        shape = list(args[key].shape)
        for (other, dim), size in sizes.items():
            if other == key:
                shape[dim] = size
        args[key] = make_fake_of_size(args[key], shape)
    return tuple(args[i] for i in range(len(inputs))), {k: args[k] for k in kwargs}


def _state_of(
    f: Any,
) -> tuple[list[tuple[str, torch.nn.Module]], list[torch.Tensor], list[tuple[str, str, str]]]:
    """Of a module its submodules, its parameters and buffers, and for each of these name, kind and qualified name; else nothing."""
    names: list[tuple[str, str, str]] = []
    state: list[torch.Tensor] = []
    modules = list(f.named_modules()) if isinstance(f, torch.nn.Module) else []
    known: set[int] = set()
    for kind, kept in (("parameter", "_parameters"), ("buffer", "_buffers")):  # in the order of named_parameters
        for path, m in modules:
            for own, tensor in getattr(m, kept).items():
                if tensor is not None and id(tensor) not in known:
                    known.add(id(tensor))
                    qualified = f"{path}.{own}" if path else own
                    state.append(tensor)
                    names.append((qualified.replace(".", "_"), kind, qualified))
    return modules, state, names


def _record_once(
    f: Callable[..., Any],
    inputs: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    where: str,
    fake: bool,
    name: str,
    sizes: Mapping[tuple[int | str, int], int],
) -> Graph:
    resized, keywords = _resized(inputs, dict(kwargs or {}), sizes)
    leaves, spec = pytree.tree_flatten((resized, keywords))
    modules, state, names = _state_of(f)
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
        if where == "above":
            stack.enter_context(_saved_tensors_hooks_refused())
        if modules:
            if fake:
                by_id = {id(real): shown[i] for i, real in enumerate(state)}
                stack.enter_context(_state_replaced(modules, by_id))
            stack.enter_context(_module_paths(modules, location))
        try:
            graph, constants = _native._record(run, shown, names, where, fake, name, location)
        except NotImplementedError as e:
            raise _translated(e) from None
        except RuntimeError as e:
            if "accelerator" in str(e):  # autograd's engine, on a device that this build lacks
                _native._require_backward_device(shown)
            raise
    graph.lifted = [*state, *constants]
    graph.output_spec = output_spec[0]
    return graph
