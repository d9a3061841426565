"""Backends that live in Python, for trials: each takes our graph and gives a function of a list of inputs."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from . import _native
from ._native import Error, Graph
from ._symbolic import compile_dynamic

__all__ = ["register_all"]

Compiled = Callable[[list[Any]], Sequence[Any]]


def callable_or_refused(compiled: Any) -> Any:
    """What a backend returned; torch.compile refuses what cannot be called with this very error."""
    if not callable(compiled):
        raise AssertionError("compiler_fn did not return callable")
    return compiled


class Runner:
    """A compiled graph as the trial runner wants it: called with a list; counts the kernels compiled for it."""

    tells_values = False  # run_observed() tells what the graph holds on the way

    def __init__(
        self,
        compiled: Callable[..., Any],
        stage: str,
        builds: list[int] | None = None,
        kernels: list[tuple[str, list[str]]] | None = None,
    ) -> None:
        self._compiled = callable_or_refused(compiled)
        self.kernels = kernels or []
        # torch.compile calls what a backend returns with plain arguments, whatever it says of itself.
        self._boxed = stage == "aot" and bool(getattr(compiled, "_boxed_call", False))
        self._builds = builds
        self.parameters: Sequence[int] = ()  # inputs that are torch.nn.Parameters
        self.device: str | None = None  # the default one, where the program had set it

    @property
    def new_kernels(self) -> int:
        return self._builds[0] if self._builds else 0

    def run_observed(self, inputs: list[Any], tell: Callable[[str, torch.Tensor], None]) -> Sequence[Any]:
        from ._inductor_hooks import telling

        with telling(tell):
            return self(inputs)

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        make_parameters(inputs, self.parameters)
        # Around the run alone: torch.compile takes modes away while it compiles.
        with torch.device(self.device) if self.device else contextlib.nullcontext():
            out = self._compiled(inputs) if self._boxed else self._compiled(*inputs)
        return out if isinstance(out, (list, tuple)) else [out]


def _with_lines(trace: str) -> str:
    """A stack trace with the text of each line, as Python prints it."""
    places = re.findall(r'  File "([^"\n]*)", line (\d+), in ([^\n]*)\n', trace)
    lines = [(file, number, name, _line_of(file, int(number))) for file, number, name in places]
    return "".join(f'  File "{f}", line {n}, in {name}\n' + (f"    {t}\n" if t else "") for f, n, name, t in lines)


def _line_of(file: str, number: int) -> str:
    """Bundles name files from their package on: it is looked for where Python looks for modules."""
    for place in (file, *(os.path.join(folder, file) for folder in sys.path)):
        if text := linecache.getline(place, number).strip():
            return text
    return ""


def make_parameters(inputs: Sequence[Any], positions: Sequence[int]) -> None:
    """These become torch.nn.Parameters again, as the same objects: gradients go where they went."""
    for i in positions:
        if type(inputs[i]) is torch.Tensor and inputs[i].is_leaf:
            inputs[i].__class__ = torch.nn.Parameter


def _options(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: json.loads(text) for key, text in settings["options"].items()}


def _detached(inputs: Sequence[Any]) -> list[Any]:
    return [t.detach() if isinstance(t, torch.Tensor) else t for t in inputs]


def traced(graph: Graph, inputs: Sequence[Any], settings: dict[str, Any]) -> torch.fx.GraphModule:
    """The fx graph of a graph after ahead-of-time autograd; with symbolic sizes where it was recorded so."""
    module: torch.fx.GraphModule = graph.to_fx()
    for node in module.graph.nodes:  # kernels are named after this, as they are in the program itself
        if isinstance(node.target, torch._ops.OpOverload):
            node.meta.setdefault("original_aten", node.target)
    if settings["tracing_mode"] == "symbolic":
        from torch.fx.experimental.proxy_tensor import make_fx

        with torch.no_grad():
            module = make_fx(module, tracing_mode="symbolic")(*_detached(inputs))
    return module


def fake_inputs(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """What ahead-of-time autograd would hand to a compiler: fakes, those of the trace itself where it has them."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    values = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    if len(values) == len(inputs) and all(v is not None for v in values):
        return values
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    return [mode.from_tensor(t.detach(), static_shapes=True) if isinstance(t, torch.Tensor) else t for t in inputs]


