"""A fixed part of the planted cases of tests/debugger: one of each group. `make test-debugger` runs all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "debugger"))
import table
from cases import CASES

FIXED = [
    "mlp-crashes-tanh-object-script",
    "mlp-wrong-tanh-closure-script",
    "mlp-raises-tanh-function-autocast",
    "conv-raises-relu-aot-script",
]


def test_there_are_enough() -> None:
    assert len(CASES) >= 120 and set(FIXED) <= set(CASES)


@pytest.mark.parametrize("name", FIXED)
def test_planted(tmp_path: Path, name: str) -> None:
    answer = table.triage(CASES[name], tmp_path / "case")
    assert not answer.problem, (tmp_path / "case" / "stderr.txt").read_text()[-2000:]
