"""Every third planted case of cases.py: the verdict, the size of the result and its repro are right. `make test-debugger` runs them all."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402
import table  # noqa: E402


@pytest.mark.parametrize("name", table.third())
def test_case(name, tmp_path):
    answer = table.triage(cases.CASES[name], tmp_path / "run")
    assert not answer.problem, (answer, os.listdir(tmp_path / "run"))
