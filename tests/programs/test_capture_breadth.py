"""The programs of this folder's area files: compiled equals eager, and each takes the graphs that graphs.txt says, so that a fall-back shows.

`survey.py` compares with Dynamo, and `--write` renews graphs.txt: the diff is the review.
"""

import json
import pathlib
import subprocess
import sys

import pytest
import torch

from tests.programs import survey
from tests.support import capture_cases, registry

HERE = pathlib.Path(__file__).parent

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)
GRAPHS = dict(line.split(" ", 1) for line in (HERE / "graphs.txt").read_text().splitlines())
# Of this Python and this torch the list was written; elsewhere a program may break, but not differ.
IS_LISTED = sys.version_info[:2] == (3, 11) and torch.__version__.startswith("2.13")
PROGRAMS = registry.load()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    program = PROGRAMS[name]
    eager = survey.lines(program.make(), program, program.calls)
    ours = survey.run(program, capture_cases.compile, capture_cases.reset)
    assert not survey.difference(eager, ours["shown"])
    assert not survey.difference(eager, survey.natively(program))
    if IS_LISTED and not as_listed(name, ours):
        # What other programs left in torch (defaults, caches) makes a few take other graphs: a process of its own decides.
        command = [sys.executable, "-m", "tests.programs.survey", "--only", name, "--json", str(tmp_path / "rows.json")]
        subprocess.run(command, cwd=HERE.parents[1], capture_output=True, timeout=100)
        alone = json.loads((tmp_path / "rows.json").read_text())[name]["ours"]
        assert as_listed(name, alone), (GRAPHS[name], ours, alone)


def as_listed(name, ours):
    """At least one graph where there should be one, and the first call in one graph where the list says so."""
    count, *whole = GRAPHS[name].split()
    return (ours["frames"] > 0) == (int(count) > 0) and (ours["full"] or not whole)


def test_list_names_programs():
    assert set(PROGRAMS) == set(GRAPHS)
