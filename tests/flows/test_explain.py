"""cutaway explain: a script runs as always, and the report tells graphs, breaks and recompiles with the user's lines."""

import json
import subprocess
import textwrap

import pytest

from tests.support.command import find_command

COMMAND = find_command()

SCRIPT = """
import sys
import torch

@torch.compile(dynamic=False)
def step(x):
    y = torch.sin(x)
    print("seen")
    return y + 1

for size in (2, 3):
    step(torch.ones(size))
sys.exit(int(sys.argv[1]))
"""


def explain(*words):
    return subprocess.run([COMMAND, "explain", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "steps.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def test_report(script):
    done = explain(str(script), "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("seen") >= 2
    assert 'print("seen")' in done.stdout and "steps.py:8" in done.stdout
    assert "`x.shape[0]` was 2, is 3 (steps.py:" in done.stdout
    assert "breaks: 2" in done.stdout


def test_json_and_the_scripts_own_status(script):
    done = explain("--json", str(script), "3")
    assert done.returncode == 3
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["breaks"] == 2 and report["graphs"] == 4
    assert any(r["reason"] and r["reason"]["id"] == "print" for r in report["records"])


def test_wrong_usage():
    done = explain()
    assert done.returncode == 2 and "a script is missing" in done.stderr
