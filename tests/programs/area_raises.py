# ruff: noqa
"""Context managers that expect an exception, as tests have them, and code that looks at exceptions and their tracebacks."""

import contextlib
import sys
import traceback
import types
import unittest

import pytest
import torch
from tests.support.registry import built, program, tensor

CASE = unittest.TestCase()


class Own(ValueError):
    def __init__(self, code, *more):
        super().__init__(code, *more)
        self.code = code


def fail(kind=ValueError, *args):
    raise kind(*args)


@program
def assert_raises(x):
    with CASE.assertRaises(ValueError):
        raise ValueError("no")
    return x + 1


@program
def assert_raises_in_function(x):
    with CASE.assertRaises(ValueError):
        fail(ValueError, "no")
    return x + 1


@program
def assert_raises_as(x):
    with CASE.assertRaises(Own) as caught:
        fail(Own, 3)
    return x + caught.exception.code, str(caught.exception), caught.exception.args


@program
def assert_raises_regex(x):
    with CASE.assertRaisesRegex(ValueError, "n[ao]"):
        fail(ValueError, "no")
    return x + 1


@program
def assert_raises_tuple(x):
    with CASE.assertRaises((KeyError, IndexError)) as caught:
        [][1]
    return x + 1, type(caught.exception).__name__, str(caught.exception)


@program
def assert_raises_called(x):
    CASE.assertRaises(ZeroDivisionError, lambda a: 1 / a, 0)
    CASE.assertRaises(TypeError, len, 5)
    return x + 1


@program
def assert_raises_called_regex(x):
    CASE.assertRaisesRegex(TypeError, "len", len, 5)
    return x + 1


@program
def assert_raises_not(x):
    try:
        with CASE.assertRaises(ValueError):
            pass
    except AssertionError as e:
        return x + 1, str(e)
    return x


@program
def assert_raises_other(x):
    try:
        with CASE.assertRaises(ValueError):
            raise KeyError("k")
    except KeyError as e:
        return x + 1, str(e)
    return x


@program
def assert_raises_regex_not(x):
    try:
        with CASE.assertRaisesRegex(ValueError, "maybe"):
            raise ValueError("no")
    except AssertionError as e:
        return x + 1, str(e)
    return x


@program
def assert_raises_of_python(x):
    with CASE.assertRaises(TypeError):
        {}[[]]
    with CASE.assertRaises(KeyError):
        {}["a"]
    with CASE.assertRaises(AttributeError):
        x.no_such_thing
    with CASE.assertRaises(StopIteration):
        next(iter([]))
    with CASE.assertRaises(UnboundLocalError):
        del y
        y = 1
    return x + 1


@program
def assert_raises_message(x):
    with CASE.assertRaises(ValueError, msg="expected"):
        int("a")
    return x + 1


@program
def assert_raises_many(x):
    for kind in (ValueError, TypeError, KeyError, RuntimeError, NotImplementedError):
        with CASE.assertRaises(kind):
            fail(kind)
        x = x + 1
    return x


class Cases(unittest.TestCase):
    def runTest(self):
        pass

    def check(self, x):
        with self.assertRaises(ValueError):
            raise ValueError
        self.assertEqual(x.shape[0], 3)
        self.assertTrue(x.dim() == 2)
        self.assertIn(3, x.shape)
        self.assertIsNone(x.grad)
        self.assertIsInstance(x, torch.Tensor)
        self.assertNotEqual(1, 2)
        self.assertListEqual([1, 2], [1, 2])
        self.assertDictEqual({"a": 1}, {"a": 1})
        self.assertTupleEqual((1,), (1,))
        self.assertSetEqual({1}, {1})
        self.assertGreater(2, 1)
        self.assertAlmostEqual(1.0, 1.0 + 1e-12)
        self.assertIs(x, x)
        self.assertFalse(x is None)
        self.assertRegex("abc", "b")
        self.assertSequenceEqual([1], [1])
        self.assertCountEqual([1, 2], [2, 1])
        return x + 1


@built
def assertions_of_a_case():
    c = Cases()
    return lambda x: c.check(x)


@program(graphs=0, breaks=True)
def assert_equal_fails(x):
    try:
        CASE.assertEqual([1, 2], [1, 3])
    except AssertionError as e:
        return x + 1, str(e)
    return x


@program
def sub_test(x):
    with CASE.subTest(i=1):
        x = x + 1
    return x


@program
def pytest_raises(x):
    with pytest.raises(ValueError):
        raise ValueError("no")
    return x + 1


@program
def pytest_raises_match(x):
    with pytest.raises(ValueError, match="n[ao]"):
        fail(ValueError, "no")
    return x + 1


@program
def pytest_raises_as(x):
    with pytest.raises(Own) as info:
        fail(Own, 3)
    return x + info.value.code, str(info.value), info.type.__name__


@program
def pytest_raises_called(x):
    pytest.raises(ZeroDivisionError, lambda: 1 / 0)
    return x + 1


@program
def suppressed(x):
    with contextlib.suppress(ValueError, KeyError):
        fail(KeyError, 3)
    return x + 1


@program
def exit_gets_traceback(x):
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            self.kind, self.value, self.has = kind, value, tb is not None
            return True

    with Manager() as m:
        fail(ValueError, "v")
    return x + m.has, m.kind.__name__, str(m.value)


