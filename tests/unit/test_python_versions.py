"""Where versions of CPython differ inside, and the program must not notice: versions of dictionaries and classes, truth that an instruction asks for another."""

import sys

import cutaway
import pytest
import torch

x = torch.ones(3)


class Plain:
    def __init__(self, scale):
        self.scale = scale
        self.other = 1


def scaled(x, o):
    return x * o.scale


def test_stores_through_the_object_are_seen():
    """3.13: the dictionary of the object keeps its version."""
    o = Plain(2)
    compiled = cutaway.compile(scaled, backend="eager")
    assert o.__dict__["scale"] == 2
    for scale in (2, 3, 2, 5, 5, 7, 2):
        o.scale = scale
        assert compiled(x, o).tolist() == [scale] * 3
    del o.scale
    with pytest.raises(AttributeError):
        compiled(x, o)
    o.scale = 4
    assert compiled(x, o).tolist() == [4] * 3


def test_a_class_that_has_no_more_versions():
    """3.13: a class gets a thousand."""

    class Changing:
        factor = 1

    def f(x):
        return x * Changing.factor

    compiled = cutaway.compile(f, backend="eager")
    for i in range(1500):
        Changing.factor = i
        if i < 3 or i > 1496:
            assert compiled(x).tolist() == [float(i)] * 3
        else:
            assert Changing().factor == i  # asks for a version
    for factor in (5, 6, 5, 6):
        Changing.factor = factor
        assert compiled(x).tolist() == [float(factor)] * 3


class Answer:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        if self.value is None:
            raise ValueError("no truth")
        return self.value


class Compared:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return Answer(self.value)


def truths(x, values):
    out = []
    for v in values:
        try:
            out.append([k for k in (1, 2) if Compared(v) < k])
            out.append(not (Compared(v) < 3))
            if Compared(v) < 4:
                x = x + 1
        except ValueError as error:
            out.append(str(error))
    return x, out


def test_truth_of_a_comparison_raises_inside_a_block():
    """3.13: a comparison asks for the truth of its answer, in the block around it; the jump after it may lie outside."""
    values = [True, None, False, True]
    eager, compiled = truths(x, values), cutaway.compile(truths, backend="eager")(x, values)
    assert torch.equal(eager[0], compiled[0]) and eager[1] == compiled[1]


class Broken:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        torch._dynamo.graph_break()
        return self.value < other

    def __len__(self):
        torch._dynamo.graph_break()
        return 2


def breaks_in_comparisons(x, o):
    if o < 3:
        x = x + 1
    if not (o < x.sum()):
        x = x * 2
    if o:
        x = x - 3
    return x, not o


@pytest.mark.parametrize("value", [1, 5])
def test_breaks_inside_what_jumps_ask(value):
    o = Broken(value)
    eager, compiled = breaks_in_comparisons(x, o), cutaway.compile(breaks_in_comparisons, backend="eager")(x, o)
    assert torch.equal(eager[0], compiled[0]) and eager[1] == compiled[1]


def two_looks(x):
    first = locals()
    y = x + 1
    second = locals()
    return y, first is second, sorted(first), sorted(second)


def test_locals_as_this_python_has_them():
    y, is_same, first, second = two_looks(x)
    got = cutaway.compile(two_looks, backend="eager")(x)
    assert torch.equal(y, got[0]) and (is_same, first, second) == got[1:]
    assert is_same == (sys.version_info < (3, 13))
