# ruff: noqa
"""Functions: arguments of every kind, closures, decorators, recursion, statements, match, generators, exceptions, context managers."""

import contextlib
import functools
import inspect
import logging
import warnings

import torch
from tests.support.registry import built, program, tensor


@program
def star_args(x):
    def f(a, *args, b=2, **kw):
        return a + sum(args) * b + kw.get("c", 0)

    return x + f(1) + f(1, 2, 3) + f(1, b=3) + f(*[1, 2], **{"c": 4, "b": 5})


@program
def positional_only(x):
    def f(a, /, b, *, c):
        return a + b * c

    return x * f(1, 2, c=3) + f(1, b=2, c=4)


@program
def positional_only_error(x):
    def f(a, /):
        return a

    try:
        f(a=1)
    except TypeError as e:
        return x + len(str(e))


@program
def mutable_default(x):
    def f(v, acc=[]):
        acc.append(v)
        return len(acc)

    f(1)
    return x + f(2)


def outer_mutable_default(v, acc={}):
    return acc.get(v, 1)


@program
def outer_default(x):
    return x + outer_mutable_default(3)


@program
def default_from_tensor(x):
    def f(v, w=x + 1):
        return v * w

    return f(x)


@program(graphs=0)
def keyword_unpack_order(x):
    def f(**kw):
        return list(kw)

    return x, f(b=1, a=2, **{"c": 3})


@program
def lambda_closures(x):
    fs = [lambda v, i=i: v + i for i in range(3)]
    gs = [lambda v: v + i for i in range(3)]
    return fs[0](x) + gs[0](x)


@program
def nonlocal_counter(x):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    bump()
    bump()
    return x + n


COUNT = 0


@program
def global_counter(x):
    global COUNT
    COUNT += 1
    y = x + COUNT
    COUNT = 0
    return y


@built(graphs=2)
def closure_state():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * 2

    return f


@program
def recursion_fib(x):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return x + fib(10)


@program
def recursion_tensor(x):
    def f(v, n):
        return v if n == 0 else f(v * 2, n - 1)

    return f(x, 4)


def scaled(factor):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return f(*args, **kwargs) * factor

        return inner

    return wrap


@scaled(3)
def decorated(x, k=1):
    "doc"
    return x + k


@program
def decorator_with_arguments(x):
    return decorated(x, k=2), decorated.__name__, decorated.__doc__, decorated.__wrapped__(x)


@program
def decorator_inside(x):
    @scaled(2)
    def f(v):
        return v + 1

    return f(x), f.__name__


@program
def function_attributes(x):
    def f(v):
        return v

    f.tag = 3
    return x + f.tag + hasattr(f, "tag") + hasattr(f, "nope"), f.__name__, f.__code__.co_argcount


@program
def returned_function(x):
    y = x + 1

    def f(v):
        return v + y

    return f(x), f


@program
def returned_partial(x):
    return functools.partial(torch.add, x), functools.partial(torch.add, alpha=2)(x, x)


@program
def partial_forms(x):
    def f(a, b, c=0, *, d=0):
        return a + b * 2 + c * 3 + d * 4

    p = functools.partial(f, x, c=1)
    q = functools.partial(p, 2, d=5)
    return q() + p(3), q.args[1], q.keywords["d"], q.func is f


@program(graphs=0)
def partial_method(x):
    class A:
        def f(self, a, b):
            return a * b

        g = functools.partialmethod(f, 2)

    return x


@program
def reduce_forms(x):
    return functools.reduce(lambda a, b: a * b, [1, 2, 3], 4) + functools.reduce(torch.add, [x, x, x])


@functools.lru_cache
def cached_number(n):
    return n * 2


@functools.cache
def cached_tensor(n):
    return torch.ones(n)


@program
def lru_cache_number(x):
    return x * cached_number(3) + cached_number(3)


@program
def lru_cache_tensor(x):
    return x + cached_tensor(4)


@functools.singledispatch
def dispatched(v):
    return 1


@dispatched.register
def _(v: int):
    return 2


@dispatched.register(list)
def _(v):
    return 3


@program
def single_dispatch(x):
    return x * dispatched(1) + dispatched([1]) + dispatched("a")


@program(graphs=0)
def total_ordering(x):
    return x


