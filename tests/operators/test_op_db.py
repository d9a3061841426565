"""The fixed tenth of torch's operator database; `python -m tests.operators.op_db --full` runs all of it."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
COMMAND = [sys.executable, "-m", "tests.operators.op_db", "--jobs", "2"]


def test_tenth_of_op_db_equals_eager():
    done = subprocess.run(COMMAND, cwd=HERE.parents[1], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_part_of_op_db_raises_what_eager_raises():
    """A fixed part of `make test-op-db-raises`: valid and invalid arguments, in a try block and outside of one, compiled."""
    done = subprocess.run([*COMMAND, "--raises"], cwd=HERE.parents[1], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_refusals_have_a_case_and_a_reason():
    lines = [line for line in (HERE / "op_db_refusals.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines))
    for line in lines:
        case, reason = line.split(": ", 1)
        name, dtype, direction = case.rsplit(" ", 2)
        assert direction in ("forward", "backward") and reason, line
