"""Kernels of the backend native on tensors of 64 MB, beside Inductor's and beside the machine's copy bandwidth.

Layer norm, softmax, GELU and cross entropy, forward and backward, float32, 2 threads. A kernel that moves as many bytes as must be moved (each operand
read once, each result written once) as fast as `copy_` moves them has 1.0 beside "copy". `--only WORD` picks claims.
"""

from __future__ import annotations

from collections.abc import Callable

import cutaway
import torch
import torch.nn.functional as F
from side_by_side import compare, finish

THREADS = 2
ROWS, COLUMNS = 16384, 1024  # 64 MB of float32


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (COLUMNS,), w, b)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


def cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, target)


def layer_norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return torch.ops.aten.native_layer_norm_backward(dy, x, [COLUMNS], mean, rstd, w, b, [True, True, True])


def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._softmax_backward_data(dy, y, -1, torch.float32)


def gelu_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.gelu_backward(dy, x)


def cross_entropy_backward(y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (y.exp() - (torch.arange(COLUMNS) == target[:, None]).float()) / ROWS


def main() -> None:
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    x, dy = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    w, b = torch.randn(COLUMNS), torch.randn(COLUMNS)
    target = torch.randint(0, COLUMNS, (ROWS,))
    _, mean, rstd = torch.native_layer_norm(x, [COLUMNS], w, b, 1e-5)
    # Tensors of 64 MB that must be read or written at least once.
    cases: list[tuple[Callable[..., object], tuple[torch.Tensor, ...], int]] = [
        (layer_norm, (x, w, b), 2),
        (softmax, (x,), 2),
        (gelu, (x,), 2),
        (cross_entropy, (x, target), 1),
        (layer_norm_backward, (dy, x, w, b, mean, rstd), 3),
        (softmax_backward, (dy, torch.softmax(x, -1)), 3),
        (gelu_backward, (dy, x), 3),
        (cross_entropy_backward, (torch.log_softmax(x, -1), target), 2),
    ]
    for f, inputs, tensors in cases:
        name = f.__name__.replace("_", " ")
        native, inductor = cutaway.compile(f, backend="native:wait"), torch.compile(f)
        with torch.no_grad():
            for side in (native, inductor):
                side(*inputs)
                side(*inputs)
        source = torch.randn(tensors * ROWS // 2, COLUMNS)
        sink = torch.empty_like(source)
        with torch.no_grad():
            compare(f"{name} beside copy", lambda: native(*inputs), lambda: sink.copy_(source), peer_name="copy", at_least=0.8)  # noqa: B023  # fmt: skip
            compare(f"{name} beside inductor", lambda: native(*inputs), lambda: inductor(*inputs), peer_name="inductor", at_least=1.0)  # noqa: B023  # fmt: skip
    finish()


if __name__ == "__main__":
    main()
