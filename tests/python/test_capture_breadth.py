"""The programs of tests/breadth: compiled equals eager, and each takes the graphs that graphs.txt says, so that a fall-back shows.

`tests/breadth/survey.py` compares with Dynamo, and `--write` renews graphs.txt: the diff is the review.
"""

import pathlib
import sys

import capture_cases
import pytest
import torch

BREADTH = pathlib.Path(__file__).parents[1] / "breadth"
sys.path.insert(0, str(BREADTH))
import registry  # noqa: E402
import survey  # noqa: E402

pytestmark = pytest.mark.skipif(
    not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture, or it is the peer's turn"
)
GRAPHS = dict(line.split(" ", 1) for line in (BREADTH / "graphs.txt").read_text().splitlines())
# Of this Python and this torch the list was written; elsewhere a program may break, but not differ.
IS_LISTED = sys.version_info[:2] == (3, 11) and torch.__version__.startswith("2.13")
PROGRAMS = registry.load()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program = PROGRAMS[name]
    eager = survey.lines(program.make(), program, program.calls)
    ours = survey.run(program, capture_cases.compile, capture_cases.reset)
    assert not survey.difference(eager, ours["shown"])
    assert not survey.difference(eager, survey.natively(program))
    if IS_LISTED:
        # What torch has loaded or cached before makes a few programs take one graph more or less; none at all is a fall-back to eager.
        count, *whole = GRAPHS[name].split()
        assert (ours["frames"] > 0) == (int(count) > 0), ours
        assert ours["full"] or not whole, ours.get("why")


def test_list_names_programs():
    assert set(PROGRAMS) == set(GRAPHS)
