"""Backends that no other process has a name for: the program runs again up to the failing compilation, and serves there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_triage import environment, report_of

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

BEGIN = """
import torch

def rejects(gm, word):
    if any(n.op == "call_function" and n.target is torch.tanh for n in gm.graph.nodes):
        raise ValueError(word)
    return gm.forward
"""
END = """
def f(x):
    return torch.tanh(torch.sin(x) * 2).cos() + 1

torch.compile(f, backend=bad)(torch.randn(4, 6))
"""
KINDS = {  # closures, lambdas, partials, methods and registered names are among the planted cases (test_debugger_cases.py)
    "instance": """
class Backend:
    def __init__(self, word):
        self.word, self.calls = word, []
    def __call__(self, gm, inputs):
        self.calls.append(gm)
        return rejects(gm, self.word)
bad = Backend("no tanh")
""",
    "aot_autograd": """
from torch._dynamo.backends.common import aot_autograd
def forward(gm, inputs):
    for n in gm.graph.nodes:
        if n.target is torch.ops.aten.tanh.default:
            n.args[0].meta["val"].shape
            raise ValueError("no tanh")
    return gm.forward
bad = aot_autograd(fw_compiler=forward)
""",
}


def alone(repro: Path) -> subprocess.CompletedProcess[str]:
    """repro.py with torch alone: Cutaway is not to be found."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run([sys.executable, str(repro)], capture_output=True, text=True, env=kept, timeout=PATIENCE_S)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_only_the_program_has(tmp_path: Path, kind: str) -> None:
    status, report = report_of(tmp_path, BEGIN + KINDS[kind] + END)
    assert status == 1, report
    assert (report["kind"], report["stage"]) == ("exception", "backend")
    assert report["backend"].startswith("live:") and report["message"] is not None
    assert report["nodes_after"] == 1 and report["one_minimal"] and report["reproduced_rate"] == 1
    text = (tmp_path / report["repro"]).read_text()
    assert (
        "BACKEND = None" in text
        and 'BACKEND = "eager"' not in text
        and "This file carries the text of script.py" in text
    )
    for name in ("repro.py", "graph.cut", "report.html"):  # what one attaches
        assert str(tmp_path) not in (tmp_path / report["bundle"] / name).read_text(), name
    again = alone(tmp_path / report["repro"])
    assert again.returncode == 1 and "no tanh" in again.stderr


def test_every_command_runs_the_program(tmp_path: Path) -> None:
    """The bundle names it, --trust lets it run; where the script is gone, its text in the bundle will do."""
    status, report = report_of(tmp_path, BEGIN + KINDS["instance"] + END)
    assert status == 1
    whole = next((tmp_path / report["directory"] / "observed" / "checkpoints").iterdir())
    program = json.loads((whole / "manifest.json").read_text())["extra"]["program"]
    assert program["path"] == str(tmp_path / "script.py") and program["compilation"] == 1

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [find_command(), *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
            timeout=PATIENCE_S,
        )

    refused = run("run", str(whole))
    assert refused.returncode == 2 and "runs the program that it comes from" in refused.stderr
    (tmp_path / "script.py").unlink()
    assert run("run", str(whole), "--trust").returncode == 1
    small = run("minify", str(whole), "--trust", "--json", "-o", "small")
    assert small.returncode == 0 and json.loads(small.stdout)["nodes_after"] == 1, small.stderr


def test_state_of_the_program_that_the_source_text_lacks(tmp_path: Path) -> None:
    """Alone the backend's text passes: what the program did before is only in its own process."""
    status, report = report_of(
        tmp_path,
        """
        import torch
        import torch._dynamo.config

        def bad(gm, inputs):
            if torch._dynamo.config.debug_dir_root == "changed" and len(gm.graph.nodes) > 3:
                raise RuntimeError("this setting is not supported")
            return gm.forward

        torch._dynamo.config.debug_dir_root = "changed"
        torch.compile(lambda x: x.sin().cos() + 1, backend=bad)(torch.randn(4))
        """,
    )
    assert status == 1, report
    assert [(a["backend"], a["outcome"]) for a in report["ablation"]][-2:] == [
        ("source:bad", "pass"),
        ("live:bad", "exception"),
    ]
    assert report["nodes_after"] < report["nodes_before"] and report["reproduced_rate"] == 1


def test_a_replay_that_fails_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered 3 and not taken for the failure, however the backend is reached."""
    monkeypatch.setenv("TIMES", str(tmp_path / "times"))
    status, report = report_of(
        tmp_path,
        """
        import os
        import torch

        def bad(gm, inputs):
            with open(os.environ["TIMES"], "a+") as file:
                file.write("x")
                times = file.tell()
            raise RuntimeError("in the script" if times == 1 else "in a replay")

        torch.compile(lambda x: x.sin(), backend=bad)(torch.randn(4))
        """,
    )
    assert status == 3 and report["outcome"] == "other_failure"
    assert report["signature"]["message"] == "in the script" and "in a replay" in report["message"]
    assert report["nodes_after"] is None


CUSTOM = """
import torch

