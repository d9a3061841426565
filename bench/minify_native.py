"""How fast a reduction is when the compiler costs nothing: 1,000 nodes, faults of the C++ fault backend.

    python bench/minify_native.py [--nodes 1000] [--jobs 2] [--json FILE]

Torch's minifier cannot be set beside it: it has no such backend and starts a process of 8 s for each candidate.
Prints one row a case: seconds from command to verified result, candidates, candidates a second of the search alone,
nodes left.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import cutaway
import torch


def chain(nodes):
    """One long chain with two relus in its middle, so that drops anywhere change everything after them."""
    lines, previous, dice = ["graph g(%x: f32[4, 32], %w: f32[32, 32]) {"], "x", random.Random(0)
    for i in range(nodes):
        if i % 5 == 0:
            node = f"aten.mm(%{previous}, %w)"
        elif i in (nodes // 2 + 1, nodes // 2 + 2):
            node = f"aten.relu(%{previous})"
        else:
            node = f"aten.{dice.choice(['tanh', 'sin', 'sigmoid', 'cos'])}(%{previous})"
        lines.append(f"  %v{i}: f32[4, 32] = {node}")
        previous = f"v{i}"
    return cutaway.Graph.parse("\n".join([*lines, f"  return (%{previous})", "}"]))


CASES = {
    # The exception names the operator: the first guess is right.
    "exception": ("fault:exception:aten.relu", []),
    # Nothing names it: guesses by kind of node, then the passes.
    "crash": ("fault:crash:aten.relu", []),
    "pattern of two": ("fault:crash:aten.relu>aten.relu", []),
    "wrong numbers": ("fault:wrongnan:aten.relu>aten.relu", ["--accuracy"]),
    # Hardly anything can go, so that every node is asked about alone: the rate of the engine on whole graphs.
    "search, single nodes": ("fault:crash:aten.tanh>aten.sin", ["--passes", "drop_node_blocks", "--time-budget", "10"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    command = os.environ.get("CUTAWAY_COMMAND") or shutil.which("cutaway")
    torch.manual_seed(0)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle"
        cutaway.save(bundle, chain(options.nodes), [torch.randn(4, 32), torch.randn(32, 32)])
        print(f"{'case':24} {'seconds':>8} {'candidates':>11} {'a second':>9} {'nodes':>6}")
        for name, (backend, words) in CASES.items():
            done = subprocess.run(
                [command, "minify", bundle, "-o", Path(folder) / "out", "--json",
                 "--backend", backend, "-j", str(options.jobs), *words],
                capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            shutil.rmtree(Path(folder) / "out")
            report = json.loads(done.stdout)
            rate = report["candidates"] / report["search_seconds"] if report["search_seconds"] else 0
            rows.append(
                {
                    "case": name,
                    "seconds": report["seconds"],
                    "candidates": report["candidates"],
                    "rate": rate,
                    "nodes": report["nodes_after"],
                }
            )
            print(
                f"{name:24} {report['seconds']:8.2f} {report['candidates']:11} {rate:9.1f} {report['nodes_after']:6}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
