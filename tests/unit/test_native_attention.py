"""Attention by the backend native's own kernel: results and gradients against torch's in float64; masks, causal rows, scales, strides, odd values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cutaway
import pytest
import torch
import torch.nn.functional as F

INF = float("inf")


def attend(*inputs: torch.Tensor, **how: Any) -> torch.Tensor:
    return F.scaled_dot_product_attention(*inputs, **how)


def attention(**how: Any) -> Callable[..., torch.Tensor]:
    """A function of the program's own: what is not one is not captured."""

    def f(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, **how)

    return f


def run(f: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    given = [x.detach().clone().requires_grad_() for x in inputs]
    y = f(*given)
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
    return [y.detach(), *(x.grad for x in given if x.grad is not None)]


def check(f: Any, inputs: list[torch.Tensor], exact_f: Any = None) -> None:
    cutaway.reset()
    ours = run(cutaway.compile(f, backend="native:wait"), inputs)
    eager = run(f, inputs)
    exact = run(exact_f or f, [x.double() for x in inputs])
    for a, b, c in zip(ours, eager, exact, strict=True):
        assert a.shape == b.shape and a.stride() == b.stride()
        scale = float(c.abs().max()) + 1e-30
        error, eagers = (float((x.double() - c).abs().max()) / scale for x in (a, b))
        assert error <= 2 * eagers + 1e-6, f"{error} beside eager's {eagers}"


def tensors(batch: int, heads: int, rows: int, keys: int, width: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(batch, heads, n, width) for n in (rows, keys, keys)]


SHAPES = [
    (2, 4, 64, 64, 64),
    (1, 1, 1, 1, 1),
    (2, 3, 5, 7, 3),
    (1, 2, 33, 130, 40),
    (3, 1, 15, 500, 16),
    (1, 2, 29, 31, 100),
    (1, 1, 3, 1000, 8),
    (2, 5, 17, 16, 256),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: Any) -> None:
    check(attend, tensors(*shape))
    check(attention(scale=0.3), tensors(*shape))


@pytest.mark.parametrize("rows", [1, 13, 14, 15, 64, 100, 450])
def test_causal(rows: int) -> None:
    check(attention(is_causal=True), tensors(2, 3, rows, rows, 24))


@pytest.mark.parametrize(
    "shape", [(2, 3, 20, 33), (2, 1, 20, 33), (1, 3, 20, 33), (1, 1, 1, 33), (2, 1, 1, 33), (20, 33), (1, 1, 20, 1)]
)
def test_masks(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    mask = torch.randn(shape)
    check(
        lambda q, k, v: attend(q, k, v, attn_mask=mask),
        tensors(2, 3, 20, 33, 16),
        lambda q, k, v: attend(q, k, v, attn_mask=mask.double()),
    )
    allowed = torch.rand(shape) > 0.4
    allowed[..., 0] = True
    check(lambda q, k, v: attend(q, k, v, attn_mask=allowed), tensors(2, 3, 20, 33, 16))


def test_strides() -> None:
    torch.manual_seed(0)

    def heads(x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.chunk(3, -1)
        q, k, v = (y.view(2, 19, 4, 12).transpose(1, 2) for y in (q, k, v))
        return attend(q, k, v).transpose(1, 2).reshape(2, 19, 48)

    check(heads, [torch.randn(2, 19, 144)])
    check(
        lambda q, k, v: attend(q.transpose(2, 3), k[:, :, ::2], v[:, :, ::2]),
        [torch.randn(2, 3, 8, 10), torch.randn(2, 3, 14, 8), torch.randn(2, 3, 14, 8)],
    )
    check(
        lambda q, k: attend(q, k.expand(2, 3, 9, 8), k.expand(2, 3, 9, 8)),
        [torch.randn(2, 3, 5, 8), torch.randn(2, 1, 9, 8)],
    )


def test_what_stays_torchs() -> None:
    check(attention(is_causal=True), tensors(2, 3, 9, 12, 16))
    q, k, v = tensors(1, 2, 9, 9, 16)
    f = cutaway.compile(attention(dropout_p=0.5), backend="native:wait")
    torch.manual_seed(3)
    ours = f(q, k, v)
    torch.manual_seed(3)
    assert torch.allclose(ours, attend(q, k, v, dropout_p=0.5), atol=1e-5)
    for dtype in (torch.bfloat16, torch.float64):
        x = [t.to(dtype) for t in (q, k, v)]
        assert torch.allclose(cutaway.compile(attend, backend="native:wait")(*x), attend(*x))


def test_rows_without_finite_scores_are_torchs() -> None:
    """A row that sees nothing, NaN and infinities among queries, keys, masks and values: eager's answers."""
    for causal in (False, True):
        for place in range(3):
            for value in (math.nan, INF, -INF):
                x = tensors(2, 2, 30, 30, 16)
                x[place][1, 0, 7, 3] = value
                f = attention(is_causal=causal)
                with torch.no_grad():
                    ours, eager = cutaway.compile(f, backend="native:wait")(*x), f(*x)
                assert torch.equal(ours.isnan(), eager.isnan())
                assert torch.allclose(ours, eager, atol=1e-5, equal_nan=True)
    mask = torch.zeros(30, 30)
    mask[4] = -INF
    mask[5, :20] = -INF
    x = tensors(2, 2, 30, 30, 16)
    with torch.no_grad():
        ours = cutaway.compile(lambda *x: attend(*x, attn_mask=mask), backend="native:wait")(*x)
    assert torch.allclose(ours, attend(*x, attn_mask=mask), atol=1e-5, equal_nan=True)


def test_large_scores() -> None:
    x = tensors(1, 2, 40, 40, 32)
    x[0] *= 200
    check(attend, x)


def test_threads_do_not_change_bits() -> None:
    threads = torch.get_num_threads()
    for shape, causal in (((1, 1, 100, 900, 32), False), ((1, 3, 450, 450, 64), True)):
        found = []
        try:
            for count in (1, 2, 3):
                torch.set_num_threads(count)
                cutaway.reset()
                with torch.no_grad():
                    found.append(cutaway.compile(attention(is_causal=causal), backend="native:wait")(*tensors(*shape)))
        finally:
            torch.set_num_threads(threads)
        assert all(torch.equal(found[0], other) for other in found[1:])
