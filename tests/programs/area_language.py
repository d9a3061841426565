# ruff: noqa
"""Statements and expressions from the language reference: match, exceptions, generators, arguments, scopes, comprehensions."""

import asyncio
import contextlib
import dataclasses
import inspect
import sys

import torch
from tests.support.registry import built, program, tensor


# --- match ---


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Pos:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


def classify(v):
    match v:
        case None | True | False:
            return "singleton"
        case 0:
            return "zero"
        case -1 | 1.5 | "s":
            return "literal"
        case int() | float() as n:
            return f"number {n}"
        case str(s) if len(s) > 3:
            return "long " + s
        case str():
            return "text"
        case []:
            return "empty"
        case [x]:
            return f"one {x}"
        case [1, *rest, 9]:
            return f"ends {rest}"
        case (Point(x=0, y=y), _):
            return f"point first {y}"
        case [a, b, *_]:
            return f"many {a} {b}"
        case {"k": v, **rest} if rest:
            return f"map {v} {rest}"
        case {"k": Point(x, y)}:
            return f"map point {x} {y}"
        case {"k": k}:
            return f"map {k}"
        case {}:
            return "any map"
        case Pos(1, b=b):
            return f"pos {b}"
        case Pos(a, b):
            return f"pos2 {a} {b}"
        case Point(x=x) if x > 5:
            return "far"
        case Point():
            return "point"
        case _:
            return "else"


@program
def match_everything(x):
    cases = [
        None,
        True,
        0,
        -1,
        1.5,
        "s",
        7,
        2.5,
        "abcd",
        "ab",
        [],
        [3],
        [1, 2, 9],
        (1, 9),
        (Point(0, 4), 1),
        [4, 5, 6],
        {"k": 1, "z": 2},
        {"k": Point(1, 2)},
        {"k": 5},
        {},
        {"q": 1},
        Pos(1, 2),
        Pos(3, 4),
        Point(9, 9),
        Point(1, 1),
        {1},
        b"x",
    ]
    return x + 1, [classify(c) for c in cases]


@program
def match_tensor_shape(x):
    match x.shape:
        case (3, n):
            return x * n
        case _:
            return x


@program(graphs=0)
def match_no_case(x):
    r = "before"
    match 5:
        case 6:
            r = "six"
    return x, r


@program
def match_too_many_positional(x):
    try:
        match Pos(1, 2):
            case Pos(a, b, c):
                pass
    except TypeError as e:
        return x + 1, str(e)


# --- exceptions ---


@program
def except_star(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), ExceptionGroup("h", [ValueError(3)])])
    except* ValueError as e:
        log.append(("v", [str(i) for i in e.exceptions]))
    except* TypeError as e:
        log.append(("t", len(e.exceptions)))
    return x + len(log), log


@program
def except_star_plain(x):
    try:
        raise ValueError("v")
    except* ValueError as e:
        return_value = type(e).__name__, len(e.exceptions)
    return x + 1, return_value


@program
def exception_group_methods(x):
    g = ExceptionGroup("g", [ValueError(1), TypeError(2)])
    m, r = g.split(ValueError)
    return x + 1, g.message, len(g.exceptions), m.exceptions[0].args, r.exceptions[0].args, g.subgroup(KeyError)


@program
def raise_from(x):
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise ValueError("v") from e
    except ValueError as e:
        return x + 1, type(e.__cause__).__name__, e.__suppress_context__, type(e.__context__).__name__, str(e.__cause__)


@program
def raise_from_none(x):
    try:
        try:
            {}["k"]
        except KeyError:
            raise ValueError("v") from None
    except ValueError as e:
        return x + 1, e.__cause__, e.__suppress_context__, type(e.__context__).__name__


@program
def implicit_context(x):
    try:
        try:
            int("z")
        except ValueError:
            [][1]
    except IndexError as e:
        return x + 1, str(e), type(e.__context__).__name__, e.__cause__


@program
def reraise(x):
    log = []
    try:
        try:
            raise KeyError("a")
        except KeyError:
            log.append(1)
            raise
    except KeyError as e:
        log.append(e.args)
    return x + 1, log


@program
def finally_return(x):
    def f():
        try:
            return 1
        finally:
            return 2

    def g():
        try:
            raise ValueError
        finally:
            return 3

    def h():
        for i in range(3):
            try:
                continue
            finally:
                if i == 1:
                    break
        return i

    return x * f() + g() + h()


@program
def try_else_finally(x):
    log = []
    for v in (1, 0):
        try:
            1 // v
        except ZeroDivisionError:
            log.append("except")
        else:
            log.append("else")
        finally:
            log.append("finally")
    return x + 1, log


