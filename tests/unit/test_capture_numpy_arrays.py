"""Arrays of numpy in a graph: warnings come from the program's line, sizes stay symbols, shapes that depend on values end the graph, backends that trace see an operator."""

import warnings

import cutaway
import numpy as np
import pytest
import torch

from tests.support.capture_cases import Counter, reset


@pytest.fixture(autouse=True)
def clean():
    reset()
    yield
    reset()


def rows(n=3):
    return torch.arange(4 * n, dtype=torch.float32).reshape(n, 4) / 7 - 0.5


def smoothed(x):
    a = x.numpy()
    b = np.sin(a) + a.mean(axis=0)
    return torch.from_numpy(b) * x, b


def same(got, expected):
    return all(np.array_equal(np.asarray(g), np.asarray(e)) for g, e in zip(got, expected, strict=True))


def test_a_warning_comes_at_each_call_from_its_line():
    def divide(x):
        a = x.numpy()
        return torch.from_numpy(1 / (a - a)) + 1

    compiled = cutaway.compile(divide, fullgraph=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        compiled(rows())
        compiled(rows())
    assert [(str(w.message), w.lineno) for w in heard] == [
        ("divide by zero encountered in divide", divide.__code__.co_firstlineno + 2)
    ] * 2


def test_sizes_that_change_take_one_more_graph():
    counter = Counter()
    compiled = cutaway.compile(smoothed, backend=counter, fullgraph=True)
    for n in range(3, 9):
        assert same(compiled(rows(n)), smoothed(rows(n)))
    assert counter.frame_count == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native", "inductor"])
def test_backends(backend):
    compiled = cutaway.compile(smoothed, backend=backend, fullgraph=True)
    got, expected = compiled(rows()), smoothed(rows())
    assert np.array_equal(got[1], expected[1])
    torch.testing.assert_close(got[0], expected[0], rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a[a > 0],
        lambda a: np.where(a > 0)[0],
        lambda a: np.arange(a.argmax()),
        lambda a: np.repeat(a, 2),
        lambda a: a.repeat(a.astype(int).ravel() + 1),
        lambda a: np.tile(a, a.argmin(axis=0)),
    ],
)
def test_shapes_that_depend_on_values_end_the_graph(function):
    def f(x):
        return torch.from_numpy(function(x.numpy())).sum(), x + 1

    assert same(cutaway.compile(f, backend="eager")(rows()), f(rows()))
    reset()
    with pytest.raises(cutaway.exc.Unsupported):
        cutaway.compile(f, backend="eager", fullgraph=True)(rows())