@torch.library.custom_op("of_a_script::scale", mutates_args=())
def scale(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k

@scale.register_fake
def _(x, k):
    return torch.empty_like(x)

def bad(gm, inputs):
    class Run(torch.fx.Interpreter):
        def run_node(self, node):
            result = super().run_node(node)
            return result * 1.1 if "of_a_script" in str(node.target) else result
    return Run(gm).run

f = lambda x: scale(torch.sin(x) + 1, 2.0).cos() + torch.tanh(x)
torch.compile(f, backend=bad)(torch.randn(6, 6))
"""


def test_operators_that_the_script_defines(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    count = 'import os\nwith open(os.environ["RUNS"], "a") as runs:\n    runs.write("run ")\n'
    status, report = report_of(tmp_path, count + CUSTOM)
    assert status == 1, report
    assert (tmp_path / "runs").read_text().split() == ["run"] * 3  # exceptions, numbers, repro.py
    assert report["kind"] == "accuracy" and report["nodes_after"] == 1 and "of_a_script.scale" in report["graph"]
    assert report["first_wrong"]["operator"] == "of_a_script.scale"
    manifest = json.loads((tmp_path / report["bundle"] / "manifest.json").read_text())
    assert manifest["extra"]["program"]["path"] == str(tmp_path / "script.py")
    assert alone(tmp_path / report["repro"]).returncode == 1
    for words in (
        ["run", report["bundle"]],
        ["analyze", report["bundle"]],
        ["run", report["bundle"], "--backend", "aot_eager"],
    ):
        done = subprocess.run(
            [find_command(), *words, "--trust", "--json"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
            timeout=PATIENCE_S,
        )
        assert json.loads(done.stdout)["outcome"] in ("failure", "pass"), done.stderr


def test_what_graphs_carry(tmp_path: Path) -> None:
    """A backend that looks at what torch's graphs carry sees the same in a candidate."""
    status, report = report_of(
        tmp_path,
        """
        import torch

        def bad(gm, inputs):
            for n in gm.graph.nodes:
                if n.op != "call_function":
                    continue
                value = n.meta["example_value"]
                assert value.shape == n.meta["example_value"].shape and "script.py" in n.meta["stack_trace"]
                assert torch._guards.detect_fake_mode() is not None
                name, target = n.meta["source_fn_stack"][-1]
                if n.target is torch.tanh and n.args[0].meta["example_value"].shape[0] < value.shape[1]:
                    raise ValueError("rows < columns")
            return gm.forward

        torch.compile(lambda x: torch.tanh(x.sin() * 2).cos(), backend=bad)(torch.randn(5, 8))
        """,
    )
    assert status == 1, report
    assert report["signature"]["message"] == "rows < columns"
    assert report["nodes_after"] == 1 and report["elements_after"] == 2


def test_a_failure_that_needs_no_node(tmp_path: Path) -> None:
    text = """
        import torch

        torch.compile(lambda x: torch.tanh(x.sin() * 2).cos(), backend=lambda gm, inputs: None)(torch.randn(5, 8))
        """
    status, report = report_of(tmp_path, text)
    assert status == 1 and report["nodes_after"] == 1 and report["needs_no_node"] is True
    assert report["signature"]["message"] == "compiler_fn did not return callable"
    assert alone(tmp_path / report["repro"]).returncode == 1


COUNTED = """
import os
with open(os.environ["RUNS"], "a") as runs:
    runs.write("run ")

{threads}
class Backend:
    def __init__(self, factor):
        self.factor = factor
    def __call__(self, gm, inputs):
        class Wrong(torch.fx.Interpreter):
            def call_function(inner, target, args, kwargs):
                out = super().call_function(target, args, kwargs)
                return out * self.factor if target is torch.tanh else out
        return lambda *values: Wrong(gm).run(*values)
bad = Backend(1.5)
x = torch.randn(300, 300)
(x @ x).exp().sum()  # a parallel region, where there is more than one thread
"""
A_THREAD = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.parametrize(
    ("threads", "runs"), [("", 3), (A_THREAD, 4)], ids=["a copy serves", "threads: the script runs again and serves"]
)
def test_trials_are_forked_from_the_failing_run(threads, runs, tmp_path, monkeypatch):
    """Once for exceptions, once for numbers, once as repro.py."""
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    status, report = report_of(tmp_path, BEGIN + COUNTED.format(threads=threads) + END)
    assert status == 1, report
    assert report["first_wrong"]["operator"] == "torch.tanh"
    assert (report["nodes_after"], report["elements_after"]) == (1, 1)
    certificate = json.loads((Path(tmp_path, report["bundle"]) / "certificate.json").read_text())
    assert certificate["verified"] and certificate["clean_process"]["outcome"] == "same failure", certificate
    assert (tmp_path / "runs").read_text().split() == ["run"] * runs