@program
def add_note(x):
    try:
        e = ValueError("v")
        e.add_note("first")
        e.add_note("second")
        raise e
    except ValueError as e:
        return x + 1, e.__notes__


@program
def exception_name_deleted(x):
    e = 1
    try:
        raise ValueError
    except ValueError as e:
        pass
    try:
        e
    except UnboundLocalError as err:
        return x + 1, str(err)


@program
def exception_types(x):
    log = []
    for f in (
        lambda: 1 / 0,
        lambda: [][0],
        lambda: {}["a"],
        lambda: int("q"),
        lambda: None.a,
        lambda: undefined,
        lambda: "a" + 1,
        lambda: len(3),
        lambda: [1, 2].index(5),
        lambda: (1,).b,
        lambda: next(iter([])),
        lambda: 2.0**10000,
        lambda: "{}".format(),
        lambda: [].pop(),
        lambda: {}.popitem(),
        lambda: set().pop(),
        lambda: chr(-1),
        lambda: "abc".index("z"),
        lambda: float("x"),
        lambda: 1 << -1,
        lambda: range(0, 1, 0),
        lambda: int.from_bytes(3, "big"),
        lambda: [1] < 2,
        lambda: -"a",
        lambda: {[]: 1},
        lambda: iter(4),
    ):
        try:
            f()
        except Exception as e:
            log.append((type(e).__name__, str(e)))
    return x + len(log), log


@program
def assert_message(x):
    try:
        assert x.dim() == 5, f"dim {x.dim()}"
    except AssertionError as e:
        return x + 1, str(e)


@program
def nested_handlers(x):
    log = []

    def f(n):
        try:
            if n == 0:
                raise ValueError("deep")
            f(n - 1)
        except ValueError as e:
            log.append((n, sys.exc_info()[0].__name__))
            if n < 2:
                raise
        finally:
            log.append(("f", n))

    f(3)
    return x + len(log), log, sys.exc_info()[0]


class AppError(Exception):
    def __init__(self, code, *rest):
        super().__init__(f"code {code}", *rest)
        self.code = code

    def __str__(self):
        return f"<{self.code}>"


@program
def own_exceptions(x):
    try:
        raise AppError(4, "x")
    except (KeyError, AppError) as e:
        return x * e.code, str(e), e.args, isinstance(e, Exception)


@program
def raise_class_and_bad(x):
    log = []
    try:
        raise ValueError
    except ValueError as e:
        log.append(e.args)
    try:
        raise 5
    except TypeError as e:
        log.append(str(e))
    try:
        raise AppError
    except TypeError as e:
        log.append(str(e))
    return x + 1, log


@program
def suppress_contexts(x):
    log = []
    with contextlib.suppress(KeyError, IndexError):
        log.append(1)
        {}["a"]
        log.append(2)
    with contextlib.nullcontext(5) as n:
        log.append(n)
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "cb")
        stack.enter_context(contextlib.nullcontext())
        log.append("body")
    return x + 1, log


# --- generators ---


def echo(log):
    got = yield "start"
    try:
        while True:
            got = yield ("echo", got)
    except KeyError as e:
        log.append(("key", e.args))
        yield "caught"
    finally:
        log.append("closed")
    return "done"


@program
def generator_send_throw_close(x):
    log = []
    g = echo(log)
    out = [next(g), g.send(1), g.send(2), g.throw(KeyError("k"))]
    g.close()
    h = echo(log)
    next(h)
    h.close()
    return x + len(out), out, log


def delegate(log):
    r = yield from echo(log)
    log.append(r)
    return r + "!"


@program
def generator_yield_from(x):
    log = []
    g = delegate(log)
    out = [next(g), g.send(5), g.throw(KeyError("z"))]
    try:
        next(g)
    except StopIteration as e:
        out.append(e.value)
    return x + 1, out, log


@program
def generator_delegate_close(x):
    log = []
    g = delegate(log)
    next(g)
    next(g)
    g.close()
    return x + 1, log


@program
def generator_return_value(x):
    def g():
        yield 1
        return x * 2

    def h():
        r = yield from g()
        yield r

    return list(h())[1]


@program
def generator_states(x):
    def g():
        yield 1

    it = g()
    a = inspect.getgeneratorstate(it)
    next(it)
    return x + 1, a, it.gi_running


@program
def generator_stop_iteration_inside(x):
    def g():
        yield 1
        raise StopIteration("inner")

    try:
        list(g())
    except RuntimeError as e:
        return x + 1, str(e), type(e.__cause__).__name__


