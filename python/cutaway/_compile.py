"""``cutaway.compile``: capture in C++, a backend, and a callable that C++ runs."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, overload

import torch

from . import _native, exc
from ._failure import AccuracyError, text_of
from ._native import Error, Graph
from ._native import capture as _capture

F = TypeVar("F")
Backend = Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]


def _start() -> None:
    """What the environment says, and which files are left to CPython."""
    here = os.path.dirname(__file__) + os.sep
    torch_dir = os.path.dirname(torch.__file__) + os.sep
    library = sysconfig.get_paths()["stdlib"] + os.sep
    packages = {sysconfig.get_paths()[name] + os.sep for name in ("purelib", "platlib")}
    numpy = [os.path.dirname(file) + os.sep for file in [getattr(sys.modules.get("numpy"), "__file__", None)] if file]
    nn = [torch_dir + name for name in ("nn/modules/", "nn/functional.py", "nn/parallel/distributed.py", "optim/")]
    transforms = ["apis", "vmap", "eager_transforms", "pyfunctorch", "predispatch", "autograd_function"]
    hidden = [
        "_compile.py",
        "_dynamo/eval_frame.py",
        "_dynamo/decorators.py",
        "_higher_order_ops/",
        "utils/checkpoint.py",
    ]
    _capture.set_skipped_files(
        [here, torch_dir, library, *numpy, "<frozen", "<string>", "<__array_function__"],
        [*nn, *packages - {torch_dir, library}],
        [torch_dir + name for name in [*hidden, *(f"_functorch/{name}.py" for name in transforms)]],
    )
    settings = _capture.settings()
    settings.verbose = os.environ.get("TORCHDYNAMO_VERBOSE", "0") not in ("", "0")
    record = os.environ.get("CUTAWAY_REPLAY_RECORD") or os.environ.get("TORCH_COMPILE_REPLAY_RECORD", "")
    settings.replay_record_enabled = record not in ("", "0")
    settings.record_errors = record != "0"
    settings.planted_fault = os.environ.get("CUTAWAY_PLANT_CAPTURE_FAULT", "")
    settings.only_function = os.environ.get("CUTAWAY_DEBUG_FUNCTION") or os.environ.get(
        "TORCHDYNAMO_DEBUG_FUNCTION", ""
    )


_start()


def _named(backend: Any) -> str:
    if isinstance(backend, str):
        return backend
    for name in ("compiler_name", "__name__"):
        if isinstance(found := getattr(backend, name, None), str):
            return found
    return type(backend).__name__


def _find(name: str) -> Backend:
    """A backend of torch's, by its name."""
    from torch._dynamo.backends import registry
    from torch._dynamo.exc import InvalidBackend

    try:
        found: Backend = registry.lookup_backend(name)
    except InvalidBackend:
        ours = [row["name"] for row in _native.list_backends() if row["takes_captured_graphs"]]
        known = ", ".join(sorted({*ours, *registry.list_backends()}))
        raise exc.InvalidBackend(f"no backend is called {name!r}\n   try: one of {known}, or a function") from None
    return found


def _compile_with(backend: Any, name: str, keywords: dict[str, Any]) -> Callable[[Graph, list[Any], str, Any], Any]:
    """The graph goes to a function with torch's contract, as an ordinary GraphModule."""

    def compile_graph(graph: Graph, examples: list[Any], graph_name: str, sizes: Any) -> Any:
        module = graph.to_fx(torch.is_grad_enabled())
        module.meta["cutaway_name"] = graph_name
        module.meta["cutaway_graph"] = graph
        symbolic = None
        try:
            # Watched after aot, the graph is differentiated by us, for numbers and with real inputs.
            if sizes is None or getattr(backend, "stage", "") == "aot":
                compiled = backend(module, examples, **keywords)
            else:
                from ._sizes import SymbolicInputs

                symbolic = SymbolicInputs(sizes, examples)
                compiled = symbolic.call(backend, module, **keywords)
        except (exc.CompileError, AccuracyError):
            raise
        except Exception as error:
            raise exc.BackendCompilerFailed(
                f"backend {name!r} raised {type(error).__name__}: {text_of(error)}",
                backend_name=name,
                inner_exception=error,
            ) from error
        if not callable(compiled):
            raise exc.BackendCompilerFailed(
                f"backend {name!r} gave {type(compiled).__name__}, which cannot be called\n   because: a backend returns a callable",
                backend_name=name,
            )
        return compiled if symbolic is None else (compiled, symbolic.conditions)

    return compile_graph


