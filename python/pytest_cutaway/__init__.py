"""``pytest --cutaway``: what each test compiles is compared with eager, and a failure ends in a minimal repro in the test's report.

A package of its own, because pytest imports it in every run: importing ``cutaway`` loads torch. Nothing is loaded or watched
before the first ``torch.compile`` (which imports `_COMPILES`) or an import of ``cutaway``. docs/pytest.md is for users.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import time
import types
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

_REPRO_VARIABLES = ("CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER")
_COMPILES = "torch._dynamo.repro.after_dynamo"  # what torch puts around every backend; not earlier: torch is in the middle of its imports then
_MOST_SCRIPT_LINES = 60  # of repro.py, on the terminal


def _number(least: float, what: str, kind: type = float) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        try:
            value = kind(word)
        except ValueError:
            value = None
        if value is None or not value >= least:
            raise argparse.ArgumentTypeError(f"{word!r} is not {what}")
        return value

    return read


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cutaway", "cutaway: what tests compile is compared with eager")
    group.addoption(
        "--cutaway",
        action="store_true",
        help="compare what tests compile (torch.compile, cutaway.compile) with eager; "
        "a failure ends in a minimal repro in the test's report",
    )
    group.addoption(
        "--cutaway-level",
        type=int,
        choices=(2, 3, 4),
        default=4,
        help="2: exceptions of backends only; 3: write a bundle before every call, for crashes; 4: numbers too (default)",
    )
    group.addoption(
        "--cutaway-after",
        choices=("capture", "aot"),
        default="capture",
        help="which graphs: as captured (default), or the forward and backward graphs of ahead-of-time autograd",
    )
    group.addoption(
        "--cutaway-calls",
        type=_number(0, "a whole number of 0 or more", int),
        default=3,
        metavar="N",
        help="compare the first N calls of each graph in each test; 0: every call (default: 3)",
    )
    group.addoption(
        "--cutaway-tolerance",
        type=_number(0, "a number of 0 or more"),
        default=1e-3,
        metavar="X",
        help="what cutaway.same takes as tolerance (default: 0.001)",
    )
    group.addoption(
        "--cutaway-seconds",
        type=_number(0, "a number of seconds of 0 or more"),
        default=120.0,
        metavar="S",
        help="how long the reduction of one failure may take; 0: bundles are kept as they are (default: 120)",
    )
    group.addoption(
        "--cutaway-dir",
        default=os.path.join("cutaway_debug", "pytest"),
        metavar="DIR",
        help="where bundles go, relative to the root directory; made when there is one (default: cutaway_debug/pytest)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "cutaway(check=True): with check=False the test runs as without --cutaway (a test that compiles wrong code on purpose)",
    )
    if not config.getoption("--cutaway"):
        return
    for name in _REPRO_VARIABLES:
        if os.environ.get(name):
            raise pytest.UsageError(
                f"--cutaway and {name} are both set\n   because: each watches every backend\n   try: unset {name}"
            )
    if importlib.util.find_spec("cutaway") is None:
        raise pytest.UsageError(
            f"--cutaway needs the package cutaway, which {sys.executable} does not have\n"
            "   try: install it in the environment of the tests"
        )
    config.pluginmanager.register(Plugin(config), "cutaway-plugin")


@dataclass
class Failure:
    """A graph that failed, or was wrong, in a test."""

    graph: str
    backend: str
    text: str
    is_accuracy: bool
    bundle: str | None
    problem: str
    place: str


@dataclass
class Test:
    """What one test compiled."""

    __test__ = False
    name: str
    is_on: bool = True
    graphs: int = 0
    checked: int = 0
    unchecked: int = 0  # calls beyond --cutaway-calls
    unjudged: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def _folder_name(test: str) -> str:
    return re.sub(r"[^\w.-]+", "_", test).strip("_")[-120:] or "test"


def _heart(script: str) -> list[str]:
    """Of a repro.py what differs from others: the graph, its inputs and the backend. What is around them compares results."""
    begin = script.find("def graph_under_test(")
    lines = (
        script[max(begin, 0) : max(script.find("def compile_graph("), begin)].strip().splitlines()
        or script.splitlines()
    )
    more = len(lines) - _MOST_SCRIPT_LINES
    return lines[:_MOST_SCRIPT_LINES] + ([f"… {more} more lines in the file"] if more > 0 else [])


class Arrivals(importlib.abc.MetaPathFinder):
    """Tells once when a module has been imported, and finds nothing itself."""

    def __init__(self, wanted: dict[str, Callable[[], None]]) -> None:
        self.wanted = wanted

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        tell = self.wanted.pop(fullname, None)
        if tell is None:
            return None
        spec = importlib.util.find_spec(fullname)  # by the finders behind us
        loader: Any = spec.loader if spec is not None else None
        if loader is None:
            return spec
        run = loader.exec_module

        def run_and_tell(module: types.ModuleType) -> None:
            del loader.exec_module
            try:
                run(module)
            except BaseException:
                self.wanted[fullname] = tell  # somebody may try again
                raise
            tell()

        loader.exec_module = run_and_tell
        return spec


class Plugin:
    """What runs with --cutaway: in the process of the tests it watches, in that of the terminal it counts."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)  # of xdist
        self.is_worker = worker is not None
        started = time.strftime("run_%Y_%m_%d_%H_%M_%S") + f"-pid_{os.getpid()}"
        base = os.path.join(config.rootpath, config.getoption("--cutaway-dir"), started)
        self.folder: str = worker["cutaway_folder"] if worker is not None else base
        self.current = Test("outside_of_tests")
        self.seen: dict[str, list[tuple[str, str]]] = {}  # by test: its properties, in the process of the terminal
        self._has_dynamo = self._has_cutaway = False
        self._finder = Arrivals({_COMPILES: self._dynamo_is_here, "cutaway": self._cutaway_is_here})
        sys.meta_path.insert(0, self._finder)
        for name, tell in list(self._finder.wanted.items())[::-1]:  # a conftest or another plugin was faster
            if name in sys.modules:
                del self._finder.wanted[name]
                tell()

    def pytest_unconfigure(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["cutaway_folder"] = self.folder

    # ---- watching ----

    def _dynamo_is_here(self) -> None:
        self._has_dynamo = True
        if not self._has_cutaway and "cutaway" in sys.modules:
            return  # it is on its way, and tells when it is here
        if not self._has_cutaway:
            try:
                import cutaway  # noqa: F401
            except Exception as error:
                pytest.exit(f"--cutaway: the package cutaway cannot be imported: {error}", returncode=4)
        self._watch("torch")

    def _cutaway_is_here(self) -> None:
        self._has_cutaway = True
        self._watch("cutaway")
        if self._has_dynamo:
            self._watch("torch")

    def _watch(self, whose: str) -> None:
        from cutaway import _test_watch

        option = self.config.getoption
        _test_watch.watch(
            whose,
            self,
            level=option("--cutaway-level"),
            after=option("--cutaway-after"),
            check_calls=option("--cutaway-calls") or None,
            tolerance=option("--cutaway-tolerance"),
        )

    def folder_of_test(self) -> str:
        return os.path.join(self.folder, _folder_name(self.current.name))

    # ---- tests ----

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        marker = item.get_closest_marker("cutaway")
        before, self.current = self.current, Test(item.nodeid, marker is None or marker.kwargs.get("check", True))
        try:
            return (yield)
        finally:
            self.current = before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report: pytest.TestReport = yield
        test = self.current
        failures, test.failures = test.failures, []
        wrong = [f for f in failures if f.is_accuracy]
        if report.passed and wrong:  # somebody caught it: the test's own code, or torch's suppress_errors
            report.outcome = "failed"
            report.longrepr = "\n".join(
                ["cutaway: a compiled graph was wrong, and the test went on", *(f.text for f in wrong)]
            )
            failures = wrong
        properties: list[tuple[str, object]] = []
        if report.failed and failures:
            text, properties = self._account(item, failures)
            report.sections.append(("cutaway", text))
        if report.when == "teardown" and test.graphs + test.checked > 0:
            properties.append(("cutaway_graphs", str(test.graphs)))
            properties.append(("cutaway_calls_compared", str(test.checked)))
            if test.unchecked:
                properties.append(("cutaway_calls_not_compared", str(test.unchecked)))
            properties += [("cutaway_not_judged", reason) for reason in test.unjudged]
        # junit takes those of the last report, whose properties are the item's.
        item.user_properties.extend(properties)
        report.user_properties.extend(properties)
        return report

    def _account(self, item: pytest.Item, failures: list[Failure]) -> tuple[str, list[tuple[str, object]]]:
        """The first failure reduced, in words and as properties; the others by name."""
        from cutaway import _test_watch

        first = failures[0]
        seconds = self.config.getoption("--cutaway-seconds")
        properties: list[tuple[str, object]] = [("cutaway_failure", first.text)]
        lines = [f"failure        {first.text}", f"graph          {first.graph}, backend {first.backend}"]
        if first.place:
            lines.append(f"called at      {first.place}")
        script = ""
        if first.bundle is None:
            lines.append(f"no bundle      {first.problem or 'none was wanted'}")
        elif seconds == 0:
            lines += [
                f"bundle         {first.bundle}",
                f"next           {_test_watch.next_command('minify', first.bundle)}",
            ]
            properties.append(("cutaway_bundle", first.bundle))
        else:
            with self._quiet(item):
                small = _test_watch.reduce(first.bundle, seconds, 1 if self.is_worker else 2)
            lines += small.lines
            properties += [("cutaway_bundle", small.bundle)]
            if small.nodes:
                properties.append(("cutaway_reduced", small.nodes))
            if small.repro:
                properties.append(("cutaway_repro", small.repro))
                with open(small.repro, encoding="utf-8") as file:
                    script = file.read()
        for other in failures[1:]:
            lines.append(f"also           {other.text}   {other.bundle or other.problem}")
        if script:
            properties.append(("cutaway_repro_text", script))
            lines += ["", "----- repro.py, the graph and its inputs -----", *_heart(script)]
        return "\n".join(lines), properties

    def _quiet(self, item: pytest.Item) -> Any:
        """While a failure is reduced: no limit of time of the test's, and nothing on the terminal."""
        import contextlib

        manager = self.config.pluginmanager
        if manager.hasplugin("timeout"):
            item.ihook.pytest_timeout_cancel_timer(item=item)
        capture: Any = manager.getplugin("capturemanager")

        @contextlib.contextmanager
        def quiet() -> Generator[None, None, None]:
            if capture is None or capture.is_globally_capturing() is False:
                yield
                return
            capture.resume_global_capture()
            try:
                yield
            finally:
                capture.suspend_global_capture()
                capture.read_global_capture()

        return quiet()

    # ---- the terminal ----

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and not self.is_worker:
            ours = [(k, str(v)) for k, v in report.user_properties if k.startswith("cutaway_")]
            if ours:
                self.seen[report.nodeid] = ours

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        def total(key: str) -> int:
            return sum(int(v) for rows in self.seen.values() for k, v in rows if k == key)

        def counted(n: int, word: str) -> str:
            return f"{n} {word}{'' if n == 1 else 's'}"

        if not self.seen:
            terminalreporter.write_line("cutaway: no test compiled anything that is watched")
            return
        failed = {name: dict(rows) for name, rows in self.seen.items() if "cutaway_failure" in dict(rows)}
        left = total("cutaway_calls_not_compared")
        unjudged = sum(k == "cutaway_not_judged" for rows in self.seen.values() for k, _ in rows)
        terminalreporter.write_line(
            f"cutaway: {counted(len(self.seen), 'test')} compiled {counted(total('cutaway_graphs'), 'graph')}; "
            f"{counted(total('cutaway_calls_compared'), 'call')} compared with eager"
            + (f", {left} not (--cutaway-calls 0 compares every one)" if left else "")
            + (f", {unjudged} could not be judged" if unjudged else "")
            + f"; {counted(len(failed), 'failure')}"
        )
        for name, rows in failed.items():
            where = rows.get("cutaway_repro") or rows.get("cutaway_bundle") or "no bundle"
            terminalreporter.write_line(f"cutaway: {name}: {where}")
