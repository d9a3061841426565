"""A fixed part of the planted operators of tests/flows/debugger/analyze_table.py. `make test-debugger` runs all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.debugger.analyze_table import CASES, PART
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_there_are_fifty() -> None:
    assert len(CASES) >= 50 and set(PART) <= set(CASES)
    assert sum(case.backend == "inductor" for case in CASES.values()) >= 25


@pytest.mark.parametrize("name", PART)
def test_the_guilty_node_is_named(name: str, tmp_path: Path) -> None:
    """In a process of its own: it forks, and spoils Inductor."""
    words = [sys.executable, "-m", "tests.flows.debugger.analyze_table", "--only", name, "--keep", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and "1 cases, 1 right" in done.stdout, done.stdout + done.stderr[-2000:]
