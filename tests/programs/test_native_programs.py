"""A fixed part of tests/programs/native_programs.py: programs through native show what eager shows. `make test-native` runs all."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run(*options):
    return subprocess.run(
        [sys.executable, "-m", "tests.programs.native_programs", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=400,
    )


def test_every_thirtieth():
    done = run("--every", "30")
    assert done.returncode == 0, done.stdout
    assert ", 0 differ" in done.stdout


def test_transforms():
    """Kernels see plain tensors only: under vmap, jvp and their kin operators run."""
    done = run("--only", "transforms.")
    assert done.returncode == 0, done.stdout


def test_backward_inside():
    """Training steps and operators that take functions: a graph holds forward and backward, or regions."""
    for area in ("steps.", "regions."):
        done = run("--only", area)
        assert done.returncode == 0, done.stdout