@contextlib.contextmanager
def swallow(log, *types):
    log.append("enter")
    try:
        yield 3
    except types as e:
        log.append(("swallowed", str(e)))
    finally:
        log.append("exit")


@program
def generator_context_swallow(x):
    log = []
    with swallow(log, ValueError) as n:
        raise ValueError("v")
    with swallow(log):
        n += 1
    try:
        with swallow(log, KeyError):
            raise IndexError("i")
    except IndexError as e:
        log.append(str(e))
    return x * n, log


@program
def generator_expression_scope(x):
    n = 2
    g = (i * n for i in range(3))
    n = 10
    return x + sum(g), list(i for i in range(5) if i % 2)


@program
def generator_infinite(x):
    def count():
        i = 0
        while True:
            yield i
            i += 1

    total = 0
    for i in count():
        if i > 4:
            break
        total += i
    return x * total


@program
def generator_in_calls(x):
    return (
        torch.stack([x * i for i in range(3)]).sum(0),
        max(i * i for i in (-3, 2)),
        any(i > 2 for i in (1, 3)),
        dict((i, i * 2) for i in range(2)),
        " ".join(str(i) for i in range(3)),
        sorted(-i for i in range(3)),
    )


# --- coroutines driven by hand ---


class Await:
    def __init__(self, v):
        self.v = v

    def __await__(self):
        got = yield self.v
        return got


async def co(x):
    a = await Await("first")
    return x * a


@program
def coroutine_by_hand(x):
    c = co(x)
    first = c.send(None)
    try:
        c.send(3)
    except StopIteration as e:
        return e.value, first


async def simple(x):
    return x + 1


@program
def coroutine_simple(x):
    c = simple(x)
    try:
        c.send(None)
    except StopIteration as e:
        return e.value


# --- arguments ---


def full(a, b=2, /, c=3, *args, d, e=5, **kw):
    return (a, b, c, args, d, e, kw)


@program
def arguments_all_kinds(x):
    return x + 1, full(1, d=4), full(1, 2, 9, 10, 11, d=4, z=1, a=7), full(*[1, 2], *(3,), d=0, **{"e": 1}, **{"q": 2})


def kwonly(*, a, b=1):
    return a + b


def two(a, b):
    return a


def posonly(a, /, b):
    return a


def defaults(a, b=1, c=2):
    return a


@program
def argument_errors(x):
    log = []
    for f in (
        lambda: full(),
        lambda: full(1),
        lambda: two(1),
        lambda: two(),
        lambda: two(1, 2, 3),
        lambda: two(1, a=2),
        lambda: two(1, 2, z=3),
        lambda: kwonly(1, a=2),
        lambda: kwonly(),
        lambda: posonly(a=1, b=2),
        lambda: defaults(1, 2, 3, 4),
        lambda: two(*[1], **{"a": 1}),
        lambda: two(**{1: 2}),
        lambda: two(*3),
        lambda: two(**3),
        lambda: two(b=1),
        lambda: full(1, d=1, **{"d": 2}),
        lambda: (lambda: 1)(5),
    ):
        try:
            f()
        except TypeError as e:
            log.append(str(e))
    return x + len(log), log


def mutable(v, acc=[]):
    acc.append(v)
    return acc


@built(graphs=3)
def mutable_default():
    def g(v, acc=[]):
        acc.append(v)
        return acc

    def f(x):
        g(1)
        return x * len(g(2))

    return f


@program
def nonlocal_chain(x):
    n = 1

    def a():
        nonlocal n
        n += 1

        def b():
            nonlocal n
            n *= 3
            return n

        return b()

    r = a()
    return x * n, r


@program
def closures_in_loop(x):
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i for i in range(3)]
    return x + 1, [f() for f in fs], [g() for g in gs]


@program
def delete_names(x):
    a = [1, 2, 3, 4]
    del a[0], a[-1]
    b = {"k": 1, "l": 2}
    del b["k"]
    c = 5
    del c
    try:
        c
    except UnboundLocalError:
        r = "gone"
    return x + 1, a, b, r


@program
def chained_comparison(x):
    calls = []

    def v(n):
        calls.append(n)
        return n

    return x + 1, v(1) < v(2) < v(3), v(3) < v(2) < v(1), 1 < 2 == 2 != 3, calls, 1 in [1] == True


@program
def unpack_all(x):
    a, *b, c = range(5)
    (d, e), [f, *g] = (1, 2), "xyz"
    (*h,) = (1,)
    i, j = j, i = 1, 2
    k = *b, *g
    first, *_ = x
    return first + a, b, c, d, e, f, g, h, i, j, k, [*b, *"ab"], {*b, 9}, {**{"a": 1}, "b": 2}


