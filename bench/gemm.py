"""The matrix product of compiler/kernels beside torch.mm (MKL), float32, no packing kept across calls.

Twelve weights are multiplied in turn, so that none is in the first caches when its turn comes. Each call is timed alone, sides in
turns; a figure is the sum of the best time of each weight, which a busy machine disturbs least, and the ratio of medians stands
beside it. `NT` is a row-major input and the weight of a linear layer (n x k), `NN` both row-major, `TN` a transposed input (the
gradient of a weight). With --onednn a third side runs oneDNN on weights that were packed beforehand, for `NT` alone.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import cutaway
import torch

WEIGHTS = 12
SIZES = "256x256,256x1024,1024x256,192x768,768x192,256x688,688x256,256x1000"


def load() -> tuple[Callable[..., None], ctypes.c_void_p]:
    """Our product, and the entry of torch's own OpenMP library: a second pool of threads would fight with the first."""
    core = ctypes.CDLL(str(Path(cutaway.__file__).parent / "libcutaway_core.so"))
    product = core.cutaway_gemm_f32
    product.restype = None
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    product.argtypes = [pointer, ctypes.c_int, size, size, size, size, pointer, pointer, pointer, pointer, pointer]
    (open_mp,) = (Path(torch.__file__).parent / "lib").glob("libgomp*")
    return product, ctypes.cast(ctypes.CDLL(str(open_mp)).GOMP_parallel, pointer)


def ours(threads: int, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Callable[[], None]:
    """A call of our product on these tensors: matrices, or batches of matrices."""
    product, open_mp = load()
    strides = [t.stride(0) if t.dim() == 3 else 0 for t in (a, b, c)] + [
        *a.stride()[-2:],
        *b.stride()[-2:],
        c.stride(-2),
    ]
    packed = (ctypes.c_int64 * 8)(*strides)
    count = a.shape[0] if a.dim() == 3 else 1
    sizes = (count, a.shape[-2], b.shape[-1], a.shape[-1])
    arguments = (open_mp, threads, *sizes, a.data_ptr(), b.data_ptr(), c.data_ptr(), None, packed)
    return functools.partial(product, *arguments)


def onednn(a: torch.Tensor, weight: torch.Tensor) -> Callable[[], object]:
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, a.shape[0])
    return functools.partial(torch.ops.mkldnn._linear_pointwise, a, packed, None, "none", [], "")


def measure(
    sides: list[list[Callable[[], object]]], rounds: int, clock: Callable[[], float]
) -> list[tuple[float, float]]:
    """For each side the sum of its calls' best times, and the median of a whole round."""
    best = [[float("inf")] * len(side) for side in sides]
    whole: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for i, side in enumerate(sides):
            total = 0.0
            for j, call in enumerate(side):
                start = clock()
                call()
                took = clock() - start
                total += took
                best[i][j] = min(best[i][j], took)
            whole[i].append(total)
    return [(sum(b), statistics.median(w)) for b, w in zip(best, whole, strict=True)]


def matrices(layout: str, m: int, n: int, k: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    a = torch.randn(k, m).t() if layout[0] == "T" else torch.randn(m, k)
    return a, [torch.randn(n, k).t() if layout[1] == "T" else torch.randn(k, n) for _ in range(WEIGHTS)]


def row(
    threads: int,
    name: str,
    layout: str,
    work: float,
    sides: list[list[Callable[[], object]]],
    rounds: int,
    difference: float,
) -> None:
    """Measures one size and prints its line."""
    clock = time.thread_time if threads == 1 else time.perf_counter  # what others take from one thread can be left out
    results = measure(sides, rounds, clock)
    speed = [WEIGHTS * work / best / 1e9 for best, _ in results]
    third = f"{speed[2]:.0f}" if len(speed) > 2 else ""
    medians = results[1][1] / results[0][1]
    figures = (
        f"{speed[0]:.0f} | {speed[1]:.0f} | {speed[0] / speed[1]:.2f} | {medians:.2f} | {third} | {difference:.1e}"
    )
    print(f"| {threads} | {name} | {layout} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rows", default="1,8,64,128,130,512", help="values of m")
    parser.add_argument("--sizes", default=SIZES, help="k x n")
    parser.add_argument("--layouts", default="NT")
    parser.add_argument("--no-heads", action="store_true", help="leave out the batched rows")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--onednn", action="store_true")
    options = parser.parse_args()
    print(
        "| threads | m x k x n | layout | ours, GFLOP/s | MKL | ratio | ratio of medians | oneDNN packed | largest difference |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for threads in map(int, options.threads.split(",")):
        torch.set_num_threads(threads)
        for m in map(int, options.rows.split(",")):
            for size in options.sizes.split(","):
                k, n = map(int, size.split("x"))
                for layout in options.layouts.split(","):
                    a, weights = matrices(layout, m, n, k)
                    c, d = torch.empty(m, n), torch.empty(m, n)
                    sides = [
                        [ours(threads, a, w, c) for w in weights],
                        [functools.partial(torch.mm, a, w, out=d) for w in weights],
                    ]
                    sides[0][0](), sides[1][0]()
                    difference = ((c - d).abs().max() / d.abs().max()).item()
                    if options.onednn and layout == "NT":
                        sides.append([onednn(a, w.t()) for w in weights])
                    row(threads, f"{m} x {k} x {n}", layout, 2.0 * m * k * n, sides, options.rounds, difference)
        if options.no_heads:
            continue
        # Attention: queries with keys, and weights with values, of 8 heads that lie side by side in memory.
        tokens, width = 64, 64
        heads = [torch.randn(tokens, 8, width).transpose(0, 1) for _ in range(WEIGHTS)]
        c, d = torch.empty(8, tokens, tokens), torch.empty(8, tokens, tokens)
        for layout in ("NT", "NN"):
            pairs = [(x, y.mT if layout == "NT" else y) for x, y in zip(heads, heads[1:] + heads[:1], strict=True)]
            sides = [
                [ours(threads, x, y, c) for x, y in pairs],
                [functools.partial(torch.bmm, x, y, out=d) for x, y in pairs],
            ]
            sides[0][0](), sides[1][0]()
            difference = ((c - d).abs().max() / d.abs().max()).item()
            row(
                threads,
                "8 heads of 64 x 64 x 64",
                layout,
                2.0 * 8 * tokens * tokens * width,
                sides,
                options.rounds,
                difference,
            )


if __name__ == "__main__":
    main()
