"""``cutaway.explain``: what a call of a function is compiled to, and where it breaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from . import _native
from ._native import Graph
from ._native import capture as _capture


@contextmanager
def _listening(listen: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    number = _capture.add_listener(listen)
    try:
        yield
    finally:
        _capture.remove_listener(number)


@dataclass
class BreakReason:
    """Why a graph ended, or a frame was left to CPython."""

    id: str
    reason: str
    hint: str
    user_stack: list[tuple[str, int, str, str]]
    graph_break: bool = True
    cause: str = ""
    """Where this follows from a graph break: that break, with its line."""

    def __str__(self) -> str:
        lines = [f"{self.reason} [{self.id}]"]
        if self.cause:
            lines.append(f"  because the graph had to end: {self.cause}")
        for file, line, function, text in self.user_stack:
            lines.append(f"  {file}:{line} in {function}")
            if text:
                lines.append(f"    {text}")
        if self.hint:
            lines.append(f"  try: {self.hint}")
        return "\n".join(lines)


def _reason(record: dict[str, Any], graph_break: bool = True) -> BreakReason:
    r = record["reason"]
    return BreakReason(r["id"], r["what"], r["hint"], [tuple(f) for f in r["stack"]], graph_break, r["cause"])


def _operators(module: torch.fx.GraphModule) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op.startswith("call")]


@dataclass
class ExplainOutput:
    """What :func:`explain` found; prints as a report."""

    graphs: list[torch.fx.GraphModule] = field(default_factory=list)
    """One a captured graph, in the order in which they ran."""
    captured: list[Graph] = field(default_factory=list)
    """The same as graphs of Cutaway's."""
    ops_per_graph: list[list[Any]] = field(default_factory=list)
    break_reasons: list[BreakReason] = field(default_factory=list)
    skipped: list[BreakReason] = field(default_factory=list)
    """Frames that were left to CPython."""
    out_guards: list[list[str]] = field(default_factory=list)
    """One list a graph."""
    compile_times: list[tuple[str, float, float]] = field(default_factory=list)
    """(function, seconds in all, seconds of the backend), one a compiled frame."""
    recompile_reasons: list[str] = field(default_factory=list)
    result: Any = None

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(map(len, self.ops_per_graph))

    def text(self, verbose: bool = True) -> str:
        """The report; the short one has no guards and no operators."""
        lines = [
            f"graphs: {self.graph_count}",
            f"graph breaks: {self.graph_break_count}",
            f"operators: {self.op_count}",
        ]
        for n, reason in enumerate(self.break_reasons, 1):
            lines.append(f"break {n}: {_indented(str(reason))}")
        for reason in self.skipped:
            lines.append(f"left to Python: {_indented(str(reason))}")
        for text in self.recompile_reasons:
            lines.append(f"compiled again: {text}")
        if verbose:
            for n, ops in enumerate(self.ops_per_graph, 1):
                lines.append(f"graph {n}: {len(ops)} operators: {', '.join(_name_of(o) for o in ops)}")
            for n, guards in enumerate(self.out_guards, 1):
                lines.append(f"guards of graph {n}: {len(guards)}")
                lines.extend(f"  {g}" for g in guards)
        for function, seconds, backend in self.compile_times:
            lines.append(
                f"compile time of {function}: {seconds * 1e3:.2f} ms, {backend * 1e3:.2f} ms of them in the backend"
            )
        return "\n".join(lines)

    def to_json(self) -> str:
        """Everything but the graph modules, as JSON; graphs are their text."""
        return json.dumps(
            {
                "graph_count": self.graph_count,
                "graph_break_count": self.graph_break_count,
                "op_count": self.op_count,
                "graphs": [str(g) for g in self.captured],
                "ops_per_graph": [[_name_of(o) for o in ops] for ops in self.ops_per_graph],
                "break_reasons": [vars(r) for r in self.break_reasons],
                "skipped": [vars(r) for r in self.skipped],
                "out_guards": self.out_guards,
                "recompile_reasons": self.recompile_reasons,
                "compile_times": self.compile_times,
            },
            indent=1,
        )

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return _native.explain_html(self.to_json())


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _name_of(target: Any) -> str:
    if isinstance(target, str):
        return target
    return str(getattr(target, "__name__", target))