def _session(
    backend: Any, fullgraph: bool, dynamic: bool | None, options: dict[str, Any] | None, mode: str | None
) -> Any:
    """One for the same backend and options, so that compiling a function twice shares what is compiled."""
    name = _named(backend)
    if isinstance(backend, str) and not options and _native.backend_row(name)["takes_captured_graphs"]:
        return _capture.session(name, None, None, fullgraph, dynamic, True)
    found = _find(backend) if isinstance(backend, str) else backend
    keywords: dict[str, Any] = {}
    if options:
        keywords["options"] = options
    if mode and mode != "default":
        keywords["mode"] = mode
    compile_graph = _compile_with(found, name, keywords)
    limit = getattr(found, "observe_limit", None)  # of a profiler
    return _capture.session(name, found, compile_graph, fullgraph, dynamic, not keywords, limit)


@overload
def compile(
    model: F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Backend | None = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: bool = ...,
    freeze: bool = ...,
) -> F: ...
@overload
def compile(
    model: None = ...,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Backend | None = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: bool = ...,
    freeze: bool = ...,
) -> Callable[[F], F]: ...
def compile(  # noqa: A001
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    freeze: bool = False,
) -> Any:
    """Compile a function, a method or a module; also a decorator, with and without arguments.

    ``fullgraph``: raise :class:`cutaway.exc.Unsupported` at the first graph break, with the user's line.
    ``dynamic``: True takes sizes as symbols from the start, False never, None those that changed between calls.
    ``backend``: ``"native"`` (default; fused kernels in C++, compiled by this machine's compiler while the first calls run
    operator by operator; ``"native:wait"`` compiles first), ``"aot_eager"`` (ahead-of-time autograd, operator by operator),
    ``"eager"`` (the captured graph as it is), a name that torch knows (``"inductor"``), or a function
    ``(GraphModule, example_inputs) -> callable`` such as :func:`cutaway.debug` gives.
    ``disable``: return the model as it is.
    ``freeze`` (``native`` alone): keep weights of matrix products in the kernels' own layout, in as much memory again. A weight that was written to, loaded
    or replaced is noticed by its version counter and its memory, and so is a step of any optimiser. **Writes that torch does not count may not be seen**:
    through ``p.data``, NumPy, DLPack, ``torch._fused_*`` or another process (a few elements are compared, which finds most of them). After such a write
    call ``cutaway.reset()``.

    Whatever cannot be captured runs as it would without compiling; :func:`cutaway.explain` tells what and why.
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            freeze=freeze,
        )
    if disable:
        return model
    if not callable(model):
        raise Error(f"{type(model).__name__} cannot be compiled\n   because: it cannot be called")
    if not _capture.is_supported:
        _warn_once(
            f"Python {sys.version_info.major}.{sys.version_info.minor} is not one that capture knows (3.11 to 3.13): everything runs eagerly"
        )
        return model
    backend = "native" if backend is None else backend
    if freeze:
        if not isinstance(backend, str) or not _native.backend_row(backend)["freezes"]:
            raise Error("freeze=True is not possible\n   because: the backend native alone keeps weights")
        backend += ":freeze"
    if isinstance(backend, str) and "freeze" in backend.split(":"):
        _watch_optimisers()
    session = _session(backend, fullgraph, dynamic, options, mode)
    if isinstance(model, torch.nn.Module):
        from ._module import OptimizedModule

        return OptimizedModule(model, session)
    if isinstance(model, type):
        return _compile_class(model, session)
    if isinstance(model, _capture.CompiledFunction):
        model = model.__wrapped__
    return _capture.compiled_function(model, session)


@functools.cache
def _watch_optimisers() -> None:
    """Fused steps write to weights without counting it."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(lambda *_: _native.thaw_all())


