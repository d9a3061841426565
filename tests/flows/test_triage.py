"""cutaway triage on small scripts: one of each way to fail, and scripts that are not the compiler's fault."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import cutaway

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

PACKAGE = Path(cutaway.__file__).parent


def environment() -> dict[str, str]:
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "CUTAWAY_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def triage(folder: Path, text: str, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(text).lstrip())
    command = [find_command(), "triage", *options, str(script), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(), timeout=PATIENCE_S)


def report_of(folder: Path, text: str, *words: str, options: tuple[str, ...] = ()) -> tuple[int, dict]:
    done = triage(folder, text, *words, options=("--json", *options))
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_backend_that_raises(tmp_path: Path) -> None:
    status, report = report_of(
        tmp_path,
        """
        import sys
        import torch

        def picky(gm, inputs):
            for node in gm.graph.nodes:
                if node.target is torch.relu:
                    raise NotImplementedError("no relu here")
            return gm

        @torch.compile(backend=picky)
        def f(x):
            for _ in range(5):
                x = torch.sin(x) + 1
            return torch.relu(x).cos()

        assert sys.argv[1:] == ["--steps", "3"], sys.argv
        f(torch.randn(4, 4))
        """,
        "--steps",
        "3",
    )
    assert status == 1
    assert (report["outcome"], report["kind"], report["stage"]) == ("failure", "exception", "backend")
    assert report["signature"]["type"] == "NotImplementedError"
    assert report["nodes_after"] == 1 and report["nodes_before"] > 10 and report["one_minimal"] is True
    assert report["first_wrong"]["operator"] == "torch.relu"
    assert "script.py:14" in report["first_wrong"]["source"]
    assert report["call"]["text"] == "f(torch.randn(4, 4))"
    assert [(a["backend"], a["outcome"]) for a in report["ablation"]] == [
        ("eager", "pass"),
        ("aot_eager", "skipped"),
        ("source:picky", "exception"),
    ]
    assert (tmp_path / report["bundle"] / "ablation.json").is_file()
    assert (tmp_path / report["report"]).is_file()
    certificate = json.loads((tmp_path / report["bundle"] / "certificate.json").read_text())
    assert certificate["clean_process"]["outcome"] == "same failure"
    assert certificate["repro"]["outcome"] == "same failure" and certificate["repro"]["ending"] == "exit status 1"
    alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    again = subprocess.run(
        [sys.executable, str(tmp_path / report["repro"])], capture_output=True, text=True, env=alone, timeout=PATIENCE_S
    )
    assert again.returncode == 1 and "no relu here" in again.stderr + again.stdout


def test_wrong_numbers(tmp_path: Path) -> None:
    status, report = report_of(
        tmp_path,
        """
        import torch

        def careless(gm, inputs):
            class Run(torch.fx.Interpreter):
                def call_function(self, target, args, kwargs):
                    result = super().call_function(target, args, kwargs)
                    return result + 0.5 if target is torch.tanh else result

            return Run(gm).run

        f = torch.compile(lambda x: (torch.tanh(x.sin() * 3) + 1).exp(), backend=careless)
        f(torch.randn(8))
        """,
    )
    assert status == 1
    assert (report["outcome"], report["kind"], report["stage"]) == ("failure", "accuracy", "backend")
    assert report["nodes_after"] == 1 and report["first_wrong"]["operator"] == "torch.tanh"
    # Of the whole graph, by analysis, so that it has numbers.
    assert report["first_wrong"]["reason"] and (tmp_path / report["analysis"]).is_file()


def test_inductors_wrong_numbers_are_found_after_aot(tmp_path: Path) -> None:
    status, report = report_of(
        tmp_path,
        """
        import torch
        import torch._inductor.config

        torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"

        @torch.compile
        def f(x, w):
            return torch.relu((x @ w).sin()) * 2

        f(torch.randn(4, 4), torch.randn(4, 4))
        """,
        options=("-o", "out"),
    )
    assert status == 1
    assert (report["outcome"], report["kind"], report["stage"]) == ("failure", "accuracy", "backend")
    assert (tmp_path / "out/observed_accuracy_after_aot").is_dir()
    assert not (tmp_path / "out/observed_accuracy").exists(), "after capture nobody had to look"
    assert report["first_wrong"]["operator"] == "aten.relu" and report["first_wrong"]["kernel"].startswith("cpp_fused")
    assert "script.py:8" in report["first_wrong"]["source"]
    assert report["nodes_after"] == 1 and "aten.relu" in report["graph"]


SEGFAULT = """
    import ctypes
    import torch

    def deadly(gm, inputs):
        class Run(torch.fx.Interpreter):
            def call_function(self, target, args, kwargs):
                if target is torch.tanh:
                    ctypes.string_at(0)
                return super().call_function(target, args, kwargs)

        return Run(gm).run

    f = torch.compile(lambda x: (torch.tanh(x.sin() * 3) + 1).exp(), backend=deadly)
    f(torch.randn(8))
    """


def test_a_segfault(tmp_path: Path) -> None:
    done = triage(tmp_path, SEGFAULT, options=("-o", "out"))
    assert done.returncode == 1, done.stderr + done.stdout
    assert "CRASH" in done.stdout and "SIGSEGV" in done.stdout and "torch.tanh" in done.stdout
    assert "one-minimal" in done.stdout
    last = done.stdout.rstrip().splitlines()[-1]
    assert last.startswith("attach") and "out/minimal/repro.py" in last
    repro = subprocess.run(
        [sys.executable, str(tmp_path / "out/minimal/repro.py")], capture_output=True, timeout=PATIENCE_S
    )
    assert repro.returncode == -signal.SIGSEGV


def test_no_failure(tmp_path: Path) -> None:
    done = triage(
        tmp_path,
        """
        import torch

        f = torch.compile(lambda x: torch.tanh(x).sin(), backend="aot_eager")
        print("what the script prints")
        f(torch.randn(8))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no failure in 1 graph")
    assert "what the script prints" not in done.stdout


