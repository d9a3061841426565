"""The program that this process runs: how it was started, so that it can be started again; and running one as Python does."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import multiprocessing
import os
import pkgutil
import sys
import tempfile
import tokenize
import traceback
import types
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MOST_TEXT = 1 << 20  # of a script that a bundle takes along


@dataclass
class Program:
    """A script or, with ``python -m``, a module."""

    path: str = ""
    module: str = ""
    arguments: list[str] = field(default_factory=list)
    directory: str = ""
    shown: str = ""  # sys.argv[0] where that is not the path: "-" for a text from standard input
    watched: str = "debug"  # whose compilations count: those of cutaway.debug, or "all" under observation

    @property
    def name(self) -> str:
        return self.module or os.path.basename(self.path)

    def text(self) -> str:
        """The script's, decoded as Python does; empty where there is none, or too much of it."""
        try:
            with tokenize.open(self.path) as file:
                text = file.read(_MOST_TEXT + 1)
        except (OSError, ValueError, SyntaxError):
            return ""
        return text if len(text) <= _MOST_TEXT else ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def absolute(path: str) -> str:
    """The name of a source file; as it is where the current folder is gone."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        return path


_first, *_arguments = getattr(sys, "argv", None) or [""]  # before the program may change them
try:
    _directory = os.getcwd()
except FileNotFoundError:  # somebody removed it
    _directory = ""
_observed: Program | None = None
_is_started_by_the_program = False


def observed(program: Program, *, by_the_program: bool = False) -> None:
    """What runs on behalf of somebody who knows how: in this process, or in one that has started this one."""
    global _observed, _is_started_by_the_program
    _observed, _is_started_by_the_program = program, by_the_program


def current() -> Program | None:
    """None where nobody could start it again: an interactive session, ``python -c``, standard input."""
    if _observed is not None:
        return _observed
    by_environment = any(os.environ.get(name) for name in ("CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"))
    watched = "all" if by_environment else "debug"
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name == "__main__":  # a folder or an archive
        file = _first
    elif spec is not None:
        module = spec.name.removesuffix(".__main__")
        return Program(module=module, arguments=_arguments, directory=_directory, watched=watched)
    path = os.path.join(_directory, file) if file else ""
    program = Program(path=path, arguments=_arguments, directory=_directory, watched=watched)
    return program if os.path.exists(path) else None


def process_name() -> str:
    """Which of the program's processes this is: its rank, what multiprocessing calls it, what it runs; empty for the first one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return f"rank {distributed.get_rank()}"
    if rank := os.environ.get("RANK"):
        return f"rank {rank}"
    if multiprocessing.parent_process() is not None:
        return multiprocessing.current_process().name
    return f"process {os.path.basename(sys.argv[0])}" if _is_started_by_the_program else ""


def flush() -> None:
    """Standard output and error, where the program has left them open."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()


def run(program: Program, tell: Callable[[BaseException], None] | None = None) -> int:
    """As `python path arguments`, or `python -m module arguments`, would: __main__, sys.argv, sys.path.

    Returns its exit status, or -1 after an exception, whose traceback begins at the program's own first frame. ``tell``
    hears of that exception before.
    """
    try:
        main, code, first, folder = _module(program.module) if program.module else _script(program.path)
        sys.modules["__main__"] = main
        sys.argv = [program.shown or first, *program.arguments]
        sys.path[0] = "" if program.shown == "-" else folder
        exec(code, main.__dict__)  # noqa: S102  (the user's program is what we are asked to run)
    except SystemExit as end:
        return exit_code(end)
    except BaseException as error:
        if tell is not None:
            tell(error)
        trace = error.__traceback__
        while trace is not None and absolute(trace.tb_frame.f_code.co_filename).startswith(_OURS):
            trace = trace.tb_next
        with contextlib.suppress(OSError, ValueError):  # the program may have closed it
            traceback.print_exception(type(error), error, trace)
        return -1
    return 0


def exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return int(end.code or 0)
    print(end.code, file=sys.stderr)
    return 1


def encoded(text: str) -> bytes:
    """A script's text as a file that Python decodes to it: what the file says of its encoding stays true."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(text.encode()).readline)
    return text.encode(encoding)


def _script(path: str) -> tuple[types.ModuleType, types.CodeType, str, str]:
    if os.path.isdir(path) or zipfile.is_zipfile(path):  # what is in it is imported from it
        importer: Any = pkgutil.get_importer(path)
        return _main_of(importer.find_spec("__main__"), path, path, path)
    with io.open_code(path) as file:
        text = file.read()
    main = types.ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    code = compile(text, os.path.abspath(path), "exec", dont_inherit=True)
    return main, code, path, os.path.dirname(os.path.realpath(path))


def _module(name: str) -> tuple[types.ModuleType, types.CodeType, str, str]:
    sys.path[0] = os.getcwd()  # its packages are looked for from here
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:  # a package: its __main__
        spec = importlib.util.find_spec(name + ".__main__")
    return _main_of(spec, name, (spec.origin if spec else "") or name, os.getcwd())


def _main_of(spec: Any, name: str, first: str, folder: str) -> tuple[types.ModuleType, types.CodeType, str, str]:
    """A module as the program: what ``_script`` returns."""
    code = getattr(spec.loader, "get_code", lambda _: None)(spec.name) if spec is not None else None
    if spec is None or code is None:
        raise ImportError(f"there is no module {name} that can be run")
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=spec.origin, __spec__=spec, __package__=spec.parent, __loader__=spec.loader, __builtins__=__builtins__
    )
    return main, code, first, folder


def from_dict(fields: dict[str, Any]) -> Program:
    known = Program.__dataclass_fields__
    return Program(**{k: v for k, v in fields.items() if k in known})


def run_words(words: Sequence[str]) -> int:
    """Runs what a command line names: SCRIPT ARGS…, -m MODULE ARGS…, or - for a text from standard input. Returns its exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        program = arguments_of(words)
        if words[0] == "-":
            program.path = os.path.join(scratch, "stdin.py")
            with open(program.path, "wb") as script:
                script.write(sys.stdin.buffer.read())
        return run(program)


def arguments_of(words: Sequence[str]) -> Program:
    """Of a command line: SCRIPT ARGS…, or -m MODULE ARGS…."""
    if words[:1] == ["-m"]:
        return Program(module=words[1], arguments=list(words[2:]), directory=os.getcwd(), watched="all")
    path, shown = os.path.abspath(words[0]), words[0]
    return Program(path=path, arguments=list(words[1:]), directory=os.getcwd(), shown=shown, watched="all")
