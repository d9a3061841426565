"""cutaway replay and cutaway show, on the record of a frame."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S

SCRIPT = """
import torch, cutaway
def inner(x):
    return {x: 5}
def outer(x):
    print("woo")
    return inner(x + 1)
cutaway.compile(outer)(torch.ones(2))
"""


def cutaway_command(*words):
    return subprocess.run(
        ["cutaway", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    (folder / "script.py").write_text(SCRIPT)
    subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
        env={
            **os.environ,
            "CUTAWAY_PLANT_CAPTURE_FAULT": "BUILD_MAP",
            "CUTAWAY_DEBUG_DIR": str(folder),
            "CUTAWAY_STRICT": "0",  # the error is planted: it is reported and leaves a record
        },
    )
    return sorted(folder.glob("cutaway_debug/records/inner*"))[-1]


def test_show_executes_nothing(record):
    shown = cutaway_command("show", record)
    assert shown.returncode == 0, shown.stderr
    assert "BUILD_MAP" in shown.stdout and "script.py:4" in shown.stdout and "return {x: 5}" in shown.stdout
    assert json.loads(cutaway_command("show", "--json", record).stdout)["format"] == "cutaway frame record"


def test_replay_needs_trust(record):
    refused = cutaway_command("replay", record)
    assert refused.returncode == 2
    assert "runs its code" in refused.stderr and "--trust" in refused.stderr


def test_replay_shows_the_same_error(record):
    shown = cutaway_command("replay", "--trust", record)
    assert shown.returncode == 1, shown.stderr
    first, second = shown.stdout.splitlines()[:2]
    assert first.startswith("running the code of") and "fails as recorded" in second
    assert "BUILD_MAP" in shown.stdout and "script.py:4" in shown.stdout
    data = json.loads(cutaway_command("replay", "--trust", "--json", record).stdout)
    assert data["same"] is True and data["now"]["stack"][-1][2] == "inner"


def test_replay_of_nothing(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        refused = cutaway_command("replay", "--trust", path)
        assert refused.returncode == 2 and "record.json" in refused.stderr


def test_replay_of_a_mended_frame(record, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(record, copy)
    data = json.loads((copy / "record.json").read_text())
    del data["options"]["planted"]
    (copy / "record.json").write_text(json.dumps(data))
    shown = cutaway_command("replay", "--trust", copy)
    assert shown.returncode == 0 and "captured now" in shown.stdout, shown.stderr
    assert pathlib.Path(copy, "blobs").is_dir()
