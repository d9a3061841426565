"""Logs, compile times, the debug directory and event streams: views of what Cutaway records while it works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, overload

from ._native import debug as _debug

Level = Literal["error", "warning", "info", "debug"]
_debug.apply_environment()


def _level_word(topic: str, level: bool | int | str) -> str:
    if level is True:
        return topic
    if level is False:
        return f"-{topic}"
    if isinstance(level, int):  # logging.DEBUG and its like, as torch's set_logs takes them
        level = "debug" if level <= 10 else "info" if level <= 20 else "warning" if level <= 30 else "error"
    return f"{topic}={level}"


def set_logs(words: str = "", **topics: bool | int | str) -> None:
    """Choose what the log shows: ``set_logs("breaks,+capture")``, ``set_logs(breaks=True, capture="debug")``.

    A word is a topic; ``+`` shows all of it, ``-`` errors only, ``topic=level`` that level. torch's words mean the
    same things here. Keywords take a level name, a level of ``logging``, or a bool. Without arguments: warnings, the
    default. An unknown topic raises ``cutaway.Error`` with the nearest name.
    """
    _debug.set_logs(",".join([words, *(_level_word(t, v) for t, v in topics.items())]))


@overload
def compile_times(form: Literal["text"] = "text", *, summed: bool = False, reset: bool = False) -> str: ...
@overload
def compile_times(form: Literal["data"], *, summed: bool = False, reset: bool = False) -> dict[str, dict[str, Any]]: ...
def compile_times(form: str = "text", *, summed: bool = False, reset: bool = False) -> str | dict[str, dict[str, Any]]:
    """How long compiling took, by phase and function.

    ``"text"`` is a table. ``"data"`` is ``{phase: {function: [seconds, ...]}}``, one value a compilation, or with
    ``summed`` ``{phase: {function: seconds}}``. ``reset`` forgets what was counted after answering.
    """
    if form not in ("text", "data"):
        raise ValueError(f'form must be "text" or "data", not {form!r}')
    answer: str | dict[str, dict[str, Any]]
    if form == "text":
        answer = str(_debug.compile_times_text())
    else:
        answer = {}
        for phase, function, seconds in _debug.compile_times_rows():
            answer.setdefault(phase, {})[function] = sum(seconds) if summed else seconds
    if reset:
        _debug.reset_compile_times()
    return answer


def debug_dir() -> str | None:
    """The folder of this run's debug files, or None while they are off. It appears with the first file in it."""
    path: str | None = _debug.debug_dir()
    return path


def set_debug_dir(level: int, root: str | os.PathLike[str] = ".", files: str = "") -> None:
    """Write a debug directory from now on, in a new run folder.

    Levels: 0 off, 1 summary, 2 reasons, 3 graphs, 4 code, 5 everything.
    ``files`` switches single ones: ``"diagram,-fx_graph_runnable"``.
    """
    _debug.set_debug_dir(level, os.fspath(root), files)


@contextmanager
def events(path: str | os.PathLike[str], *, append: bool = False) -> Iterator[None]:
    """Record everything that happens inside the ``with`` into a file of JSON lines."""
    stream = _debug.EventStream(os.fspath(path), append)
    try:
        yield
    finally:
        stream.close()


def read_events(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The events of a file, in order. A last line that was cut off by a killed process is left out."""
    result: list[dict[str, Any]] = _debug.read_events(os.fspath(path))
    return result


def last_unfinished_phase(path: str | os.PathLike[str]) -> str:
    """The innermost phase that began and did not end: where a killed process was. Empty when all ended."""
    return str(_debug.last_unfinished_phase(os.fspath(path)))
