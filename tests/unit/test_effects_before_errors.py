"""A graph that has written to an input and then raises cannot be run again: what the program did to its own objects before must be there, once."""

import cutaway
import pytest
import torch


class Counter:
    count = 0


def in_python(a, b, index, held, d, c):
    held.pop()
    d["b"] = 2
    a += 0.5
    c.count += 1
    b[index] = 1.0
    return b


def between_writes(a, b, index, held, d, c):
    a += 0.5
    held.append(3)
    b[:, 0] = 2.0
    d.pop("a")
    c.count += 1
    return a[index]


def behind_the_error(a, b, index, held, d, c):
    a += 0.5
    y = a[index]
    held.clear()
    d["b"] = 2
    c.count += 1
    return y


def call(function, index):
    a, b, held, d, c = torch.zeros(3, 4), torch.ones(3, 4), [1, 2], {"a": 1}, Counter()
    try:
        result = function(a, b, torch.tensor(index), held, d, c).tolist()
    except IndexError as error:
        result = str(error)
    return result, a.tolist(), b.tolist(), held, d, c.count


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
@pytest.mark.parametrize("function", [in_python, between_writes, behind_the_error], ids=lambda f: f.__name__)
def test_effects_before_an_error_happen_once(function, backend):
    cutaway.reset()
    compiled = cutaway.compile(function, backend=backend)
    for index in ([0, 7], [0, 1], [0, 7], [2, 1]):
        assert call(compiled, index) == call(function, index)
