"""What Python adds to the C++ class Graph: import from torch.fx and torch.export, export back, and running."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from . import _native
from ._native import Error, Graph


def _from_fx(graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any] | None = None) -> Graph:
    """The graph of a torch.fx.GraphModule.

    Inputs come in this order: parameters, buffers and constants that the graph reads (their tensors are kept in
    ``graph.lifted``), then one for each placeholder. Nodes that are operators of the dispatcher stay operators; Python
    functions, methods and modules run once on fake tensors and become captured calls that hold the operators they ran.
    ``example_inputs`` may be left out when the placeholders carry ``meta["val"]``, as those of make_fx do.
    """
    graph, lifted = _native.import_fx(graph_module, example_inputs)
    graph.lifted = lifted
    return graph


def load_program(path: str) -> torch.export.ExportedProgram:
    """A .pt2 file. torch executes what it holds: only for files that are trusted."""
    try:
        return torch.export.load(path)
    except Exception as e:  # torch raises whatever its zip and pickle readers raise
        raise Error(
            f"{path}: not an exported program that this torch can read\n   because: {type(e).__name__}: {e}"
        ) from None


def _from_export(program: torch.export.ExportedProgram | str | os.PathLike[str]) -> Graph:
    """The graph of an exported program, or of a .pt2 file.

    Parameters, buffers and constants keep their qualified names, and their tensors are in ``graph.lifted``. The user's
    inputs and outputs are flat, in pytree order. What the program does to its buffers and inputs
    is written back by ``copy_``.
    """
    if isinstance(program, (str, os.PathLike)):
        program = load_program(os.fspath(program))
    if not isinstance(program, torch.export.ExportedProgram):
        raise Error(f"from_export takes a torch.export.ExportedProgram or a .pt2 file, not {type(program).__name__}")
    graph, lifted = _native.import_exported_program(program)
    graph.lifted = lifted
    return graph


def all_inputs(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """One value for each input of the graph: all are given, or the user's are and `graph.lifted` has the rest."""
    kinds = [i.kind for i in graph.inputs]
    if len(inputs) == len(kinds):
        return list(inputs)
    lifted = getattr(graph, "lifted", None) or []
    user = sum(kind == "user" for kind in kinds)
    if len(inputs) != user or len(lifted) != len(kinds) - user:
        given = f"{len(inputs)} given; the graph has {len(kinds)}"
        raise Error(f"wrong number of inputs: {given}" + (f", {user} of them the user's" if lifted else ""))
    rest, mine = iter(inputs), iter(lifted)
    return [next(rest) if kind == "user" else next(mine) for kind in kinds]


def _run(self: Graph, *inputs: Any) -> tuple[Any, ...]:
    """Runs the graph operator by operator and returns its outputs, always as a tuple.

    Takes the user's inputs alone when the graph was imported with its parameters (``graph.lifted``), else all inputs.
    """
    return _native.graph_run(self, all_inputs(self, inputs))


def _to_fx(self: Graph, grad_enabled: bool | None = None) -> torch.fx.GraphModule:
    """A torch.fx.GraphModule that computes the same: operators as torch.ops.*, captured calls as their own Python call.

    Parameters, buffers and constants are attributes of the module when ``graph.lifted`` holds them, else placeholders.
    The module returns a tuple always. ``grad_enabled``: the mode around it, where it is known.
    """
    return _native.export_fx(self, getattr(self, "lifted", None) or None, grad_enabled)


def _to_python(
    self: Graph, inputs: Sequence[Any] | None = None, *, files: Sequence[str | None] | None = None, seed: int = 0
) -> str:
    """A script that needs torch alone: the graph as a function, its inputs, and a main part that runs it.

    Inputs are random numbers with the metadata of ``inputs`` (or of the graph's own types), the same on every machine;
    those with an entry in ``files`` are read by torch.load from there, relative to the script. The script also takes
    ``--inputs FILE`` and ``--save FILE``.
    """
    given = None if inputs is None else all_inputs(self, inputs)
    return _native.graph_to_python(self, given, [f or "" for f in files or ()], seed)


for _name, _method in {
    "from_fx": staticmethod(_from_fx),
    "from_export": staticmethod(_from_export),
    "run": _run,
    "to_fx": _to_fx,
    "to_python": _to_python,
}.items():
    setattr(Graph, _name, _method)
