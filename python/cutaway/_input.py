"""What the program reads from standard input: kept, so that it reads the same when it runs again."""

from __future__ import annotations

import os
import stat
import sys
import tempfile

_MOST = 1 << 20  # characters that a bundle takes along
_kept = ""
_first = 0  # where a file that is our standard input stood


def note(kept: str) -> None:
    """`kept` is the file to which somebody writes what this process is given, if it comes by a pipe."""
    global _kept, _first
    _kept = kept
    try:
        _first = os.lseek(0, 0, os.SEEK_CUR)
    except OSError:
        _first = 0


def text() -> str:
    """All that the program was given; empty where that is nothing, unknown or too much."""
    try:
        if stat.S_ISREG(os.fstat(0).st_mode):
            data = os.pread(0, _MOST + 1, _first)
        else:
            with open(_kept, "rb") as file:
                data = file.read(_MOST + 1)
        return data.decode("utf-8") if len(data) <= _MOST else ""
    except (OSError, UnicodeDecodeError):
        return ""


def give(told: str) -> None:
    """This process, and those that it starts, read `told`."""
    with tempfile.TemporaryFile() as file:
        file.write(told.encode("utf-8"))
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.dup2(file.fileno(), 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (it stays open as long as the process)
