"""One model under ten batch sizes: the backend native beside Inductor with `dynamic=True`. BERT, 12 layers x 256, 64 tokens, float32, 2 threads.

"compile": seconds that ten first calls take beyond ten later ones, in processes of their own whose caches are empty. "run": each size, both sides in
turns in one process, and the mean of the ten. `--only WORD` picks claims ("compile", "run", "batch 7").
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import cutaway
import torch
from native import THREADS, transformer
from side_by_side import Row, compare, finish, options

BATCHES = (4, 2, 3, 5, 6, 7, 8, 9, 10, 12)


def inputs(batch: int) -> dict[str, Any]:
    ids = torch.randint(0, 1000, (batch, 64), generator=torch.Generator().manual_seed(batch))
    return {"input_ids": ids, "attention_mask": torch.ones(batch, 64, dtype=torch.long)}


def compiled(side: str, model: torch.nn.Module) -> Callable[..., Any]:
    if side == "inductor":
        return torch.compile(model, dynamic=True)
    return cutaway.compile(model, backend="native:wait")  # sizes that change become symbols at the second one


def compile_seconds(side: str) -> float:
    """In this process, whose caches are empty."""
    torch.set_num_threads(THREADS)
    model = transformer("bert")[0].eval()
    given = [inputs(b) for b in BATCHES]
    with torch.no_grad():
        model(**given[0])
        f, total = compiled(side, model), 0.0
        for x in given:
            begin = time.perf_counter()
            f(**x)
            middle = time.perf_counter()
            f(**x)
            total += middle - begin - (time.perf_counter() - middle)
        return total


def in_child(side: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "CUTAWAY_CACHE_DIR": f"{folder}/cutaway"}
        command = [sys.executable, __file__, "--child", side]
        done = subprocess.run(command, env={**os.environ, **caches}, capture_output=True, text=True, check=True)
        return float(done.stdout.splitlines()[-1])


def main() -> None:
    torch.set_num_threads(THREADS)
    only = options().only
    if not only or only in "compile":
        ours, peer = in_child("native"), in_child("inductor")
        print(f"compile for ten batch sizes: {ours:.2f} s; Inductor {peer:.1f} s: {peer / ours:.0f} times")
    if not only or "run" in only or "batch" in only:
        model = transformer("bert")[0].eval()
        torch._dynamo.reset()
        cutaway.reset()
        sides = {side: compiled(side, model) for side in ("native", "inductor")}
        rows: list[Row] = []
        with torch.no_grad():
            for f in sides.values():
                for b in BATCHES:
                    f(**inputs(b))
            for b in BATCHES:
                x = inputs(b)
                row = compare(
                    f"run at batch {b}",
                    lambda x=x: sides["native"](**x),
                    lambda x=x: sides["inductor"](**x),
                    peer_name="inductor",
                )
                if row is not None:
                    rows.append(row)
        if rows:
            ours, peer = (sum(r) / len(rows) * 1e3 for r in zip(*((r.ours_s, r.peer_s) for r in rows), strict=True))
            print(
                f"mean run of {len(rows)} batch sizes: {ours:.1f} ms; Inductor {peer:.1f} ms: {peer / ours:.2f} times"
            )
    finish()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--child":
        print(compile_seconds(sys.argv[2]))
    else:
        main()
