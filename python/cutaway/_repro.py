"""Writing what a failure leaves behind: bundles under checkpoints/<nodes>, and a copy of the newest as repro."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from . import _failure, _manifest, _native, _symbolic
from ._graph import all_inputs
from ._native import Error, Graph

__all__ = ["MAX_BYTES", "save_repro"]

MAX_BYTES = 1 << 30


def is_fake(value: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor) or (
        isinstance(value, torch.Tensor) and (value.is_meta or _native.is_fake(value))
    )


def concrete(value: Any) -> Any:
    """A number in place of a symbolic one: the size that was seen when it was traced."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.require_hint() if hasattr(value.node, "require_hint") else value.node.hint
    return value


def without_data(value: Any) -> Any:
    """A tensor of ours with the metadata of a fake one, which has no data to save; others as they are."""
    from torch._subclasses.fake_tensor import FakeTensor

    value = concrete(value)
    return metadata_of(value) if isinstance(value, FakeTensor) else value


def metadata_of(value: torch.Tensor) -> torch.Tensor:
    """A tensor of ours with the same metadata and no data."""
    sizes, strides = [concrete(n) for n in value.size()], [concrete(n) for n in value.stride()]
    meta = torch.empty_strided(sizes, strides, dtype=value.dtype, device="meta", requires_grad=value.requires_grad)
    return _native.make_fake(meta, str(value.device))


def below_autograd(value: Any) -> Any:
    """As a graph after ahead-of-time autograd sees it, where it makes no difference what requires grad."""
    value = without_data(value)
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


def data_behind(fakes: Sequence[Any], known: Sequence[Any]) -> list[Any] | None:
    """The captured graph's inputs, where they can stand for the fake inputs of the forward graph; else None.

    Ahead-of-time autograd keeps their order, but may merge or add some. So their number and all metadata must agree.
    """
    if len(fakes) != len(known) or not any(is_fake(v) for v in fakes):
        return None
    for fake, real in zip(fakes, known, strict=True):
        if not isinstance(fake, torch.Tensor) or not isinstance(real, torch.Tensor):
            if concrete(fake) != concrete(real):
                return None
            continue
        if is_fake(real) or fake.dtype != real.dtype or fake.device != real.device or fake.dim() != real.dim():
            return None
        if [concrete(n) for n in (*fake.size(), *fake.stride())] != [*real.size(), *real.stride()]:
            return None
    return [concrete(v) for v in known]


