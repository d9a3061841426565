"""Breaks inside calls, loops and generators: tracebacks, numbers of graphs, what is not captured. The programs are in area_breaks.py."""

import os
import traceback

import cutaway
import pytest
import torch

from tests.programs.area_breaks import three_frames
from tests.support.capture_cases import Counter

pytestmark = pytest.mark.usefixtures("fresh_capture")

X = torch.arange(1.0, 5.0)
LOG = []


def frames_of(error):
    """Where the user's code was, as the traceback says, and the same for what came before."""
    seen = []
    while error is not None:
        places = [
            (f.name, f.lineno, f.line) for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__
        ]
        seen.append((type(error), str(error), [p for p in places if p[0] not in ("raised_by", "test_tracebacks")]))
        error = error.__cause__ or error.__context__
    return seen


def raised_by(function):
    try:
        function(X.clone())
    except Exception as error:
        return frames_of(error)


def fails_late(x):
    y = x + 1
    print("in the middle")
    y = y * 2
    if y.shape[0] == 4:
        raise ValueError("late")
    return y


def calls_it(x):
    y = x + 1
    z = fails_late(y)
    return z + y


def three_deep(x):
    y = x * 2
    return calls_it(y) + 1


def with_a_cause(x):
    try:
        return three_deep(x)
    except ValueError as error:
        raise RuntimeError("outer") from error


def with_a_context(x):
    try:
        return three_deep(x)
    finally:
        print("finally")
        {}["missing"]


def on_real_data(x):
    y = x + 1
    print("before")
    return torch.linalg.cholesky(-torch.eye(2) * y.sum())


def on_real_data_inside(x):
    try:
        return on_real_data(x)
    except RuntimeError as error:
        raise ValueError("seen") from error


def in_a_loop(x):
    for i in range(3):
        x = x + 1
        print(i)
        if i == 1:
            raise ValueError(i)


@pytest.mark.parametrize(
    "function",
    [three_deep, with_a_cause, with_a_context, on_real_data, on_real_data_inside, in_a_loop],
    ids=lambda f: f.__name__,
)
def test_tracebacks(function):
    expected = raised_by(function)
    compiled = cutaway.compile(function, backend="eager")
    for _ in range(3):
        assert raised_by(compiled) == expected


def test_one_graph_before_and_one_behind():
    counter = Counter()
    compiled = cutaway.compile(three_frames, backend=counter)
    assert torch.equal(compiled(X), three_frames(X))
    assert (counter.frame_count, counter.op_count) == (2, 6)


def test_a_loop_takes_as_many_graphs_as_it_has_parts():
    counter = Counter()

    def f(x):
        for _ in range(50):
            x = x + 1
            cutaway.graph_break()
            x = x * 0.5
        return x

    assert torch.equal(cutaway.compile(f, backend=counter)(X), f(X))
    assert counter.frame_count <= 4


async def coroutine(x):
    return x + 1


def generating(x):
    yield x + 1
    yield x + 2


def test_what_is_not_captured_says_so():
    import asyncio

    assert torch.equal(asyncio.run(cutaway.compile(coroutine, backend="eager")(X)), X + 1)
    assert [t.sum() for t in cutaway.compile(generating, backend="eager")(X)] == [(X + 1).sum(), (X + 2).sum()]
    for function in (coroutine, generating):
        with pytest.raises(cutaway.exc.Unsupported, match="coroutine|generator"):
            cutaway.compile(function, fullgraph=True)(X)


def test_a_result_that_nobody_looks_at_is_not_guarded():
    counter = Counter()

    def step(x):
        y = x + 1
        os.times().elapsed  # noqa: B018 -- another number at each call
        return y * 2

    compiled = cutaway.compile(step, backend=counter)
    for _ in range(5):
        assert torch.equal(compiled(X), step(X))
    assert counter.frame_count == 2


def descend(x, k):
    os.getpid()
    LOG.append(k)
    return descend(x * 2, k - 1) + 1 if k else x


def test_recursion_with_a_break_takes_a_few_graphs():
    """Not as many as it is deep: from the fifth call on Python makes the call, and its limit of compilations holds."""
    counter, depth = Counter(), 100
    LOG.clear()
    assert torch.equal(cutaway.compile(descend, backend=counter)(X, depth), descend(X, depth))
    assert LOG[: depth + 1] == LOG[depth + 1 :]
    assert counter.frame_count < depth / 2


def test_an_exception_thrown_into_a_delegation():
    def inner(x):
        try:
            yield x + 1
        except ValueError:
            yield x + 2
        return x * 3

    def outer(x):
        got = yield from inner(x)
        yield got

    def thrown(x):
        running = outer(x)
        first = next(running)
        second = running.throw(ValueError("thrown"))
        third = next(running)
        running.close()
        return first, second, third

    def ended(x):
        def stops(x):
            try:
                yield x
            except ValueError:
                return x - 1

        def delegate(x):
            yield (yield from stops(x))

        running = delegate(x)
        next(running)
        return running.throw(ValueError)

    def closed(x, log):
        def guarded(x):
            try:
                yield x
            finally:
                log.append("inner")

        def delegate(x):
            try:
                yield from guarded(x)
            finally:
                log.append("outer")

        running = delegate(x)
        y = next(running)
        running.close()
        return y + 1

    for function in (thrown, ended):
        expected = function(X)
        got = cutaway.compile(function, fullgraph=True)(X)
        assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
    logs = [], []
    assert torch.equal(closed(X, logs[0]), cutaway.compile(closed, fullgraph=True)(X, logs[1]))
    assert logs[0] == logs[1] == ["inner", "outer"]
