"""``pytest --cutaway``, the part that needs torch: backends are watched as by ``cutaway.debug``, on behalf of the test that runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from pytest_cutaway import Failure, Plugin

from . import _commands, _debug, _failure, _observe_own, _repro, observe
from ._native import Error


class TestGraph(_debug._Watched):
    """One graph. Its checks and failures belong to the test that is running when they happen."""

    __test__ = False

    def __init__(self, plugin: Plugin, watch: TestWatch, *arguments: Any) -> None:
        super().__init__(watch, *arguments)
        self.plugin = plugin
        self.test = plugin.current
        self.test.graphs += 1

    def run(self, inputs: list[Any]) -> Any:
        return super().run(inputs) if self.plugin.current.is_on else self._call(inputs)

    def _should_check(self) -> bool:
        test = self.plugin.current
        if test is not self.test:  # a graph that an earlier test has left
            self.test, self.checked = test, 0
        if super()._should_check():
            return True
        test.unchecked += 1
        return False

    def _check(self, inputs: list[Any]) -> None:
        self.plugin.current.checked += 1
        super()._check(inputs)

    def _not_judged(self, reason: str) -> None:
        text = f"{self.name}: {reason}"
        if text not in self.plugin.current.unjudged:
            self.plugin.current.unjudged.append(text)
        super()._not_judged(reason)

    def _write(self, inputs: Sequence[Any], **more: Any) -> str:
        self.watch.writer.folder = self.plugin.folder_of_test()
        return super()._write(inputs, **more)

    def _report(
        self,
        error: BaseException,
        inputs: Sequence[Any],
        failure: Mapping[str, str],
        accuracy: str,
        extra: Mapping[str, str],
    ) -> str:
        problem = super()._report(error, inputs, failure, accuracy, extra)
        place = observe._place(sys._getframe())
        self.plugin.current.failures.append(
            Failure(
                graph=self.name,
                backend=self.watch.__name__,
                text=_failure.one_line(error),
                is_accuracy=bool(accuracy),
                bundle=getattr(error, "minifier_path", None),
                problem=problem,
                place=f"{place['file']}:{place['line']}   {place['text']}" if place else "",
            )
        )
        return problem


class TestWatch(_debug.Watch):
    """Watches one backend of the tests."""

    __test__ = False

    def __init__(self, plugin: Plugin, backend: Any, **options: Any) -> None:
        super().__init__(backend, minify=False, **options)
        self.plugin = plugin

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **keywords: Any) -> Any:
        if not self.plugin.current.is_on:
            return self._compile(gm, example_inputs, keywords)
        return super().__call__(gm, example_inputs, **keywords)

    def _watched(self, *arguments: Any) -> TestGraph:
        return TestGraph(self.plugin, self, *arguments)


def watch(whose: str, plugin: Plugin, **options: Any) -> None:
    """Every backend that torch.compile ("torch") or cutaway.compile ("cutaway") is given from now on is watched."""

    def refused(name: str, problem: str) -> None:
        plugin.current.unjudged.append(f"{name} is not watched: {problem}")

    install = _debug.watch_backends if whose == "torch" else _observe_own.watch_backends
    install(lambda backend: TestWatch(plugin, backend, **options), refused)


def next_command(what: str, bundle: str) -> str:
    return f"cutaway {what} {_repro.on_the_command_line(bundle)}"


@dataclass
class Small:
    """What came of a reduction."""

    bundle: str
    lines: list[str] = field(default_factory=list)
    nodes: str = ""  # "12 -> 1 nodes"; empty: not reduced
    repro: str = ""


def reduce(bundle: str, seconds: float, jobs: int) -> Small:
    """A failing bundle of this program's own, cut down within so many seconds; what cannot be is kept as it is, with the reason."""
    try:
        with _debug._off():
            answer = _commands.reduce(bundle, trust=True, time_budget=seconds, jobs=jobs)
    except Error as problem:
        why = str(problem).strip().replace("\n", "\n               ")
        repro = os.path.join(bundle, "repro.py")
        return Small(
            bundle,
            [f"not reduced    {why}", f"bundle         {bundle}", f"next           {next_command('run', bundle)}"],
            repro=repro if os.path.isfile(repro) else "",
        )
    small = answer["bundle"]
    nodes = f"{answer['nodes_before']} -> {answer['nodes_after']} nodes"
    elements = f"{answer['elements_before']} -> {answer['elements_after']} elements"
    early = "" if not answer["stopped_early"] else "   (stopped early: --cutaway-seconds gives it more time)"
    lines = [f"minimised      {nodes}, {elements}, {answer['candidates']} candidates{early}", "minimal graph"]
    lines += [f"    {line}" for line in str(answer["graph"]).splitlines()]
    lines.append(f"bundle         {small}")
    if answer["repro"]:
        lines.append(f"attach         {answer['repro']}")
    lines.append(f"next           {next_command('run', small)}")
    return Small(small, lines, nodes, answer["repro"] or "")