def copy_of(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same graph over the same attributes: what the backend does to its own does not show here."""
    import copy

    return torch.fx.GraphModule(gm, copy.deepcopy(gm.graph), class_name=type(gm).__name__)


def import_graph(gm: torch.fx.GraphModule, inputs: Sequence[Any], stage: str) -> Graph:
    """Our graph. After capture it is recorded at the sizes of these inputs, and at others where its sizes are symbolic.

    ``taken_by(graph, inputs)`` are those of the inputs that it takes: symbolic sizes that a tensor shows are none.
    """
    _refuse_what_has_no_bytes(inputs)
    if stage == "aot":
        return Graph.from_fx(gm, [below_autograd(v) for v in inputs])
    plain, kept = _without_items(gm, inputs)
    if _symbolic.is_symbolic(plain):
        graph = _symbolic.import_symbolic(plain, [inputs[i] for i in kept], concrete)
        if graph is not None:
            graph.taken = [kept[i] for i in graph.taken]
            return graph
        plain, kept = _without_items(gm, inputs)
    for node in plain.graph.nodes:
        for key in ("example_value", "val"):
            node.meta.pop(key, None)
    graph = Graph.from_fx(plain, [without_data(inputs[i]) for i in kept])
    graph.taken = kept
    return graph


def _without_items(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[torch.fx.GraphModule, list[int]]:
    """A copy in which numbers that torch passes as tensors (a float with dynamic=True) are numbers again, and which inputs are left."""
    plain = copy_of(gm)
    placeholders = [n for n in plain.graph.nodes if n.op == "placeholder"]
    kept = list(range(len(placeholders)))
    if len(placeholders) != len(inputs):
        return plain, kept
    for i, (placeholder, value) in enumerate(zip(placeholders, inputs, strict=True)):
        items = [n for n in placeholder.users if n.op == "call_method" and n.target == "item"]
        if not items or not isinstance(value, torch.Tensor) or is_fake(value) or value.numel() != 1:
            continue
        for node in items:
            number: Any = value.item()  # an argument like any other
            node.replace_all_uses_with(number)
            plain.graph.erase_node(node)
        if not placeholder.users:
            plain.graph.erase_node(placeholder)
            kept.remove(i)
    return plain, kept


def taken_by(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Those of the captured graph's inputs that the imported one takes."""
    taken = getattr(graph, "taken", None)
    return list(inputs) if taken is None else [inputs[i] for i in taken]


class Writer:
    """Where and how the bundles of one watched backend are written."""

    def __init__(
        self, backend: Any, *, base_dir: str | os.PathLike[str] | None, max_bytes: int, options: Mapping[str, Any]
    ) -> None:
        self.named = _manifest.NamedBackend(backend)
        self.folder = os.path.abspath(os.fspath(base_dir)) if base_dir is not None else None
        self.max_bytes = max_bytes
        self.options = dict(options)

    def manifest(
        self,
        graph: Graph,
        *,
        name: str,
        stage: str,
        failure: Mapping[str, str],
        accuracy: str,
        tracing_mode: str,
        extra: Mapping[str, str],
        program: Mapping[str, Any] | None,
        backward_state: Mapping[str, Any] | None = None,
        generators: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        skipped: list[str] = []
        options = {**self.named.options, **self.options}
        if self.named.is_inductor:
            options = {**_manifest.inductor_options(), **options}
        modules, unknown = _manifest.libraries(graph)
        texts = {**self.named.extra, **extra}
        recorded = _manifest.as_json(options, skipped)
        if skipped:
            texts["options_not_recorded"] = json.dumps(sorted(skipped))
        if unknown:
            texts["operators_of_the_program"] = json.dumps(unknown)
        if program is not None:  # its text goes along where it is needed to run the graph
            needed = self.named.is_live or unknown
            texts["program"] = json.dumps({k: v for k, v in program.items() if needed or k != "text"})
        return {
            "name": name,
            "stage": stage,
            "backend": self.named.name,
            "tracing_mode": tracing_mode,
            "accuracy": accuracy,
            "state": _manifest.state(below_autograd=stage == "aot"),
            "backward_state": None if backward_state is None else dict(backward_state),
            "process": _manifest.process(),
            "generators": dict(generators or {}),
            "seed": _manifest.seed(),
            "failure": dict(failure),
            "options": recorded,
            "environment": _manifest.environment(),
            "libraries": modules,
            "versions": _manifest.versions(),
            "hardware": _manifest.hardware(),
            "extra": texts,
        }

    def write(
        self,
        gm: torch.fx.GraphModule | Graph,
        inputs: Sequence[Any],
        *,
        name: str,
        stage: str,
        failure: Mapping[str, str] | None = None,
        accuracy: str = "",
        tracing_mode: str = "real",
        extra: Mapping[str, str] | None = None,
        backward_state: Mapping[str, Any] | None = None,
        generators: Mapping[str, str] | None = None,
        with_data: bool = True,
        path: str | None = None,
        program: Mapping[str, Any] | None = None,
    ) -> str:
        """Writes a bundle and returns its path. Runs with the caller's dispatch modes off."""
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes(), torch.inference_mode(False):
            if isinstance(gm, torch.fx.GraphModule):
                graph = import_graph(gm, inputs, stage)
                graph.name = _identifier(name)
            else:
                graph = gm
            plain = below_autograd if stage == "aot" else without_data
            values = all_inputs(graph, [plain(v) for v in taken_by(graph, inputs)])
            if getattr(graph, "symbols", None):
                tracing_mode, extra = "symbolic", {**(extra or {}), "symbols": json.dumps(graph.symbols)}
            parameters = [i for i, v in enumerate(values) if isinstance(v, torch.nn.Parameter)]
        manifest = self.manifest(
            graph,
            name=graph.name,
            stage=stage,
            failure=failure or {},
            accuracy=accuracy,
            tracing_mode=tracing_mode,
            extra=extra or {},
            program=program,
            backward_state=backward_state,
            generators=generators,
        )
        with _disable_current_modes(), torch.inference_mode(False):
            if path is None:
                folder = self.folder or _native.run_folder()
                path = _native.checkpoint_path(folder, graph)
            else:
                folder = None
            report = _native.write_repro(path, graph, values, manifest, parameters, self.max_bytes if with_data else 0)
        _native_log(path, graph, report)
        if report["script_problem"]:
            _failure.notice(f"{path} has no repro.py: {report['script_problem']}")
        if self.named.problem and program is None:
            _failure.notice(
                f"{self.named.problem}; nor is there a script that makes it: cutaway run {path} --backend … takes another"
            )
        if folder is not None:
            try:
                _native.copy_newest(path, folder)
            except Error as problem:
                _failure.notice(f"{problem}; the bundle itself is complete")
        return path


def _refuse_what_has_no_bytes(values: Sequence[Any]) -> None:
    """What a record of one storage cannot say; random numbers in its place would be another program.

    Sparse, mkldnn and nested tensors are among them. Neither torch's capture nor ours gives such a tensor to a backend: both end the graph.
    """
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    for i, value in enumerate(values):
        if not isinstance(value, torch.Tensor) or is_fake(value):
            continue
        if is_traceable_wrapper_subclass(value):
            raise Error(
                f"input {i} is a {type(value).__name__}, a tensor made of other tensors: a bundle cannot keep it\n"
                '   try: after="aot", whose graphs take the tensors inside'
            )
        if value.is_nested:
            raise Error(
                f"input {i} is a nested tensor: a bundle cannot keep it\n"
                "   try: a graph that takes the tensors of x.unbind()"
            )
        if value.layout != torch.strided:
            layout = str(value.layout).replace("torch.", "").replace("_mkldnn", "mkldnn")
            raise Error(
                f"input {i} is a tensor of layout {layout}: a bundle keeps strided tensors only\n"
                "   try: a graph that takes x.to_dense()"
            )
        if value.is_quantized:
            raise Error(
                f"input {i} is a quantized tensor ({value.dtype}): a bundle cannot keep it\n"
                "   try: a graph that takes x.int_repr()"
            )


def _identifier(name: str) -> str:
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return text if text and not text[0].isdigit() else "graph_" + text


def _native_log(path: str, graph: Graph, report: Mapping[str, Any]) -> None:
    data = f"{report['bytes']} bytes of data" + (
        f", {report['seeded']} inputs as metadata and a seed" if report["seeded"] else ""
    )
    _failure.notice(f"{_native.count_nodes(graph)} nodes, {data}: {path}")


def on_the_command_line(path: str) -> str:
    """A bundle as a command takes it."""
    return shlex.quote(path) + (" --trust" if _native.needs_trust(path) else "")


def save_repro(
    model_or_graph: Any,
    inputs: Sequence[Any],
    backend: Any = "inductor",
    *,
    path: str | os.PathLike[str] | None = None,
    after: str = "capture",
    options: Mapping[str, Any] | None = None,
    accuracy: str = "",
    error: BaseException | None = None,
    max_bytes: int = MAX_BYTES,
    base_dir: str | os.PathLike[str] | None = None,
) -> str:
    """Writes a bundle of a model (function, fx graph, exported program, Graph) and its inputs; returns its path.

    For after the fact: nothing is compiled. ``error``, when given, is recorded as the failure to look for. Data is kept
    up to ``max_bytes`` in all, and metadata with a seed above.
    """
    from . import trace

    stage = _stage(after)
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if isinstance(model_or_graph, Graph):
        graph = model_or_graph
    elif isinstance(model_or_graph, torch.fx.GraphModule):
        graph = import_graph(model_or_graph, inputs, stage)
    elif isinstance(model_or_graph, torch.export.ExportedProgram):
        graph = Graph.from_export(model_or_graph)
    elif callable(model_or_graph):
        model = (
            getattr(model_or_graph, "_orig_mod", None)
            or getattr(model_or_graph, "_torchdynamo_orig_callable", None)
            or model_or_graph
        )
        graph = trace.record(model, inputs)
        inputs = torch.utils._pytree.tree_leaves(inputs)
        inputs = [v for v in inputs if isinstance(v, torch.Tensor)]
    else:
        raise Error(f"save_repro takes a model, a function or a graph, not {type(model_or_graph).__name__}")
    writer = Writer(backend, base_dir=base_dir, max_bytes=max_bytes, options=options or {})
    failure = _failure.signature(error) if error is not None else None
    return writer.write(
        graph,
        inputs,
        name=graph.name,
        stage=stage,
        failure=failure,
        accuracy=accuracy,
        path=os.fspath(path) if path is not None else None,
    )


def _stage(after: str, variable: str = "after") -> str:
    if after in ("capture", "dynamo"):
        return "capture"
    if after == "aot":
        return "aot"
    raise Error(
        f"{variable} is {after!r}\n"
        '   because: a backend is watched after "capture" (torch says "dynamo") or after "aot"'
    )


Notify = Callable[[str], None]
