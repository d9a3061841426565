"""Convolutions by the backend native's own kernels: results and gradients against torch's in float64, over shapes, steps, paddings and strides."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import cutaway
import pytest
import torch
import torch.nn.functional as F

F32, F64 = torch.float32, torch.float64


def run(f: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The result, and gradients of all inputs for a loss that is not symmetric."""
    given = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_() for x in inputs]
    y = f(*given)
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
    (y * weight).sum().backward()
    return [y.detach(), *(x.grad for x in given if x.grad is not None)]


def convolution(f: Any, **how: Any) -> Any:
    """A function of the program's own: what is not one is not captured."""
    return lambda *inputs: f(*inputs, **how)


def check(f: Any, inputs: list[torch.Tensor]) -> None:
    """Not further from float64 than eager, but for a little: both round."""
    cutaway.reset()
    ours = run(cutaway.compile(f, backend="native:wait"), inputs)
    eager = run(f, inputs)
    exact = run(f, [x.double() for x in inputs])
    for a, b, c in zip(ours, eager, exact, strict=True):
        assert a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype
        scale = float(c.abs().max()) + 1e-30
        error, eagers = (float((x.double() - c).abs().max()) / scale for x in (a, b))
        assert error <= 2 * eagers + (1e-6 if a.dtype == F32 else 1e-14), f"{error} beside eager's {eagers}"


