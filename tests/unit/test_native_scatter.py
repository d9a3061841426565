"""The backend native: additions at places that indices name, in eager's order: equal bit for bit."""

import cutaway
import pytest
import torch
import torch.nn.functional as F


def compiled(f):
    cutaway.reset()
    return cutaway.compile(f, backend="native:wait", fullgraph=True)


PLACES = torch.tensor([0, 3, 3, 1, 0, 3, 2, 3])
GRADIENTS = {
    "embedding": lambda x: F.embedding(PLACES.view(2, 4), x) * 1.5,
    "embedding with padding": lambda x: F.embedding(PLACES, x, padding_idx=3) * 1.5,
    "embedding by frequency": lambda x: F.embedding(PLACES, x, scale_grad_by_freq=True) * 1.5,
    "index": lambda x: x[PLACES] * 2,
    "index of two dimensions": lambda x: x[PLACES.view(2, 4)] * 2,
    "negative index": lambda x: x[PLACES - 4] * 2,
    "second dimension": lambda x: x[:, PLACES] * 2,
    "two indices": lambda x: x[PLACES, PLACES] * 2,
    "index_select": lambda x: x.index_select(0, PLACES) * 2,
    "index_select of the second": lambda x: x.index_select(1, PLACES) * 2,
    "gather": lambda x: x.gather(1, PLACES.view(4, 2)) * 2,
    "gather of the first": lambda x: x.gather(0, PLACES.view(2, 4)) * 2,
    "take_along_dim": lambda x: torch.take_along_dim(x, PLACES.view(4, 2), 1) * 2,
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gradients_of_reading(name, dtype):
    f = GRADIENTS[name]
    torch.manual_seed(0)
    x = torch.randn(4, 40, dtype=dtype, requires_grad=True)
    expected, got = f(x), compiled(f)(x)
    weight = torch.randn_like(expected)
    assert torch.equal(expected, got)
    (e,), (g,) = torch.autograd.grad(expected, x, weight), torch.autograd.grad(got, x, weight)
    assert torch.equal(e, g), (e - g).abs().max()


def test_additions_by_name():
    def program(x, y, i, j):
        return [
            x.index_add(0, i, y),
            x.t().contiguous().index_add(1, i, y.t()),
            x.index_add(0, i, y, alpha=2),
            x.scatter_add(0, j, y),
            x.scatter_add(1, j[:5, :4], y[:5]),
            torch.index_put(x, [i], y, accumulate=True),
            torch.index_put(x, [i], y[0], accumulate=True),
            torch.index_put(x, [i], y[:, :1], accumulate=True),
            torch.zeros(5, 6).index_add(0, i, y) + 1,
            torch.ones(5, 6).scatter_add(0, j, y),
            x.to(torch.bfloat16).index_add(0, i, y.to(torch.bfloat16)),
        ]

    torch.manual_seed(0)
    i = torch.randint(0, 5, (9,))
    x, y, j = torch.randn(5, 6), torch.randn(9, 6), torch.randint(0, 5, (9, 6))
    for k, (e, g) in enumerate(zip(program(x, y, i, j), compiled(program)(x, y, i, j), strict=True)):
        assert torch.equal(e, g), k


@pytest.mark.parametrize("bad", [5, -6, 2**40])
def test_a_place_out_of_range_raises_what_eager_raises(bad):
    programs = [
        lambda x, y, i: x.index_add(0, i, y) * 2,
        lambda x, y, i: x.scatter_add(0, i.view(-1, 1).expand(-1, 6), y) * 2,
        lambda x, y, i: torch.index_put(x, [i], y, accumulate=True) * 2,
    ]
    x, y, i = torch.randn(5, 6), torch.randn(3, 6), torch.tensor([0, 4, 1])
    for program in programs:
        f = compiled(program)
        assert torch.equal(f(x, y, i), program(x, y, i))
        wrong = torch.tensor([0, bad, 1])
        with pytest.raises(Exception) as expected:  # noqa: PT011
            program(x, y, wrong)
        with pytest.raises(type(expected.value)) as got:
            f(x, y, wrong)
        assert str(got.value) == str(expected.value)


def test_threads_agree():
    def program(table, i):
        return F.embedding(i, table) * 2

    table, i = torch.randn(50, 96, requires_grad=True), torch.randint(0, 50, (5000,))
    f, before, results, weight = compiled(program), torch.get_num_threads(), [], torch.randn(5000, 96)
    (expected,) = torch.autograd.grad(program(table, i), table, weight)
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(torch.autograd.grad(f(table, i), table, weight)[0])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(r, expected) for r in results)
