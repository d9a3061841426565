"""The fixed third of the planted cases of tests/flows/debugger. `make test-debugger` runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.debugger import table
from tests.flows.debugger.cases import CASES, FORMS, KINDS, MODELS, STARTS, THIRD
from tests.support.patience import PATIENCE_S


def test_the_third_has_everything() -> None:
    assert len(CASES) >= 120 and set(THIRD) <= set(CASES) and 3 * len(set(THIRD)) >= len(CASES)
    chosen = [CASES[name] for name in THIRD]
    assert {c.kind for c in chosen} == set(KINDS) and {c.form for c in chosen} == set(FORMS)
    assert {c.start for c in chosen} == set(STARTS)
    ours = {m for m in MODELS if "import transformers" not in MODELS[m]}
    assert ours < {c.model for c in chosen}  # and some real ones


@pytest.mark.parametrize("name", THIRD)
def test_planted(tmp_path: Path, name: str) -> None:
    answer = table.triage(CASES[name], tmp_path / "case", PATIENCE_S)
    said = tmp_path / "case" / "stderr.txt"
    assert not answer.problem, answer.problem + "\n" + (said.read_text()[-2000:] if said.exists() else "")