@functools.total_ordering
class Version:
    def __init__(self, n):
        self.n = n

    def __eq__(self, o):
        return self.n == o.n

    def __lt__(self, o):
        return self.n < o.n


@program
def total_ordering_class(x):
    a, b = Version(1), Version(2)
    return x + (a < b) + (a <= b) + (a > b) + (a >= b) + (a == b) + (a != b)


@program
def inspect_signature(x):
    def f(a, b=2, *args, c, **kw):
        pass

    s = inspect.signature(f)
    return x + len(s.parameters) + s.parameters["b"].default


def outside(a, b=2):
    return a + b


@program
def inspect_signature_outside(x):
    s = inspect.signature(outside)
    bound = s.bind(x, b=3)
    bound.apply_defaults()
    return outside(*bound.args, **bound.kwargs), list(s.parameters)


@program
def inspect_predicates(x):
    return (
        x
        + inspect.isfunction(outside)
        + inspect.isclass(Version)
        + inspect.ismethod(outside)
        + callable(outside)
        + inspect.isgeneratorfunction(outside)
    )


@program(graphs=0)
def chained_comparison(x):
    n = x.shape[0]
    return x if 1 < n <= 3 < 4 != 5 else -x


@program
def conditional_expressions(x):
    n = x.dim()
    a = 1 if n == 2 else 2
    b = n or 5
    c = n and 6
    d = None or "x"
    return x + a + b + c + len(d) + (not n)


@program
def while_loops(x):
    i = 0
    while i < 5:
        i += 1
        if i == 2:
            continue
        if i == 4:
            break
        x = x + i
    else:
        x = x * 100
    while True:
        i += 1
        if i > 6:
            break
    return x + i


@program
def for_else(x):
    for i in range(3):
        if i == 7:
            break
    else:
        x = x + 1
    for i in range(0):
        pass
    return x + i


@program
def nested_loops_break(x):
    for i in range(3):
        for j in range(3):
            if j == i:
                break
            x = x + i * j
    return x


@program
def match_literals(x):
    match x.shape[0]:
        case 1:
            return x
        case 2 | 3:
            return x + 2
        case _:
            return x + 3


@program
def match_sequences(x):
    def f(v):
        match v:
            case []:
                return 0
            case [a]:
                return a
            case [a, b, *rest]:
                return a + b + len(rest)
            case {"k": k, **others}:
                return k + len(others)
            case str() as s:
                return len(s)
            case int(n) if n > 5:
                return n
            case None:
                return 9

    return x + f([]) + f([1]) + f((1, 2, 3)) + f({"k": 1, "z": 2}) + f("abc") + f(7) + f(None)


@program
def match_classes(x):
    match Version(3):
        case Version(n=3):
            return x + 3
    return x


@program
def del_statements(x):
    y = x + 1
    z = [1, 2]
    del z[0]
    del y
    try:
        y
    except UnboundLocalError:
        return x + len(z)


@program
def assert_statement(x):
    assert x.shape[0] == 3, "bad"
    assert x.dim() == 2
    return x + 1


@program
def assert_fails_caught(x):
    try:
        assert x.shape[0] == 99, f"bad {x.shape[0]}"
    except AssertionError as e:
        return x + len(str(e))


@program
def try_except_else_finally(x):
    log = []
    try:
        log.append(1)
    except ValueError:
        log.append(2)
    else:
        log.append(3)
    finally:
        log.append(4)
    return x + sum(log), log


@program
def try_finally_return(x):
    def f():
        try:
            return 1
        finally:
            log.append(1)

    log = []
    return x + f() + len(log)


@program
def exception_types(x):
    n = 0
    for make in (
        lambda: [][0],
        lambda: {}["k"],
        lambda: 1 / 0,
        lambda: int("z"),
        lambda: None.q,
        lambda: len(5),
        lambda: undefined_name,
    ):
        try:
            make()
        except (IndexError, KeyError):
            n += 1
        except (ZeroDivisionError, ValueError):
            n += 10
        except Exception as e:
            n += 100
    return x + n


class MyError(Exception):
    def __init__(self, code, text="t"):
        super().__init__(code, text)
        self.code = code


@program
def exception_custom(x):
    try:
        raise MyError(5)
    except MyError as e:
        return x + e.code + len(e.args)


