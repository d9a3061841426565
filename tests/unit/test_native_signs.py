"""The sign of zero through the backend native: kernels keep it wherever eager does, and numbers that differ in it are two numbers."""

import cutaway
import pytest
import torch
import torch.nn.functional as F

ZEROS = [torch.tensor(-0.0), torch.tensor([-0.0]), torch.tensor([-0.0, 1.0]), torch.tensor([[-0.0] * 20]), torch.tensor([[0.0, -0.0] * 9])]
FUNCTIONS = {
    "clone": lambda x: x.clone(),
    "times_one": lambda x: x * 1.0,
    "minus": lambda x: -x,
    "minus_zero": lambda x: x - 0.0,
    "plus_minus_zero": lambda x: x + -0.0,
    "double": lambda x: x.double(),
    "bfloat16": lambda x: x.bfloat16(),
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin(),
    "cumsum": lambda x: x.cumsum(-1),
    "cat": lambda x: torch.cat([x.view(-1), x.view(-1)]),
    "broadcast": lambda x: torch.ones(3, 1) * x.view(-1)[:1],
    "relu": lambda x: F.relu(x),
    "tanhshrink": lambda x: F.tanhshrink(x),
    "where": lambda x: torch.where(x == 0, x, 1.0),
    **{
        name: (lambda x, name=name: getattr(torch, name)(x))
        for name in "tanh sin asin atan sinh asinh atanh tan erf expm1 log1p sqrt ceil floor round trunc sign abs".split()
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zeros_keep_their_sign(name):
    compared = 0
    for x in ZEROS:
        f = FUNCTIONS[name]
        expected = f(x)
        got = cutaway.compile(lambda z, f=f: f(z), backend="native:wait")(x)
        assert torch.equal(torch.signbit(expected), torch.signbit(got)), (x, expected, got)
        compared += 1
    assert compared == len(ZEROS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native:wait"])
@pytest.mark.parametrize("grad", [False, True])
def test_a_float_that_changes_to_minus_zero(backend, grad):
    x = torch.ones(3, requires_grad=grad)
    f = cutaway.compile(lambda x, s: (1 / torch.full_like(x, s)) * x, backend=backend)
    numbers = [3.0, 2.0, 0.0, -0.0, 0.0, -0.0, float("nan"), float("nan")]
    expected = [str(((1 / torch.full_like(x, s)) * x).tolist()) for s in numbers]
    assert [str(f(x, s).tolist()) for s in numbers] == expected


def test_constant_tensors_that_differ_in_a_sign():
    def f(x):
        return torch.tensor(0.0), torch.tensor(-0.0), 1 / (x * 0 * torch.tensor(-0.0)), 1 / torch.full_like(x, -0.0)

    x = torch.ones(3)
    assert [str(t.tolist()) for t in cutaway.compile(f, backend="native:wait")(x)] == [str(t.tolist()) for t in f(x)]
