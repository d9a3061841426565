"""Every reason for which a graph may end has a documented id and says what to do about it."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ROOT / "src" / "compiler"
# What the user asked for, or what runs eagerly for its own sake, needs no advice.
NEEDS_NOTHING = {"asked-for", "disabled-function", "other-rank", "ranks-differ", "trace-differs", "print", "raises"}

pytestmark = pytest.mark.skipif(not SOURCES.exists(), reason="the sources are not here")


def ids():
    found = set()
    for path in (SOURCES / "capture").rglob("*.cc"):
        found |= set(re.findall(r'(?:\bstop\(|\.id = )"([a-z]+(?:-[a-z]+)*)"', path.read_text()))
    return sorted(found - {"internal-error"})


def test_there_are_ids():
    assert len(ids()) > 80


@pytest.mark.parametrize("name", ids() if SOURCES.exists() else [])
def test_is_documented(name):
    assert f"`{name}`" in (ROOT / "docs" / "notes" / "capture.md").read_text()


@pytest.mark.parametrize("name", ids() if SOURCES.exists() else [])
def test_says_what_to_do(name):
    hints = set(re.findall(r'\{"([a-z-]+)", (?:"|k[A-Z])', (SOURCES / "capture" / "break_hints.cc").read_text()))
    assert name in hints or name in NEEDS_NOTHING