@program
def exception_cause(x):
    try:
        try:
            raise ValueError("a")
        except ValueError as e:
            raise RuntimeError("b") from e
    except RuntimeError as e:
        return x + len(str(e.__cause__)) + (e.__suppress_context__ is True)


@program
def exception_context(x):
    try:
        try:
            raise ValueError("a")
        except ValueError:
            raise RuntimeError("b")
    except RuntimeError as e:
        return x + isinstance(e.__context__, ValueError)


@program
def exception_notes(x):
    try:
        e = ValueError("a")
        e.add_note("n")
        raise e
    except ValueError as e:
        return x + len(e.__notes__)


@program
def exception_group(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        x = x + len(e.exceptions)
    except* TypeError as e:
        x = x * 2
    return x


@program
def exception_reraise(x):
    def f():
        try:
            raise ValueError("a")
        except ValueError:
            raise

    try:
        f()
    except ValueError:
        return x + 1


@program
def exception_in_loop(x):
    for i in range(3):
        try:
            if i == 1:
                raise KeyError(i)
            x = x + i
        except KeyError as e:
            x = x * e.args[0]
    return x


@program(graphs=0, breaks=True)
def exception_from_torch(x):
    try:
        x @ x
    except RuntimeError:
        return x + 1


@program(graphs=0, breaks=True)
def exception_raised_out(x):
    y = x + 1
    raise MyError(3)


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


@program(graphs=0)
def exception_str_repr(x):
    e = ValueError("a", 1)
    return x, str(e), repr(e), str(KeyError("k")), repr(MyError(1))


@program
def generator_basic(x):
    def g(n):
        for i in range(n):
            yield x + i

    return sum(g(3)), list(g(2))


@program
def generator_send(x):
    def g():
        total = 0
        while True:
            v = yield total
            if v is None:
                return
            total += v

    it = g()
    next(it)
    a = it.send(1)
    b = it.send(5)
    return x + a + b


@program
def generator_throw_close(x):
    log = []

    def g():
        try:
            while True:
                try:
                    yield 1
                except ValueError:
                    log.append("v")
                    yield 7
        finally:
            log.append("f")

    it = g()
    next(it)
    a = it.throw(ValueError)
    it.close()
    return x + a + len(log), log


@program
def generator_yield_from(x):
    def inner():
        r = yield 1
        yield r
        return 10

    def outer():
        v = yield from inner()
        yield v

    it = outer()
    a = next(it)
    b = it.send(5)
    c = next(it)
    return x + a + b + c


@program
def generator_throw_delegated(x):
    def inner():
        try:
            yield 1
        except ValueError:
            yield 2

    def outer():
        yield from inner()

    it = outer()
    next(it)
    return x + it.throw(ValueError)


@program
def generator_expression_lazy(x):
    log = []

    def say(v):
        log.append(v)
        return v

    g = (say(v) for v in range(3))
    first = next(g)
    return x + first, log


@program
def generator_of_tensors_unpacked(x):
    a, b, c = (row * 2 for row in x)
    return a + b + c


@program
def generator_infinite(x):
    def count():
        n = 0
        while True:
            yield n
            n += 1

    for i in count():
        if i > 3:
            break
        x = x + i
    return x


@built(args=lambda i: [tensor(i)])
def generator_returned():
    def f(x):
        def g():
            yield x
            yield x + 1

        return list(g())

    return f


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@program
def user_iterator(x):
    for v in Countdown(3):
        x = x + v
    return x + sum(Countdown(4)) + len(list(Countdown(2))) + max(Countdown(3))


@program(args=lambda i: [tensor(i), Countdown(3)])
def user_iterator_argument(x, it):
    return x + next(it) + sum(it), it.n


class OldSequence:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 10

    def __len__(self):
        return 3


@program
def old_sequence_protocol(x):
    s = OldSequence()
    return x + sum(s) + len(s) + (10 in s) + list(reversed(s))[0]


@contextlib.contextmanager
def managed(log, v):
    log.append("in")
    try:
        yield v
    finally:
        log.append("out")


@program
def contextmanager_generator(x):
    log = []
    with managed(log, 3) as v:
        x = x + v
    return x, log


@program
def contextmanager_swallows(x):
    @contextlib.contextmanager
    def quiet():
        try:
            yield
        except ValueError:
            pass

    with quiet():
        raise ValueError
    return x + 1


class Manager:
    def __init__(self, swallow=False):
        self.log = []
        self.swallow = swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, t, v, tb):
        self.log.append(t.__name__ if t else "out")
        return self.swallow


