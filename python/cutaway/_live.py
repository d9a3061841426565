"""The user's own process as a worker: candidates are forked from it where a graph is about to be given to its backend.

A backend may be any object: a closure, an instance, what the program has made of it on the way. No other process has a
name for it. An observed program forks a copy of itself before such a compilation, which waits there (``keep_a_copy``).
Where it could not, the program runs once more up to the same compilation, on one thread, and serves trials there.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import socket
import struct
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import _forks, _input, _native, _program
from ._native import Error


@dataclass
class Target:
    """Where to serve: in the process of this name, at its so many-th compilation."""

    compilation: int
    process: str
    open: Callable[[], int]  # the socket to serve


_target: Target | None = None
_numbers = itertools.count(1)


def arrived(compile_: Callable[..., Any]) -> int:
    """A graph is about to be given to `compile_`; returns its number. Does not return where trials are served."""
    number = next(_numbers)
    if _target is not None and _target.compilation == number and _target.process == _program.process_name():
        _serve(compile_, _target.open())
    return number


def is_serving() -> bool:
    """This process only runs up to where it serves: nothing is written or reduced on the way."""
    return _target is not None


def description(compilation: int, stage: str) -> dict[str, Any] | None:
    """What a bundle says of the program that it comes from; None where nobody could run it again."""
    program = _program.current()
    if program is None or compilation == 0:
        return None
    place = {"compilation": compilation, "after": stage, "process": _program.process_name()}
    return {**program.as_dict(), **place, "text": program.text(), "input": _input.text()}


def _serve(compile_: Callable[..., Any], fd: int) -> None:
    from torch._guards import compile_context, tracing
    from torch.utils._python_dispatch import _disable_current_modes

    from . import _backends, _debug

    def alone(gm: torch.fx.GraphModule, inputs: Any, **_: Any) -> Any:
        return compile_(gm, inputs)  # options and the like are bound to it already

    _backends.register_all()
    _backends.register_live(alone)
    # What is under way around us is not the candidate's: the capture of this graph, and its fake tensors.
    with _debug._off(), _debug._own_metrics(), _disable_current_modes(), tracing(None), compile_context(None):
        _native.serve_worker(fd, True, prepare)
    _program.flush()
    os._exit(0)


_MOST_COPIES = 16  # of one program; the oldest go
_GRACE_S = 20.0  # after the program's end: who wants a copy asks for it at once
_copies: list[int] = []  # the ends of pipes whose closing tells a copy that it is not wanted any more


def keep_a_copy(compile_: Callable[..., Any], silence: Callable[[], None]) -> str | None:
    """Forks this process where a graph is about to be given to `compile_`. Returns the address at which the copy waits.

    None where a copy would be of no use: it could not use CUDA, or threads run that it would not have. Threads of OpenMP are no
    hindrance, since the copy stays on one thread: measured after parallel regions, convolutions and backward passes.
    """
    if is_serving() or _program.process_name() or threading.active_count() > 1 or torch.cuda.is_initialized():
        return None
    if _forks.loses_cuda():
        return None
    place = f"cutaway-copy-{os.getpid()}-{os.urandom(8).hex()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + place)
    listener.listen()
    wanted, end = os.pipe()
    _program.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of OpenMP's threads
        try:
            child = os.fork()
        except OSError:  # no memory, or too many processes
            child = -1
    if child != 0:
        listener.close()
        os.close(wanted)
        if child < 0:
            os.close(end)
            return None
        _copies.append(end)
        if len(_copies) > _MOST_COPIES:
            os.close(_copies.pop(0))
        return place
    status = 1
    with contextlib.suppress(BaseException):
        for other in [*_copies, end]:
            os.close(other)
        _be_a_copy(compile_, silence, listener, wanted)
        status = 0
    os._exit(status)


def _be_a_copy(compile_: Callable[..., Any], silence: Callable[[], None], listener: socket.socket, wanted: int) -> None:
    global _target
    os.setpgid(0, 0)  # the program is ended with its group once it has failed
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))  # each trial gets its own limit
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    silence()
    _target = Target(-1, "", lambda: -1)
    is_over = False
    while True:
        watched: list[Any] = [listener] if is_over else [listener, wanted]
        ready, _, _ = select.select(watched, [], [], _GRACE_S if is_over else None)
        if listener in ready:
            other, _ = listener.accept()
            _, owner, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if owner == os.getuid():
                break
            other.close()
        elif is_over:
            return
        else:
            is_over = True
    fd = socket.recv_fds(other, 1, 1)[1][0]
    listener.close()
    _stay_on_one_thread()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
        os.environ[name] = "1"
    inductor = sys.modules.get("torch._inductor.config")
    if inductor is not None:
        inductor.compile_threads = 1  # type: ignore[attr-defined]
    _serve(compile_, fd)  # `other` stays open as long as this process lives: that is how the other side knows


def prepare(libraries: list[str], python_path: list[str]) -> None:
    """In the child, before a trusted trial."""
    import importlib

    sys.path[:0] = [p for p in python_path if p not in sys.path]
    for module in libraries:
        importlib.import_module(module)


def run_up_to(file: str, fd: int) -> int:
    """Runs the program that a bundle describes, which serves on `fd` once it gets there. Returns where it does not."""
    global _target
    with open(file, encoding="utf-8") as text:
        told = json.load(text)
    program = _program.from_dict(told)
    if program.path and not os.path.exists(program.path):
        if not told.get("text"):
            raise Error(f"{program.path}: the program is not there, and the bundle has no text of it")
        program.path = os.path.join(os.path.dirname(os.path.abspath(file)), os.path.basename(program.path))
        with open(program.path, "wb") as script:
            script.write(_program.encoded(told["text"]))
    if os.path.isdir(program.directory):
        os.chdir(program.directory)
    os.set_inheritable(fd, False)
    if told["process"]:  # one that the program starts
        os.environ["CUTAWAY_SERVE"] = json.dumps([told["compilation"], told["process"], _hand_out(fd)])
    _target = Target(told["compilation"], told["process"], lambda: fd)
    _stay_on_one_thread()
    _input.give(told.get("input", ""))
    _program.observed(program)
    status = _program.run(program)
    what = f"compilation {told['compilation']}" + (f" of {told['process']}" if told["process"] else "")
    raise Error(
        f"{program.name} came to its end (status {abs(status)}) without {what}\n   because: it does not do the same every time"
    )


def join() -> None:
    """In a process that the program started: it serves if it is the one that is wanted."""
    global _target
    told = os.environ.get("CUTAWAY_SERVE")
    if told is None:
        return
    compilation, process, place = json.loads(told)
    _target = Target(compilation, process, lambda: _take(place))
    _stay_on_one_thread()


def _stay_on_one_thread() -> None:
    """A child that is forked after a parallel region hangs in its own first one."""
    torch.set_num_threads(1)
    torch.set_num_threads = lambda nthreads: None


def _hand_out(fd: int) -> str:
    """An address at which processes of the program get the socket: a descriptor does not survive how Python starts them."""
    place = f"cutaway-serve-{os.getpid()}-{os.urandom(8).hex()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + place)
    listener.listen()

    def answer() -> None:
        while True:
            other, _ = listener.accept()
            with other:
                socket.send_fds(other, [b"x"], [fd])

    threading.Thread(target=answer, daemon=True, name="cutaway-serve").start()
    return place


def _take(place: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.connect("\0" + place)
        return socket.recv_fds(other, 1, 1)[1][0]
