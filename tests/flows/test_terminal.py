"""Standard streams: what somebody types at a terminal reaches the script, in every run of it; outputs that are closed or full."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import termios

import pytest
from test_triage import environment

from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

SCRIPT = """
import torch

word = input()

def backend(gm, inputs):
    if word == "fail" and any(n.target is torch.tanh for n in gm.graph.nodes):
        raise ValueError("no " + word)
    return gm.forward

torch.compile(lambda x: torch.tanh(torch.sin(x)), backend=backend)(torch.ones(3))
"""


def controlled_by(terminal):
    """Its own session with that terminal, as a shell has it; in the foreground."""

    def prepare():
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    return prepare


@pytest.mark.parametrize("is_controlling", [True, False])
def test_what_is_typed_reaches_every_run(is_controlling, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [find_command(), "triage", "--json", "--timeout", "60", "script.py"],
        cwd=tmp_path,
        env=environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=controlled_by(theirs) if is_controlling else os.setsid,
    )
    os.close(theirs)
    try:
        os.write(ours, b"fail\n")
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == 1, err
    report = json.loads(out)
    assert report["signature"]["message"] == "no fail"
    assert report["nodes_after"] == 1


def test_an_answer_that_cannot_be_written_is_none(tmp_path):
    """A full disk behind standard output; and where it is closed, no file of the command's own takes its place."""
    graph = tmp_path / "g.cut"
    graph.write_text("cutaway graph 1\ngraph g(%x: f32[2]) {\n  %y: f32[2] = aten.sin(%x)\n  return (%y)\n}\n")
    words = [find_command(), "show", "--json", str(graph)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and done.stderr.startswith("cutaway: standard output: the answer cannot be written")
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, text=True, timeout=PATIENCE_S)
    assert closed.returncode == 0 and not closed.stderr
