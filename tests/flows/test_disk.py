"""Folders that cannot be written to: the error names the cause and -o, and no verdict is drawn from what is missing."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import cutaway
import torch
from test_triage import environment, triage

from tests.support.bundles import write_bundle
from tests.support.command import find_command
from tests.support.patience import PATIENCE_S

GRAPH = "graph g(%x: f32[64, 256]) {\n  %a: f32[64, 256] = aten.sin(%x)\n  %b: f32[64, 256] = aten.relu(%a)\n  return (%b)\n}\n"


def test_a_limit_of_file_sizes(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle", cutaway.Graph.parse(GRAPH), [torch.randn(64, 256)])
    done = subprocess.run(
        [
            find_command(),
            "minify",
            str(bundle),
            "--backend",
            "fault:exception:aten.relu",
            "-o",
            str(tmp_path / "small"),
        ],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)),
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr and "-o" in done.stderr


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    done = triage(tmp_path, "import torch\n", options=("-o", "/proc/nowhere/run"))
    assert done.returncode == 2
    assert "/proc/nowhere: cannot be created" in done.stderr and "-o" in done.stderr


def test_events_that_cannot_be_written(tmp_path: Path) -> None:
    """The script itself ends well; nobody may say that every graph agrees."""
    text = """
        import resource
        import torch

        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.randn(3))
    """
    done = triage(tmp_path, text)
    assert done.returncode == 2, done.stdout
    assert "files cannot be written" in done.stderr and "-o" in done.stderr
