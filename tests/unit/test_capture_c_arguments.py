"""Functions, types and methods of C, each with arguments that it takes and with others: the same result, or the same exception in the same words."""

import collections
import copy
import itertools
import math
import operator

import pytest
import torch

from tests.support import capture_cases

pytestmark = pytest.mark.skipif(not capture_cases.AVAILABLE or capture_cases.PEER, reason="this build has no capture")
LEFT_OUT = set(
    "input breakpoint exit quit help license copyright credits exec eval compile open print globals locals vars dir memoryview id".split()
)
# Their iterators have a type of their own, which only type() shows.
OTHER_ITERATORS = {"iter", "reversed", "__iter__", "__reversed__"}
TYPES = [
    list,
    dict,
    set,
    tuple,
    str,
    int,
    float,
    frozenset,
    bytes,
    collections.deque,
    collections.OrderedDict,
    collections.Counter,
    collections.defaultdict,
]
ARGUMENTS = [
    (), (0,), (1, 2), ([1, 2],), ([2, 1], [3]), ({1: 2},), ("ab",), ("ab", "b"), ({1},), ({1}, {2}), ({1: 2}, 1), (1.5,), (b"ab",), (len, [[1]]),
    (frozenset({1}),), ([3], 0), ("a", 0), (-1,), (2, -3, 2), (None,), (True, False),
]  # fmt: skip
KEYWORDS = [{}, {"dim": 3}, {"key": None}, {"default": 5}, {"start": 1}, {"iterable": [1]}]


def callables():
    import builtins

    for module in (builtins, itertools, operator, math, collections, copy):
        for name, f in sorted(vars(module).items()):
            if not name.startswith("_") and name not in LEFT_OUT | OTHER_ITERATORS and callable(f):
                yield f"{module.__name__}.{name}", f
    for owner in TYPES:
        for name in sorted(vars(owner)):
            if name not in OTHER_ITERATORS | {
                "__class__",
                "__new__",
                "__init_subclass__",
                "__subclasshook__",
                "__class_getitem__",
            }:
                if callable(f := getattr(owner, name)):
                    yield f"{owner.__name__}.{name}", f


def fresh(value):
    return type(value)(value) if type(value) in (list, dict, set) else value


def attempt(f, args, kwargs):
    args = [fresh(a) for a in args]
    try:
        result = f(*args, **kwargs)
        if hasattr(result, "__next__"):
            result = list(itertools.islice(result, 5))
    except Exception as error:
        return type(error).__name__, str(error), args
    return (result if " at 0x" not in repr(result) else type(result).__name__), args


CALLABLES = list(callables())
GROUP = 20


@pytest.mark.parametrize("first", range(0, len(CALLABLES), GROUP))
def test_calls(first):
    for name, f in CALLABLES[first : first + GROUP]:
        for args in ARGUMENTS:

            def program(x):
                return x + 1, [attempt(f, args, kwargs) for kwargs in KEYWORDS]  # noqa: B023

            expected = repr(program(torch.ones(2))[1])
            capture_cases.reset()
            assert repr(capture_cases.compile(program, backend="eager")(torch.ones(2))[1]) == expected, (name, args)
