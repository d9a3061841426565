"""Strict everywhere: an error of Cutaway's own fails the test instead of running the function eagerly. Child processes inherit it.

--quick runs what tests/quick.txt names (`make test-quick`).
CUTAWAY_TEST_COSTS=FILE appends a line for each test: seconds of processor time, its child processes and the fixtures that it is
the first to need included; seconds by the clock; its name. Processor time does not depend on what else the machine does.
Tests that are known to fail are listed in tests/known_failures/python.json with the reason; one that passes again fails the run.
"""

import json
import os
import pathlib
import re
import resource
import time

import pytest

os.environ["CUTAWAY_STRICT"] = "1"
# Threads of OpenMP that wait spin on their core, which another worker needs: five times the processor time on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
COSTS = os.environ.get("CUTAWAY_TEST_COSTS")
ROOT = pathlib.Path(__file__).parents[1]
KNOWN = json.loads((ROOT / "tests/known_failures/python.json").read_text())


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="only what tests/quick.txt names")
    parser.addoption("--kills", type=int, default=20, help="how often a reduction is killed in the test of --resume")


def read_quick_list():
    """Pairs of a test or a file, and n: every n-th test of it."""
    rows = [line.split() for line in (ROOT / "tests/quick.txt").read_text().splitlines() if not line.startswith("#")]
    table = re.findall(r"^\| `src/([\w/]+)`", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    folders = {
        name.rpartition("/")[2] for name in table if name.rpartition("/")[0] not in table
    }  # a room is in another folder
    if missing := folders - {row[0] for row in rows}:
        raise pytest.UsageError(f"tests/quick.txt names no test of the folder {', '.join(sorted(missing))}")
    return [(row[1], int(row[2].removeprefix("1/")) if len(row) > 2 else 1) for row in rows]


def pytest_configure(config):
    if config.getoption("--quick"):
        files = dict.fromkeys(name.split("::")[0] for name, _ in read_quick_list())
        config.args[:] = [str(ROOT / file) for file in files]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if reason := KNOWN.get(f"{item.path.name}::{item.name}"):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if not config.getoption("--quick"):
        return
    chosen = set()
    for name, step in read_quick_list():
        found = [
            item for item in items if re.match(re.escape(name) + (r"($|::|\[)" if name[-1] != "." else ""), item.nodeid)
        ]
        if not found:
            raise pytest.UsageError(f"tests/quick.txt: there is no test {name}")
        chosen.update(found[::step])
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


# Their tests start processes, and leave nothing behind in this one.
ALONE = ("tests/flows/", "tests/operators/test_op_db.py", "tests/programs/test_native_programs.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadfile` deals out whole files, the one with the most tests first. Tests that start processes are dealt out one by one after
    them: a file of a few long tests would be the last one, and the other cores would wait for it."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FilesThenTests(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return nodeid if nodeid.startswith(ALONE) else super()._split_scope(nodeid)

    return FilesThenTests(config, log)


def processor_seconds():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before, began = processor_seconds(), time.monotonic()
    result = yield
    if COSTS:
        with open(COSTS, "a") as file:
            file.write(f"{processor_seconds() - before:.2f} {time.monotonic() - began:.2f} {item.nodeid}\n")
    return result


@pytest.fixture
def fresh_capture():
    """Nothing compiled before the test, nothing left behind it."""
    import cutaway

    cutaway.reset()
    yield
    cutaway.reset()


@pytest.fixture(autouse=True)
def _dispatcher_as_before():
    """Whatever a test did, torch's dispatcher looks at the same keys behind it: one that is left on makes later programs wrong."""
    import torch

    def keys():
        return str(torch._C._dispatch_tls_local_include_set()), str(torch._C._dispatch_tls_local_exclude_set())

    before = keys()
    yield
    assert keys() == before
