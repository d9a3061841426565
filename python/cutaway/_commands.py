"""The native command's answers as Python values: ``cutaway.minify(bundle)``."""

from __future__ import annotations

import html
import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from . import _bundle, _repro
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
            return f"<pre>{html.escape(str(self))}</pre>"
        with open(self.report, encoding="utf-8") as file:
            page = html.escape(file.read(), quote=True)
        return f'<iframe sandbox srcdoc="{page}" style="width: 100%; height: 40em; border: 1px solid #8888"></iframe>'


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
    error. Raises Error where there is nothing to reduce: the bundle passes, fails in another way, or eager itself fails.
    """
    path = bundle.path if isinstance(bundle, _bundle.Bundle) else os.fspath(bundle)
    flags = {None: [], "accuracy": ["--accuracy"], "strict": ["--strict-accuracy"], "none": ["--no-accuracy"]}
    if accuracy not in flags:
        raise Error(f'accuracy is {accuracy!r}\n   because: it is None, "accuracy", "strict" or "none"')
    words = ["minify", path, "--jobs", str(jobs), *flags[accuracy]]
    named = {
        "--output": output,
        "--backend": backend,
        "--timeout": timeout,
        "--time-budget": time_budget,
        "--match": match,
    }
    for name, value in named.items():
        if value is not None:
            words += [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    answer = _ask([*words, *(["--trust"] if trust else [])])
    small = _bundle.load(answer["bundle"])
    with open(os.path.join(small.path, "certificate.json"), encoding="utf-8") as file:
        certificate = json.load(file)
    return Reduced(small.path, small.graph, small.inputs, certificate, answer, answer["repro"], answer["report"])


def _ask(words: list[str]) -> dict[str, Any]:
    found = _repro.command()
    if found is None:
        raise Error("the command cutaway is not found\n   try: install the package again, or set CUTAWAY_COMMAND")
    done = subprocess.run(
        [found, *words, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
        env=_repro.command_environment(),
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise Error(f"cutaway {words[0]} ended with status {done.returncode} and no answer") from None
    if done.returncode != 0:
        why = {3: "it fails, but not as recorded: ", 4: "eager itself fails: ", 5: "it does not fail: "}
        raise Error(why.get(done.returncode, "") + str(answer.get("message") or answer.get("outcome")))
    return answer
