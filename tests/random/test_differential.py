"""Random programs behave alike eagerly and compiled: results, effects, exceptions, identities. See campaign.py for the long run."""

import json
import pathlib

import cutaway
import pytest

from tests.random import campaign

HERE = pathlib.Path(__file__).parent

pytestmark = pytest.mark.skipif(not hasattr(cutaway, "compile"), reason="this build has no capture")
KNOWN = json.loads((HERE.parent / "known_failures" / "differential.json").read_text())


def test_500_programs():
    counts, failures = campaign.run(range(500), 2, "cutaway")
    new = [campaign.summary(seed, answer) for seed, answer in failures if str(seed) not in KNOWN["seeds"]]
    assert not new, "\n".join(new)
    # Falling back to eager everywhere would pass as well: most programs must reach a backend.
    assert counts["with graphs"] > 0.7 * counts["asked for graphs"], counts
    assert counts["invalid"] < 25, counts


@pytest.fixture(scope="module")
def worker():
    process = campaign.Worker("cutaway")
    yield process
    process.stop()


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "found").glob("*.py")))
def test_found_before(worker, name):
    text = (HERE / "found" / name).read_text()
    for native in (False, True):
        answer = worker.ask(text=text, native=native)
        if name in KNOWN["found"]:
            if not campaign.failed(answer):
                continue
            pytest.xfail(KNOWN["found"][name])
        assert not campaign.failed(answer), campaign.summary(name, answer)
