"""What goes on behind a graph break: values, identity, exceptions, order, tracebacks as in eager mode."""

import contextlib
import traceback

import cutaway
import pytest
import torch

pytestmark = pytest.mark.usefixtures("fresh_capture")


class Counter:
    def __init__(self):
        self.graphs = 0

    def __call__(self, module, examples):
        self.graphs += 1
        return module.forward


def both(function, *args, graphs=None):
    expected = function(*args)
    counter = Counter()
    compiled = cutaway.compile(function, backend=counter)
    for _ in range(2):
        got = compiled(*args)
        assert torch.equal(got, expected) if isinstance(got, torch.Tensor) else got == expected
    if graphs is not None:
        assert counter.graphs == graphs
    return compiled


X = torch.arange(4.0)


def test_break_between_two_graphs():
    def f(x):
        y = x + 1
        cutaway.graph_break()
        return y * 2

    both(f, X, graphs=2)


def test_break_in_an_expression():
    def f(x):
        return [x + 1, float((x * 2).sum().item()), x - 1][1]

    both(f, X)


def test_data_dependent_branch_both_ways():
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    compiled = both(f, X)
    assert torch.equal(compiled(-X), -X - 1)


def test_break_in_a_loop_does_not_grow():
    def f(x):
        out = []
        for i in range(300):
            x = x + i
            cutaway.graph_break()
            out.append(i)
        return x, len(out)

    expected = f(X)
    with cutaway.options(cache_size_limit=4):
        got = cutaway.compile(f, backend="eager")(X)
    assert torch.equal(got[0], expected[0]) and got[1] == expected[1]


def test_break_inside_try_is_handled():
    def fail(x):
        raise ValueError("no")

    def f(x, fails):
        y = x + 1
        try:
            z = cutaway.disable(fail)(y) if fails else cutaway.disable(torch.relu)(y)
        except ValueError as error:
            return y - 1, str(error)
        return z, ""

    for fails in (True, False):
        a, b = f(X, fails), cutaway.compile(f, backend="eager")(X, fails)
        assert torch.equal(a[0], b[0]) and a[1] == b[1]


def test_break_inside_with():
    log = []

    @contextlib.contextmanager
    def manager():
        log.append("in")
        yield 5
        log.append("out")

    def f(x):
        with manager() as n:
            y = x + n
            cutaway.graph_break()
            y = y * 2
        return y

    expected = f(X)
    log.clear()
    assert torch.equal(cutaway.compile(f, backend="eager")(X), expected)
    assert log == ["in", "out"]


def test_closures_share_their_cells():
    def f(x):
        total = 0

        def add(n):
            nonlocal total
            total += n

        add(1)
        cutaway.graph_break()
        add(10)
        return x + total, total

    a, b = f(X), cutaway.compile(f, backend="eager")(X)
    assert torch.equal(a[0], b[0]) and a[1] == b[1] == 11


def test_identity_survives():
    def f(x, box):
        items = [x + 1]
        box["items"] = items
        cutaway.graph_break()
        items.append(x + 2)
        return items

    box = {}
    got = cutaway.compile(f, backend="eager")(X, box)
    assert box["items"] is got and len(got) == 2


def test_functions_called_from_a_break_are_captured_too():
    def inner(x):
        return torch.sin(x) + 1

    def f(x):
        try:
            return torch.cos(inner(x))
        finally:
            cutaway.graph_break()

    both(f, X)


def test_traceback_of_the_break():
    @cutaway.disable
    def fails(x):
        raise KeyError("k")

    def f(x):
        y = x + 1
        z = fails(y)
        return z

    with pytest.raises(KeyError) as caught:
        cutaway.compile(f, backend="eager")(X)
    entries = [(e.name, e.line) for e in traceback.extract_tb(caught.value.__traceback__)]
    assert ("f", "z = fails(y)") in entries and entries[-1] == ("fails", 'raise KeyError("k")')


def test_traceback_of_the_graph():
    def f(x, i):
        y = x + 1
        return torch.index_select(y, 0, i)

    compiled = cutaway.compile(f, backend="eager")
    compiled(X, torch.tensor([1]))
    with pytest.raises(IndexError) as caught:
        compiled(X, torch.tensor([100]))
    assert "return torch.index_select(y, 0, i)" in [e.line for e in traceback.extract_tb(caught.value.__traceback__)]


def test_keywords_stars_and_defaults():
    def f(x, *rest, scale=2, **more):
        y = x * scale
        cutaway.graph_break()
        return y + len(rest) + sum(more.values())

    expected = f(X, 1, 2, scale=3, a=4)
    assert torch.equal(cutaway.compile(f, backend="eager")(X, 1, 2, scale=3, a=4), expected)


def test_call_with_keywords_that_breaks():
    hidden = cutaway.disable(lambda x, *, k, j: x * k + j)

    def f(x):
        return hidden(x + 1, k=2, j=3) - 1

    both(f, X)


def test_super_behind_a_break():
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        def go(self, x):
            y = x * 2
            cutaway.graph_break()
            return super().go(y)

    expected = B().go(X)
    assert torch.equal(cutaway.compile(B().go, backend="eager")(X), expected)


def test_generator_functions_run():
    def numbers(n):
        for i in range(n):
            cutaway.graph_break()
            yield i

    def f(x):
        return x + sum(numbers(3))

    both(f, X)


def test_recursion():
    def f(x, n):
        if n == 0:
            return x
        cutaway.graph_break()
        return f(x + 1, n - 1)

    assert torch.equal(cutaway.compile(f, backend="eager")(X, 4), X + 4)
