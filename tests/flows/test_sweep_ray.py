"""`cutaway sweep --on ray`: a cluster of two nodes on this machine, one of which is killed. Runs where the package ray is installed (`pip install ray`)."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.support.patience import PATIENCE_S

pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(6 * PATIENCE_S)

WORDS = ["sweep", "--random", "24", "--backends", "eager,fault:wrong:aten.relu:by=0.5", "--json"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def raylets():
    """Process ids of the nodes, oldest first."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/raylet"):
                found.append((float((folder / "stat").read_text().rsplit(")", 1)[1].split()[19]), int(folder.name)))
        except OSError:
            continue
    return [pid for _, pid in sorted(found)]


@pytest.fixture
def cluster(tmp_path):
    """Two nodes; the address."""
    ray = str(pathlib.Path(sys.executable).with_name("ray"))
    port = free_port()
    variables = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}

    def start(*words):
        subprocess.run(
            [ray, "start", "--num-cpus=2", *words], env=variables, check=True, capture_output=True, timeout=PATIENCE_S
        )

    try:
        start("--head", f"--port={port}", "--include-dashboard=false")
        start(f"--address=127.0.0.1:{port}")
        yield f"127.0.0.1:{port}"
    finally:
        subprocess.run([ray, "stop", "--force"], env=variables, capture_output=True, timeout=PATIENCE_S, check=False)


def answers(found):
    cells = [(c["subject"], c["backend"], c["outcome"]) for c in found["cells"]]
    return cells, [(f["cells"], f["graph"]) for f in found["failures"]]


def test_a_cluster_that_loses_a_node_answers_as_one_machine(command, ask, cluster, tmp_path):
    here = ask(*WORDS, "-o", tmp_path / "here")
    assert here.code == 1, here.err
    run = subprocess.Popen(
        [command, *WORDS, "--on", "ray", "-j", "4", "-o", str(tmp_path / "there")],
        env={**os.environ, "RAY_ADDRESS": cluster},
        stdout=subprocess.PIPE,
        text=True,
    )
    journal = tmp_path / "there" / "sweep.jsonl"
    while run.poll() is None and not (journal.exists() and journal.read_text().count('{"cell"') >= 8):
        time.sleep(0.05)
    assert run.poll() is None, "it was over before a node could be lost"
    os.kill(raylets()[-1], signal.SIGKILL)
    out, _ = run.communicate(timeout=5 * PATIENCE_S)
    assert run.returncode == 1
    assert answers(json.loads(out)) == answers(here.json)