@contextlib.contextmanager
def dressed(module: torch.fx.GraphModule, inputs: Sequence[Any], key: str) -> Iterator[None]:
    """Gives the nodes what those of torch's own graphs carry, and the backend the context in which torch calls it.

    ``meta[key]`` is the node's fake value, for each that can be computed without data; after ahead-of-time autograd
    ``tensor_meta`` too. ``stack_trace`` quotes the line, ``source_fn_stack`` names the function.
    """
    from torch._guards import TracingContext, detect_fake_mode, tracing
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.passes.shape_prop import _extract_tensor_metadata

    mode: Any = detect_fake_mode(inputs) or FakeTensorMode(allow_non_fake_inputs=True)
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    if len(placeholders) == len(inputs) and not all(key in n.meta for n in module.graph.nodes if n.op != "output"):

        class Values(torch.fx.Interpreter):
            def run_node(self, node: torch.fx.Node) -> Any:
                value = super().run_node(node)
                if node.op != "output":
                    node.meta[key] = value
                    if key == "val" and isinstance(value, torch.Tensor):
                        node.meta["tensor_meta"] = _extract_tensor_metadata(value)
                return value

        def fake(value: Any) -> Any:
            is_other = isinstance(value, torch.Tensor) and getattr(value, "fake_mode", None) is not mode
            return mode.from_tensor(value, static_shapes=True) if is_other else value

        with (
            contextlib.suppress(Exception),
            mode,
        ):  # an operator that asks for data ends it: torch has no values there either
            Values(module).run(*map(fake, inputs))
    for node in module.graph.nodes:
        if node.op in ("call_function", "call_method"):
            node.meta.setdefault("source_fn_stack", [(node.name, node.target)])
        node.meta["stack_trace"] = _with_lines(node.meta.get("stack_trace", ""))
    with tracing(TracingContext(mode)):
        yield


