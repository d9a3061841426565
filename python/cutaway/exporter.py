"""``python -m cutaway.exporter BUNDLE -o FILE.pt2``: what ``cutaway export`` runs in a process of its own.

The graph goes back to fx and through torch.export; what is written is read again and compared with the graph itself.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import torch

from . import _bundle, _failure, _graph  # noqa: F401  (_graph adds to_fx to Graph)
from ._compare import same
from ._native import Error


def export(path: str, output: str) -> None:
    """Parameters, buffers and constants stay what they are, sizes that are symbols stay dynamic, and gradients asked for.

    What torch.export does not keep of that is refused by its name.
    """
    bundle = _bundle.load(path)
    for library in bundle.manifest.get("libraries", []):
        importlib.import_module(library)
    seed = int(bundle.manifest.get("seed", 0))
    graph, inputs = bundle.graph, list(bundle.inputs)
    users = [i for i, told in enumerate(graph.inputs) if told.kind == "user"]
    temporary = output + ".tmp.pt2"
    try:
        module, sizes = _module(graph, inputs), _dynamic_sizes(graph, inputs, users)
        given = tuple(inputs[i] for i in users)
        program: Any = torch.export.export(
            module, given, dynamic_shapes=tuple(sizes) if any(sizes) else None, strict=False
        )
        torch.export.save(program, temporary)
        loaded = torch.export.load(temporary)
        again = loaded.module()
    except Exception as e:  # torch.export refuses what it cannot hold in many ways
        raise Error(f"{path}: torch.export cannot hold this graph\n   because: {type(e).__name__}: {e}") from None
    try:
        lost = _lost(graph, inputs, loaded)
        if lost:
            raise Error(
                f"{path}: torch.export does not keep {lost[0]}" + (f", nor {len(lost) - 1} more" if lost[1:] else "")
            )
        torch.manual_seed(seed)
        wanted = graph.run(*_plain(_bundle.load(path).inputs))
        torch.manual_seed(seed)
        got = again(*_plain([_bundle.load(path).inputs[i] for i in users]))
        verdict = same(list(wanted), list(got if isinstance(got, (list, tuple)) else [got]), equal_nan=True)
        if not verdict:
            raise Error(f"{path}: the exported program computes something else\n   because: {verdict}")
    except BaseException:
        os.unlink(temporary)
        raise
    os.replace(temporary, output)


def _module(graph: Any, inputs: Sequence[Any]) -> torch.nn.Module:
    """The graph as a module that has its parameters, buffers and constants under their names."""
    lifted: list[Any] = []
    for told, value in zip(graph.inputs, inputs, strict=True):
        if told.kind == "parameter":
            lifted.append(torch.nn.Parameter(value.detach(), requires_grad=value.requires_grad))
        elif told.kind != "user":
            lifted.append(value.detach())
    graph.lifted = lifted
    module: torch.fx.GraphModule = graph.to_fx()
    for told in graph.inputs:
        if told.kind == "constant":  # a plain attribute, no buffer
            owner, _, name = told.qualified_name.rpartition(".")
            place = module.get_submodule(owner)
            tensor = place._buffers.pop(name, None)
            if tensor is not None:
                object.__setattr__(place, name, tensor)
    return module


def _dynamic_sizes(graph: Any, inputs: Sequence[Any], users: Sequence[int]) -> list[Any]:
    """For torch.export: of every user input, which sizes are symbols. One symbol is one Dim."""
    known: dict[str, Any] = {}

    def dim(text: str) -> Any:
        if text.isidentifier():
            return known.setdefault(text, torch.export.Dim(text))
        return torch.export.Dim.AUTO  # an expression: torch finds it again, or it is told as lost

    found: list[Any] = []
    for i in users:
        sizes = graph.inputs[i].sizes if isinstance(inputs[i], torch.Tensor) else []
        found.append({d: dim(text) for d, text in enumerate(sizes) if not text.isdigit()} or None)
    return found


def _lost(graph: Any, inputs: Sequence[Any], program: Any) -> list[str]:
    """What the program lacks of the graph, in words."""
    from torch.export.graph_signature import InputKind

    kinds = {"parameter": InputKind.PARAMETER, "buffer": InputKind.BUFFER, "constant": InputKind.CONSTANT_TENSOR}
    specs = {(s.kind, s.target): s for s in program.graph_signature.input_specs}
    users = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    lost: list[str] = []
    mine = iter(users)
    for told, value in zip(graph.inputs, inputs, strict=True):
        spec = next(mine, None) if told.kind == "user" else specs.get((kinds[told.kind], told.qualified_name))
        if spec is None and (told.kind != "constant" or any(t == told.qualified_name for _, t in specs)):
            lost.append(f"the {told.kind} {told.qualified_name or told.name}")
        if spec is None or not isinstance(value, torch.Tensor):
            continue
        kept = values.get(spec.arg.name)
        if not isinstance(kept, torch.Tensor):
            continue
        if kept.requires_grad != value.requires_grad:
            lost.append(f"requires_grad={value.requires_grad} of {told.qualified_name or told.name}")
        for d, text in enumerate(told.sizes):
            if not text.isdigit() and isinstance(kept.shape[d], int):
                lost.append(f"the symbolic size {text}, dimension {d} of {told.name}: it becomes {kept.shape[d]}")
    return lost


def _plain(inputs: list[Any]) -> list[Any]:
    return [v.detach() if isinstance(v, torch.Tensor) else v for v in inputs]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cutaway.exporter", description="for cutaway export")
    parser.add_argument("bundle")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    return _failure.exit_status(lambda: export(options.bundle, options.output), options.bundle)


if __name__ == "__main__":
    sys.exit(main())
