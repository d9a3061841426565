"""Ways in which a backend ends the process instead of returning: each is told by its name and leaves a bundle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_triage import environment, report_of

from tests.support.patience import PATIENCE_S

LEVELS = """
import os, sys, traceback
import torch
import cutaway

class Odd(BaseException):
    pass

def leave(how):
    if how == "sys.exit":
        sys.exit(3)
    if how == "KeyboardInterrupt":
        raise KeyboardInterrupt
    if how == "BaseException":
        raise Odd("odd")
    if how == "os._exit":
        os._exit(0)

def make(how, when):
    def backend(gm, inputs):
        def run(*values):
            leave(how)
            return gm(*values)
        if when == "compiling":
            leave(how)
        return run
    return backend

def go(level, how, when, folder):
    watched = cutaway.debug(make(how, when), level=level, base_dir=folder, minify=False)
    torch.compile(lambda x: torch.tanh(x) + 1, backend=watched)(torch.randn(4))

torch.compile(lambda x: torch.tanh(x) + 1, backend="eager")(torch.randn(4))  # loads what the children share
for level in (2, 3, 4):
    for how in ("sys.exit", "KeyboardInterrupt", "BaseException", "os._exit"):
        for when in ("compiling", "running"):
            folder = os.path.join(sys.argv[1], f"{level}-{how}-{when}")
            torch._dynamo.reset()
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                continue
            try:
                go(level, how, when, folder)
            except BaseException as error:
                assert os.path.isdir(error.minifier_path), error
            finally:
                sys.stderr.flush()
                os.kill(os.getpid(), 9)
"""


def test_at_every_level(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(LEVELS)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    named = {
        "sys.exit": ("exception", "SystemExit"),
        "KeyboardInterrupt": ("exception", "KeyboardInterrupt"),
        "BaseException": ("exception", "Odd"),
        "os._exit": ("crash", "exit 0"),
    }
    for level in (2, 3, 4):
        for how, expected in named.items():
            for when in ("compiling", "running"):
                found = list((tmp_path / f"{level}-{how}-{when}").glob("checkpoints/*/manifest.json"))
                assert found, (level, how, when, done.stderr)
                failure = json.loads(found[0].read_text())["failure"]
                assert (failure["kind"], failure.get("type") or failure.get("signal")) == expected, (level, how, when)


BEGIN = """
import os, sys, threading, time
import torch

def has(gm):
    return any(n.op == "call_function" and n.target is torch.tanh for n in gm.graph.nodes)
"""
END = """
def f(x):
    return torch.tanh(torch.sin(x) * 2).cos() + 1

torch.compile(f, backend=bad)(torch.randn(4, 6))
"""


@pytest.mark.parametrize("kind", ["a child that fails in the backend", "a thread that does not end"])
def test_what_a_backend_leaves_behind(tmp_path: Path, kind: str) -> None:
    if kind.startswith("a child"):  # it comes out of the backend a second time, in another process
        body = """
def bad(gm, inputs):
    if has(gm):
        child = os.fork()
        if child == 0:
            raise ValueError("in the child")
        os.waitpid(child, 0)
        raise ValueError("in the parent")
    return gm.forward
"""
        status, report = report_of(tmp_path, BEGIN + body + END)
        assert status == 1 and report["signature"]["message"] == "in the parent", report
        assert report["nodes_after"] == 1
        return
    body = """
def bad(gm, inputs):
    if has(gm):
        threading.Thread(target=time.sleep, args=(1e6,), name="compile-pool").start()
    return gm.forward
"""
    status, report = report_of(tmp_path, BEGIN + body + END)
    assert status == 1 and report["kind"] == "hang", report
    assert "compile-pool" in report["message"] and report["bundle"]
