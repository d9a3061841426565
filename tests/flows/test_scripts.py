"""How a script is started and what it starts: modules, standard input, processes, cutaway.compile, silence."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

from test_triage import environment, report_of

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

BACKEND = """
import torch

class Bad:
    def __init__(self, rank=None):
        self.rank = rank
    def __call__(self, gm, inputs):
        has = any(n.op.startswith("call") and "tanh" in str(n.target) for n in gm.graph.nodes)
        if has and (self.rank is None or torch.distributed.get_rank() == self.rank):
            raise NotImplementedError("no tanh")
        return gm.forward
"""


def run(folder: Path, *words: str, given: str = "") -> tuple[int, dict, str]:
    command = [find_command(), "triage", "--json", *words]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, cwd=folder, env=environment(), timeout=PATIENCE_S
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_a_module_that_reads_and_uses_cutaway_compile(tmp_path: Path) -> None:
    """-m, relative imports, arguments, standard input by a pipe, a live backend, and our own capture."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "backends.py").write_text(BACKEND)
    (tmp_path / "package" / "train.py").write_text(
        "import sys\nimport torch\nimport cutaway\nfrom .backends import Bad\n"
        'assert sys.argv[1:] == ["--steps", "2"] and sys.stdin.readline() == "first\\n" and sys.stdin.read() == "second\\n"\n'
        "bad = Bad()\n"
        "f = lambda x: torch.tanh(torch.sin(x) * 2).cos() + 1\n"
        "cutaway.compile(f, backend=lambda gm, inputs: bad(gm, inputs))(torch.randn(4, 6))\n"
    )
    status, report, said = run(tmp_path, "-m", "package.train", "--steps", "2", given="first\nsecond\n")
    assert status == 1, said
    assert report["signature"]["type"] == "NotImplementedError" and report["nodes_after"] == 1
    assert [(a["backend"], a["outcome"]) for a in report["ablation"]] == [
        ("eager", "pass"),
        ("capture", "pass"),
        ("aot_eager", "skipped"),
        ("live:lambda", "exception"),
    ]
    assert report["reproduced_rate"] == 1 and report["call"]["text"].startswith("cutaway.compile(f")


def test_a_script_from_standard_input(tmp_path: Path) -> None:
    text = (
        BACKEND
        + "import sys\nassert sys.argv == ['-', 'x']\ntorch.compile(torch.tanh, backend=Bad())(torch.randn(3))\n"
    )
    status, report, said = run(tmp_path, "-", "x", given=text)
    assert status == 1 and report["nodes_after"] == 1 and report["backend"].startswith("live:"), said


def test_ranks_of_torchrun(tmp_path: Path) -> None:
    """The failing rank is named, and its backend, which lives in it alone, reduces."""
    (tmp_path / "train.py").write_text(
        BACKEND
        + "torch.distributed.init_process_group('gloo')\n"
        + "torch.compile(lambda x: torch.tanh(x.sin()) + 1, backend=Bad(1))(torch.randn(3))\n"
        + "torch.distributed.barrier()\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port, "train.py")
    status, report, said = run(tmp_path, *words)
    assert status == 1, said
    assert report["process"] == "rank 1" and report["nodes_after"] == 1 and report["backend"] == "live:Bad"


def test_silence_outside_of_compiled_code(tmp_path: Path) -> None:
    text = """
        import time
        import torch

        torch.compile(lambda x: x.sin() + 1, backend=lambda gm, inputs: gm.forward)(torch.randn(3))
        time.sleep(1000)
    """
    status, report = report_of(tmp_path, text, options=("--timeout", "4"))
    assert status == 4 and "outside of compiled code" in report["message"]


def test_torchs_variables_name_a_command_that_works(tmp_path: Path) -> None:
    """Also for cutaway.compile, and for a backend that only the program has."""
    (tmp_path / "train.py").write_text(
        BACKEND + "import cutaway\ncutaway.compile(lambda x: torch.tanh(x.sin()) + 1, backend=Bad())(torch.randn(3))\n"
    )
    variables = {"TORCHDYNAMO_REPRO_AFTER": "dynamo", "TORCHDYNAMO_REPRO_LEVEL": "2"}
    done = subprocess.run(
        [environment()["CUTAWAY_PYTHON"], "train.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environment(), **variables},
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    words = done.stderr.rstrip().splitlines()[-1].split()
    assert words[:2] == ["cutaway", "minify"] and words[-1] == "--trust", done.stderr
    again = subprocess.run(
        [find_command(), *words[1:], "--json", "-o", str(tmp_path / "small")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={k: v for k, v in environment().items() if k not in os.environ or k != "CUTAWAY_STRICT"},
        timeout=PATIENCE_S,
    )
    assert again.returncode == 0 and json.loads(again.stdout)["nodes_after"] == 1, again.stderr


def test_a_folder_in_latin_1_and_an_exception_without_text(tmp_path: Path) -> None:
    """`python app` runs app/__main__.py, whose source says how it is encoded; the backend's own exception cannot say its text."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "odd.py").write_text(
        "class Odd(Exception):\n    def __str__(self): raise RuntimeError('no text')\n    __repr__ = __str__\n"
    )
    script = """# -*- coding: latin-1 -*-
import sys, torch
from odd import Odd
assert len("Größe") == 5 and sys.path[0].endswith("app") and sys.argv == ["app"], sys.argv

class Bad:
    def __call__(self, gm, inputs):
        if any(n.target is torch.tanh for n in gm.graph.nodes): raise Odd("a", 1)
        return gm.forward

torch.compile(lambda x: torch.tanh(torch.sin(x)), backend=Bad())(torch.randn(4))
"""
    (app / "__main__.py").write_bytes(script.encode("latin-1"))
    status, report, said = run(tmp_path, "app")
    assert status == 1, said
    assert report["signature"]["type"] == "Odd" and report["nodes_after"] == 1 and report["reproduced_rate"] == 1
