"""find_package(cutaway): the example of docs/cpp.md builds outside of the tree, from what is installed alone."""

import re
import shutil
import subprocess
from pathlib import Path

import cutaway
import pytest

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PACKAGE = Path(cutaway.cmake_prefix_path)
pytestmark = pytest.mark.skipif(not (PACKAGE / "share/cmake").is_dir(), reason="the build tree installs no headers")


def cmake(*words, **more):
    return subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S, **more)


def test_the_example_builds_outside(tmp_path):
    shutil.copytree(ROOT / "examples/outside", tmp_path / "outside")
    done = cmake("-S", tmp_path / "outside", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={PACKAGE}")
    assert done.returncode == 0, done.stdout + done.stderr
    done = cmake("--build", tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    text = "graph f(%x: f32[2]) {\n  %y: f32[2] = aten.relu(%x)\n  return (%y)\n}\n"
    printed = subprocess.run([tmp_path / "build/print_graph"], input=text, capture_output=True, text=True)
    assert printed.stdout == "1 nodes\n" + text
    assert (
        "libtorch" not in subprocess.run(["ldd", tmp_path / "build/print_graph"], capture_output=True, text=True).stdout
    )
    broken = subprocess.run([tmp_path / "build/print_graph"], input="graph f(", capture_output=True, text=True)
    assert broken.returncode == 2 and broken.stderr.startswith("standard input:1:")
    compared = subprocess.run([tmp_path / "build/compare_graphs"], capture_output=True, text=True)
    assert compared.returncode == 1 and compared.stdout.startswith("wrong: y\n"), compared.stdout + compared.stderr


def test_headers_are_the_public_ones_and_what_they_include():
    installed = {str(p.relative_to(PACKAGE / "include")) for p in (PACKAGE / "include").rglob("*.h")}
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## Headers for C++ users")[2].partition("\n## ")[0]
    public = set(re.findall(r"`((?:core|compiler|diagnosis)/[\w/]+\.h)`", table))
    assert len(public) == 10 and public <= installed
    for header in installed:
        included = re.findall(r'^#include "([^"]+)"', (PACKAGE / "include" / header).read_text(), re.M)
        assert set(included) <= installed, header
    reached = {
        i for h in installed for i in re.findall(r'^#include "([^"]+)"', (PACKAGE / "include" / h).read_text(), re.M)
    }
    assert installed == public | reached


def test_another_torch_is_refused(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/version.py").write_text("__version__ = '2.9.1+cu130'\n")
    shutil.copytree(ROOT / "examples/outside", tmp_path / "outside")
    words = ["-S", tmp_path / "outside", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={PACKAGE}"]
    done = cmake(*words, f"-DCUTAWAY_TORCH_DIR={tmp_path / 'torch'}")
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "cutaway was built for torch 2." in said and "is torch 2.9.1" in said and "CUTAWAY_TORCH_DIR" in said
    done = cmake(*words, f"-DCUTAWAY_TORCH_DIR={tmp_path / 'nowhere'}")
    assert done.returncode != 0 and "torch was not found" in " ".join(done.stderr.split())
