"""The backend native: rules of pooling's gradients, group norm's, scans down columns, norms, rolls and large sums; and that each of them is a kernel."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from test_native_training import FLOATS, check, compiled, tol_of

RULES = {
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25], dtype=x.dtype)),
    "hardswish": lambda x: F.hardswish(x),
    "mish": lambda x: F.mish(x),
    "glu": lambda x: F.glu(x, -1) * 2,
    "glu of another dimension": lambda x: F.glu(x * 2, 0),
    "nan_to_num": lambda x: torch.nan_to_num(x) + torch.nan_to_num(x, 1.5, 2.5, -3.5),
    "logaddexp": lambda x: torch.logaddexp(x, x.detach().flip(-1)),
    "roll": lambda x: torch.roll(x * 2, 1, -1) + 1,
    "roll of two dimensions": lambda x: torch.roll(x, (3, -2), (0, 1)) * 2,
    "roll back": lambda x: torch.roll(torch.roll(x, -1, 0), 1, 0),
    "lengths": lambda x: torch.linalg.vector_norm(x, dim=-1) + x.norm(1, dim=-1) + x.norm(math.inf, dim=-1),
    "normalised": lambda x: F.normalize(x, dim=-1),
}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float16], ids=str)
def test_rules(dtype):
    torch.manual_seed(0)
    inputs = [(torch.randn(6, 34) * 2).to(dtype).requires_grad_() for _ in RULES]
    program = lambda *xs: [f(x) for x, f in zip(xs, RULES.values(), strict=True)]  # noqa: E731
    check(program, *inputs, tol=tol_of(dtype) if dtype != torch.float16 else 4e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_special_values(dtype):
    special = [0.0, -0.0, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e-30, 20.0, -20.0, 2.9999, -2.9999]
    x = torch.tensor(special * 3).to(dtype).view(2, 18)
    names = [n for n in RULES if n != "normalised"]
    check(lambda x: [RULES[n](x) for n in names], x, tol=tol_of(dtype))


def test_pixels():
    def program(x, y):
        return [
            F.pixel_shuffle(x, 2) * 2,
            F.pixel_unshuffle(y, 2),
            F.pixel_shuffle(x * 2, 1),
            F.pixel_shuffle(x[0], 2),
            F.pixel_shuffle(x.transpose(2, 3), 2),
        ]

    check(program, torch.randn(2, 12, 5, 6, requires_grad=True), torch.randn(2, 3, 4, 6, requires_grad=True))


# --- pools

PLACES = {
    "3 2 1": dict(kernel_size=3, stride=2, padding=1),
    "2": dict(kernel_size=2),
    "apart": dict(kernel_size=2, stride=1, padding=1, dilation=3),
    "oblong": dict(kernel_size=(1, 3), stride=(2, 1), padding=(0, 1)),
    "ceil": dict(kernel_size=3, stride=2, padding=1, ceil_mode=True),
    "large": dict(kernel_size=5, stride=2),
}


@pytest.mark.parametrize("how", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_places_of_pools_are_eagers(how, dtype):
    """Also of equal elements, of windows without anything above -infinity, and of what is not a number."""
    torch.manual_seed(0)
    x = torch.randint(0, 4, (2, 3, 11, 13)).to(dtype)
    x[0, 1], x[1, 0, 3:7], x[1, 1, 4, 5], x[1, 1, 5, 5], x[1, 2] = -math.inf, -math.inf, math.nan, math.nan, math.nan
    values, places = compiled(lambda x: F.max_pool2d(x * 1, return_indices=True, **how))(x)
    eager_values, eager_places = F.max_pool2d(x, return_indices=True, **how)
    assert torch.equal(places, eager_places)
    assert torch.equal(values.nan_to_num(7), eager_values.nan_to_num(7))
    check(lambda x: F.max_pool2d(x, **how) * 2, torch.randn(2, 3, 11, 13, dtype=dtype, requires_grad=True))


POOLS = {
    "avg 3 1 1": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "avg 3 1 1 of what lies inside": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "avg 2 1": lambda x: F.avg_pool2d(x, (2, 3), 1, divisor_override=4),
    "avg 2": lambda x: F.avg_pool2d(x, 2),
    "avg 2 by 3": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    "avg 3 2": lambda x: F.avg_pool2d(x, 3, 2),
    "avg beyond the last window": lambda x: F.avg_pool2d(x, 5),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    "adaptive of uneven windows": lambda x: F.adaptive_avg_pool2d(x, (5, 7)),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (4, 3)),
    "max 3d": lambda x: F.max_pool3d(x, 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest 1 3": lambda x: F.interpolate(x, scale_factor=(1.0, 3.0)),
    "nearest of odd sizes": lambda x: F.interpolate(x, size=(9, 20)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gradients_of_pools(dtype):
    torch.manual_seed(0)
    xs = [torch.randn(2, 3, 12, 18, dtype=dtype, requires_grad=True) for _ in POOLS]
    check(lambda *xs: [f(x) * 2 for x, f in zip(xs, POOLS.values(), strict=True)], *xs)
    check(
        lambda x: [f(x.contiguous(memory_format=torch.channels_last)).sum() for n, f in POOLS.items() if n != "max 3d"],
        xs[0],
    )


def test_gradients_of_pools_at_symbolic_sizes():
    def program(x):
        return F.max_pool2d(x, 3, 2, 1) * 2, F.avg_pool2d(x, 2) * 2, F.interpolate(x, scale_factor=2) * 2

    f = compiled(program, dynamic=True)
    for n, h in ((2, 8), (3, 10), (4, 32)):
        check(program, torch.randn(n, 3, h, h + 2, requires_grad=True), f=f)


# --- norms


@pytest.mark.parametrize(
    ("shape", "groups", "is_affine"),
    [
        ((2, 6, 5, 7), 3, True),
        ((3, 40, 8, 8), 8, True),
        ((1, 4, 30), 1, False),
        ((2, 4, 2, 2, 3), 4, True),
        ((5, 8), 2, True),
    ],
    ids=str,
)
def test_group_norm_backward(shape, groups, is_affine):
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        x = (torch.randn(shape, dtype=dtype) * 2 + 3).requires_grad_()
        w, b = (
            torch.rand(shape[1], dtype=dtype, requires_grad=True),
            torch.randn(shape[1], dtype=dtype, requires_grad=True),
        )
        check(
            lambda x, w, b: F.group_norm(x, groups, w if is_affine else None, b if is_affine else None).tanh(), x, w, b
        )
    for wanted in ((1, 0, 0), (0, 1, 0), (0, 1, 1)):
        given = [v.detach().clone().requires_grad_(bool(a)) for v, a in zip((x, w, b), wanted, strict=True)]
        if is_affine or wanted[0]:
            check(
                lambda x, w, b: F.group_norm(x, groups, w if is_affine else None, b if is_affine else None) * 2, *given
            )


# --- scans down columns


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float16, torch.int64, torch.int32], ids=str)
def test_scans_down_columns(dtype):
    torch.manual_seed(0)
    for shape in ((5, 70), (3, 4, 9), (2, 7, 3, 16), (300, 130), (1, 20), (6, 3)):
        x = (torch.randn(shape) * 2).to(dtype)
        f = compiled(lambda x: [x.cumsum(0), (x * 2).cumsum(-2) + 1, x.cumprod(-2), x.cumsum(0).cumsum(0)])
        g = [x.cumsum(0), (x * 2).cumsum(-2) + 1, x.cumprod(-2), x.cumsum(0).cumsum(0)]
        for a, b in zip(f(x), g, strict=True):
            assert torch.equal(a, b), shape
    if dtype in (torch.float32, torch.float64):
        x = torch.randn(4, 9, 33, dtype=dtype, requires_grad=True)
        check(
            lambda x: [
                x.logcumsumexp(1) * 2,
                x.tanh().cumsum(1).exp(),
                x.transpose(0, 2).cumsum(1),
                x[:, ::2].cumprod(0),
                x.cumsum(0).sum(-1),
            ],
            x,
        )
        y = x.detach().clone()
        y[0, 0, 0], y[1, 2, 3], y[2], y[3, 4, 5] = math.inf, math.nan, -math.inf, -math.inf
        check(lambda x: [x.logcumsumexp(1), x.cumsum(1), x.cumprod(0)], y)


def test_scans_down_columns_at_symbolic_sizes():
    program = lambda x: (x.cumsum(0) * 2, x.exp().cumsum(1).log(), x.logcumsumexp(1))  # noqa: E731
    f = compiled(program, dynamic=True)
    for shape in ((3, 5, 70), (4, 6, 71), (2, 9, 200), (3, 40, 64)):
        check(program, torch.randn(shape), f=f)


# --- sums of all of a large tensor


@pytest.mark.parametrize("shape", [(300, 256), (64, 1000), (17, 33, 64), (131, 127), (70001,)], ids=str)
def test_large_sums(shape):
    torch.manual_seed(0)
    x, y = torch.randn(shape, requires_grad=True), torch.randn(shape)

    def program(x, y):
        return [
            F.mse_loss(x, y),
            (x * y).sum() * 2,
            x.tanh().mean(),
            F.l1_loss(x, y, reduction="sum"),
            x.mT.mean() if x.dim() > 1 else x.mean(),
        ]

    check(program, x, y)
    if shape == (70001,):
        return  # torch's own: no row length divides it
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(compiled(program)(x, y))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0][:4], other[:4], strict=True))


# --- products of halves, and products at symbolic sizes


def test_products_of_halves():
    torch.manual_seed(0)
    a, w, b = (torch.randn(40, 64) / 4).half(), (torch.randn(48, 64) / 4).half(), torch.randn(48).half()

    def program(a, w, b):
        return [
            F.linear(a, w, b),
            F.gelu(a @ w.t()) * 2,
            torch.bmm(a.view(2, 20, 64), w.view(2, 24, 64).mT),
            a[:3] @ w.t(),
            a[:, ::2] @ w[:, ::2].t(),
        ]

    check(program, a.requires_grad_(), w.requires_grad_(), b.requires_grad_(), tol=2e-3)
    big = torch.full((20, 32), 300.0).half()
    check(lambda a: a @ a.t(), big)  # beyond the largest half


def test_epilogues_at_symbolic_sizes(tmp_path: Path) -> None:
    def program(x, w, b, r):
        y = F.gelu(F.linear(x, w, b))
        return y + r, (x @ w.t()).relu() * 2, torch.bmm(y.view(2, -1, 24), y.view(2, -1, 24).mT).tanh()

    f = compiled(program, dynamic=True)
    w, b = torch.randn(24, 40), torch.randn(24)
    for n in (6, 8, 34, 130, 2):
        check(
            program,
            torch.randn(n, 40, requires_grad=True),
            w.requires_grad_(),
            b.requires_grad_(),
            torch.randn(n, 24),
            f=f,
        )
    script = tmp_path / "program.py"
    script.write_text("""
