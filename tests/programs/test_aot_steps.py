"""Programs with a backward pass inside, and with regions, through aot_eager: what eager shows, gradients included."""

import cutaway
import pytest

from tests.programs import survey
from tests.support import capture_cases, registry

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture")
PROGRAMS = {n: p for n, p in registry.load().items() if n.split(".")[0] in ("steps", "regions")}


@pytest.fixture(scope="module", autouse=True)
def _torch_as_it_is():
    with survey.torch_as_it_is():
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program = PROGRAMS[name]
    eager = survey.lines(program.make(), program, program.calls)
    cutaway.reset()
    compiled = cutaway.compile(program.make(), backend="aot_eager")
    assert not survey.difference(eager, survey.lines(compiled, program, program.calls))
