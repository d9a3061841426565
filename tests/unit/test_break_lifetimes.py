"""Objects whose end can be noticed end where eager ends them: with the frame whose variable has them, not at the last use before a break."""

import os
import sys
import tempfile
import weakref

import cutaway
import pytest
import torch


class Loud:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(f"end of {self.name}")


class Watched:
    pass


def generator(log, name, breaks):
    try:
        for i in range(3):
            if breaks:
                sys.getrefcount(None)
            yield i
    finally:
        log.append(f"end of {name}")


def directory(x, log):
    held = tempfile.TemporaryDirectory()
    path = held.name
    x = x + 1
    sys.getrefcount(None)
    log.append(os.path.exists(path))
    return x + 1


def object_with_del(x, log):
    held = Loud(log, "a")  # noqa: F841
    x = x + 1
    sys.getrefcount(None)
    log.append("last line")
    return x + 1


def rebound(x, log):
    for i in range(3):
        held = Loud(log, i)  # noqa: F841
        x = x + 1
        sys.getrefcount(None)
        log.append(f"turn {i}")
    return x


def deleted(x, log):
    held = Loud(log, "a")
    sys.getrefcount(None)
    x = x + 1
    sys.getrefcount(None)
    del held
    sys.getrefcount(None)
    log.append("deleted")
    return x


def finalizer(x, log):
    held = Watched()
    weakref.finalize(held, log.append, "finalized")
    sys.getrefcount(None)
    x = x + 1
    sys.getrefcount(None)
    log.append("last line")
    return x


def inner(x, log):
    held = Loud(log, "inner")  # noqa: F841
    x = x * 2
    sys.getrefcount(None)
    log.append("in inner")
    return x


def nested(x, log):
    held = Loud(log, "outer")  # noqa: F841
    x = inner(x + 1, log)
    log.append("behind inner")
    return x


def suspended(x, log):
    held = generator(log, "g", True)
    log.append(next(held))
    log.append("behind next")
    first, *_ = generator(log, "h", True)
    return x + first


def suspended_before(x, log):
    held = generator(log, "g", False)
    log.append(next(held))
    x = x + 1
    sys.getrefcount(None)
    log.append("last line")
    return x


CASES = [directory, object_with_del, rebound, deleted, finalizer, nested, suspended, suspended_before]


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_ends_where_eager_ends_it(function):
    expected = []
    value = function(torch.ones(2), expected)
    cutaway.reset()
    compiled = cutaway.compile(function)
    for _ in range(3):
        found = []
        assert torch.equal(compiled(torch.ones(2), found), value)
        assert found == expected
