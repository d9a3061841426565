"""Operators of the backend native that training of convolutional models and scans are made of, beside eager: forward, and backward where there is one.

Processor time of one thread, the least of a few runs: it can be read on a machine that others use too. `python bench/native_rules.py [WORD …]` picks cases.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import cutaway
import torch
import torch.nn.functional as F

RUNS = 15


def grown(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, requires_grad=True)


CASES: dict[str, tuple[Callable[..., torch.Tensor], list[torch.Tensor]]] = {
    "max pooling 3 2 1": (lambda x: F.max_pool2d(x, 3, 2, 1), [grown(4, 64, 56, 56)]),
    "max pooling 2": (lambda x: F.max_pool2d(x, 2), [grown(4, 64, 56, 56)]),
    "average pooling 3 1 1": (lambda x: F.avg_pool2d(x, 3, 1, 1), [grown(4, 64, 28, 28)]),
    "average pooling 2": (lambda x: F.avg_pool2d(x, 2), [grown(4, 64, 56, 56)]),
    "adaptive average pooling": (lambda x: F.adaptive_avg_pool2d(x, (7, 7)), [grown(4, 64, 28, 28)]),
    "nearest by 2": (lambda x: F.interpolate(x, scale_factor=2), [grown(4, 64, 28, 28)]),
    "group norm and silu": (
        lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)),
        [grown(4, 128, 32, 32), grown(128), grown(128)],
    ),  # fmt: skip
    "cumsum(1)": (lambda x: x.cumsum(1) * 2, [grown(8, 256, 256)]),
    "logcumsumexp(1)": (lambda x: x.logcumsumexp(1), [torch.randn(8, 256, 256)]),
    "roll": (lambda x: torch.roll(x, (3, 3), (1, 2)) * 2, [grown(8, 56, 56, 96)]),
    "mse": (lambda x, y: F.mse_loss(x, y), [grown(1024, 1024), torch.randn(1024, 1024)]),
    "glu": (lambda x: F.glu(x, -1), [grown(1024, 1024)]),
    "normalize": (lambda x: F.normalize(x, dim=-1), [grown(1024, 768)]),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), [torch.randn(4, 64, 64, 64)]),
    "hardswish": (lambda x: F.hardswish(x), [grown(1024, 1024)]),
    "prelu": (lambda x, w: F.prelu(x, w), [grown(16, 64, 28, 28), grown(64)]),
    "logaddexp": (lambda x, y: torch.logaddexp(x, y), [torch.randn(1024, 512), torch.randn(1024, 512)]),
    "linear of halves": (
        lambda x, w: F.gelu(F.linear(x, w)),
        [torch.randn(128, 768).half(), torch.randn(768, 768).half()],
    ),  # fmt: skip
}


def least(run: Callable[[], object]) -> float:
    best = float("inf")
    for i in range(RUNS + 2):
        start = time.process_time()
        run()
        if i >= 2:
            best = min(best, time.process_time() - start)
    return best * 1e3


def main() -> None:
    torch.set_num_threads(1)
    for name, (function, inputs) in CASES.items():
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        cutaway.reset()
        leaves = [x for x in inputs if x.requires_grad]

        def step(f: Callable[..., torch.Tensor], inputs=inputs, leaves=leaves) -> None:
            y = f(*inputs)
            if leaves:
                torch.autograd.grad(y, leaves, torch.ones_like(y))

        compiled = cutaway.compile(function, backend="native:wait")
        eager, native = least(lambda f=function: step(f)), least(lambda f=compiled: step(f))
        print(f"{name:26} eager {eager:8.2f} ms  native {native:8.2f} ms  {eager / native:6.2f}x", flush=True)


if __name__ == "__main__":
    main()