def _compile_class(cls: type, session: Any) -> type:
    """A class whose instances call compiled code: ``forward`` of modules, ``__call__`` of others."""
    name = "forward" if issubclass(cls, torch.nn.Module) else "__call__"
    if not hasattr(cls, name):
        raise Error(f"class {cls.__name__} cannot be compiled\n   because: it has no {name}")
    if callable(getattr(cls, name)):  # else its instances cannot be called: Python says so
        setattr(cls, name, _capture.compiled_function(getattr(cls, name), session))
    return cls


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def reset() -> None:
    """Forget everything that was compiled, and the counters."""
    _capture.reset()
    _capture.clear_counters()


def is_compiling() -> bool:
    """True while a function is captured, and while captured code runs."""
    return bool(_capture.is_compiling())


def disable(function: Any = None, recursive: bool = True) -> Any:
    """A function that is never captured, and nothing that it calls either. Calling it ends the graph.

    ``recursive=False``: the function itself is not captured, what it calls may be.
    """
    if function is None:
        return functools.partial(disable, recursive=recursive)
    if isinstance(function, torch.nn.Module):
        function.forward = disable(function.forward, recursive)
        return function
    if recursive:
        return _capture.disabled_function(
            getattr(function, "__wrapped__", function) if isinstance(function, _capture.CompiledFunction) else function
        )
    return disallow_in_graph(function)


def graph_break() -> None:
    """End the graph here. Does nothing when it runs."""


def _marked(mark: Any, function: Any) -> Any:
    for f in function if isinstance(function, (list, tuple)) else [function]:
        if not callable(f):
            raise Error(f"{f!r} cannot be marked\n   because: it cannot be called")
        _capture.mark_function(f, mark)
    return function


def allow_in_graph(function: F) -> F:
    """Calls of this function become one node of the graph; capture does not look inside. Also takes a list."""
    return _marked(_capture.Mark.allow_in_graph, function)  # type: ignore[no-any-return]


def disallow_in_graph(function: F) -> F:
    """Calls of this function end the graph."""
    return _marked(_capture.Mark.graph_break, function)  # type: ignore[no-any-return]


def assume_constant_result(function: F) -> F:
    """The function is called once, while capturing, and its result is taken as a constant."""
    return _marked(_capture.Mark.constant_result, function)  # type: ignore[no-any-return]


def _mark_dims(tensor: torch.Tensor, name: str, index: int | Sequence[int]) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise Error(f"{type(tensor).__name__} has no dimensions to mark\n   because: a tensor is needed")
    for i in [index] if isinstance(index, int) else index:
        if not -tensor.dim() <= i < tensor.dim():
            raise Error(f"dimension {i} cannot be marked\n   because: the tensor has {tensor.dim()} dimensions")
        tensor.__dict__.setdefault(name, set()).add(i % tensor.dim())


def mark_dynamic(tensor: torch.Tensor, index: int | Sequence[int]) -> None:
    """This size is a symbol from the first compilation on."""
    _mark_dims(tensor, "_cutaway_dynamic_dims", index)


def maybe_mark_dynamic(tensor: torch.Tensor, index: int | Sequence[int]) -> None:
    """This size is a symbol unless the program needs its value."""
    _mark_dims(tensor, "_cutaway_maybe_dynamic_dims", index)


