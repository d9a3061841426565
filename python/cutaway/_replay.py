"""Records of frames whose capture failed: written where it fails, captured again alone by ``replay``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from ._native import Error
from ._native import replay as _native

_written: set[str] = set()
"""Records of this process: they are its own code."""


@dataclass(frozen=True)
class Failure:
    """How capture failed: kind and id of the reason, what, the instruction, the user's stack (file, line, function, text)."""

    kind: str
    id: str
    what: str
    hint: str
    instruction: str
    stack: list[tuple[str, int, str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.what}"]
        for file, line, function, text in self.stack:
            lines.append(f"  {file}:{line} in {function}")
            if text:
                lines.append(f"    {text}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Replayed:
    """What :func:`replay` gives. ``now`` is None when the frame is captured; ``plan`` then says what became of it."""

    path: str
    recorded: Failure
    now: Failure | None
    same: bool
    plan: str

    def __str__(self) -> str:
        if self.now is None:
            return f"the frame is captured now\nrecorded   {self.recorded}"
        if self.same:
            return f"it fails as recorded\n{self.now}"
        return f"it fails in another way\nrecorded   {self.recorded}\nnow        {self.now}"


def _failure(data: dict[str, Any]) -> Failure:
    return Failure(**{**data, "stack": [tuple(row) for row in data["stack"]]})


def replayed(path: str, answer: dict[str, Any]) -> Replayed:
    """The answer of the native part as an object."""
    now = None if answer["now"] is None else _failure(answer["now"])
    return Replayed(path, _failure(answer["recorded"]), now, bool(answer["same"]), str(answer["plan"]))


def replay(path: str | os.PathLike[str], *, trust: bool = False, in_process: bool = False) -> Replayed:
    """Capture the frame of a record again, alone, in a fresh process.

    That runs the record's code and imports the modules that it names, so a record that this process did not write needs
    ``trust``. ``in_process``: here, for a debugger.
    """
    place = os.path.abspath(path)
    modules = _native.modules(place)  # checks the record, and runs nothing
    if not trust and place not in _written:
        raise Error(
            f"{place}: replaying a record runs its code\n   because: it imports {', '.join(modules) or 'nothing'}, and makes "
            "the classes and functions that it holds\n   try: trust=True, when you know who wrote it"
        )
    if in_process:
        return replayed(place, _native.run(place))
    command = [sys.executable, "-m", "cutaway.replay_record", "--trust", "--json", place]
    path_here = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path_here}
    )
    if done.returncode in (0, 1, 3):
        return replayed(place, json.loads(done.stdout.splitlines()[-1]))
    if done.returncode == 2:
        raise Error(done.stderr.strip().removeprefix("cutaway: "))
    raise Error(f"{place}: the process that replayed it ended with status {done.returncode}\n{done.stderr[-2000:]}")
