"""Another torch than the one that Cutaway was built for: refused in words, at import and by doctor."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import cutaway
import pytest
from cutaway import _built_for, _torch_check

from tests.support.command import find_command

PACKAGE = str(Path(cutaway.__file__).parent.parent)


@pytest.fixture
def another_torch(tmp_path):
    """An environment in which `import torch` finds a torch 2.9.1."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text('__version__ = "2.9.1+cu130"\n')
    (tmp_path / "torch-2.9.1.dist-info").mkdir()
    (tmp_path / "torch-2.9.1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cu130\n"
    )
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{PACKAGE}", "CUTAWAY_PYTHON": sys.executable}


def test_the_build_says_what_it_is_for():
    assert _built_for.TORCH == importlib.metadata.version("torch")


def test_a_release_counts_and_the_device_does_not():
    assert _torch_check.problem("2.13.0+cu130", "2.13.0+cpu", "x") is None
    assert "built for torch 2.13.0, and torch 2.13.1+cpu is here (x)" in _torch_check.problem(
        "2.13.1+cpu", "2.13.0", "x"
    )


def test_import(another_torch):
    done = subprocess.run([sys.executable, "-c", "import cutaway"], env=another_torch, capture_output=True, text=True)
    assert done.returncode == 1
    ours = _torch_check.release(_built_for.TORCH)
    assert f"ImportError: cutaway was built for torch {ours}, and torch 2.9.1+cu130 is here (" in done.stderr
    assert "   because: " in done.stderr and f"   try: pip install torch=={ours}" in done.stderr
    assert "undefined symbol" not in done.stderr


def test_doctor(another_torch):
    done = subprocess.run([find_command(), "doctor", "--json"], env=another_torch, capture_output=True, text=True)
    finding = next(f for f in json.loads(done.stdout)["findings"] if f["name"] == "built for torch")
    assert finding["value"] is None and finding["is_needed"] and done.returncode == 1
    assert "and torch 2.9.1+cu130 is in" in finding["remedy"] and "pip install torch==" in finding["remedy"]


def test_doctor_where_all_is_well():
    env = {**os.environ, "PYTHONPATH": PACKAGE, "CUTAWAY_PYTHON": sys.executable}
    done = subprocess.run([find_command(), "doctor", "--json"], env=env, capture_output=True, text=True)
    finding = next(f for f in json.loads(done.stdout)["findings"] if f["name"] == "built for torch")
    assert finding["value"] == _built_for.TORCH
