"""``python -m cutaway.observe --events FILE --folder DIR SCRIPT [ARGS…]``: runs a script and watches what it compiles.

The script (or ``-m MODULE``) runs as it would directly, and so do the processes that it starts. What happens is written
to FILE, a stream of events, before it happens where it may not come back: `cutaway triage` reads it, also after a crash
or in a hang. docs/formats/observation.md has them. ``--serve FILE``: the program that a bundle names runs up to the
compilation that the bundle is about, and serves trials there.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
import linecache
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import torch

from . import _debug, _failure, _input, _live, _manifest, _native, _observe_own, _program
from ._native import Error
from ._native import debug as _debug_events

CANNOT_WRITE = 97  # the exit status that tells it
_TOPIC = "observe"
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARIES = tuple({os.path.abspath(p) + os.sep for p in sysconfig.get_paths().values()})


class Journal:
    """The file of events. Every line is in the kernel's hands before the thing happens that it announces.

    Processes that the script starts write to it too: each line is one write, and says whose it is.
    """

    def __init__(self, path: str) -> None:
        try:
            self._file = _debug_events.EventFile(path)
        except Error as problem:
            _cannot_write(problem)
        self.graphs = 0
        self.has_failure = False

    def write(self, event: str, reason: str = "", **fields: Any) -> None:
        self._file.decide(_TOPIC, event, reason, _flat(fields))
        self._check()
        self.has_failure |= event == "failure"

    def _check(self) -> None:
        if self._file.problem:  # whoever reads them would draw the wrong conclusion from what is missing
            _cannot_write(self._file.problem)

    def silence(self) -> None:
        """From now on this process writes nothing."""
        self._file.silence()

    def next_graph(self) -> str:
        self.graphs += 1
        return f"graph_{self.graphs - 1}"

    @contextlib.contextmanager
    def phase(self, what: str, **fields: Any) -> Iterator[None]:
        """Something that may never end. Phases nest. In a child that was forked inside, its end is that of a phase which nobody began."""
        phase = self._file.phase(_TOPIC, what, _flat(fields))
        phase.__enter__()
        self._check()
        try:
            yield
        finally:  # the exception is not handed on: its text would be asked of the program's class
            phase.__exit__(None, None, None)
            self._check()


def _flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Fields of an event: those of an object inside by names with a dot, and what is None left out."""
    flat: dict[str, Any] = {}
    for key, value in fields.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            flat[prefix + key] = _failure.writable(value) if isinstance(value, str) else value
    return flat


def _cannot_write(problem: object) -> NoReturn:
    try:
        _failure.notice(f"the events cannot be written: {problem}")
    finally:  # where nothing can be written, neither can this
        os._exit(CANNOT_WRITE)