def explain(function: Any, *, backend: Any = None, dynamic: bool | None = None) -> Callable[..., ExplainOutput]:
    """``explain(f)(*args)`` compiles and runs ``f`` once and tells what happened.

    Nothing that was compiled before is used, and nothing of this is kept.
    """

    def run(*args: Any, **kwargs: Any) -> ExplainOutput:
        from ._compile import compile

        out = ExplainOutput()

        def listen(record: dict[str, Any]) -> None:
            if record["outcome"] == "compiled":
                out.compile_times.append((record["function"], record["seconds"], record["backend_seconds"]))
                if record["recompile_reason"]:
                    out.recompile_reasons.append(f"{record['function']}: {record['recompile_reason']}")
                if record["graph"] is not None:
                    graph = record["graph"]
                    module = graph.to_fx()
                    out.captured.append(graph)
                    out.graphs.append(module)
                    out.ops_per_graph.append(_operators(module))
                    out.out_guards.append(list(record["guards"]))
                if record["ending"] == "break":
                    out.break_reasons.append(_reason(record))
                elif record["reason"] is not None:
                    out.skipped.append(_reason(record, False))
            elif record["reason"] is not None:
                out.skipped.append(_reason(record, False))

        # A backend of its own, so that entries made before are not found: what is compiled belongs to a backend.
        def alone(module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
            return module.forward

        with _listening(listen):
            out.result = compile(function, backend=alone if backend is None else backend, dynamic=dynamic)(
                *args, **kwargs
            )
        return out

    return run


class CompileProfiler:
    """A context manager that is itself a backend: counts, and tells breaks and recompiles per function.

    ::

        with cutaway.CompileProfiler() as profiler:
            compiled = cutaway.compile(model, backend=profiler)
            for batch in batches: compiled(batch)
        print(profiler.report())

    It observes with a limit of 1: each function is compiled once, calls whose guards fail run eagerly, and the report tells why
    they failed. With a higher ``cache_size_limit`` that many variants are compiled and kept.
    """

    def __init__(self, cache_size_limit: int = 1) -> None:
        self.observe_limit = cache_size_limit
        self.frame_count = 0
        self.op_count = 0
        self.records: list[dict[str, Any]] = []
        self._number: int | None = None
        self.__name__ = "profiler"

    def __call__(self, module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += len(_operators(module))
        return module.forward  # type: ignore[no-any-return]

    def _listen(self, record: dict[str, Any]) -> None:
        self.records.append({k: v for k, v in record.items() if k != "graph"})

    def __enter__(self) -> CompileProfiler:
        self._number = _capture.add_listener(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        if self._number is not None:
            _capture.remove_listener(self._number)
            self._number = None

    def get_metrics(self) -> dict[str, Any]:
        """Breaks, recompiles and skipped frames: {kind: {function: [reason, ...]}}."""
        out: dict[str, dict[str, list[str]]] = {"graph_breaks": {}, "recompiles": {}, "skipped": {}}

        def add(kind: str, record: dict[str, Any], text: str) -> None:
            place = f"{record['function']} ({record['file']}:{record['line']})"
            out[kind].setdefault(place, []).append(text)

        for record in self.records:
            if record["ending"] == "break":
                add("graph_breaks", record, str(_reason(record)))
            elif record["outcome"] == "limit":
                add("recompiles", record, record["recompile_reason"])
            elif record["reason"] is not None:
                add("skipped", record, str(_reason(record, False)))
            if record["recompile_reason"] and record["outcome"] == "compiled":
                add("recompiles", record, record["recompile_reason"])
        return out

    def report(self) -> str:
        """Graph breaks and recompile reasons per function, and what to do."""
        metrics = self.get_metrics()
        lines = [f"graphs: {self.frame_count}, operators: {self.op_count}"]
        titles = {
            "graph_breaks": "graph breaks",
            "recompiles": "needs another compilation, because",
            "skipped": "left to Python",
        }
        for kind, title in titles.items():
            for function, reasons in metrics[kind].items():
                lines.append(f"{function}: {title}")
                for reason, count in _counted(reasons):
                    lines.append(f"  {count}x " + _indented(reason) if count > 1 else "  " + _indented(reason))
        if metrics["recompiles"]:
            variants = 1 + max(len(set(r)) for r in metrics["recompiles"].values())
            lines.append(f"with cache_size_limit of at least {variants} every variant seen is kept")
        return "\n".join(lines)


def _counted(reasons: list[str]) -> list[tuple[str, int]]:
    return [(r, reasons.count(r)) for r in dict.fromkeys(reasons)]