SHAPES = [
    # batch, channels, height, width, outputs, window, step, padding, dilation
    (2, 3, 13, 11, 8, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 3, 32, 32, 8, (7, 7), (2, 2), (3, 3), (1, 1)),
    (1, 16, 8, 8, 30, (3, 3), (2, 2), (1, 1), (1, 1)),
    (3, 20, 2, 2, 17, (3, 3), (1, 1), (1, 1), (1, 1)),
    (5, 8, 4, 4, 40, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 33, 7, 7, 12, (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 33, 7, 9, 12, (1, 1), (2, 3), (0, 0), (1, 1)),
    (1, 4, 17, 40, 5, (3, 5), (3, 2), (2, 4), (2, 3)),
    (2, 6, 9, 9, 4, (2, 2), (3, 3), (0, 0), (1, 1)),
    (2, 5, 6, 6, 6, (6, 6), (1, 1), (0, 0), (1, 1)),
    (1, 5, 1, 1, 6, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 4, 5, 5, 6, (2, 2), (1, 1), (3, 3), (1, 1)),
    (70, 3, 1, 2, 5, (1, 2), (1, 1), (0, 0), (1, 1)),
    (2, 1024, 3, 3, 20, (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 64, 33, 32, 15, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 5, 6, 83, 9, (3, 3), (2, 2), (1, 1), (1, 1)),
    (1, 4, 3, 134, 9, (1, 4), (1, 2), (0, 3), (1, 1)),
    (3, 300, 7, 7, 120, (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 300, 16, 16, 120, (3, 3), (1, 1), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_result_and_gradients(shape: Any, bias: bool) -> None:
    n, c, h, w, o, window, step, padding, dilation = shape
    torch.manual_seed(0)
    inputs = [torch.randn(n, c, h, w), torch.randn(o, c, *window), *([torch.randn(o)] if bias else [])]
    check(lambda *a: F.conv2d(*a, stride=step, padding=padding, dilation=dilation), inputs)


def test_random_shapes() -> None:
    choose = random.Random(7)
    for _ in range(12):
        window = choose.randint(1, 4), choose.randint(1, 4)
        dilation = choose.randint(1, 2), choose.randint(1, 2)
        step = choose.randint(1, 3), choose.randint(1, 3)
        padding = choose.randint(0, 3), choose.randint(0, 3)
        size = [choose.randint((k - 1) * d + 1, 40) for k, d in zip(window, dilation, strict=True)]
        torch.manual_seed(choose.randint(0, 1 << 30))
        dtype = choose.choice([F32, F64])
        x = torch.randn(choose.randint(1, 4), choose.randint(1, 40), *size, dtype=dtype)
        w = torch.randn(choose.randint(4, 50), x.shape[1], *window, dtype=dtype)
        check(convolution(F.conv2d, stride=step, padding=padding, dilation=dilation), [x, w])


@pytest.mark.parametrize("dtype", [F32, F64])
def test_one_dimension(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for step, padding in itertools.product((1, 2), (0, 2)):
        check(
            convolution(F.conv1d, stride=step, padding=padding),
            [torch.randn(3, 5, 21, dtype=dtype), torch.randn(9, 5, 3, dtype=dtype), torch.randn(9, dtype=dtype)],
        )


def test_strided_and_sliced_inputs() -> None:
    torch.manual_seed(0)
    w = torch.randn(8, 4, 3, 3)
    base = torch.randn(2, 12, 12, 8)
    for view in (
        lambda x: x.permute(0, 3, 1, 2)[:, ::2],
        lambda x: x[:, :4, 2:9],
        lambda x: x[:, :4].flip(3),
        lambda x: x[:, :4, ::2, 1::2],
        lambda x: x[:1, :4].expand(3, 4, 12, 8),
    ):
        check(lambda x, w, v=view: F.conv2d(v(x), w, padding=1), [base, w])
    check(lambda x, w: F.conv2d(x, w.transpose(0, 1)), [torch.randn(2, 8, 6, 6), w])
    check(lambda x, w: F.conv2d(x, w), [torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last), w])
    check(lambda x, w: F.conv2d(x, w[2:7, :, 1:, :]), [torch.randn(2, 4, 6, 6), w])


def test_what_stays_torchs() -> None:
    torch.manual_seed(0)
    check(lambda x, w: F.conv2d(x, w, groups=2), [torch.randn(2, 8, 6, 6), torch.randn(6, 4, 3, 3)])
    check(lambda x, w: F.conv_transpose2d(x, w), [torch.randn(2, 8, 6, 6), torch.randn(8, 4, 3, 3)])
    check(lambda x, w: F.conv3d(x, w), [torch.randn(2, 4, 5, 6, 6), torch.randn(6, 4, 3, 3, 3)])
    check(lambda x, w: F.conv2d(x, w), [torch.randn(2, 8, 6, 6), torch.randn(2, 8, 3, 3)])
    for empty in (torch.randn(0, 4, 6, 6),):
        f = cutaway.compile(lambda x: F.conv2d(x, torch.ones(5, 4, 3, 3)), backend="native:wait")
        assert f(empty).shape == (0, 5, 4, 4)
    with pytest.raises(RuntimeError, match="channels"):
        cutaway.compile(lambda x: F.conv2d(x, torch.ones(5, 3, 3, 3)), backend="native:wait")(torch.randn(1, 4, 6, 6))


class Block(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(channels)
        self.b = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.b(torch.relu(self.norm(self.a(x)))) + x)


@pytest.mark.parametrize("size", [2, 3, 7, 8, 16])
@pytest.mark.parametrize("training", [False, True])
def test_block_with_norm_and_residual(size: int, training: bool) -> None:
    torch.manual_seed(0)
    model = Block(20).train(training)
    with torch.no_grad():
        model.norm.running_var.uniform_(0.5, 2)
        model.norm.running_mean.uniform_(-1, 1)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    x = torch.randn(3, 20, size, size)

    def results(f: Any, m: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
        m.load_state_dict(state)
        m.zero_grad()
        x = x.clone().requires_grad_()
        y = f(x)
        (y * torch.linspace(-1, 1, size, dtype=x.dtype)).sum().backward()
        return [y.detach(), x.grad, *(p.grad.clone() for p in m.parameters())]

    cutaway.reset()
    ours = results(cutaway.compile(model, backend="native:wait"), model, x)
    eager = results(model, model, x)
    exact = results(model.double(), model, x.double())
    for a, b, c in zip(ours, eager, exact, strict=True):
        scale = float(c.abs().max()) + 1e-30
        assert float((a.double() - c).abs().max()) / scale <= 2 * float((b.double() - c).abs().max()) / scale + 2e-6


def test_kernels_and_epilogues_are_made(tmp_path: Path) -> None:
    """Norm, activation and residual run over the tiles of the convolution, and gradients are calls of our own: the fused graphs say so."""
    script = tmp_path / "program.py"
    script.write_text("""
import cutaway, torch
m = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
with torch.no_grad():
    cutaway.compile(m, backend="native:wait")(torch.randn(2, 8, 8, 8))
cutaway.compile(lambda x, w: torch.nn.functional.conv2d(x, w), backend="native:wait")(torch.randn(2, 8, 8, 8, requires_grad=True), torch.randn(8, 8, 3, 3, requires_grad=True)).sum().backward()
""")
    environment = {**os.environ, "CUTAWAY_DEBUG": "4", "CUTAWAY_DEBUG_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True)
    graphs = [p.read_text() for p in sorted(tmp_path.rglob("ir_post_fusion.cut"))]
    assert any("call native.p" in g and "aten.relu" in g and g.count("call native.") == 1 for g in graphs), graphs
    assert any("call native.c" in g for g in graphs), graphs


def test_special_values() -> None:
    """NaN and infinity reach the windows that cover them and no others; zeros around the input are zeros."""
    torch.manual_seed(0)
    w = torch.randn(6, 3, 3, 3)
    for value in (float("nan"), float("inf"), -float("inf")):
        for at in ((0, 0), (0, 8), (4, 4), (8, 8), (8, 0)):
            x = torch.randn(2, 3, 9, 9)
            x[1, 2, at[0], at[1]] = value
            f = cutaway.compile(lambda x: F.conv2d(x, w, padding=1), backend="native:wait")
            with torch.no_grad():
                ours, eager = f(x), F.conv2d(x, w, padding=1)
            assert torch.equal(ours.isfinite(), eager.isfinite())
            assert torch.allclose(ours, eager, atol=1e-4, equal_nan=True)


def test_threads_do_not_change_bits() -> None:
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    for n, c, size, o in ((2, 32, 16, 32), (2, 128, 4, 128), (2, 64, 2, 256), (3, 3, 40, 20)):
        inputs = [torch.randn(n, c, size, size), torch.randn(o, c, 3, 3)]
        found = []
        try:
            for count in (1, 2, 3):
                torch.set_num_threads(count)
                cutaway.reset()
                found.append(
                    run(cutaway.compile(lambda x, w: F.conv2d(x, w, padding=1), backend="native:wait"), inputs)
                )
        finally:
            torch.set_num_threads(threads)
        for other in found[1:]:
            assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
