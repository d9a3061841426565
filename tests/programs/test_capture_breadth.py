"""The programs of this folder's area files: compiled equals eager, and each takes the graphs that are stated beside it, so that a fall-back shows.

`python -m tests.programs.survey` compares with Dynamo, and `--write` writes the graphs beside the programs: the diff is the review.
"""

import json
import pathlib
import subprocess
import sys

import pytest
import torch

from tests.programs import survey
from tests.support import capture_cases, registry
from tests.support.patience import PATIENCE_S

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)
# The graphs are stated for this Python and this torch; elsewhere a program may break, but not differ.
IS_STATED = sys.version_info[:2] == (3, 11) and torch.__version__.startswith("2.13")
PROGRAMS = registry.load()


@pytest.fixture(scope="module", autouse=True)
def _torch_as_it_is():
    with survey.torch_as_it_is():
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    program = PROGRAMS[name]
    eager = survey.lines(program.make(), program, program.calls)
    ours = survey.run(program, capture_cases.compile, capture_cases.reset)
    assert not survey.difference(eager, ours["shown"])
    assert not survey.difference(eager, survey.natively(program))
    if IS_STATED and not as_stated(program, ours):
        # What other programs left in torch (defaults, caches) makes a few take other graphs: a process of its own decides.
        words = ["--only", name, "--json", str(tmp_path / "rows.json")]
        subprocess.run(
            [sys.executable, "-m", "tests.programs.survey", *words], cwd=ROOT, capture_output=True, timeout=PATIENCE_S
        )
        alone = json.loads((tmp_path / "rows.json").read_text())[name]["ours"]
        said = f"graphs={alone['frames']}, breaks={not alone['full']}; is that so? python -m tests.programs.survey --write --only {name}"
        assert as_stated(program, alone), f"{name} took {said}\n{alone.get('why', '')}"


def as_stated(program, ours):
    return (ours["frames"], not ours["full"]) == (program.graphs, program.breaks)
