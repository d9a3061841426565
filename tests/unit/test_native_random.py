"""The backend native: random numbers with eager's own bits, and the generator left where eager leaves it."""

import cutaway
import pytest
import torch
import torch.nn.functional as F


def compiled(f):
    cutaway.reset()
    return cutaway.compile(f, backend="native:wait", fullgraph=True)


def both(f, *inputs, seed=0, before=0):
    """The results of eager and of native from the same state, and the states behind them."""
    results = []
    for function in (f, compiled(f)):
        torch.manual_seed(seed)
        torch.rand(before)  # a state in its middle
        results.append((function(*inputs), torch.get_rng_state()))
    return results


def assert_same(results):
    (expected, state), (got, other) = results
    assert torch.equal(state, other)
    for e, g in zip(expected, got, strict=True):
        assert e.dtype == g.dtype and torch.equal(e, g)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("before", [0, 1, 311, 623, 624, 625, 1000])
def test_masks_are_eagers_bit_for_bit(dtype, before):
    xs = [torch.ones(n, dtype=dtype) for n in (1, 2, 3, 8, 17, 311, 312, 313, 624, 2047, 2048, 2049, 5000)]

    def program(xs):
        return [F.dropout(x, 0.3) for x in xs] + [
            F.dropout(xs[4], 0.0),
            F.dropout(xs[4], 1.0),
            F.alpha_dropout(xs[5].float(), 0.5),
        ]

    assert_same(both(program, xs, before=before))


def test_ten_million_draws():
    def program(x):
        return F.dropout(x, 0.9), F.dropout(x[:4999], 1e-3)

    for e, g in zip(*[r[0] for r in both(program, torch.ones(5_000_001))], strict=True):
        assert torch.equal(e, g)


def test_numbers_between_0_and_1():
    def program(x):
        return (
            torch.rand(7),
            torch.rand(1001, dtype=torch.float64),
            torch.rand_like(x),
            F.dropout(x, 0.5),
            torch.rand(3, 5) < 0.5,
            torch.randn(9),
            torch.rand(300),
        )

    assert_same(both(program, torch.randn(40, 31), before=5))


def test_layouts_and_order():
    def program(x):
        a = F.dropout(x.t(), 0.5)
        b = torch.randint(0, 9, (5,))
        c = F.dropout(x, 0.25).softmax(1)
        d = F.dropout1d(x.view(4, 6, 10), 0.5)
        return a, b, d, (c > 0), F.dropout(x[::2], 0.5)

    assert_same(both(program, torch.rand(24, 10) + 1))


def test_training_with_dropout_and_threads():
    def train(compile_it, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 200),
            torch.nn.Dropout(0.2),
            torch.nn.GELU(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(200, 8),
        )
        f = cutaway.compile(model, backend="native:wait") if compile_it else model
        x, masks = torch.randn(150, 64), []
        for _ in range(3):
            model.zero_grad()
            y = f(x)
            y.square().mean().backward()
            masks.append(model[4].weight.grad.clone())
        return masks, torch.get_rng_state()

    before = torch.get_num_threads()
    try:
        expected, state = train(False, before)
        for threads in (1, 2, 3):
            cutaway.reset()
            got, other = train(True, threads)
            assert torch.equal(state, other)
            for e, g in zip(expected, got, strict=True):
                torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-6)
    finally:
        torch.set_num_threads(before)