@program
def exit_gets_traceback_type(x):
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            self.is_traceback = isinstance(tb, types.TracebackType)
            self.same = value.__traceback__ is tb
            return True

    with Manager() as m:
        fail(ValueError, "v")
    return x + 1, m.is_traceback, m.same


@program
def clears_frames(x):
    try:
        fail(ValueError, "v")
    except ValueError as e:
        traceback.clear_frames(e.__traceback__)
    return x + 1


@program
def with_traceback_none(x):
    try:
        fail(ValueError, "v")
    except ValueError as e:
        f = e.with_traceback(None)
        return x + (f is e) + (e.__traceback__ is None)


@program
def reraises_with_traceback(x):
    try:
        try:
            fail(ValueError, "v")
        except ValueError as e:
            raise KeyError("k").with_traceback(e.__traceback__) from e
    except KeyError as e:
        return x + 1, str(e), str(e.__cause__)


@program
def walks_traceback(x):
    try:
        fail(ValueError, "v")
    except ValueError as e:
        tb, names = e.__traceback__, []
        while tb is not None:
            names.append(tb.tb_frame.f_code.co_name)
            tb = tb.tb_next
    return x + len(names), names


@program
def counts_traceback(x):
    def depth(tb):
        n = 0
        while tb:
            n += 1
            tb = tb.tb_next
        return n

    try:
        fail(ValueError, "v")
    except ValueError as e:
        return x + depth(e.__traceback__)


@program
def traceback_lines(x):
    try:
        fail(ValueError, "v")
    except ValueError as e:
        first = e.__traceback__.tb_lineno
        second = e.__traceback__.tb_next.tb_lineno
    return x + 1, first - second > 0


@program
def exc_info(x):
    try:
        fail(ValueError, "v")
    except ValueError:
        kind, value, tb = sys.exc_info()
        y = x + (tb is not None)
    return y, kind.__name__, str(value), sys.exc_info() == (None, None, None)


@program
def format_exception_only(x):
    try:
        fail(ValueError, "v")
    except ValueError as e:
        return x + 1, traceback.format_exception_only(type(e), e)


@program
def exit_stack_raises(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(ValueError))
        fail(ValueError, "v")
    return x + 1


@contextlib.contextmanager
def expects(kind):
    caught = []
    try:
        yield caught
    except kind as e:
        caught.append(e)
    else:
        raise AssertionError("nothing raised")


@program
def own_manager_expects(x):
    with expects(ValueError) as caught:
        fail(ValueError, "v")
    return x + len(caught), str(caught[0])


@contextlib.contextmanager
def translates():
    try:
        yield
    except ValueError as e:
        raise RuntimeError("translated") from e


@program
def own_manager_translates(x):
    with CASE.assertRaises(RuntimeError) as caught:
        with translates():
            fail(ValueError, "v")
    return x + 1, str(caught.exception.__cause__)


@program
def context_and_cause(x):
    try:
        try:
            fail(ValueError, "a")
        except ValueError:
            raise KeyError("b")
    except KeyError as e:
        return x + 1, str(e.__context__), e.__cause__ is None, e.__suppress_context__


@program
def raise_from_none(x):
    try:
        try:
            fail(ValueError, "a")
        except ValueError:
            raise KeyError("b") from None
    except KeyError as e:
        return x + 1, e.__cause__ is None, e.__suppress_context__


@program
def notes(x):
    e = ValueError("a")
    e.add_note("more")
    try:
        raise e
    except ValueError as f:
        return x + 1, f.__notes__


@program
def exception_kept(x):
    kept = None
    try:
        fail(ValueError, "a")
    except ValueError as e:
        kept = e
    return x + 1, str(kept), type(kept).__name__


@program
def exception_reraised_later(x):
    kept = None
    try:
        fail(ValueError, "a")
    except ValueError as e:
        kept = e
    try:
        raise kept
    except ValueError as e:
        return x + (e is kept)


@program
def raises_in_generator(x):
    def g():
        yield 1
        raise ValueError("g")

    got = []
    with CASE.assertRaises(ValueError):
        for v in g():
            got.append(v)
    return x + len(got)


@program
def throws_into_generator(x):
    def g():
        try:
            yield 1
        except ValueError:
            yield 2

    it = g()
    a = next(it)
    b = it.throw(ValueError("t"))
    with CASE.assertRaises(StopIteration):
        next(it)
    return x + a + b


@program
def assert_warns_not_needed(x):
    CASE.assertEqual(tuple(x.shape), (3, 4))
    CASE.assertLess(x.dim(), 3)
    return x * 2


@program
def exception_group_caught(x):
    try:
        raise ExceptionGroup("g", [ValueError("a"), KeyError("b")])
    except* ValueError as g:
        x = x + len(g.exceptions)
    except* KeyError as g:
        x = x + 10 * len(g.exceptions)
    return x


@program
def custom_fields(x):
    with CASE.assertRaises(Own) as caught:
        raise Own(5, "more")
    return x + caught.exception.code + len(caught.exception.args)


@program
def assertion_error_text(x):
    with CASE.assertRaisesRegex(AssertionError, "rows"):
        assert x.shape[0] == 4, f"{x.shape[0]} rows"
    return x + 1


@program
def stop_iteration_value(x):
    def g():
        yield 1
        return 5

    it = g()
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return x + e.value
