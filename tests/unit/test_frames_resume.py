"""Functions that are gone on with in the middle: variables, cells, handlers, lines of tracebacks are as if they had never stopped."""

import copy
import sys
import traceback

import pytest
from cutaway._native import capture

pytestmark = pytest.mark.skipif(not capture.is_supported, reason="this Python is not one that capture knows")


def straight(a, b=3):
    c = a + b
    d = [c, a]
    d.append(b)
    return c, d


def branches(a, b):
    if a > b:
        c = a - b
    else:
        c = b - a
        b = 0
    e = c * 2
    return a, b, c, e


def sometimes_unbound(a):
    if a > 1:
        x = a
    y = a + 1
    try:
        return x + y
    except UnboundLocalError as error:
        return str(error)


def arguments(a, *rest, key=1, **more):
    b = a + key
    c = len(rest) + len(more)
    return b, c, rest, more


def cells(a):
    b = a + 1

    def inner(c):
        nonlocal b
        b += c
        return a + b

    first = inner(2)
    second = inner(3)
    return first, second, b


def cell_argument(a):
    def inner():
        return a

    a = a + 1
    x = inner()
    a = a + 1
    return x, inner()


def make_free(outer):
    def free(a):
        b = a + outer
        c = b * outer
        return b, c

    return free


def handled(a):
    x = 1
    try:
        x = 2
        y = 10 // a
        x = 3
    except ZeroDivisionError:
        y = -1
        x += 10
    finally:
        x += 100
    return x, y


def long_code(a):
    b = a
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    b = b + 1
    b = b * 2
    b = b - 3
    c = [b] * 3
    return b, c


CASES = [
    (straight, (1,)),
    (branches, (3, 1)),
    (branches, (1, 3)),
    (sometimes_unbound, (0,)),
    (sometimes_unbound, (5,)),
    (arguments, (1, 2, 3)),
    (cells, (4,)),
    (cell_argument, (4,)),
    (make_free(7), (2,)),
    (handled, (2,)),
    (handled, (0,)),
    (long_code, (5,)),
]


def stops(function, args):
    """(line, variables, names of slots) before each line."""
    code, found = function.__code__, []
    names = list(code.co_varnames) + [n for n in code.co_cellvars if n not in code.co_varnames] + list(code.co_freevars)

    def trace(frame, event, _):
        if frame.f_code is not code:
            return None
        if event == "line":
            variables = {n: v if callable(v) else copy.deepcopy(v) for n, v in frame.f_locals.items()}
            found.append((frame.f_lineno, variables, names))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = function(*args)
    finally:
        sys.settrace(before)
    return found, result


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_every_line(function, args):
    found, expected = stops(function, args)
    assert len(found) >= 3
    code = function.__code__
    first_of_line = {}
    for index, (_, _, _, line, _) in enumerate(capture.instructions(function)):
        first_of_line.setdefault(line, index)
    for line, variables, names in found:
        index = first_of_line[line]
        if code.co_exceptiontable and line > min(first_of_line) + 3:
            continue  # inside handlers the stack is not empty
        if function is cells and "inner" in variables:
            continue  # an inner function shares cells that cannot be seen from outside
        if function is cell_argument and "inner" in variables:
            continue
        slots = []
        for slot, name in enumerate(names):
            if name not in variables:
                slots.append(...)
                continue
            is_cell = name in code.co_cellvars or slot >= len(code.co_varnames)
            slots.append(_cell(variables[name]) if is_cell else variables[name])
        if function in (cells, cell_argument):
            slots = [
                _cell(variables.get(n)) if n in code.co_cellvars and s is ... else s
                for n, s in zip(names, slots, strict=True)
            ]
        assert capture.resume(function, index, [], slots, []) == expected, (function.__name__, line)


def _cell(value):
    return (lambda: value).__closure__[0]


def loop(items):
    total = 0
    for i in items:
        total += i
        total *= 2
    return total


def test_iterator_on_the_stack():
    instructions = capture.instructions(loop)
    after = next(n for n, i in enumerate(instructions) if i[0] == "FOR_ITER")
    iterator = iter([1, 2, 3])
    next(iterator)
    assert capture.resume(loop, after, [False], [[1, 2, 3], 2, ...], [iterator]) == ((2 + 2) * 2 + 3) * 2


def call(f, x):
    return [1, f(x + 1), 2]


def test_null_on_the_stack():
    instructions = capture.instructions(call)
    index = next(n for n, i in enumerate(instructions) if i[0] == "CALL")
    nulls = [False, False, True, False] if sys.version_info >= (3, 13) else [False, True, False, False]
    assert capture.resume(call, index, nulls, [..., ...], [1, abs, -5]) == [1, 5, 2]


def fails(a):
    b = a + 1
    c = b + 1
    return c / 0


def test_traceback_shows_the_line():
    instructions = capture.instructions(fails)
    index = next(n for n, i in enumerate(instructions) if i[3] == fails.__code__.co_firstlineno + 2)
    with pytest.raises(ZeroDivisionError) as caught:
        capture.resume(fails, index, [], [1, 2, ...], [])
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.name, last.lineno, last.line) == ("fails", fails.__code__.co_firstlineno + 3, "return c / 0")


def test_listing_names_things():
    text = capture.listing(handled)
    assert "LOAD_FAST" in text and "handler:" in text and "(a)" in text


def test_live_variables():
    instructions = capture.instructions(branches)
    names = branches.__code__.co_varnames
    last = next(n for n, i in enumerate(instructions) if i[3] == branches.__code__.co_firstlineno + 7)
    live = {n for n, alive in zip(names, capture.live_before(branches, last), strict=True) if alive}
    assert live == {"a", "b", "c", "e"}
    first = {n for n, alive in zip(names, capture.live_before(branches, 0), strict=True) if alive}
    assert first == {"a", "b"}