@program
def unpack_errors(x):
    log = []
    for v in ((1,), (1, 2, 3), 5, None):
        try:
            a, b = v
        except (ValueError, TypeError) as e:
            log.append(str(e))
    for v in ([], [1]):
        try:
            a, b, *c = v
        except ValueError as e:
            log.append(str(e))
    return x + 1, log


@program
def walrus_everywhere(x):
    data = [1, 5, 2, 8]
    big = [y for v in data if (y := v * 2) > 4]
    if (n := len(big)) > 1:
        r = n
    while (n := n - 1) > 0:
        pass
    return x * r, y, n, any((hit := v) > 4 for v in data), hit


@program
def comprehension_forms(x):
    return (
        x + 1,
        [(i, j) for i in range(3) for j in range(i) if (i + j) % 2],
        {i: [k for k in range(i)] for i in range(3)},
        {i % 3 for i in range(7)},
        [[r[c] for r in [[1, 2], [3, 4]]] for c in range(2)],
        [a if a else b for a, b in ((0, 1), (2, 3))],
        [*(i for i in "ab")],
    )


@program
def loops_else(x):
    log = []
    for i in range(3):
        if i == 5:
            break
    else:
        log.append("for else")
    n = 3
    while n:
        n -= 1
        if n == 1:
            break
    else:
        log.append("never")
    return x + n, log


@program
def conditional_chains(x):
    a = 0 or [] or "x" and "y"
    b = None if not a else (1 if a == "x" else 2)
    return x * b, a, not a, 1 and 0, "" or None


@program
def augmented_targets(x):
    l = [1, 2]
    m = l
    l += (3,)
    d = {"k": 1}
    d["k"] += 4
    d["k"] <<= 1
    t = (1,)
    t += (2,)
    s = {1}
    s |= {2}
    n = 7
    n //= 2
    n **= 3
    n %= 10
    n ^= 5
    return x * n, l, m is l, d, t, s


@program
def string_prefix_and_concat(x):
    n = 3
    return (
        x + 1,
        f"{n=}",
        f"{n:>{n}}",
        f"{n!r:0>4}",
        rf"\d{n}",
        "ab",
        f"{'x' if n else 'y'}",
        f"{{}}",
        f"{n:,}",
        f"{x.shape}",
    )


@program
def globals_locals(x):
    a = 1
    l = locals()
    b = 2
    return x + 1, sorted(l), "tensor" in globals(), sorted(k for k in locals() if k != "x" and k != "l")


@program
def eval_constant(x):
    n = 3
    return x * eval("1 + 2"), eval("n * 2"), eval("a + b", {"a": 1, "b": 2}), eval("len('abc')")


@program
def exec_constant(x):
    scope = {}
    exec("def f(y):\n    return y * 2\nk = 4", scope)
    return scope["f"](x) + scope["k"]


@program
def compile_text(x):
    c = compile("3 * 4", "<text>", "eval")
    return x * eval(c)


@program
def signature_inspect(x):
    s = inspect.signature(full)
    return x + 1, str(s), list(s.parameters), s.parameters["b"].default, inspect.isfunction(full), inspect.isclass(Pos)


@program
def recursion_forms(x):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    return x * fib(8), even(6), (lambda f, n: f(f, n))(lambda f, n: 1 if n == 0 else n * f(f, n - 1), 5)


@program
def decorators_stack(x):
    def add(n):
        def deco(f):
            def wrapper(*a, **k):
                return f(*a, **k) + n

            wrapper.__wrapped__ = f
            return wrapper

        return deco

    @add(1)
    @add(2)
    def g(y):
        return y * 2

    return g(x), g.__name__, g.__wrapped__.__name__


@program
def global_statement(x):
    global MADE_GLOBAL
    MADE_GLOBAL = 4
    r = MADE_GLOBAL
    del MADE_GLOBAL
    return x * r, "MADE_GLOBAL" in globals()


@program
def star_assign_nested(x):
    [a, (b, *c)], d = [1, (2, 3, 4)], x
    for i, (j, *k) in enumerate([(1, 2, 3), (4,)]):
        a += i + j + len(k)
    return d * a, b, c


@program
def import_inside(x):
    import math as m
    from collections import OrderedDict as OD, deque
    import os.path

    return x * m.sqrt(4.0), OD(a=1), deque([1]), os.path.join("a", "b")


@program
def annotations_inside(x):
    a: int = 3
    b: "undefined"

    def f(q: int = 2) -> float:
        return q

    return x * a, f.__annotations__, f()


@program(graphs=0)
def print_free_pass(x):
    if x.dim() > 5:
        pass
    else:
        ...
    return x
