"""``python -m cutaway.importer pt2|script FILE -o BUNDLE``: what ``cutaway import`` runs in a process of its own.

Both kinds run code that the file brings along (docs/notes/import_files.md), so only ``cutaway import --trust`` starts this.
A script of torch's (``repro.py``, ``minifier_launcher.py``, ``fx_graph_runnable.py``) runs up to its call of
``run_repro``, which is answered here: the module, what it reads its inputs with, and the settings become a bundle.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import runpy
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.debug_utils import InputReader
from torch.utils._pytree import tree_leaves

from . import _failure, _graph, _repro
from ._native import Error, Graph


@dataclass
class Told:
    """What a script of torch's told run_repro."""

    stage: str
    module: Any
    load_args: Any
    settings: dict[str, Any] = field(default_factory=dict)


class _Told(BaseException):
    """Ends the script at its call of run_repro. No Exception: the script must not catch it."""

    def __init__(self, told: Told) -> None:
        super().__init__("run_repro")
        self.told = told


@contextlib.contextmanager
def _run_repro_answered() -> Iterator[None]:
    """torch's three run_repro, replaced: this process ends with the import, so nothing is put back."""

    def answer(stage: str) -> Any:
        def run_repro(module: Any, load_args: Any = None, **settings: Any) -> None:
            raise _Told(Told(stage, module, load_args, settings))

        return run_repro

    for name, stage in (("after_aot", "aot"), ("after_dynamo", "capture"), ("aoti", "aoti")):
        with contextlib.suppress(ImportError):
            importlib.import_module(f"torch._dynamo.repro.{name}").run_repro = answer(stage)  # type: ignore[attr-defined]
    yield


def run_script(path: str) -> Told:
    """Runs the file as the main program until it calls run_repro."""
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        with _run_repro_answered():
            runpy.run_path(path, run_name="__main__")
    except _Told as end:
        return end.told
    except SystemExit as e:
        raise Error(f"{path}: the script ended before it called run_repro\n   because: exit status {e.code}") from None
    except Exception as e:
        raise Error(f"{path}: the script failed\n   because: {type(e).__name__}: {e}") from None
    raise Error(f"{path}: the script never called run_repro\n   because: it is none of torch's repro scripts")


