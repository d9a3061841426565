"""What the command does, in this process, with Python values: ``cutaway.minify(bundle)``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from . import _bundle, _native
from ._native import Error

__all__ = ["Reduced", "minify"]


@dataclass(frozen=True)
class Reduced:
    """The smallest bundle that fails the same way. In a notebook it shows its report."""

    path: str
    graph: Any
    inputs: list[Any]
    certificate: dict[str, Any]
    answer: dict[str, Any]  # what --json prints
    repro: str | None  # repro.py
    report: str | None  # report.html

    def __str__(self) -> str:
        a = self.answer
        return f"{a['nodes_before']} -> {a['nodes_after']} nodes, {a['elements_before']} -> {a['elements_after']} elements: {self.path}\n{self.graph}"

    def _repr_html_(self) -> str:
        if self.report is None:
            shown: str = self.graph._repr_html_()
            return shown
        with open(self.report, encoding="utf-8") as file:
            return _native.page_html(file.read())


def minify(
    bundle: str | os.PathLike[str] | _bundle.Bundle,
    *,
    output: str | os.PathLike[str] | None = None,
    backend: str | None = None,
    accuracy: str | None = None,
    jobs: int = 2,
    timeout: float | None = None,
    time_budget: float | None = None,
    match: str | None = None,
    trust: bool = False,
) -> Reduced:
    """``cutaway minify``: from a failing bundle to the smallest one that fails the same way, verified from its files.

    ``accuracy`` is None (as recorded), ``"accuracy"``, ``"strict"`` or ``"none"``; ``timeout`` is of a candidate,
    ``time_budget`` of the whole, in seconds. ``trust`` is for bundles that bring code along. Progress goes to standard
    error; Ctrl-C ends it, and ``cutaway minify --resume`` goes on. Raises Error where there is nothing to reduce: the bundle passes, fails in another way, or eager itself fails.
    """
    path = bundle.path if isinstance(bundle, _bundle.Bundle) else os.fspath(bundle)
    answer = reduce(
        path,
        output="" if output is None else os.fspath(output),
        backend=backend or "",
        accuracy=accuracy,
        jobs=jobs,
        timeout=timeout,
        time_budget=time_budget or 0.0,
        match=match or "",
        trust=trust,
    )
    small = _bundle.load(answer["bundle"])
    with open(os.path.join(small.path, "certificate.json"), encoding="utf-8") as file:
        certificate = json.load(file)
    return Reduced(small.path, small.graph, small.inputs, certificate, answer, answer["repro"], answer["report"])


def reduce(
    path: str,
    *,
    output: str = "",
    backend: str = "",
    accuracy: str | None = None,
    jobs: int = 2,
    timeout: float | None = None,
    time_budget: float = 0.0,
    match: str = "",
    trust: bool = False,
) -> dict[str, Any]:
    """The same without loading the result: what ``--json`` prints."""
    if accuracy not in (None, "accuracy", "strict", "none"):
        raise Error(f'accuracy is {accuracy!r}\n   because: it is None, "accuracy", "strict" or "none"')
    text = _native.minify(path, output, backend, accuracy or "", jobs, timeout, time_budget, match, trust)
    answer: dict[str, Any] = json.loads(text)
    return answer
