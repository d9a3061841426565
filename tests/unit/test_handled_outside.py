"""What the callers of a compiled function handle in an except block is seen inside of it."""

import sys

import cutaway
import torch


def asked(x):
    return x + 1, repr(sys.exception()), sys.exc_info()[0]


def context(x):
    try:
        raise ValueError("own")
    except ValueError as e:
        return x + 1, repr(e.__context__)


def again(x):
    try:
        raise
    except (RuntimeError, LookupError) as e:
        return x + 1, repr(e)


def inside(f, x):
    try:
        raise LookupError("outer")
    except LookupError:
        return f(x)


def test_an_exception_that_a_caller_handles():
    x = torch.ones(2)
    for f in (asked, context, again):
        compiled = cutaway.compile(f, backend="eager")
        for call in (lambda f: f(x), lambda f: inside(f, x), lambda f: f(x), lambda f: inside(f, x)):
            assert repr(call(compiled)) == repr(call(f)), f.__name__


def test_outside_of_handlers_there_is_one_graph():
    for f in (asked, context, again):
        cutaway.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
