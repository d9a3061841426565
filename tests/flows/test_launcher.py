"""How many times `cutaway triage` loads Python and torch, which is most of what its user waits for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

SCRIPT = """
import os, torch

def bad(gm, examples):
    if BEFORE: os.environ[BEFORE] = "1"
    if any("tanh" in str(n.target) for n in gm.graph.nodes): raise NotImplementedError("no tanh")
    return gm.forward

def wrong(gm, examples):
    return lambda *a: tuple(o + 1 for o in gm(*a))

torch.compile(lambda x: torch.tanh(x) * 2, backend=BACKEND)(torch.ones(3))
"""
TELL = """
import os, sys
with open(os.environ["STARTED"], "a") as file:
    file.write(" ".join(" ".join(sys.orig_argv[1:]).split()) + "\\n")
"""


@pytest.fixture
def triage(command, tmp_path):
    """Runs the script; its answer, and the words of every Python that was started."""
    (tmp_path / "tell").mkdir()
    (tmp_path / "tell" / "sitecustomize.py").write_text(TELL)

    def run(backend, before="", jobs=1, **variables):
        (tmp_path / "train.py").write_text(SCRIPT.replace("BACKEND", backend).replace("BEFORE", repr(before)))
        started = tmp_path / "started"
        started.write_text("")
        path = os.pathsep.join(p for p in (str(tmp_path / "tell"), os.environ.get("PYTHONPATH", "")) if p)
        env = {**os.environ, "PYTHONPATH": path, "STARTED": str(started), "CUTAWAY_PYTHON": sys.executable, **variables}
        words = [command, "triage", "--json", "-j", str(jobs), "train.py"]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1, done.stderr
        return json.loads(done.stdout), started.read_text().splitlines()

    return run


@pytest.mark.parametrize("backend", ["bad", "wrong"])
def test_torch_is_loaded_once_and_for_repro(triage, backend):
    report, started = triage(backend)
    assert report["nodes_after"] == 1 and report["reproduced_rate"] == 1
    assert len(started) == 2 and started[0] == "-m cutaway._launch" and Path(started[1]).name == "repro.py"


def test_with_two_cores_the_python_of_repro_loads_beside_the_search(triage, tmp_path):
    """It is a process of its own, with nothing of the search in it."""
    report, started = triage("bad", jobs=2)
    assert report["nodes_after"] == 1 and report["reproduced_rate"] == 1
    assert len(started) == 2 and started[0] == "-m cutaway._launch" and started[1].startswith("-P -c ")
    proof = json.loads((tmp_path / report["bundle"] / "certificate.json").read_text())
    assert proof["repro"]["outcome"] == "same failure" and proof["repro"]["ending"] == "exit status 1"


def test_variables_that_torch_reads_while_it_loads(triage):
    """The worker must have what the script has set: it is a process of its own then."""
    report, started = triage("bad", before="TORCHINDUCTOR_CPP_WRAPPER")
    assert report["nodes_after"] == 1
    assert any("cutaway.worker" in words for words in started)


def test_a_launcher_that_cannot_serve(triage, tmp_path):
    """Then everything is started by itself, and the answer is the same."""
    (tmp_path / "tell" / "sitecustomize.py").write_text(TELL + "if 'CUTAWAY_LAUNCH_FD' in os.environ: os._exit(1)\n")
    report, started = triage("bad")
    assert report["nodes_after"] == 1
    assert [w.split()[1].rpartition(".")[2] for w in started if w.startswith("-m")][:3] == [
        "_launch",
        "observe",
        "worker",
    ]