def _place(frame: types.FrameType | None) -> dict[str, Any] | None:
    """The innermost line of the user's own from here on outwards; of an installed package's where there is none."""
    fallback = None
    while frame is not None:
        file = frame.f_code.co_filename
        path = _program.absolute(file)
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
        self.told: set[str] = set()  # outcomes, each once a graph
        self.call = _place(sys._getframe())
        self.capture = "cutaway" if "cutaway_graph" in self.given.meta else "torch"
        backend = self.compile_

        def compile_in_phase(*arguments: Any) -> Any:
            about = {"graph": self.name, "backend": watch.__name__, "call": self.call, "has_aot": watch.has_aot_stage()}
            about["capture"] = self.capture
            with journal.phase("compile", process=_program.process_name(), **about):
                return backend(*arguments)

        self.compile_ = compile_in_phase

    def compile(self, inputs: Sequence[Any]) -> Any:
        if self.watch.writer.named.is_live or _manifest.has_operators_of_the_program(self.given):
            place = _live.keep_a_copy(self.compile_, self.journal.silence)
            if place is not None:
                self.journal.write("copy", graph=self.name, address=place)
        return super().compile(inputs)

    def _call(self, inputs: list[Any]) -> Any:
        with self.journal.phase("run", graph=self.name):
            return super()._call(inputs)

    def _write(self, inputs: Sequence[Any], **more: Any) -> str:
        with_data = more.get("with_data", True)
        with self.journal.phase("write", graph=self.name):
            path = super()._write(inputs, **more)
        self.journal.write("bundle", graph=self.name, path=path, with_data=with_data)
        return path

    def _tell(self, verdict: Any, inputs: Sequence[Any]) -> None:
        if verdict.outcome not in ("ill-conditioned", "closer to fp64") or verdict.outcome in self.told:
            return
        bundle = None
        if verdict.outcome == "ill-conditioned":  # parts of it are looked at
            with contextlib.suppress(Exception):
                bundle = self._write(inputs, accuracy="accuracy")
        self._judged(verdict.outcome, f"{verdict.path}: {verdict.reason}", bundle)

    def _judged(self, outcome: str, reason: str, bundle: str | None = None) -> None:
        self.told.add(outcome)
        self.journal.write("verdict", graph=self.name, outcome=outcome, reason=reason, bundle=bundle)

    def _not_judged(self, reason: str) -> None:
        super()._not_judged(reason)
        if "not judged" not in self.told:
            self._judged("not judged", reason)

    def _report(
        self,
        error: BaseException,
        inputs: Sequence[Any],
        failure: Mapping[str, str],
        accuracy: str,
        extra: Mapping[str, str],
    ) -> str:
        problem = super()._report(error, inputs, failure, accuracy, extra)
        self.journal.write(
            "failure",
            stage="",
            graph=self.name,
            backend=self.watch.__name__,
            bundle=getattr(error, "minifier_path", None),
            problem=problem,
            signature=dict(failure),
            message=(_failure.text_of(error) or type(error).__name__)[:20_000],
            call=self.call,
            process=_program.process_name(),
            capture=self.capture,
        )
        return problem


class Observer(_debug.Watch):
    """Watches one backend of the script."""

    def __init__(self, journal: Journal, backend: Any, **options: Any) -> None:
        super().__init__(backend, minify=False, **options)
        self.journal = journal

    def has_aot_stage(self) -> bool:
        from torch._dynamo.backends.common import AotAutograd

        backend = getattr(self.backend, "compiler_fn", self.backend)  # inside torch's wrapper for mode and options
        return _native.backend_row(self.writer.named.name)["has_aot_stage"] or isinstance(backend, AotAutograd)

    def _next_name(self) -> str:
        return self.journal.next_graph()

    def _watched(self, *arguments: Any) -> ObservedGraph:
        return ObservedGraph(self.journal, self, *arguments)


def observe_backends(journal: Journal, **options: Any) -> None:
    """Every backend that torch.compile is given from now on is watched."""
    _debug.watch_backends(
        lambda backend: Observer(journal, backend, **options),
        lambda name, problem: journal.write("unwatched", backend=name, problem=problem),
    )


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
        process = os.getpid()
        with journal.phase("capture", frame=place):
            try:
                return capture(self, frame, *more)
            except Exception as error:
                if not journal.has_failure and os.getpid() == process:
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
        message=_failure.text_of(error)[:20_000],
        call=_place(sys._getframe()),
        line=line,
        frame={**place, "source": _source_of(code)},
    )


def attach(settings: Mapping[str, Any]) -> Journal:
    """What this process compiles is watched from now on, as `settings` say."""
    journal = Journal(settings["events"])
    watch = {k: v for k, v in settings.items() if k in _WATCH and v is not None}
    observe_backends(journal, base_dir=settings["folder"], **watch)
    observe_capture(journal)
    _observe_own.install(
        journal,
        lambda backend: Observer(journal, backend, base_dir=settings["folder"], **watch),
        _place,
        settings.get("backend") or "",
        is_off=settings["eager"],
    )
    if settings["eager"]:
        # Not the variable, for this process: with it torch refuses to run what was compiled with fullgraph=True.
        torch.compiler.set_stance("force_eager")
    if settings.get("draw_as_eager"):
        from torch._inductor import config

        config.fallback_random = True
    return journal


