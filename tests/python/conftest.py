"""Tests that are known to fail are listed in tests/known_failures/python.json with the reason; one that passes again fails the run."""

import json
import pathlib

import cutaway
import pytest
import torch

KNOWN = json.loads((pathlib.Path(__file__).parents[1] / "known_failures" / "python.json").read_text())


def pytest_collection_modifyitems(items):
    for item in items:
        if reason := KNOWN.get(f"{item.path.name}::{item.name}"):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture
def fresh_capture():
    """Nothing compiled before the test, nothing left behind it."""
    cutaway.reset()
    yield
    cutaway.reset()


@pytest.fixture(autouse=True)
def _dispatcher_as_before():
    """Whatever a test did, torch's dispatcher looks at the same keys behind it: one that is left on makes later programs wrong."""

    def keys():
        return str(torch._C._dispatch_tls_local_include_set()), str(torch._C._dispatch_tls_local_exclude_set())

    before = keys()
    yield
    assert keys() == before
