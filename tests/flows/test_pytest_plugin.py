"""pytest --cutaway: tests are run in a process of their own, as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree
from pathlib import Path

import cutaway
import pytest

from tests.support.patience import PATIENCE_S

PACKAGE = Path(cutaway.__file__).parent.parent

BACKENDS = """
    import torch

    def wrong_relu(gm, inputs):
        for node in gm.graph.nodes:
            if node.target is torch.relu:
                node.target = torch.nn.functional.gelu
        gm.recompile()
        return gm.forward

    def picky(gm, inputs):
        if any(node.target is torch.relu for node in gm.graph.nodes):
            raise NotImplementedError("no relu here")
        return gm.forward

    def right(gm, inputs):
        return gm.forward
"""
FUNCTION = """
    import cutaway, pytest, torch
    from my_backends import *

    def f(x):
        y = torch.sin(x) + 1
        return torch.relu(y).cos() * 2
"""


def run_pytest(folder: Path, text: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "my_backends.py").write_text(textwrap.dedent(BACKENDS))
    (folder / "test_user.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), *words]
    if "no:cutaway" not in words and not any(line.startswith("cutaway") for line in entry_points()):
        command += ["-p", "pytest_cutaway"]  # the build tree has no entry points
    paths = os.pathsep.join(p for p in (str(PACKAGE), os.environ.get("PYTHONPATH", "")) if p)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return subprocess.run(
        [*command, "test_user.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**kept, "PYTHONPATH": paths, **environment},
        timeout=PATIENCE_S,
    )


def entry_points() -> list[str]:
    import importlib.metadata

    return [f"{e.name} = {e.value}" for e in importlib.metadata.entry_points(group="pytest11")]


def properties_of(file: Path, test: str) -> dict[str, str]:
    root = xml.etree.ElementTree.parse(file).getroot()
    case = next(c for c in root.iter("testcase") if c.get("name") == test)
    return {p.get("name"): p.get("value") for p in case.iter("property")}


WRONG = (
    FUNCTION
    + """
    def test_wrong():
        torch.compile(f, backend=wrong_relu)(torch.linspace(-3, 3, 12).reshape(3, 4))

    def test_plain():
        assert 1 + 1 == 2
