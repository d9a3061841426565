"""``python -m cutaway.remote_worker --on ray://HOST:PORT -- COMMAND …``: a worker whose trials run on a Ray cluster.

It speaks the worker protocol (docs/formats/worker.md) on the socket CUTAWAY_WORKER_FD, as COMMAND would. Each question goes to an
actor of the cluster, which has started COMMAND on its own machine; the blobs that the question names go through Ray's object store, by
digest, each once. A machine that is lost costs the questions that it had: they are asked again elsewhere. What names files of this
machine (a log, edited code, bundles to run before) is answered by a COMMAND of this machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import queue
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from typing import Any

TRIES = 5  # how many machines may be lost under one question
_DIGEST = re.compile(r'"([0-9a-f]{32})"')


def _receive(connection: socket.socket) -> bytes | None:
    """The next message, or None at the end."""

    def exactly(count: int) -> bytes | None:
        parts = b""
        while len(parts) < count:
            part = connection.recv(min(count - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return parts

    head = exactly(8)
    return None if head is None else exactly(struct.unpack("<Q", head)[0])


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(struct.pack("<Q", len(message)) + message)


def _blob(store: pathlib.Path, digest: str) -> pathlib.Path:
    return store / "blobs" / digest[:2] / digest


def _write_blob(store: pathlib.Path, digest: str, data: bytes) -> None:
    path = _blob(store, digest)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{digest}-{os.getpid()}-{threading.get_ident()}")
    fresh.write_bytes(data)
    fresh.replace(path)


class Slot:
    """One COMMAND on the machine where this object lives, asked one question at a time. With Ray it is an actor."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        # Programs are where they are on this machine, not where they are on the one that asks.
        here = pathlib.Path(sys.executable).parent
        if pathlib.Path(command[0]).name == "cutaway":
            command = [
                next((str(p) for p in (here / "cutaway", pathlib.Path(command[0])) if p.exists()), "cutaway"),
                *command[1:],
            ]
        else:
            command = [sys.executable, *command[1:]]
        self._command, self._environment = command, environment
        self._scratch = pathlib.Path(tempfile.mkdtemp(prefix="cutaway-slot-"))
        (self._scratch / "store" / "blobs").mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def _start(self) -> socket.socket:
        if self._connection is None:
            ours, theirs = socket.socketpair()
            variables = {**os.environ, **self._environment, "CUTAWAY_WORKER_FD": str(theirs.fileno())}
            variables["TORCHINDUCTOR_CACHE_DIR"] = str(self._scratch / "kernels")
            with theirs:
                self._process = subprocess.Popen(self._command, pass_fds=[theirs.fileno()], env=variables)
            self._connection = ours
        return self._connection

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = None

    def ask(self, question: bytes, blobs: dict[str, Any], is_here: bool = False) -> tuple[bytes, dict[str, bytes]]:
        """The answer, and the blobs that it brought about. `is_here`: the store that the question names is on this machine."""
        store = self._scratch / "store"
        if not is_here:
            ray = importlib.import_module("ray")
            for digest, reference in blobs.items():
                if not _blob(store, digest).exists():
                    _write_blob(store, digest, ray.get(reference))
            outer = json.loads(question)
            body = json.loads(outer["body"])
            body["store"] = str(store)
            outer["body"] = json.dumps(body)
            question = json.dumps(outer).encode()
        before = set() if is_here else {p.name for p in (store / "blobs").glob("*/*")}
        for _ in range(2):  # a worker that dies is started once more, as its own client does it
            connection = self._start()
            try:
                _send(connection, question)
                answer = _receive(connection)
            except OSError:
                answer = None
            if answer is not None:
                made = (
                    {}
                    if is_here
                    else {p.name: p.read_bytes() for p in (store / "blobs").glob("*/*") if p.name not in before}
                )
                return answer, made
            self._stop()
        number = json.loads(question)["id"]
        lost = {"id": number, "ending": "lost", "output": "the worker on " + socket.gethostname() + " died twice"}
        return json.dumps(lost).encode(), {}

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _names_local_files(body: dict[str, Any]) -> bool:
    return bool(body.get("before") or body.get("progress") or body.get("switches"))