def mark_static(tensor: torch.Tensor, index: int | Sequence[int] | None = None) -> None:
    """This size (all of them without an index) is never a symbol."""
    _mark_dims(tensor, "_cutaway_static_dims", range(tensor.dim()) if index is None else index)


def _group_name(ranks: Any) -> str:
    """The name by which C++ finds a process group; True is the default group."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        raise Error(
            "compiler_collective needs a process group\n   because: torch.distributed is not initialised\n"
            "   try: torch.distributed.init_process_group(...) before"
        )
    group: Any = dist.group.WORLD if ranks is True else ranks
    return str(group.group_name)


@contextmanager
def options(**changes: Any) -> Iterator[None]:
    """Change settings inside the ``with``.

    ``cache_size_limit`` (8): compilations of one function; a call that fits none of them runs eagerly.
    ``automatic_dynamic`` (True): a size that changed becomes a symbol. ``strict`` (None, as CUTAWAY_STRICT says): raise
    errors of Cutaway's own. ``error_on_graph_break`` (False): see :func:`cutaway.error_on_graph_break`. ``suppress``
    (False): compile nothing. ``only_function`` (""): compile functions of this name alone.
    ``verbose`` (False): full stacks in error texts. ``replay_record_enabled`` (False): what is not supported leaves a
    record for :func:`cutaway.replay` where it raises; ``record_errors`` (True): errors of Cutaway's own do.
    ``compiler_collective`` (False): True or a process group; its ranks compare sizes and graph breaks before each
    compilation and compile the same graph, or raise :class:`cutaway.exc.CollectiveError` after
    ``compiler_collective_timeout`` (300) seconds. ``reorderable`` ([]): functions such as ``print`` that may run
    after the graph, in order, instead of ending it.
    """
    settings = _capture.settings()
    reorderable = changes.pop("reorderable", ())
    breaks = changes.pop("error_on_graph_break", None)
    if (ranks := changes.pop("compiler_collective", None)) is not None:
        changes["collective_group"] = _group_name(ranks) if ranks else ""
    known = [name for name in dir(settings) if not name.startswith("_")]
    for name in changes:
        if name not in known:
            raise Error(
                f"there is no option {name!r}\n   try: one of {', '.join(sorted([*known, 'compiler_collective', 'error_on_graph_break', 'reorderable']))}"
            )
    before = {name: getattr(settings, name) for name in changes}
    try:
        for name, value in changes.items():
            setattr(settings, name, value)
        for function in reorderable:
            _capture.mark_function(function, _capture.Mark.reorderable)
        with nullcontext() if breaks is None else error_on_graph_break(breaks):
            yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
        for function in reorderable:
            _capture.mark_function(function, _capture.Mark.none)


def error_on_graph_break(on: bool = True) -> Any:
    """A context manager and decorator: a graph break inside raises :class:`cutaway.exc.Unsupported`, or does not.

    It may stand outside of compiled code and inside it, and may be nested: the innermost one counts. It is torch's own switch, which
    ``torch._dynamo.error_on_graph_break`` sets as well. What was compiled with a break before still runs.
    """
    from torch._dynamo import error_on_graph_break as switch

    return switch(on)


class _Counters:
    """What happened so far: ``counters["graph_break"]``, ``counters["frames"]["ok"]``, …; read-only views of the C++ counts."""

    def __getitem__(self, group: str) -> dict[str, int]:
        return dict(_capture.counters().get(group, {}))

    def __iter__(self) -> Iterator[str]:
        return iter(_capture.counters())

    def __len__(self) -> int:
        return len(_capture.counters())

    def keys(self) -> list[str]:
        return list(_capture.counters())

    def items(self) -> list[tuple[str, dict[str, int]]]:
        return list(_capture.counters().items())

    def clear(self) -> None:
        _capture.clear_counters()

    def __repr__(self) -> str:
        return repr(_capture.counters())


counters = _Counters()
_capture.mark_function(graph_break, _capture.Mark.graph_break)