def test_a_failure_of_the_capture_has_no_graph(tmp_path: Path) -> None:
    text = """
        import torch

        @torch.compile(fullgraph=True, backend="aot_eager")
        def f(x):
            y = x.sin()
            torch._dynamo.graph_break()
            return y

        f(torch.ones(3))
        """
    status, report = report_of(tmp_path, text)
    assert status == 1
    assert (report["outcome"], report["stage"], report["kind"]) == ("failure", "capture", "exception")
    assert report["nodes_before"] is None and report["nodes_after"] is None and report["bundle"] is None
    assert report["line"]["text"] == "torch._dynamo.graph_break()" and report["line"]["line"] == 6
    assert "def f(x):" in report["frame_source"]
    assert report["ablation"][0]["outcome"] == "pass"


def test_a_script_that_checks_its_own_numbers(tmp_path: Path) -> None:
    """Its complaint is outside of torch.compile, and still the compiler's fault: without torch.compile there is none."""
    status, report = report_of(
        tmp_path,
        """
        import torch

        def careless(gm, inputs):
            return lambda *values: [v + 0.5 for v in gm(*values)]

        def f(x):
            return torch.tanh(x)

        x = torch.randn(8)
        assert torch.allclose(f(x), torch.compile(f, backend=careless)(x)), "these numbers are wrong"
        """,
    )
    assert status == 1
    assert (report["outcome"], report["kind"]) == ("failure", "accuracy")


def test_processes_of_the_script_are_watched(tmp_path: Path) -> None:
    status, report = report_of(
        tmp_path,
        """
        import subprocess
        import sys

        child = "import torch; torch.compile(lambda x: x.sin() + 1, backend=lambda gm, inputs: 1 / 0)(torch.ones(2))"
        sys.exit(subprocess.run([sys.executable, "-c", child]).returncode)
        """,
    )
    assert status == 1, report
    assert report["process"] == "process -c" and report["signature"]["type"] == "ZeroDivisionError"
    assert report["nodes_after"] == 1 and report["reproduced_rate"] == 1


def test_the_scripts_own_exception(tmp_path: Path) -> None:
    done = triage(
        tmp_path,
        """
        import torch

        torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))

        def broken():
            raise ValueError("my own mistake")

        broken()
        """,
    )
    assert done.returncode == 4
    assert "the script itself raises" in done.stdout
    assert "ValueError: my own mistake" in done.stdout and "in broken" in done.stdout
    assert "observe.py" not in done.stdout and "runpy" not in done.stdout


