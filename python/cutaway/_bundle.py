"""A graph with its inputs, saved to a directory that another machine can load."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import _native
from ._graph import all_inputs
from ._store import _as_parameter


@dataclass(frozen=True)
class Bundle:
    """What `load` gives: the graph, its inputs in order, the manifest as data, and where it came from."""

    path: str
    graph: Any
    inputs: list[Any]
    manifest: dict[str, Any]


def save(
    path: str | os.PathLike[str],
    graph: Any,
    inputs: Sequence[Any],
    *,
    max_bytes: int | None = None,
    seed: int = 0,
    manifest: Any = None,
) -> None:
    """Saves a graph and one value for each of its inputs as a bundle.

    The user's inputs alone are enough for a graph that was imported with its parameters (`graph.lifted`).

    Views, aliases, gradness and all dtypes are kept. Storages beyond `max_bytes` in all are not written: those inputs
    become random data by `seed`, and the manifest says which and why. An existing bundle at `path` is replaced in one
    step. `manifest` (a `_native.Manifest`) brings stage, backend, failure and options along; its inputs are replaced.
    """
    inputs = all_inputs(graph, inputs)
    parameters = [i for i, value in enumerate(inputs) if isinstance(value, torch.nn.Parameter)]
    versions = {"cutaway": _native.__version__, "python": platform.python_version(), "torch": torch.__version__}
    _native.save_bundle(os.fspath(path), graph, inputs, parameters, max_bytes, seed, versions, manifest)


def load(
    path: str | os.PathLike[str], *, device: str | torch.device | None = None, random_inputs: bool = False
) -> Bundle:
    """Loads a bundle; nothing in it is executed.

    Missing or damaged data is an Error that names it. With `random_inputs` it becomes seeded random data of the same
    metadata instead, and `manifest["random_inputs"]` is then true.
    """
    graph, inputs, parameters, manifest = _native.load_bundle(
        os.fspath(path), None if device is None else str(device), random_inputs
    )
    for i in parameters:
        inputs[i] = _as_parameter(inputs[i], True)
    return Bundle(os.fspath(path), graph, inputs, json.loads(manifest))