@program
def manager_class(x):
    m = Manager(True)
    with m as k:
        x = x + 1
        raise KeyError("a")
    return x + len(m.log), m.log, k is m


@program
def manager_many(x):
    with Manager() as a, Manager() as b:
        x = x + 1
    return x, a.log, b.log


@program
def contextlib_suppress(x):
    with contextlib.suppress(ValueError, KeyError):
        raise KeyError
    return x + 1


@program
def contextlib_nullcontext(x):
    with contextlib.nullcontext(5) as v:
        x = x + v
    return x


@program
def contextlib_exitstack(x):
    m = Manager()
    with contextlib.ExitStack() as stack:
        stack.enter_context(m)
        stack.callback(m.log.append, "cb")
        x = x + 1
    return x, m.log


@program(graphs=0)
def contextlib_closing(x):
    class C:
        closed = False

        def close(self):
            self.closed = True

    return x


class Closable:
    closed = False

    def close(self):
        self.closed = True


@program
def contextlib_closing_outside(x):
    c = Closable()
    with contextlib.closing(c) as d:
        x = x + 1
    return x, c.closed, c is d


class Decorating(contextlib.ContextDecorator):
    def __enter__(self):
        return self

    def __exit__(self, *e):
        return False


@program
def contextlib_decorator(x):
    @Decorating()
    def f(v):
        return v + 1

    return f(x)


@program(breaks=True)
def logging_calls(x):
    logging.getLogger("quiet").debug("value %s", x.shape[0])
    return x + 1


@program(breaks=True)
def warnings_calls(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("w")
    return x + 1


@program
def grad_modes(x):
    with torch.no_grad():
        a = x + 1
    with torch.enable_grad():
        b = x + 2
    with torch.set_grad_enabled(False):
        c = x + 3
    return a + b + c, torch.is_grad_enabled()


@program
def no_grad_decorator(x):
    @torch.no_grad()
    def f(v):
        return v * 2

    return f(x)


@program(breaks=True)
def inference_mode(x):
    with torch.inference_mode():
        y = x + 1
    return y.is_inference()


@program
def autocast_cpu(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
    return y


@program(graphs=2, breaks=True)
def user_function_with_break(x):
    y = x + 1
    print("", end="")
    return y * 2


@program(graphs=2, breaks=True)
def break_in_callee(x):
    def f(v):
        v = v + 1
        print("", end="")
        return v * 2

    return f(x) + 1


@program(graphs=3, breaks=True)
def break_in_for_loop(x):
    for i in range(3):
        x = x + i
        print("", end="")
    return x


@program(graphs=2, breaks=True)
def break_in_try(x):
    try:
        x = x + 1
        print("", end="")
        x = x * 2
    except ValueError:
        x = x - 1
    return x


@program(graphs=3, breaks=True)
def data_dependent_if(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@program
def async_function_defined(x):
    async def f():
        return 1

    f().close()
    return x + 1


@program
def locals_and_globals(x):
    a = 1
    return x + len(locals()) + ("COUNT" in globals())


@program
def type_annotations(x):
    y: int = 3
    z: "undefined" = 4

    def f(a: int, b: float = 2.0) -> float:
        return a * b

    return x + f(y) + z


@program
def delete_and_reuse_loop_variable(x):
    for i in range(3):
        t = x + i
    del i
    return t


@program
def starred_assignment_nested(x):
    (a, *b), c = [1, 2, 3], 4
    *d, e = "abc"
    return x + a + len(b) + c + len(d) + len(e)


@program
def multiple_returns(x):
    def f(v):
        return v, v + 1, {"a": v}

    a, b, c = f(x)
    return a + b + c["a"]


@program
def import_inside(x):
    import math as m
    from torch.nn import functional as F2

    return F2.relu(x) + m.pi


@program
def exec_eval(x):
    return x + eval("1 + 2")
