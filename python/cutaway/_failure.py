"""What is known of an exception: type, message, trace, the user's line. C++ asks here about Python's exceptions."""

from __future__ import annotations

import contextlib
import dis
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch

from . import _native, _program

__all__ = ["AccuracyError", "describe", "signature"]

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep


class AccuracyError(Exception):
    """The compiled graph's numbers differ from eager's. `verdict` has the numbers."""

    verdict: Any = None


_native.raise_checks_as(AccuracyError)  # CUTAWAY_CHECK: found while the compiled graph runs, by C++


def writable(text: str) -> str:
    """With what UTF-8 has no bytes for (half of a surrogate pair, a byte of a file's name) spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(error: BaseException) -> str:
    """Its message. The class may be the program's own: one that cannot say its text is a failure all the same."""
    try:
        return writable(str(error))
    except Exception as problem:
        return f"(a {type(error).__name__} whose text raises {type(problem).__name__})"


def _innermost(error: BaseException) -> BaseException:
    """What a backend raised, inside the exception that torch.compile makes of it."""
    while isinstance(inner := getattr(error, "inner_exception", None), BaseException):
        error = inner
    return error


def _generated_folder() -> str:
    """Where Inductor keeps the files that it writes."""
    known = sys.modules.get("torch._inductor.runtime.cache_dir_utils")
    folder = known.cache_dir() if known is not None and hasattr(known, "cache_dir") else os.devnull
    return os.path.abspath(folder) + os.sep


def _user_frame(error: BaseException) -> str:
    """file:line function of the innermost frame that is neither torch's, ours nor Python's own."""
    found = ""
    generated = _generated_folder()
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        name = _program.absolute(code.co_filename)
        if name.startswith((_TORCH, _OURS, _PYTHON, generated)) or code.co_filename.startswith("<"):
            continue
        found = f"{os.path.basename(name)}:{line} {code.co_qualname}"
    return found


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    text = text_of(error)
    return isinstance(error, RuntimeError) and ("DefaultCPUAllocator" in text or "can't start new thread" in text)


def is_users_interrupt(error: BaseException) -> bool:
    """Ctrl-C, and not somebody who raises KeyboardInterrupt: a signal comes between two instructions."""
    if not isinstance(error, KeyboardInterrupt) or error.__traceback__ is None:
        return False
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    return dis.opname[frame.tb_frame.f_code.co_code[frame.tb_lasti]] not in ("RAISE_VARARGS", "RERAISE")


def _message(error: BaseException) -> str:
    """The message; of a C++ compiler's, with what it complained of on the first line, which is the one that counts."""
    if isinstance(error, SystemExit):
        return writable(f"sys.exit({error.code!r})")
    text = text_of(error)
    first, _, rest = text.partition("\n")
    if type(error).__name__ == "CppCompileError":
        complaint = next((line.partition(" error: ")[2] for line in rest.splitlines() if " error: " in line), "")
        return f"{first}: {complaint}\n{rest}" if complaint else text
    return text


def _suspects(error: BaseException) -> list[str]:
    """Nodes of the kernel that was being built or called in Inductor's generated file when this was raised."""
    hooks = sys.modules.get("cutaway._inductor_hooks")
    kernels = dict(hooks.newest) if hooks is not None else {}
    found: list[str] = []
    for frame, line in traceback.walk_tb(error.__traceback__) if kernels else ():
        if frame.f_code.co_filename.startswith((_TORCH, _OURS)):
            continue
        for word in re.findall(r"\w+", linecache.getline(frame.f_code.co_filename, line)):
            found = kernels.get(word, found)
    return found


def describe(error: BaseException) -> tuple[str, str, str, str, bool, list[str], int]:
    """(type, message, trace, user frame, whether memory ran out, nodes that it points to, kernels built before it)."""
    inner = _innermost(error)
    trace = writable("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    suspects = _suspects(inner) or _suspects(error)
    hooks = sys.modules.get("cutaway._inductor_hooks")
    builds = int(hooks.builds[0]) if hooks is not None else 0
    kind, message, frame = type(inner).__name__, _message(inner), writable(_user_frame(inner))
    return kind, message, trace[-20_000:], frame, _is_memory(inner), suspects, builds


def signature(error: BaseException, stage: str = "backend") -> dict[str, str]:
    """The failure signature of a manifest."""
    kind, message, _, frame, is_memory, *_ = describe(error)
    if isinstance(_innermost(error), _native.ProgramDied):  # the command died by SIGSEGV
        return {"kind": "crash", "stage": stage, "signal": message.partition("\n")[0].rpartition(" ")[2]}
    return dict(_native.failure_signature(kind, message, frame, stage, is_memory))


def one_line(error: BaseException) -> str:
    """The type, and the first line of the message."""
    text = text_of(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def notice(text: str) -> None:
    """One line for the person at the terminal."""
    with contextlib.suppress(OSError, ValueError):  # closed by the program
        print(f"cutaway: {writable(text)}", file=sys.stderr, flush=True)


def exit_status(work: Callable[[], None], place: str) -> int:
    """0, or 2 with a message and no trace: for programs of ours that the native command runs."""
    try:
        work()
    except _native.Error as e:
        print(e, file=sys.stderr)
        return 2
    except Exception as e:  # torch's exporter and tracer raise whatever they like
        text = " ".join(str(e).split()) or "no message"
        print(f"{place}: cannot be made a graph of\n   because: {type(e).__name__}: {text[:1000]}", file=sys.stderr)
        return 2
    return 0


_native.set_exception_describer(describe)
