"""``python -m cutaway.observe --events FILE --folder DIR SCRIPT [ARGS…]``: runs a script and watches its torch.compile.

The script runs as it would directly. What happens is written to FILE, a JSON object a line, before it happens where it
may not come back: `cutaway triage` reads it, also after a crash or in a hang. docs/formats/observation.md has them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import io
import json
import linecache
import os
import sys
import sysconfig
import time
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from . import _debug, _failure
from ._native import Error

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARIES = tuple({os.path.abspath(p) + os.sep for p in sysconfig.get_paths().values()})


class Journal:
    """The file of events. Every line is in the kernel's hands before the thing happens that it announces."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._owner = os.getpid()
        self._number = 0
        self.has_failure = False

    def write(self, event: str, **fields: Any) -> None:
        if os.getpid() != self._owner:  # a child of the script is not what is observed
            return
        line = json.dumps({"event": event, "time": round(time.time(), 3), **fields})
        os.write(self._fd, line.encode() + b"\n")
        self.has_failure |= event == "failure"

    @contextlib.contextmanager
    def phase(self, what: str, **fields: Any) -> Iterator[None]:
        """Something that may never end. Phases nest."""
        self._number += 1
        number = self._number
        self.write("begin", phase=number, what=what, **fields)
        try:
            yield
        finally:
            self.write("end", phase=number)


def _place(frame: types.FrameType | None) -> dict[str, Any] | None:
    """The innermost line of the user's own from here on outwards; of an installed package's where there is none."""
    fallback = None
    while frame is not None:
        file = frame.f_code.co_filename
        path = os.path.abspath(file)
        if not file.startswith("<") and not path.startswith((_OURS, _TORCH)):
            found = _line(path, frame.f_lineno, frame.f_code.co_qualname)
            if not path.startswith(_LIBRARIES):
                return found
            fallback = fallback or found
        frame = frame.f_back
    return fallback


def _line(path: str, number: int, function: str) -> dict[str, Any]:
    return {"file": path, "line": number, "function": function, "text": linecache.getline(path, number).strip()}


class ObservedGraph(_debug._Watched):
    """One graph: its compilation, its runs, its bundles and its failure go to the journal."""

    def __init__(self, journal: Journal, watch: Observer, *arguments: Any) -> None:
        super().__init__(watch, *arguments)
        self.journal = journal
        self.call = _place(sys._getframe())
        backend = self.compile_

        def compile_in_phase(*arguments: Any) -> Any:
            with journal.phase(
                "compile", graph=self.name, backend=watch.__name__, call=self.call, has_aot=watch.has_aot_stage()
            ):
                return backend(*arguments)

        self.compile_ = compile_in_phase

    def _call(self, inputs: list[Any]) -> Any:
        with self.journal.phase("run", graph=self.name):
            return super()._call(inputs)

    def _write(self, inputs: Sequence[Any], **more: Any) -> str:
        with_data = more.get("with_data", True)
        with self.journal.phase("write", graph=self.name):
            path = super()._write(inputs, **more)
        self.journal.write("bundle", graph=self.name, path=path, with_data=with_data)
        return path

    def _report(
        self,
        error: Exception,
        inputs: Sequence[Any],
        failure: Mapping[str, str],
        accuracy: str,
        extra: Mapping[str, str],
    ) -> None:
        super()._report(error, inputs, failure, accuracy, extra)
        notes = [n for n in getattr(error, "__notes__", ()) if n.startswith("cutaway: no repro was written")]
        self.journal.write(
            "failure",
            stage="",
            graph=self.name,
            backend=self.watch.__name__,
            bundle=getattr(error, "minifier_path", None),
            problem=notes[-1] if notes else "",
            signature=dict(failure),
            message=str(error)[:20_000],
            call=self.call,
        )


class Observer(_debug.Watch):
    """Watches one backend of the script."""

    def __init__(self, journal: Journal, backend: Any, **options: Any) -> None:
        super().__init__(backend, minify=False, **options)
        self.journal = journal

    def has_aot_stage(self) -> bool:
        from torch._dynamo.backends.common import AotAutograd

        name = self.writer.named.name
        return name.startswith(("inductor", "aot_")) or isinstance(self.backend, AotAutograd)

    def _watched(self, *arguments: Any) -> ObservedGraph:
        return ObservedGraph(self.journal, self, *arguments)