class Reader(InputReader):
    """Reads what load_args asks for. Data that should be there and is not is an error; data never written is known."""

    def __init__(self, folder: str | None, random_inputs: bool, scope: dict[str, Any]) -> None:
        super().__init__(folder)
        self.scope = scope  # of load_args
        self.folder, self.random_inputs = folder, random_inputs
        self.invented: set[int] = set()  # storages without data, by their address
        self.without_data: list[int] = []  # positions of such inputs

    def storage(self, storage_hash: str | None, nbytes: int, **hints: Any) -> Any:
        if storage_hash is None or self.folder is None:
            found = super().storage(None, nbytes, **hints)
            self.invented.add(found._cdata)
            return found
        file = os.path.join(self.folder, "storages", storage_hash)
        if not os.path.exists(file):
            if not self.random_inputs:
                raise Error(
                    f"{file}: this input's data is missing\n   because: the script was written with it"
                    "\n   try: --data DIR for the checkpoints folder, or --random-inputs"
                )
            found = super().storage(None, nbytes, **hints)
            self.invented.add(found._cdata)
            return found
        return super().storage(storage_hash, nbytes, **hints)

    def tensor(self, storage: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        made = super().tensor(storage, *args, **kwargs)
        if storage._cdata in self.invented:
            self.without_data.append(len(self.args) - 1)
        return made

    def symint(self, val: Any, *, expr: str | None = None) -> Any:
        # torch writes the sizes of later tensors with these names, and defines them nowhere.
        if expr is not None and expr.isidentifier():
            self.scope.setdefault(expr, val)
        self.args.append(val)
        return val

    def unsupported(self, name: str) -> None:
        raise Error(f"the input {name} is of a kind that torch's script could not hold")

    def opaque(self, script_class_name: str) -> None:
        raise Error(f"an input is an object of {script_class_name}, which a bundle cannot hold")

    def generator(self, device_type: str, device_index: int) -> Any:
        raise Error("an input is a random number generator, which a bundle cannot hold")


def captured(module: Any, inputs: Sequence[Any]) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The module of a script after capture, as torch.compile's backend gets it, with the inputs in its order."""
    seen: list[tuple[torch.fx.GraphModule, list[Any]]] = []

    def keep(gm: torch.fx.GraphModule, examples: list[Any]) -> Any:
        seen.append((_repro.copy_of(gm), list(examples)))
        return gm.forward

    compiled: Any = torch.compile(module, backend=keep, fullgraph=True, dynamic=False)
    compiled(*inputs)
    if len(seen) != 1:
        raise Error(f"the script's module is captured as {len(seen)} graphs")
    return seen[0]


def import_script(path: str, told: Told, options: argparse.Namespace) -> None:
    if told.stage == "aoti":
        raise Error(f"{path}: a repro of AOTInductor\n   because: import knows those after aot and after dynamo")
    settings = told.settings
    folder = options.data or settings.get("save_dir")
    # What torch warns of here, that data is missing and random, the bundle records and the command says.
    logging.getLogger("torch._dynamo.debug_utils").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = Reader(folder, options.random_inputs, told.load_args.__globals__)
        told.load_args(reader)
    inputs: list[Any] = list(reader.args)
    mode: Any = settings.get("tracing_mode") or "real"
    given = settings.get("accuracy")
    accuracy = {True: "accuracy", "accuracy": "accuracy", "strict_accuracy": "strict"}.get(given, "")
    unknown = set(map(id, (inputs[i] for i in reader.without_data)))
    if told.stage == "aot":
        from torch.fx.experimental.proxy_tensor import make_fx

        with torch.no_grad():
            gm = make_fx(told.module, tracing_mode=mode)(*inputs)
        backend = options.backend or "inductor"
    else:
        gm, inputs = captured(told.module.eval() if accuracy else told.module, inputs)
        backend = options.backend or str(settings.get("backend") or "")
        if backend in ("None", ""):
            backend = ""
            _failure.notice(f"{path} does not say which backend it was\n   try: --backend")
    plain = [_repro.metadata_of(v) if id(v) in unknown else v for v in inputs]
    device = next((v.device.type for v in inputs if isinstance(v, torch.Tensor)), "cpu")
    with torch.amp.autocast(device) if settings.get("autocast") else contextlib.nullcontext():
        _write(gm, plain, options, told.stage, backend, accuracy, mode)


def import_program(path: str, options: argparse.Namespace) -> None:
    program = _graph.load_program(path)
    graph = Graph.from_export(program)
    lifted = len(graph.lifted)
    names = [i for i in graph.inputs if i.kind == "user"]
    if program.example_inputs is not None:
        given = tree_leaves(program.example_inputs)
        inputs = [v for v in given if isinstance(v, torch.Tensor)] if len(given) != len(names) else list(given)
    else:
        values = [n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"]
        inputs = [_repro.without_data(v) for v in values[lifted:]]
    if len(inputs) != len(names):
        raise Error(f"{path}: {len(inputs)} example inputs, and the program takes {len(names)}")
    _write(graph, inputs, options, "capture", options.backend or "inductor", "", "real")


def _write(
    gm: Any,
    inputs: list[Any],
    options: argparse.Namespace,
    stage: str,
    backend: str,
    accuracy: str,
    mode: str,
) -> None:
    writer = _repro.Writer(backend, base_dir=None, max_bytes=options.max_bytes, options={})
    writer.write(
        gm,
        inputs,
        name=options.name,
        stage=stage,
        accuracy=(options.accuracy or accuracy).replace("none", ""),
        tracing_mode=mode,
        path=options.output,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cutaway.importer", description="for cutaway import")
    parser.add_argument("kind", choices=("pt2", "script"))
    parser.add_argument("file")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--name", default="imported", help="of the graph")
    parser.add_argument("--backend", default="")
    parser.add_argument("--accuracy", default="", choices=("", "none", "accuracy", "strict"))
    parser.add_argument("--data", default="", help="folder with torch's storages/")
    parser.add_argument("--random-inputs", action="store_true")
    parser.add_argument("--max-bytes", type=int, default=_repro.MAX_BYTES)
    options = parser.parse_args()
    if options.kind == "pt2":
        return _failure.exit_status(lambda: import_program(options.file, options), options.file)
    return _failure.exit_status(lambda: import_script(options.file, run_script(options.file), options), options.file)


if __name__ == "__main__":
    sys.exit(main())