def join() -> None:
    """In a process that a watched program started (``_children/sitecustomize.py``): it is watched as well."""
    with open(os.environ["CUTAWAY_OBSERVE"], encoding="utf-8") as file:
        settings = json.load(file)
    _program.observed(_program.from_dict(settings["program"]), by_the_program=True)
    _live.join()
    attach(settings)


def _take_children_along(folder: str, settings: Mapping[str, Any]) -> None:
    """Python processes that the program starts find us on their way up."""
    file = os.path.join(folder, "observe.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(settings, out)
    os.environ["CUTAWAY_OBSERVE"] = file
    mine = [os.path.join(_OURS, "_children"), os.environ.get("PYTHONPATH", ""), _package()]
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in mine if p)
    if settings["eager"]:
        os.environ["TORCH_COMPILE_DISABLE"] = "1"


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(_native.__file__)))


_WATCH = ("after", "level", "check_calls", "max_bytes")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cutaway.observe", description="runs a script and watches its torch.compile"
    )
    parser.add_argument("--events", help="the file that gets the events")
    parser.add_argument("--folder", help="where bundles go")
    parser.add_argument("--after", default="capture", choices=["capture", "aot"])
    parser.add_argument("--level", type=int, default=2, choices=[2, 3, 4])
    parser.add_argument("--check-calls", type=int, default=None, help="level 4: only so many calls of each graph")
    parser.add_argument("--max-bytes", type=int, default=None, help="data above this is not kept")
    parser.add_argument("--eager", action="store_true", help="as if every torch.compile were not there")
    parser.add_argument("--draw-as-eager", action="store_true", help="Inductor draws random numbers in eager's order")
    parser.add_argument(
        "--memory", type=int, default=None, help="bytes that the script may take beyond what is loaded now"
    )
    parser.add_argument("--backend", default="", help="what cutaway.compile uses instead of what the script says")
    parser.add_argument("--input", help="the file that gets what the script is given as standard input")
    parser.add_argument("--shown-as", default="", help="its sys.argv[0]")
    parser.add_argument("--serve", metavar="FILE", help="run the program that this file names up to where it serves")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="SCRIPT or -m MODULE, and its arguments")
    options = parser.parse_args()
    for name in ("CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"):  # nothing nests
        os.environ.pop(name, None)
    if options.serve:
        try:
            serve(options.serve)
        except Error as error:
            print(error, file=sys.stderr)
        return 2
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    program = _program.arguments_of(words)
    if options.shown_as:
        program.shown = options.shown_as
    _input.note(options.input or "")
    settings = {k: v for k, v in vars(options).items() if k not in ("serve", "words", "memory", "shown_as")}
    settings["program"] = program.as_dict()
    _program.observed(program)
    _take_children_along(options.folder, settings)
    journal = attach(settings)
    if options.memory:
        _limit_memory(options.memory)
    journal.write("script", path=program.name, threads=torch.get_num_threads())
    first = os.getpid()
    status = _program.run(program, lambda error: _observe_own.tell(journal, error))
    _program.flush()
    if os.getpid() != first:  # a copy of the script that it forked itself and that came to the script's end
        return abs(status)
    journal.write("finished", status=abs(status), raised=status == -1, threads=", ".join(_threads_left()))
    return abs(status)


def _limit_memory(more: int) -> None:
    """As a worker limits a candidate: what allocates beyond it fails, and not the machine."""
    import resource

    with open("/proc/self/status", encoding="ascii") as lines:
        own = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (own + more, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _threads_left() -> list[str]:
    """Those that Python waits for before it ends."""
    return [t.name for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]


def serve(file: str) -> None:
    """The program runs up to the compilation that `file` is about, watched as it was then, and serves trials there."""
    fd = int(os.environ.pop("CUTAWAY_WORKER_FD"))
    with open(file, encoding="utf-8") as text:
        told = json.load(text)
    if told["watched"] == "all":
        settings = {"events": os.devnull, "folder": os.devnull, "after": told["after"], "level": 2, "eager": False}
        settings["program"] = told
        if told["process"]:
            _take_children_along(os.path.dirname(os.path.abspath(file)), settings)
        attach(settings)
    _live.run_up_to(file, fd)


if __name__ == "__main__":
    sys.exit(main())