"""
)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_wrong_graph_ends_in_a_minimal_repro(tmp_path, workers):
    done = run_pytest(tmp_path, WRONG, "--cutaway", "--junitxml", "out.xml", *workers)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    section = done.stdout.split("-- cutaway --")[1]
    assert re.search(r"called at +\S*test_user.py:\d+ +torch.compile\(f, backend=wrong_relu\)", section)
    assert re.search(r"minimised +\d+ -> 1 nodes", section) and "torch.relu" in section.split("minimal graph")[1]
    assert "def graph_under_test(" in section and "def run_wide" not in section
    properties = properties_of(tmp_path / "out.xml", "test_wrong")
    assert properties["cutaway_failure"].startswith("AccuracyError") and properties["cutaway_graphs"] == "1"
    assert properties["cutaway_reduced"].endswith("-> 1 nodes")
    assert properties_of(tmp_path / "out.xml", "test_plain") == {}
    repro = Path(properties["cutaway_repro"])
    assert repro.read_text().split() == properties["cutaway_repro_text"].split()
    assert repro.is_file() and repro.is_relative_to(tmp_path / "cutaway_debug/pytest")
    again = subprocess.run(
        [sys.executable, repro],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert again.returncode == 1, again.stdout + again.stderr
    assert "1 test compiled 1 graph; 1 call compared with eager; 1 failure" in done.stdout
    assert f"cutaway: test_user.py::test_wrong: {repro}" in done.stdout


def test_the_example(tmp_path):
    text = (Path(__file__).parents[2] / "examples/test_compiled.py").read_text()
    done = run_pytest(tmp_path, text, "--cutaway")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert (
        re.search(r"minimised +\d+ -> 1 nodes", done.stdout)
        and "aten.relu(%add)  # test_user.py:18 block" in done.stdout
    )


def test_without_the_option_nothing_is_watched(tmp_path):
    done = run_pytest(tmp_path, WRONG)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    assert "cutaway:" not in done.stdout and not (tmp_path / "cutaway_debug").exists()


def test_exceptions_and_what_tests_expect(tmp_path):
    text = (
        FUNCTION
        + """
    X = torch.linspace(-3, 3, 12)

    def test_raises():
        torch.compile(f, backend=picky)(X)

    def test_expects_it():
        with pytest.raises(Exception, match="no relu here"):
            torch.compile(f, backend=picky)(X)

    def test_goes_on():
        try:
            torch.compile(f, backend=wrong_relu)(X)
        except Exception:
            pass

    @pytest.mark.cutaway(check=False)
    def test_wrong_on_purpose():
        assert not torch.equal(torch.compile(f, backend=wrong_relu)(X), f(X))

    @pytest.mark.xfail
    def test_known():
        torch.compile(f, backend=wrong_relu)(X)
    """
    )
    done = run_pytest(
        tmp_path, text, "--cutaway", "--cutaway-seconds", "0", "--junitxml", "out.xml", "--strict-markers"
    )
    assert "2 failed, 2 passed, 1 xfailed" in done.stdout, done.stdout + done.stderr
    assert "cutaway: a compiled graph was wrong, and the test went on" in done.stdout
    raises = properties_of(tmp_path / "out.xml", "test_raises")
    assert raises["cutaway_failure"] == "NotImplementedError: no relu here"
    assert (Path(raises["cutaway_bundle"]) / "manifest.json").is_file() and "cutaway_repro" not in raises
    assert f"cutaway minify {raises['cutaway_bundle']}" in done.stdout
    assert "cutaway_failure" not in properties_of(tmp_path / "out.xml", "test_expects_it")


def test_both_compilers_and_the_limit_of_calls(tmp_path):
    text = (
        FUNCTION
        + """
    made_early = torch.compile(f, backend=right)

    def test_torch():
        for _ in range(5):
            made_early(torch.ones(3))

    def test_again():
        made_early(torch.ones(3))

    def test_own():
        cutaway.compile(f, backend="aot_eager")(torch.ones(3))

    def test_own_is_wrong():
        cutaway.compile(f, backend=wrong_relu)(torch.linspace(-3, 3, 12))
    """
    )
    done = run_pytest(
        tmp_path, text, "--cutaway", "--cutaway-calls", "2", "--cutaway-seconds", "0", "--junitxml", "out.xml"
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    first = properties_of(tmp_path / "out.xml", "test_torch")
    assert first["cutaway_calls_compared"] == "2" and int(first["cutaway_calls_not_compared"]) >= 3
    later = properties_of(tmp_path / "out.xml", "test_again")  # the graph of an earlier test
    assert later["cutaway_graphs"] == "0" and later["cutaway_calls_compared"] == "1"
    assert properties_of(tmp_path / "out.xml", "test_own")["cutaway_graphs"] == "1"
    assert "AccuracyError" in properties_of(tmp_path / "out.xml", "test_own_is_wrong")["cutaway_failure"]


def test_tests_that_compile_nothing_load_nothing(tmp_path):
    text = """
    import sys

    def test_plain():
        assert not {"torch", "torch._dynamo", "cutaway"} & set(sys.modules)

    def test_torch_alone():
        import torch
        assert torch.ones(2).sum() == 2
        assert not {"torch._dynamo", "cutaway"} & set(sys.modules)
    """
    done = run_pytest(tmp_path, text, "--cutaway")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "cutaway: no test compiled anything that is watched" in done.stdout


@pytest.mark.parametrize(
    ("words", "environment", "says"),
    [
        (("--cutaway", "--cutaway-calls", "-1"), {}, "'-1' is not a whole number of 0 or more"),
        (("--cutaway", "--cutaway-tolerance", "small"), {}, "'small' is not a number of 0 or more"),
        (("--cutaway",), {"CUTAWAY_REPRO_AFTER": "aot"}, "--cutaway and CUTAWAY_REPRO_AFTER are both set"),
    ],
)
def test_mistakes(tmp_path, words, environment, says):
    done = run_pytest(tmp_path, "def test_plain(): pass", *words, **environment)
    assert done.returncode == 4 and says in done.stderr, done.stdout + done.stderr
