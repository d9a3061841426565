"""The user's own process as a worker: candidates are forked from it where a graph is about to be given to its backend.

A backend may be any object: a closure, an instance, what the program has made of it on the way. No other process has a
name for it. So the program runs once more up to the same compilation, on one thread, and serves trials there.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import _input, _native, _program
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
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


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
        with open(program.path, "w", encoding="utf-8") as script:
            script.write(told["text"])
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