def observe_backends(journal: Journal, **options: Any) -> None:
    """Every backend that torch.compile is given from now on is watched."""
    from torch._dynamo.repro import after_dynamo

    _debug.install()
    plain = after_dynamo.wrap_backend_debug

    @functools.wraps(plain)
    def wrap_backend_debug(backend: Any, name: str | None) -> Any:
        if name == "eager" or _debug._watch_inside(backend):
            return plain(backend, name)
        try:
            return plain(Observer(journal, backend, **options), name)
        except Error as problem:
            journal.write("unwatched", backend=str(name), problem=str(problem))
            return plain(backend, name)

    wrap_backend_debug.is_cutaway = True  # type: ignore[attr-defined]
    after_dynamo.wrap_backend_debug = wrap_backend_debug  # type: ignore[assignment]


def _source_of(code: types.CodeType) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return ""


def observe_capture(journal: Journal) -> None:
    """Whatever leaves torch's capture of a frame as an exception reaches the user: it is told, with the frame."""
    from torch._dynamo import convert_frame

    capture = convert_frame.CatchErrorsWrapper.__call__

    @functools.wraps(capture)
    def observed(self: Any, frame: Any, *more: Any) -> Any:
        code = frame.f_code
        if code.co_filename.startswith((_TORCH, _OURS)):
            return capture(self, frame, *more)
        place = {"file": code.co_filename, "line": code.co_firstlineno, "function": code.co_qualname}
        with journal.phase("capture", frame=place):
            try:
                return capture(self, frame, *more)
            except Exception as error:
                if not journal.has_failure:
                    _tell_of_capture(journal, error, code, place)
                raise

    convert_frame.CatchErrorsWrapper.__call__ = observed  # type: ignore[method-assign, assignment]


def _tell_of_capture(journal: Journal, error: Exception, code: types.CodeType, place: Mapping[str, Any]) -> None:
    stack = getattr(error, "real_stack", None)
    last = stack[-1] if stack else None
    line = _line(last.filename, last.lineno, last.name) if last else {**place, "text": ""}
    signature = _failure.signature(error, "capture")
    signature["user_frame"] = f"{os.path.basename(line['file'])}:{line['line']} {line['function']}"
    journal.write(
        "failure",
        stage="capture",
        graph="",
        backend="",
        bundle=None,
        problem="",
        signature=signature,
        message=str(error)[:20_000],
        call=_place(sys._getframe()),
        line=line,
        frame={**place, "source": _source_of(code)},
    )


def run_script(path: str, arguments: Sequence[str]) -> int:
    """As `python path arguments` would: __main__, sys.argv, sys.path. Its traceback begins at its own first frame."""
    with io.open_code(path) as file:
        text = file.read()
    main = types.ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    try:
        exec(compile(text, os.path.abspath(path), "exec", dont_inherit=True), main.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0)
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and os.path.abspath(trace.tb_frame.f_code.co_filename).startswith(_OURS):
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        return -1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cutaway.observe", description="runs a script and watches its torch.compile"
    )
    parser.add_argument("--events", required=True, help="the file that gets a JSON object a line")
    parser.add_argument("--folder", required=True, help="where bundles go")
    parser.add_argument("--after", default="capture", choices=["capture", "aot"])
    parser.add_argument("--level", type=int, default=2, choices=[2, 3, 4])
    parser.add_argument("--check-calls", type=int, default=None, help="level 4: only so many calls of each graph")
    parser.add_argument("--max-bytes", type=int, default=None, help="data above this is not kept")
    parser.add_argument("--eager", action="store_true", help="as if every torch.compile were not there")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for name in ("CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"):  # nothing nests
        os.environ.pop(name, None)
    journal = Journal(options.events)
    watch: dict[str, Any] = {"after": options.after, "level": options.level, "base_dir": options.folder}
    if options.check_calls is not None:
        watch["check_calls"] = options.check_calls
    if options.max_bytes is not None:
        watch["max_bytes"] = options.max_bytes
    observe_backends(journal, **watch)
    observe_capture(journal)
    if options.eager:
        # Not the variable, for this process: with it torch refuses to run what was compiled with fullgraph=True.
        torch.compiler.set_stance("force_eager")
        os.environ["TORCH_COMPILE_DISABLE"] = "1"
    journal.write("script", path=os.path.abspath(options.script), threads=torch.get_num_threads())
    status = run_script(options.script, options.arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    journal.write("finished", status=abs(status), raised=status == -1)
    return abs(status)


if __name__ == "__main__":
    sys.exit(main())