def compile_inductor(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
    import torch._functorch.config as functorch_config
    import torch._inductor.config as config
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    from ._inductor_hooks import compiled_to_tell, count_builds, noting_kernels

    options = _options(settings)
    unknown = [name for name in options if name not in config.get_config_copy()]
    if unknown:
        raise Error(f"Inductor has no option {unknown[0]}\n   because: this is torch {torch.__version__}")
    builds = count_builds()
    # A cached graph could hide a fault in lowering. Kernels are shared by their text, which is safe.
    with (
        functorch_config.patch(enable_autograd_cache=False),
        config.patch({"fx_graph_cache": False, **options}),
        noting_kernels(settings["stage"]) as kernels,
    ):
        if settings["stage"] != "aot":
            if settings["tracing_mode"] == "symbolic":
                whole: Any = compile_dynamic(
                    graph, inputs, lambda gm, given: compile_fx(gm, given, config_patches=options)
                )
            else:
                whole = compile_fx(graph.to_fx(), inputs, config_patches=options)
            return Runner(whole, "capture", builds, kernels)
        module = traced(graph, inputs, settings)
        arguments = json.loads(settings["extra"].get("compile_arguments", "{}"))
        with compiled_to_tell() if settings.get("observe") else contextlib.nullcontext():
            compiled: Any = compile_fx_inner(module, fake_inputs(module, inputs), **arguments)

    def run(given: list[Any]) -> Any:
        with config.patch(options):
            return compiled(given)

    run._boxed_call = True  # type: ignore[attr-defined]
    runner = Runner(run, "aot", builds, kernels)
    runner.tells_values = bool(settings.get("observe"))
    return runner


_SMALL = """
graph small(%x: f32[8, 8], %w: f32[8, 8]) {
  %h: f32[8, 8] = aten.mm(%x, %w)
  %y: f32[8, 8] = aten.relu(%h)
  %s: f32[8] = aten.sum.dim_IntList(%y, [1])
  return (%y, %s)
}
"""


def _find_vector_instructions() -> None:
    """Inductor finds out by compiling what this machine can do, 7 s of work a cache directory; then it remembers.

    So this alone happens in torch's usual directory, where the user's own run has left the answer.
    """
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    private = os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
    try:
        pick_vec_isa()
    finally:
        if private is not None:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = private


def load_inductor() -> None:
    """Imports Inductor and looks at the machine."""
    import torch._inductor.compile_fx  # noqa: F401

    _find_vector_instructions()


class _Enough(Exception):
    """The C++ compiler would be started now."""


def rehearse_inductor() -> None:
    """Compiles one small graph at both stages, up to the C++ compiler: children find modules, patterns and machine checks there."""
    from torch._inductor import cpp_builder

    def stop(*_: Any, **__: Any) -> None:
        raise _Enough

    graph, inputs = Graph.parse(_SMALL), [torch.ones(8, 8), torch.ones(8, 8)]
    start_compiler = cpp_builder.run_compile_cmd
    cpp_builder.run_compile_cmd = stop
    try:
        for stage in ("aot", "capture"):
            settings: dict[str, Any] = {
                "stage": stage,
                "tracing_mode": "real",
                "options": {},
                "extra": {},
                "parameters": "",
            }
            # Whatever comes of it: a trial that needs what is broken tells it better.
            with torch.no_grad(), contextlib.suppress(Exception):
                compile_inductor(graph, inputs, settings)
    finally:
        cpp_builder.run_compile_cmd = start_compiler


def _call(backend: Callable[..., Any], graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
    """A backend with torch's contract: (GraphModule, example inputs) -> callable."""
    options = _options(settings)
    keywords = {"options": options} if options else {}
    if settings["stage"] != "aot" and settings["tracing_mode"] == "symbolic":
        return Runner(compile_dynamic(graph, inputs, lambda gm, given: backend(gm, given, **keywords)), "capture")
    if settings["stage"] != "aot":
        module = graph.to_fx()
        with dressed(module, inputs, "example_value"):
            return Runner(backend(module, inputs, **keywords), "capture")
    module = traced(graph, inputs, settings)
    with dressed(module, fake_inputs(module, inputs), "val"):
        return Runner(backend(module, fake_inputs(module, inputs), **keywords), "aot")


def compile_aot_eager(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
    if settings["stage"] == "aot":  # it went through ahead-of-time autograd already
        return Runner(graph.to_fx(), "aot")
    if settings["extra"].get("autograd") == '"cutaway"':  # captured by us: the name meant ours
        runner = _native.AotGraph(graph)
        runner.find(inputs)
        return Runner(runner, "capture")
    from torch._dynamo.backends.debugging import aot_eager

    return _call(aot_eager, graph, inputs, {**settings, "options": {}})


def compile_imported(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
    """python:module:attribute. Only trusted trials get here."""
    module_name, _, attribute = settings["parameters"].rpartition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        raise Error(
            f"the backend python:{settings['parameters']} cannot be imported\n   because: {e}\n   try: --path DIR"
        ) from None
    return _call(found, graph, inputs, settings)


def compile_source(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
    """source:name, defined by the text that the bundle carries. Only trusted trials get here."""
    if "backend_source" not in settings["extra"]:
        raise Error("the bundle carries no source text for its backend")
    scope = _run_source(json.loads(settings["extra"]["backend_source"]))
    return _call(scope[settings["parameters"]], graph, inputs, settings)


def register_live(backend: Callable[..., Any]) -> None:
    """The object that this very process has at hand, for its children (``_live``)."""

    def compile_(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
        return _call(backend, graph, inputs, {**settings, "options": {}})

    _register("live", compile_)


@functools.cache
def _run_source(text: str) -> dict[str, Any]:
    """Once a process, as in the program: what one compilation leaves behind the next one sees."""
    scope: dict[str, Any] = {"__name__": "cutaway_backend_source"}
    exec(compile(text, "<backend_source>", "exec"), scope)  # noqa: S102
    return scope


def compile_registered(name: str) -> Callable[[Graph, list[Any], dict[str, Any]], Runner]:
    def compile_(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
        from torch._dynamo.backends.registry import lookup_backend

        return _call(lookup_backend(name), graph, inputs, settings)

    return compile_


def _register(name: str, compile_: Callable[[Graph, list[Any], dict[str, Any]], Runner]) -> None:
    """Adds a row; a trial may ask that parts of Inductor be off, whoever calls it (``_inductor_parts``)."""

    def switched(graph: Graph, inputs: list[Any], settings: dict[str, Any]) -> Runner:
        if settings.get("switches"):
            from ._inductor_parts import switch

            switch(settings["switches"])
        parameters = json.loads(settings["extra"].get("parameter_inputs", "[]"))
        make_parameters(inputs, parameters)
        runner = compile_(graph, inputs, settings)
        runner.parameters = parameters
        runner.device = json.loads(settings["extra"].get("default_device", "null"))
        return runner

    _native.register_backend(name, switched)


def register_all() -> None:
    """Puts the Python backends into the table, torch's own registered ones too."""
    from torch._dynamo import list_backends

    for name in list_backends(exclude_tags=()):
        if not _native.has_backend_row(name):
            _register(name, compile_registered(name))
    _register("inductor", compile_inductor)
    # Graphs from Dynamo were compiled by torch's, those of our capture by ours, and the bundle says which. "own_aot_eager" is always ours.
    _register("aot_eager", compile_aot_eager)
    _register("python", compile_imported)
    _register("source", compile_source)
