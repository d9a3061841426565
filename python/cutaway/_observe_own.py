"""``cutaway.compile`` under observation: its backends are watched as those of ``torch.compile`` are.

The backend ``eager`` stays in C++, where there is nothing between the captured graph and eager: its graphs are counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _compile, _debug, _failure, _program, exc
from ._native import Error
from ._native import capture as _capture


def watch_backends(make: Callable[[Any], Any], refused: Callable[[str, str], None], instead: str = "") -> None:
    """Every backend that cutaway.compile is given from now on is watched by what `make` makes of it.

    ``instead``: the backend that all of them are replaced by, to see how far the stages before it get.
    """
    plain = _compile._session
    made: list[tuple[Any, Any]] = []  # one watcher a backend, so that what is compiled twice is still shared

    def watched(backend: Any) -> Any:
        for known, watcher in made:
            if known is backend or (isinstance(backend, str) and known == backend):
                return watcher
        try:
            watcher = make(backend)
        except Error as problem:
            refused(_compile._named(backend), str(problem))
            watcher = backend
        made.append((backend, watcher))
        return watcher

    def session(
        backend: Any, fullgraph: bool, dynamic: bool | None, options: dict[str, Any] | None, mode: str | None
    ) -> Any:
        if instead:
            backend, options, mode = instead, None, None
        if not _debug.is_plain(backend) and not _debug._watch_inside(backend):
            backend = watched(backend)
        return plain(backend, fullgraph, dynamic, options, mode)

    _compile._session = session


def watch_by_environment() -> None:
    """CUTAWAY_REPRO_AFTER, or torch's name for it, holds for cutaway.compile too."""
    stage, level = _debug.settings_from_environment() or ("capture", 2)
    watch_backends(
        lambda backend: _debug.Watch(backend, after=stage, level=level),
        lambda name, problem: _failure.notice(f"{name} is not watched: {problem}"),
    )


def install(
    journal: Any, make: Callable[[Any], Any], place: Callable[[Any], Any], instead: str = "", *, is_off: bool = False
) -> None:
    """For an observer: what is watched goes to the journal. ``is_off``: nothing is compiled."""
    if is_off:
        _capture.settings().suppress = True
        return
    watch_backends(make, lambda name, problem: journal.write("unwatched", backend=name, problem=problem), instead)
    told = [0]

    def listen(record: dict[str, Any]) -> None:
        if record["graph"] is not None and journal.graphs == told[0]:  # no watcher has seen it
            about = {
                "graph": journal.next_graph(),
                "backend": "eager",
                "call": place(sys._getframe()),
                "has_aot": False,
            }
            about["capture"] = "cutaway"
            with journal.phase("compile", process=_program.process_name(), **about):
                pass
        told[0] = journal.graphs

    _capture.add_listener(listen)


def tell(journal: Any, error: BaseException) -> None:
    """What ends the program. A refusal of the capture, which reaches its user, is a failure of that stage."""
    if journal.has_failure or not isinstance(error, exc.CompileError) or isinstance(error, exc.BackendCompilerFailed):
        return
    file, number, function, text = error.user_stack[-1] if error.user_stack else ("", 0, "", "")
    line = {"file": file, "line": number, "function": function, "text": text}
    signature = _failure.signature(error, "capture")
    if file:
        signature["user_frame"] = f"{file.rpartition('/')[2]}:{number} {function}"
    about: dict[str, Any] = {"graph": "", "backend": "", "bundle": None, "problem": "", "signature": signature}
    about |= {
        "message": _failure.text_of(error)[:20_000],
        "call": line if file else None,
        "process": _program.process_name(),
    }
    about |= {"line": line, "frame": {**line, "source": ""}, "capture": "cutaway"}
    journal.write("failure", stage="capture", **about)