import cutaway, torch
f = cutaway.compile(lambda x, w, b: torch.nn.functional.linear(x, w, b).relu(), backend="native:wait", dynamic=True)
for n in (4, 9, 30):
    f(torch.randn(n, 40), torch.randn(24, 40), torch.randn(24))
""")
    environment = {**os.environ, "CUTAWAY_DEBUG": "4", "CUTAWAY_DEBUG_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True)
    graphs = [p.read_text() for p in sorted(tmp_path.rglob("ir_post_fusion.cut"))]
    assert any("call native.p" in g and "aten.relu" in g and g.count("call native.") == 1 for g in graphs), graphs


# --- nothing of it is torch's


def test_all_of_it_is_kernels(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("""
import cutaway, torch, torch.nn.functional as F
def program(x, w, b):
    y = F.max_pool2d(F.group_norm(x, 4, w, b).relu(), 3, 2, 1)
    z = F.avg_pool2d(y, 3, 1, 1) + F.interpolate(F.avg_pool2d(y, 2), scale_factor=2) + F.hardswish(y) + F.glu(torch.cat([y, y], 1), 1)
    z = torch.roll(z, (1, 1), (2, 3)) + F.adaptive_avg_pool2d(x, (8, 8))
    return (z.cumsum(1) * F.normalize(z, dim=-1)).square().mean()
x, w, b = torch.randn(8, 16, 16, 16, requires_grad=True), torch.rand(16, requires_grad=True), torch.rand(16, requires_grad=True)
cutaway.compile(program, backend="native:wait")(x, w, b).backward()
""")
    environment = {**os.environ, "CUTAWAY_DEBUG": "4", "CUTAWAY_DEBUG_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True)
    decisions = "\n".join(p.read_text() for p in sorted(tmp_path.rglob("fusion.txt")))
    calls = {line for line in decisions.splitlines() if line.startswith("call ")}
    assert decisions
    assert not {c for c in calls if not c.endswith(": too few columns")}, calls
