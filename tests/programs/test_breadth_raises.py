"""Context managers that expect exceptions, and exceptions whose tracebacks are looked at: one graph, and what eager shows."""

from __future__ import annotations

import contextlib
import sys
import traceback
import types
import unittest
from collections.abc import Callable
from typing import Any

import cutaway
import pytest
import torch

X = torch.randn(3, 4)
CASE = unittest.TestCase()


def fail(kind: type[BaseException] = ValueError, *args: Any) -> None:
    raise kind(*args)


def names_of(tb: types.TracebackType | None) -> list[str]:
    names = []
    while tb is not None:
        names.append(tb.tb_frame.f_code.co_name)
        tb = tb.tb_next
    return names


def lines_of(tb: types.TracebackType | None) -> list[int]:
    lines = []
    while tb is not None:
        lines.append(tb.tb_lineno)
        tb = tb.tb_next
    return lines


def in_a_block(x: torch.Tensor) -> Any:
    with CASE.assertRaises(ValueError) as caught:
        fail(ValueError, "no")
    return x + 1, str(caught.exception), caught.exception.__traceback__ is None


def by_a_call(x: torch.Tensor) -> Any:
    CASE.assertRaises(ZeroDivisionError, lambda a: 1 / a, 0)
    CASE.assertRaisesRegex(TypeError, "len", len, 5)
    return x + 1


def of_many_kinds(x: torch.Tensor) -> Any:
    for kind in (ValueError, TypeError, KeyError, NotImplementedError):
        with CASE.assertRaisesRegex(kind, "w[a-z]rds"):
            fail(kind, "words")
        x = x + 1
    with pytest.raises(KeyError, match="k"):
        {"a": 1}["k"]
    return x


def another_is_raised(x: torch.Tensor) -> Any:
    try:
        with CASE.assertRaises(ValueError):
            fail(KeyError, "k")
    except KeyError as e:
        return x + 1, names_of(e.__traceback__)


def nothing_is_raised(x: torch.Tensor) -> Any:
    try:
        with CASE.assertRaises(ValueError):
            x = x + 1
    except AssertionError as e:
        return x, str(e)


def frames_of_a_traceback(x: torch.Tensor) -> Any:
    def inner() -> None:
        fail(ValueError, "v")

    try:
        inner()
    except ValueError as e:
        return x + 1, names_of(e.__traceback__), lines_of(e.__traceback__)


def through_builtins(x: torch.Tensor) -> Any:
    def broken(a: int) -> int:
        return a // 0

    try:
        list(map(broken, [1]))
    except ZeroDivisionError as e:
        a = names_of(e.__traceback__)
    try:
        sorted([2, 1], key=broken)
    except ZeroDivisionError as e:
        return x + 1, a, names_of(e.__traceback__)


def raised_again(x: torch.Tensor) -> Any:
    out = []
    try:
        try:
            fail(ValueError, "v")
        except ValueError:
            raise
    except ValueError as e:
        out.append(names_of(e.__traceback__))
    try:
        try:
            fail(ValueError, "v")
        except ValueError as e:
            raise e
    except ValueError as e:
        out.append(names_of(e.__traceback__))
    try:
        try:
            fail(ValueError, "v")
        finally:
            x = x + 1
    except ValueError as e:
        out.append(names_of(e.__traceback__))
    try:
        try:
            fail(ValueError, "v")
        except ValueError as e:
            raise KeyError("k").with_traceback(e.__traceback__) from e
    except KeyError as e:
        out.append(names_of(e.__traceback__))
    return x, out


def kept_and_raised(x: torch.Tensor) -> Any:
    e = ValueError("kept")
    out = []
    for _ in range(3):
        try:
            raise e
        except ValueError as f:
            out.append(len(names_of(f.__traceback__)))
    e.__traceback__ = None
    return x + 1, out, names_of(e.__traceback__)


def of_a_generator(x: torch.Tensor) -> Any:
    def g() -> Any:
        yield 1
        raise ValueError("g")

    try:
        for v in g():
            x = x + v
    except ValueError as e:
        return x, names_of(e.__traceback__)


def frames_are_cleared(x: torch.Tensor) -> Any:
    try:
        fail(ValueError, "v")
    except ValueError as e:
        traceback.clear_frames(e.__traceback__)
        try:
            e.__traceback__.tb_frame.clear()  # type: ignore[union-attr]
        except RuntimeError as r:
            return x + 1, str(r)


def what_exit_is_given(x: torch.Tensor) -> Any:
    class Manager:
        def __enter__(self) -> Any:
            return self

        def __exit__(self, kind: Any, value: Any, tb: Any) -> bool:
            self.shown = (
                isinstance(tb, types.TracebackType),
                value.__traceback__ is tb,
                names_of(tb),
                sys.exc_info()[2] is tb,
            )
            return True

    with Manager() as m:
        fail(ValueError, "v")
    return x + 1, m.shown


def wrong_traceback(x: torch.Tensor) -> Any:
    try:
        ValueError("v").with_traceback(3)  # type: ignore[arg-type]
    except TypeError as e:
        return x + 1, str(e)


@contextlib.contextmanager
def translates() -> Any:
    try:
        yield
    except ValueError as e:
        raise RuntimeError("translated") from e


def by_a_generator(x: torch.Tensor) -> Any:
    with CASE.assertRaises(RuntimeError) as caught:
        with translates():
            fail(ValueError, "v")
    return x + 1, str(caught.exception.__cause__)


WHOLE = [
    in_a_block,
    by_a_call,
    of_many_kinds,
    another_is_raised,
    nothing_is_raised,
    frames_of_a_traceback,
    through_builtins,
    raised_again,
    kept_and_raised,
    of_a_generator,
    frames_are_cleared,
    what_exit_is_given,
    wrong_traceback,
    by_a_generator,
]


@pytest.mark.parametrize("program", WHOLE, ids=lambda p: p.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph(program: Callable[..., Any], backend: str) -> None:
    cutaway.reset()
    function = cutaway.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        expected, got = program(X), function(X)
        if isinstance(expected, torch.Tensor):
            expected, got = (expected,), (got,)
        assert torch.equal(expected[0], got[0])
        assert expected[1:] == got[1:]


def test_a_traceback_that_leaves_is_pythons() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        try:
            fail(ValueError, "v")
        except ValueError as e:
            tb = e.__traceback__
        return y * 2, tb

    cutaway.reset()
    function = cutaway.compile(f, backend="eager")
    expected, got = f(X), function(X)
    assert torch.equal(expected[0], got[0])
    assert names_of(expected[1]) == names_of(got[1])
