"""The command `cutaway` that belongs to the package that is tested: of the build tree, or of the environment."""

import os
import pathlib
import shutil
import sys

import cutaway


def find_command() -> str:
    """A test without it fails: skipping all of them would look like success."""
    named = os.environ.get("CUTAWAY_COMMAND")
    beside = [
        pathlib.Path(cutaway.__file__).parents[2] / "bin/cutaway",
        pathlib.Path(sys.executable).with_name("cutaway"),
    ]
    found = named or next((str(p) for p in beside if p.is_file()), None) or shutil.which("cutaway")
    assert found, "the command cutaway is not built; try: make build, or CUTAWAY_COMMAND=PATH"
    return found
