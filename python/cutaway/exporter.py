"""``python -m cutaway.exporter BUNDLE -o FILE.pt2``: what ``cutaway export`` runs in a process of its own.

The graph goes back to fx and through torch.export; what is written is read again and compared with the graph itself.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

import torch

from . import _bundle, _failure, _graph  # noqa: F401  (_graph adds to_fx to Graph)
from ._compare import same
from ._native import Error


def export(path: str, output: str) -> None:
    """Every input of the graph, parameters too, becomes an input of the program."""
    bundle = _bundle.load(path)
    for library in bundle.manifest.get("libraries", []):
        importlib.import_module(library)
    seed = int(bundle.manifest.get("seed", 0))
    try:
        program: Any = torch.export.export(bundle.graph.to_fx(), tuple(_plain(bundle.inputs)), strict=False)
        torch.export.save(program, output + ".tmp.pt2")
        again = torch.export.load(output + ".tmp.pt2").module()
    except Exception as e:  # torch.export refuses what it cannot hold in many ways
        raise Error(f"{path}: torch.export cannot hold this graph\n   because: {type(e).__name__}: {e}") from None
    torch.manual_seed(seed)
    wanted = bundle.graph.run(*_plain(_bundle.load(path).inputs))
    torch.manual_seed(seed)
    got = again(*_plain(_bundle.load(path).inputs))
    verdict = same(list(wanted), list(got if isinstance(got, (list, tuple)) else [got]), equal_nan=True)
    if not verdict:
        os.unlink(output + ".tmp.pt2")
        raise Error(f"{path}: the exported program computes something else\n   because: {verdict}")
    os.replace(output + ".tmp.pt2", output)


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