def test_ill_conditioned_is_said_with_its_numbers(tmp_path: Path) -> None:
    script = """
        import torch

        def other_rounding(gm, inputs):
            return lambda *a: tuple(o.float() for o in gm.forward(*[t.double() * (1 + 3e-8) for t in a]))

        torch.compile(lambda x: torch.sin(x * 1e6), backend=other_rounding)(torch.linspace(0.3, 0.9, 200))
        """
    code, report = report_of(tmp_path, script)
    assert code == 0 and report["stage"] is None, report
    assert "graph_0 is ill-conditioned: output 0: RMSE to fp64 is" in report["message"]


CLOSER = """
    import torch

    def precise(gm, inputs):
        return lambda *a: tuple(o.float() for o in gm.forward(*[t.double() for t in a]))

    def f(x):
        return (x + 1e5) - 1e5

    x = torch.rand(200)
    """


def test_what_is_closer_to_fp64_than_eager_is_said(tmp_path: Path) -> None:
    call = "torch.compile(f, backend=precise)(x)\n"
    done = triage(tmp_path, textwrap.dedent(CLOSER) + call)
    assert done.returncode == 0, done.stdout + done.stderr
    said = "graph_0 differs from eager and is closer to fp64 than eager is, not a failure: output 0: RMSE to fp64 is "
    line = done.stdout.splitlines()[0]
    assert line.startswith("no failure in 1 graph: " + said), done.stdout
    numbers = [float(word) for word in re.findall(r"is (\S+) for the result and (\S+) for the reference", line)[0]]
    assert numbers[0] < 1e-6 < 1e-3 < numbers[1]


def test_what_is_closer_to_fp64_than_eager_for_programs(tmp_path: Path) -> None:
    """Also where the script takes it for an error: then it is said what the difference is."""
    call = "assert torch.allclose(torch.compile(f, backend=precise)(x), f(x), atol=1e-6), 'not as eager'\n"
    code, report = report_of(tmp_path, textwrap.dedent(CLOSER) + call)
    assert code == 3 and report["outcome"] == "other_failure"
    assert [(j["graph"], j["outcome"]) for j in report["judged"]] == [("graph_0", "closer to fp64")]
    assert report["judged"][0]["reason"] in report["message"] and "not a failure" in report["message"]
    assert "every graph agrees" not in report["message"]


def test_a_failure_that_needs_earlier_calls(tmp_path: Path) -> None:
    """As graphs of a card do, which are recorded in one call and replayed in later ones. The bundle and repro.py make the calls before it."""
    script = """
        import torch

        def replays(gm, inputs):
            calls = []

            def run(*a):
                calls.append(1)
                return tuple(o * 1.5 if len(calls) >= 3 and CONDITION else o for o in gm.forward(*a))

            return run

        step = torch.compile(lambda x: torch.sin(torch.cos(x)) + 1, backend=replays)
        for _ in range(4):
            step(torch.ones(4))
        """.replace("CONDITION", 'any("sin" in str(n.target) for n in gm.graph.nodes)')
    code, report = report_of(tmp_path, script)
    assert code == 1 and report["kind"] == "accuracy" and report["nodes_after"] == 1 and report["reproduced_rate"] == 1
    bundle = Path(report["bundle"])
    assert json.loads((tmp_path / bundle / "manifest.json").read_text())["process"]["calls"] == "3"
    proof = json.loads((tmp_path / bundle / "certificate.json").read_text())
    assert proof["repro"]["outcome"] == "same failure"


def test_nobody_is_blamed_without_proof(tmp_path: Path) -> None:
    """Only the fortieth call in the script's own process is wrong."""
    script = """
        import torch

        CALLS = []

        def worn_out(gm, inputs):
            def run(*a):
                CALLS.append(1)
                return tuple(o * 1.5 if len(CALLS) == 40 else o for o in gm.forward(*a))

            return run

        step = torch.compile(lambda x: torch.sin(x) + 1, backend=worn_out)
        for _ in range(50):
            step(torch.ones(4))
        """
    done = triage(tmp_path, script)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "not located" in done.stdout and "guilty" not in done.stdout and "attach" not in done.stdout
    assert re.search(r"it passed (\d\d) of \1 runs", done.stdout) and "compiled twice in one process" in done.stdout
    assert "the smallest thing that still fails is script.py" in done.stdout


def test_wrong_usage(tmp_path: Path) -> None:
    command = find_command()
    done = subprocess.run(
        [command, "triage", "absent.py"], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S
    )
    assert done.returncode == 2 and done.stderr.startswith("cutaway: absent.py: there is no such script")
    done = subprocess.run([command, "triage", "--jsn", "x.py"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and "triage has no option --jsn" in done.stderr