class Pool:
    """Answers questions with actors of a cluster, one thread for each."""

    def __init__(self, connection: socket.socket, command: list[str], environment: dict[str, str]) -> None:
        self._ray: Any = importlib.import_module("ray")
        self._connection = connection
        self._command, self._environment = command, environment
        self._questions: queue.Queue[bytes | None] = queue.Queue()
        self._objects: dict[str, Any] = {}  # digest -> reference in the object store
        self._lock = threading.Lock()
        self._here: Slot | None = None
        count = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]

    def run(self) -> None:
        for thread in self._threads:
            thread.start()
        while (question := _receive(self._connection)) is not None:
            self._questions.put(question)
        for _ in self._threads:
            self._questions.put(None)
        if self._here is not None:
            self._here.close()

    def _answer(self, answer: bytes) -> None:
        with self._lock:
            _send(self._connection, answer)

    def _references(self, body: dict[str, Any]) -> dict[str, Any]:
        store = pathlib.Path(body.get("store", ""))
        found = {}
        for digest in set(_DIGEST.findall(body.get("manifest", ""))):
            with self._lock:
                if digest not in self._objects and _blob(store, digest).exists():
                    self._objects[digest] = self._ray.put(_blob(store, digest).read_bytes())
                if digest in self._objects:
                    found[digest] = self._objects[digest]
        return found

    def _serve(self) -> None:
        actor = None
        # No processor is reserved: actors of several backends live side by side, and `--jobs` says how many work at once.
        make = self._ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy="SPREAD")(Slot)
        while (question := self._questions.get()) is not None:
            outer = json.loads(question)
            if outer.get("cancel"):
                continue
            body = json.loads(outer["body"])
            if _names_local_files(body):
                with self._lock:
                    self._here = self._here or Slot(self._command, self._environment)
                    answer, _ = self._here.ask(question, {}, is_here=True)
                self._answer(answer)
                continue
            lost: Exception | None = None
            for _ in range(TRIES):
                try:
                    if actor is None:
                        actor = make.remote(self._command, self._environment)
                    answer, made = self._ray.get(actor.ask.remote(question, self._references(body)))
                    for digest, data in made.items():
                        _write_blob(pathlib.Path(body["store"]), digest, data)
                    self._answer(answer)
                    break
                except self._ray.exceptions.RayError as error:  # the machine is gone, or its process
                    actor, lost = None, error
            else:
                text = f"{TRIES} machines of the cluster were lost under this question: {lost}"
                self._answer(json.dumps({"id": outer["id"], "ending": "lost", "output": text}).encode())


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cutaway.remote_worker", description="a worker whose trials run on a Ray cluster"
    )
    parser.add_argument(
        "--on", required=True, metavar="ADDRESS", help="ray://HOST:PORT, or ray for the cluster of this machine"
    )
    parser.add_argument("command", nargs="+", help="what each machine starts: a worker")
    options = parser.parse_args()
    if options.on != "ray" and not options.on.startswith("ray://"):
        print(f"cutaway: --on {options.on} is not a cluster\n   try: ray://HOST:PORT, or ray", file=sys.stderr)
        return 2
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        print("cutaway: --on needs the package ray, which is not installed\n   try: pip install ray", file=sys.stderr)
        return 2
    descriptor = os.environ.pop("CUTAWAY_WORKER_FD", "")
    if not descriptor.isdigit():
        print(
            "cutaway: CUTAWAY_WORKER_FD names no file descriptor\n   try: cutaway sweep --on, which starts this itself",
            file=sys.stderr,
        )
        return 2
    try:
        ray.init(
            address="auto" if options.on == "ray" else options.on,
            log_to_driver=False,
            logging_level="ERROR",
            namespace="cutaway",
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        print(
            f"cutaway: there is no Ray cluster at {options.on}\n   because: {error}\n   try: ray start --head",
            file=sys.stderr,
        )
        return 2
    wanted = ("OMP_", "MKL_", "TORCH", "CUTAWAY_", "PYTORCH_")
    environment = {
        k: v
        for k, v in os.environ.items()
        if k.startswith(wanted) and k not in ("TORCHINDUCTOR_CACHE_DIR", "CUTAWAY_PYTHON", "CUTAWAY_COMMAND")
    }
    Pool(socket.socket(fileno=int(descriptor)), options.command, environment).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
