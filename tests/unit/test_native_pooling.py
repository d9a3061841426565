"""The backend native: pooling and interpolation, forward as kernels where no places are asked for, with torch's own backward."""

import math

import cutaway
import pytest
import torch
import torch.nn.functional as F
from test_native_training import check, compiled

POOLS = {
    "max 3 2 1": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max 2": lambda x: F.max_pool2d(x, 2),
    "max, apart": lambda x: F.max_pool2d(x, 2, 1, 1, dilation=2),
    "max, ceil": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max, oblong": lambda x: F.max_pool2d(x * 2, (2, 3), (1, 2), (1, 0)) + 1,
    "max of many": lambda x: F.max_pool2d(x, 5),
    "avg 2": lambda x: F.avg_pool2d(x * 2, 2) + 1,
    "avg 3 2 1": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg without the edge": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "avg, ceil": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg by 5": lambda x: F.avg_pool2d(x, 2, divisor_override=5),
    "adaptive 1": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    "max 1d": lambda x: F.max_pool1d(x[0], 3, 2, 1),
    "avg 1d": lambda x: F.avg_pool1d(x[0], 2),
    "nearest 2": lambda x: F.interpolate(x * 2, scale_factor=2) + 1,
    "nearest 3 1": lambda x: F.interpolate(x, scale_factor=(3.0, 1.0)),
    "nearest to a size": lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 4)),
    "nearest to odd sizes": lambda x: F.interpolate(x, size=(7, 9)),
    "nearest by 1.5": lambda x: F.interpolate(x, scale_factor=1.5),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
}


def all_of_them(x):
    return [f(x) for f in POOLS.values()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_pools(dtype):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 12, 15).to(dtype)
    check(all_of_them, x, tol=2e-2 if dtype == torch.bfloat16 else 1e-4)


def test_pools_with_gradients():
    torch.manual_seed(0)
    check(all_of_them, torch.randn(2, 3, 10, 12, requires_grad=True))


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "steps", "three dimensions", "expanded"])
def test_other_layouts(layout):
    x = {
        "channels_last": torch.randn(2, 3, 12, 15).contiguous(memory_format=torch.channels_last),
        "transposed": torch.randn(2, 3, 15, 12).transpose(2, 3),
        "steps": torch.randn(2, 6, 12, 30)[:, ::2, :, ::2],
        "three dimensions": torch.randn(2, 3, 12, 15),
        "expanded": torch.randn(1, 3, 12, 1).expand(2, 3, 12, 15),
    }[layout]

    def program(x):
        if layout == "three dimensions":
            return [F.max_pool2d(x[0], 3, 2, 1), F.avg_pool2d(x[0], 2)]
        return [F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1), F.interpolate(x, scale_factor=2)]

    check(program, x)


def test_special_values():
    x = torch.randn(1, 2, 8, 8)
    x[0, 0, 0, 0], x[0, 0, 3, 3], x[0, 0, 6], x[0, 1] = math.nan, math.inf, -math.inf, -math.inf
    check(lambda x: [F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.interpolate(x, scale_factor=2)], x)


def test_symbolic_sizes():
    def program(x):
        return F.max_pool2d(x, 3, 2, 1) * 2, F.avg_pool2d(x, 2), F.interpolate(x, scale_factor=2)

    f = compiled(program, dynamic=True)
    for n, h in ((2, 8), (3, 10), (4, 31)):
        check(program, torch.randn(n, 3, h, h + 1), f=f)


def test_a_window_that_is_too_large_raises_what_eager_raises():
    x = torch.randn(1, 2, 4, 4)
    for program in (lambda x: F.max_pool2d(x, 9) * 2, lambda x: F.avg_pool2d(x, 9) * 2):
        with pytest.raises(RuntimeError) as expected:
            program(x)
        cutaway.reset()
        with pytest.raises(RuntimeError) as got:
            cutaway.compile(program, backend="native:wait")(x)
        assert str(got.value).splitlines()[0] == str(expected.value).splitlines()[0]
