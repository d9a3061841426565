"""``python -m cutaway._launch``: torch is loaded here once, and the processes of one command that need it are forked from here.

A fork takes milliseconds and has run nothing but imports, so that it is as fresh as a process that was started. Requests come over the
socket CUTAWAY_LAUNCH_FD (docs/formats/worker.md). What is forked becomes the child of whoever asks: it is forked twice, and the one in
between ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import socket
import sys
import threading
import warnings
from typing import Any

from . import _forks

_MOST_DESCRIPTORS = 8


def _read(control: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = control.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    byte, descriptors, _, _ = socket.recv_fds(control, 1, _MOST_DESCRIPTORS)
    if not byte:
        raise EOFError
    size = int.from_bytes(_read(control, 8), "little")
    return json.loads(_read(control, size)), descriptors


def _answer(control: socket.socket, **fields: Any) -> None:
    text = json.dumps(fields).encode()
    control.sendall(len(text).to_bytes(8, "little") + text)


def _fork_beside() -> int:
    """Like os.fork(); the new process is an orphan, which its next ancestor that wants orphans has taken over when this returns."""
    reads, writes = os.pipe()
    middle = os.fork()
    if middle == 0:
        with contextlib.suppress(OSError):
            new = os.fork()
            if new == 0:
                os.setpgid(0, 0)
                os.close(reads)
                os.close(writes)
                return 0
            os.write(writes, str(new).encode())
        os._exit(0)
    os.close(writes)
    os.waitpid(middle, 0)
    new = int(os.read(reads, 32) or b"0")
    os.close(reads)
    if new == 0:
        raise OSError("no process could be made")
    with contextlib.suppress(OSError):
        os.setpgid(new, new)  # whoever is told of it may end its group at once
    return new


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """The descriptors, variables and folder of the process that was asked for."""
    null = os.open("/dev/null", os.O_RDONLY)
    targets = request["descriptors"]
    given = [*zip(descriptors, targets, strict=True), *([] if 0 in targets else [(null, 0)])]
    above = max([2, *targets]) + 1
    moved = []
    for here, there in given:  # none may overwrite one that is still needed
        moved.append((fcntl.fcntl(here, fcntl.F_DUPFD_CLOEXEC, above), there))
    for high, there in moved:
        os.dup2(high, there, inheritable=True)
    for fd in {null, *descriptors, *(high for high, _ in moved)} - {0, *targets}:
        os.close(fd)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    _read_again()


def _read_again() -> None:
    """Variables that torch has read while it was loaded, where a worker's differ from the script's."""
    import torch._functorch.config as aot
    import torch._inductor.config as inductor

    threads = os.environ.get("TORCHINDUCTOR_COMPILE_THREADS", "")
    if threads.isdigit():
        inductor.compile_threads = int(threads)
    for config, name, variable in (
        (inductor, "fx_graph_cache", "TORCHINDUCTOR_FX_GRAPH_CACHE"),
        (aot, "enable_autograd_cache", "TORCHINDUCTOR_AUTOGRAD_CACHE"),
    ):
        if os.environ.get(variable) == "0" and hasattr(config, name):
            setattr(config, name, False)


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """The request in a new process; None in this one, when nobody is left who asks."""
    while True:
        try:
            request, descriptors = _receive(control)
        except (EOFError, OSError):
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # Python warns of the threads of numerical libraries, which end before a fork
                can = threading.active_count() == 1 and not _forks.loses_cuda()
                new = _fork_beside() if can else -1
        except OSError:
            new = -1
        if new == 0:
            control.close()
            _become(request, descriptors)
            return request
        for fd in descriptors:
            os.close(fd)
        _answer(control, pid=new)


def main() -> int:
    control = socket.socket(fileno=int(os.environ.pop("CUTAWAY_LAUNCH_FD")))
    import torch._dynamo.repro.after_dynamo  # noqa: F401

    from . import observe, worker

    gc.collect()
    gc.freeze()  # else the first collection in every process would copy all of it
    request = _serve(control)
    if request is None:
        os._exit(0)
    module, *words = request["words"]
    sys.argv = [module, *words]
    return worker.main() if module == "cutaway.worker" else observe.main()


if __name__ == "__main__":
    sys.exit(main())
