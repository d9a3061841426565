"""Epilogues of matrix products: what follows a product element by element is computed in its tiles, with the bits of a kernel of its own."""

import itertools

import cutaway
import pytest
import torch
import torch.nn.functional as F

EPILOGUES = {
    "gelu": lambda m, o: F.gelu(m),
    "silu times other": lambda m, o: F.silu(m) * o,
    "residual": lambda m, o: torch.relu(m * 0.125 + o),
    "mask": lambda m, o: torch.where(o > 0, m, -1.0),
    "two results": lambda m, o: (m.tanh(), m.sigmoid() + o[:1]),
    "a row's number": lambda m, o: m.exp() + o[..., :1],
    "the product too": lambda m, o: (m, F.gelu(m) + m),
    "bfloat16": lambda m, o: (m + o).to(torch.bfloat16),
    "a mask": lambda m, o: m > o,
    "another layout": lambda m, o: m.transpose(-1, -2).contiguous() * 2,
    "views": lambda m, o: F.relu(m.reshape(-1)).reshape(m.shape) - o,
}
# Few rows and columns, tiles that stick out, several blocks of k, several threads' worth.
SIZES = [(1, 40, 33), (3, 9, 17), (130, 257, 40), (29, 800, 72), (64, 48, 8), (5, 6, 3)]


def bits(x):
    return [t.detach().clone() for t in (x if isinstance(x, tuple) else (x,))]


def check(f, inputs, what):
    results = []
    for backend in ("native:wait", "native:wait:fusions=0"):
        cutaway.reset()
        results.append(bits(cutaway.compile(f, backend=backend, fullgraph=True)(*inputs)))
    for one, apart, eager in zip(*results, bits(f(*inputs)), strict=True):
        assert one.dtype == eager.dtype and one.shape == eager.shape and one.stride() == eager.stride(), what
        assert torch.equal(one, apart), what
        if eager.dtype == torch.bool:  # a comparison of two numbers that nearly agree may fall either way
            assert (one != eager).float().mean() < 0.01, what
        else:
            near = 2e-2 if eager.dtype == torch.bfloat16 else 1e-4
            torch.testing.assert_close(one, eager, rtol=near, atol=near, msg=lambda m: f"{what}: {m}")  # noqa: B023


@pytest.mark.parametrize("threads", [1, 2])
def test_epilogues_have_the_bits_of_kernels_of_their_own(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    try:
        for (name, epilogue), (m, k, n) in zip(
            itertools.chain(EPILOGUES.items(), EPILOGUES.items()), itertools.cycle(SIZES[threads - 1 :])
        ):
            a, w, bias, other = torch.randn(m, k), torch.randn(n, k) / k**0.5, torch.randn(n), torch.randn(m, n)
            check(lambda a, w, b, o, e=epilogue: e(F.linear(a, w, b), o), (a, w, bias, other), f"{name} {m} {k} {n}")
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches_strides_and_other_dtypes(dtype):
    torch.manual_seed(1)
    a, b = torch.randn(3, 20, 31, dtype=dtype), torch.randn(3, 31, 18, dtype=dtype) / 6
    other = torch.randn(3, 20, 18, dtype=dtype)
    for name in ("gelu", "residual", "two results", "the product too", "views"):
        epilogue = EPILOGUES[name]
        check(lambda a, b, o, e=epilogue: e(torch.bmm(a, b), o), (a, b, other), name)
        check(
            lambda a, b, o, e=epilogue: e(torch.bmm(a.transpose(1, 2), b.transpose(1, 2)), o),
            (a.transpose(1, 2).contiguous(), b.transpose(1, 2).contiguous(), other.transpose(0, 1).contiguous().transpose(0, 1)),
            name,
        )  # fmt: skip


def test_two_products_one_epilogue_and_no_cycle():
    def gated(x, gate, up, down):
        h = F.silu(x @ gate) * (x @ up)
        y = h @ down
        return y * (y @ gate).sum(1, keepdim=True) + x

    torch.manual_seed(2)
    x, gate, up, down = torch.randn(33, 24), torch.randn(24, 50) / 5, torch.randn(24, 50) / 5, torch.randn(50, 24) / 7
    check(gated, (x, gate, up, down), "gated")


def test_gradients_through_epilogues():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(40, 96), torch.nn.GELU(), torch.nn.Linear(96, 40), torch.nn.SiLU())
    x = torch.randn(37, 40)

    def gradients(f):
        model.zero_grad()
        (f(x) * torch.linspace(-1, 1, 40)).sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    expected = gradients(model)
    cutaway.reset()
    for got, want in zip(gradients(cutaway.compile(model, backend="native:wait")), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_softmax_of_rows_that_are_masked_whole():
    x = torch.randn(6, 9, 33)
    x[0, 1] = x[3] = -torch.inf
    x[1, 1, :30] = -torch.inf
    x[2, 2, 4] = torch.nan
    for dim, dtype in itertools.product((-1, 1), (torch.float32, torch.bfloat16)):
        cutaway.reset()
        f = cutaway.compile(lambda x, d=dim: torch.ops.aten._safe_softmax(x * 2, d), backend="native:wait")
        given = x.to(dtype)
        torch.testing.assert_close(f(given), torch.ops.aten._safe_softmax(given * 2, dim), equal_nan=True)
