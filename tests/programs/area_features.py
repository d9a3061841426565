# ruff: noqa: UP031, B007, B009, B010, B023  (what linters dislike is part of the language, too)
"""One small function for each feature of the language, after the chapters of Python's language reference."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import logging
import math
import operator
import typing
import warnings

import torch
import torch.nn.functional as F

from tests.support.registry import leaf, program


def grad(i):
    return [leaf()]


# --- expressions


@program(args=grad)
def arithmetic(x):
    return +x - x * 2 / (x**2 + 1) % 3, x.detach() // 1, -x, 5 - x, 2 / (x.abs() + 1), x @ x.t()


@program(args=grad)
def integer_arithmetic(x):
    n = x.shape[0]
    return x * (n + 7 // 2 - n % 2 + (n << 2 >> 1) + (n & 6 | 1 ^ 8) - ~n + n**2)


@program(args=grad)
def float_and_complex(x):
    z = complex(1, 2) * 1j
    return x * z.real + abs(3 + 4j) + 1e-3 + float("inf") * 0 if False else x + z.imag


@program(args=grad)
def comparisons_chain(x):
    n = x.shape[1]
    return x + 1 if 1 < n <= 4 != 5 else x - 1


@program(args=grad)
def tensor_comparisons(x):
    return (x > 0) & (x < 1) | ~(x == 0), (x >= 0) ^ (x != 1)


@program(args=grad)
def boolean_operators(x):
    a = x.shape[0] > 5 or [] or "text"
    b = x is not None and 0
    return x * len(a) + b, not a, not b


@program(args=grad)
def conditional_expression(x):
    return (x.sin() if x.dim() == 2 else x.cos()) + (1 if x.dtype is torch.float32 else 2)


@program(args=grad)
def walrus(x):
    if (n := x.shape[0]) > 2 and (m := n * 2):
        x = x + m
    return x, n, [y := n, y**2]


@program(args=grad)
def lambda_with_defaults(x):
    f = lambda a, b=2, *c, d=3, **e: a * b + sum(c) + d + len(e)  # noqa: E731
    return f(x), f(x, 3), f(x, 1, 2, 3, d=1, z=0)


@program(args=grad)
def list_display_and_star(x):
    items = [x, *[x + 1, x + 2], *(x,)]
    return items + [*items[:1]], (*items,), {**{"a": x}, "b": 1}


@program(args=grad)
def list_comprehension(x):
    return [x * i + j for i in range(3) if i != 1 for j in (0, 1)]


@program(args=grad)
def dict_and_set_comprehension(x):
    sizes = {d for d in x.shape}
    return {f"k{i}": x + i for i in range(2)}, sizes, {k: v for k, v in zip("ab", [1, 2], strict=True)}


@program(args=grad)
def nested_comprehension_closure(x):
    k = 3
    return [[x + i * k for i in range(j)] for j in range(3)]


@program(args=grad)
def generator_expression(x):
    return sum(x * i for i in range(3)), tuple(i for i in range(2)), max(i for i in (3, 1, 2))


@program(args=grad)
def slicing(x):
    return x[0], x[-1], x[:, 1:3], x[..., 0], x[None], x[::2, ::3], x[1:, [0, 2]], x[:2][0, 1]


@program(args=grad)
def sequence_slicing(x):
    items = list(range(10))
    return x + sum(items[2:8:3]), items[::-1], "hello"[1:-1], (1, 2, 3)[1:], items[slice(None, 3)]


@program(args=grad)
def index_by_bool_tensor(x):
    y = x.clone()
    y[y > 0] = 0.0
    return y


@program(args=grad)
def fstrings(x):
    n = x.shape[0]
    return x + n, f"{n} {n!r:>5} {1 / 3:.3f} {'a' + 'b'} {n:{n}}", f"{x.shape} {x.dtype}"


@program(args=grad)
def percent_and_format(x):
    return (
        x + 1,
        "%s-%03d-%.1f" % ("a", 7, 0.25),
        "{:>4}|{0!r}|{k}".replace("{0!r}", "").format(3, k=2),
        "a{}b{}".format(1, "c"),
    )


@program(args=grad)
def membership(x):
    return x * (2 in [1, 2]) + ("b" in "abc") + (3 not in {1: 2}) + (4 in range(5)), None in (1, None)


@program(args=grad)
def identity(x):
    y = x
    return x + 1 if y is x else x - 1, (x + 0) is x, None is None


# --- assignment


@program(args=grad)
def unpacking(x):
    a, (b, *c), d = x, (x + 1, x + 2, x + 3), 4
    *e, f = c
    return a + b + c[0] + d, e, f


@program(args=grad)
def swap(x):
    a, b = x, x + 1
    a, b = b, a
    return a, b


@program(args=grad)
def unpack_tensor(x):
    a, b, c = x
    return a + b * c


@program(args=grad)
def unpack_shape(x):
    n, m = x.shape
    return x.view(m, n) + n * m


@program(args=grad)
def augmented(x):
    y = x * 1
    y += 1
    y *= 2
    y -= x.detach()
    n = 3
    n //= 2
    n **= 4
    items = [1]
    items += [2]
    items *= 2
    return y, n, items


@program(args=grad)
def chained_assignment(x):
    a = b = [x]
    a.append(x + 1)
    return a, b


@program(args=grad)
def annotated(x):
    y: torch.Tensor = x + 1
    return y


@program(args=grad)
def delete(x):
    y = x + 1
    items = [1, 2, 3]
    del items[1:]
    table = {"a": y, "b": x}
    del table["b"], x
    return items, table


@program(args=lambda: [[leaf(), leaf()], {"a": leaf()}, {1}])
def mutate_arguments(items, table, numbers):
    items.append(items[0] + 1)
    items[0] = items[1]
    items.extend([table["a"]])
    table["b"] = items[1] * 2
    table.pop("a")
    numbers.add(5)
    numbers.discard(1)
    return len(items)


@program(args=grad)
def in_place_and_views(x):
    y = x.detach().clone()
    row = y[0]
    row.add_(1)
    y.t()[1].mul_(2)
    y[:, 2] = 7
    y[1, 1] += 3
    return y, row


@program(args=lambda: [torch.ones(3, 4)])
def mutate_input_tensor(x):
    x.add_(1)
    y = x.view(-1)
    y[0] = 5
    return y


# --- control flow


@program(args=grad)
def if_chain(x):
    if x.shape[0] == 1:
        return x
    elif x.shape[0] == 3:
        y = x + 1
    else:
        y = x + 2
    return y


@program(args=grad)
def for_else(x):
    for i in range(5):
        if i == 3:
            break
        x = x + i
    else:
        x = x * 100
    for j in ():
        pass
    else:
        x = x - 1
    return x, i


@program(args=grad)
def for_continue(x):
    for i, c in enumerate("abc", start=1):
        if c == "b":
            continue
        x = x * i
    return x


@program(args=grad)
def while_loop(x):
    n = 0
    while True:
        n += 1
        if n % 2:
            continue
        if n > 6:
            break
        x = x + n
    return x, n


@program(args=grad)
def loop_over_tensor(x):
    total = 0
    for row in x:
        total = total + row * 2
    return total


@program(args=grad)
def loop_over_dict(x):
    table = {"a": 1, "b": 2}
    for k in table:
        x = x + table[k]
    for k, v in table.items():
        x = x * v + len(k)
    for v in table.values():
        x = x - v
    return x, list(table), list(reversed(table))


@program(args=grad)
def match_statement(x):
    def kind(value):
        match value:
            case 0 | 1:
                return 1
            case int(n) if n > 5:
                return n
            case [a, *rest]:
                return len(rest) + a
            case {"k": v, **more}:
                return v + len(more)
            case str():
                return 50
            case _:
                return 9

    return x + sum(kind(v) for v in (0, 8, [4, 5, 6], {"k": 2, "z": 1}, "s", None))


@program(args=grad)
def assertion(x):
    assert x.shape[0] == 3, "wrong size"
    return x + 1


@program(args=grad, graphs=0, breaks=True)
def assertion_fails(x):
    y = x + 1
    assert y.shape[0] == 4, f"size {y.shape[0]}"
    return y


# --- exceptions


@program(args=grad)
def try_except_caught(x):
    try:
        raise ValueError("text", 3)
    except (KeyError, ValueError) as error:
        x = x + error.args[1]
    else:
        x = x * 100
    finally:
        x = x - 1
    return x


@program(args=grad)
def exception_in_callee(x):
    def fail(n):
        if n > 1:
            raise IndexError(n)
        return n

    total = 0
    for i in range(4):
        try:
            total += fail(i)
        except IndexError as error:
            total += 10 * error.args[0]
    return x + total


@program(args=grad)
def builtin_exceptions(x):
    got = []
    for action in (
        lambda: {}["k"],
        lambda: [][0],
        lambda: 1 // 0,
        lambda: int("z"),
        lambda: None.missing,
        lambda: next(iter(())),
    ):
        try:
            action()
        except Exception as error:
            got.append(type(error).__name__)
    return x + len(got), got


@program(args=grad)
def finally_return(x):
    def f():
        try:
            return x + 1
        finally:
            seen.append(1)

    seen = []
    return f(), seen


@program(args=grad)
def nested_try(x):
    log = []
    try:
        try:
            raise KeyError("a")
        finally:
            log.append("inner")
    except KeyError:
        log.append("outer")
    return x * len(log), log


@program(args=grad)
def reraise_and_chain(x):
    try:
        try:
            raise ValueError("first")
        except ValueError as error:
            raise RuntimeError("second") from error
    except RuntimeError as error:
        return x + 1, str(error), str(error.__cause__)


class Problem(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@program(args=grad)
def user_exception(x):
    try:
        raise Problem(4)
    except Problem as error:
        return x * error.code, str(error)


@program(args=grad, graphs=0, breaks=True)
def exception_leaves(x):
    y = x + 1
    raise Problem(y.shape[0])


@program(args=grad, graphs=0, breaks=True)
def tensor_error_leaves(x):
    return x @ x


# --- functions


@program(args=grad)
def arguments(x):
    def f(a, /, b, *args, c=1, **kwargs):
        return a * b + sum(args) + c + sum(kwargs.values())

    return f(x, 2), f(x, b=2), f(x, 2, 3, 4, c=5, d=6), f(*[x, 2], **{"c": 1})


@program(args=grad)
def argument_mismatch(x):
    def f(a, b):
        return a

    try:
        f(x)
    except TypeError as error:
        return x + 1, str(error)


def module_level(x, k=3, *, scale=2.0):
    return x * k * scale


@program(args=grad)
def defaults(x):
    return module_level(x), module_level(x, 4, scale=1.0)


@program(args=grad)
def closures_share_cells(x):
    count = 0

    def up():
        nonlocal count
        count += 1
        return count

    def value():
        return count

    up()
    up()
    return x * value() + count


@program(args=grad)
def late_binding(x):
    fs = [lambda: x + i for i in range(3)]
    return [f() for f in fs]


@program(args=grad)
def returned_closure(x):
    def make(k):
        def inner(y):
            return y * k

        return inner

    return make(3)(x), make(4)(x)


@program(args=grad)
def recursion(x):
    def f(n):
        return x if n == 0 else f(n - 1) * 2 + n

    return f(4)


def twice(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(function(*args, **kwargs))

    return wrapper


@twice
def plus(x):
    return x + 1


@program(args=grad)
def decorators(x):
    return plus(x), plus.__name__


@program(args=grad)
def function_attributes(x):
    def f():
        return f.k

    f.k = 3
    return x * f()


COUNT = 0
SEEN = []


@program(args=grad)
def global_store(x):
    global COUNT
    COUNT = 5
    SEEN.append(COUNT)
    SEEN.clear()
    COUNT += x.shape[0]
    return x + COUNT


# --- generators


@program(args=grad)
def generators(x):
    def g(n):
        for i in range(n):
            got = yield x + i
            if got is not None:
                yield got

    it = g(3)
    first = next(it)
    sent = it.send(x * 10)
    return first, sent, list(it)


@program(args=grad)
def generator_return_value(x):
    def inner():
        yield x
        return 7

    def outer():
        value = yield from inner()
        yield x + value

    return list(outer())


@program(args=grad)
def generator_finally(x):
    log = []

    def g():
        try:
            yield x
            yield x + 1
        finally:
            log.append("closed")

    it = g()
    y = next(it) * 2
    it.close()
    return y, log


class CountDown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration
        return self.n


@program(args=grad)
def user_iterator(x):
    return x + sum(CountDown(4)), list(CountDown(3)), [x * i for i in CountDown(2)]


# --- classes


class Base:
    shared = [1]
    kind = "base"

    def __init__(self, x, n=2):
        self.x = x
        self.n = n

    def value(self):
        return self.x * self.n

    @property
    def double(self):
        return self.x * 2

    @double.setter
    def double(self, value):
        self.x = value / 2

    @classmethod
    def make(cls, x):
        return cls(x)

    @staticmethod
    def plus(x):
        return x + 1

    def __call__(self, y):
        return self.x + y

    def __getitem__(self, i):
        return self.x[i]

    def __setitem__(self, i, v):
        self.n = v + i

    def __len__(self):
        return 5

    def __contains__(self, v):
        return v == self.n

    def __add__(self, other):
        return type(self)(self.x + (other.x if isinstance(other, Base) else other), self.n)

    def __radd__(self, other):
        return self + other

    def __eq__(self, other):
        return self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def __lt__(self, other):
        return self.n < other.n

    def __bool__(self):
        return self.n > 0

    def __repr__(self):
        return f"Base({self.n})"

    def __iter__(self):
        yield self.n
        yield self.n + 1


class Derived(Base):
    kind = "derived"

    def __init__(self, x, n=3):
        super().__init__(x, n)
        self.extra = 1

    def value(self):
        return super().value() + self.extra


@program(args=grad)
def construct_and_call_methods(x):
    a, b = Base(x), Derived(x)
    return a.value() + b.value() + a(x), a[0], len(a), 2 in a, list(b)


@program(args=grad)
def properties(x):
    a = Base(x)
    a.double = x * 6
    return a.double, a.x


@program(args=grad)
def class_and_static_methods(x):
    return Derived.make(x).value() + Base.plus(x), Derived.kind, Base.shared[0]


@program(args=grad)
def operators_of_a_class(x):
    a, b = Base(x, 1), Derived(x, 2)
    return (a + b).x, (x + 0, 1 + a)[1].x, a == b, a < b, bool(a), a != b, repr(a), sorted([b, a])[0].n


@program(args=lambda: [Base(leaf())])
def mutate_an_object(a):
    a.n += 1
    a.x = a.x * 2
    a.new = [a.x]
    a[3] = 4
    setattr(a, "more", 1)
    del a.more
    return a.new


@program(args=grad)
def isinstance_and_type(x):
    a = Derived(x)
    return (
        x + isinstance(a, Base) + issubclass(Derived, Base) + (type(a) is Derived),
        type(a).__name__,
        a.__class__.__mro__[1].__name__,
    )


@program(args=grad)
def getattr_and_hasattr(x):
    a = Base(x)
    return getattr(a, "x") + getattr(a, "none", 1) + hasattr(a, "n"), hasattr(a, "nope"), vars(a)["n"]


class Dynamic:
    def __init__(self):
        self.seen = []

    def __getattr__(self, name):
        self.seen.append(name)
        return len(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value if name == "seen" else value + 1)


@program(args=grad)
def dynamic_attributes(x):
    d = Dynamic()
    d.n = 4
    return x * d.abc + d.n, d.seen


class Field:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name, 0)

    def __set__(self, obj, value):
        setattr(obj, self.name, value * 2)


class WithField:
    size = Field()


@program(args=grad)
def descriptors(x):
    w = WithField()
    w.size = 4
    return x * w.size


@dataclasses.dataclass
class Record:
    x: torch.Tensor
    n: int = 3
    items: list = dataclasses.field(default_factory=list)

    def total(self):
        return self.x * self.n


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int
    b: str = "b"


@program(args=grad)
def data_classes(x):
    r = Record(x)
    r.items.append(1)
    s = dataclasses.replace(r, n=5)
    return (
        r.total() + s.total(),
        r.items is s.items,
        Frozen(1) == Frozen(1),
        [f.name for f in dataclasses.fields(r)],
        hash(Frozen(2)) == hash(Frozen(2)),
    )


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@program(args=grad)
def enums(x):
    return (
        x + Color.RED.value + Level.HIGH,
        Color["BLUE"].name,
        Color(1) is Color.RED,
        [c.name for c in Color],
        Level.LOW < Level.HIGH,
    )


Point = collections.namedtuple("Point", "a b")


class Typed(typing.NamedTuple):
    x: torch.Tensor
    n: int = 1


@program(args=grad)
def named_tuples(x):
    p = Point(x, b=2)
    q = p._replace(b=3)
    a, b = q
    return p, a + b, Typed(x).n, p._fields, isinstance(p, tuple), p[1]


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@program(args=grad)
def slots(x):
    s = Slotted(x)
    s.b = 3
    return s.a * s.b, hasattr(s, "c")


class Mine(dict):
    def __getattr__(self, name):
        return self[name]

    def __setitem__(self, key, value):
        super().__setitem__(key, value)


@program(args=grad)
def dict_subclass(x):
    m = Mine(a=x)
    m["b"] = x + 1
    return m.a + m.b, list(m), len(m)


# --- context managers


class Region:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return 3

    def __exit__(self, kind, value, traceback):
        self.log.append(kind.__name__ if kind else "exit")
        return self.swallow


@program(args=grad)
def user_context_manager(x):
    log = []
    with Region(log) as k, Region(log):
        x = x * k
    with Region(log, swallow=True):
        raise ValueError
    return x, log


@contextlib.contextmanager
def scaled(x):
    yield x * 2


@program(args=grad)
def contextlib_manager(x):
    with scaled(x) as y, contextlib.nullcontext(5) as k:
        return y + k


@program(args=grad)
def grad_modes(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    with torch.set_grad_enabled(False):
        c = x + 1
    return a, b, c, torch.is_grad_enabled()


@torch.no_grad()
def without_gradients(x):
    return x * 2


@program(args=grad)
def grad_mode_decorator(x):
    return without_gradients(x), x * 3


@program(args=grad)
def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
    return y, x @ x.t()


@program(args=grad)
def suppress(x):
    with contextlib.suppress(KeyError):
        x = x + 1
        {}["k"]
        x = x * 100
    return x


# --- builtins and the standard library


@program(args=grad)
def numeric_builtins(x):
    return (
        x
        + abs(-2)
        + round(2.567, 1)
        + divmod(7, 2)[1]
        + pow(2, 3)
        + min(3, 1)
        + max([1, 2])
        + sum([1, 2])
        + int("7")
        + float("0.5")
        + len("abc")
    )


@program(args=grad)
def iteration_builtins(x):
    return (
        [x * i for i in map(lambda a, b: a + b, [1, 2], [3, 4])],
        list(filter(None, [0, 1, 2])),
        list(zip([1, 2], "ab", strict=True)),
        list(reversed([1, 2])),
        any([0, 1]),
        all([]),
        sorted([3, 1, 2], key=lambda v: -v),
        list(enumerate("ab")),
        next(iter([5])),
        next(iter([]), 6),
    )


@program(args=grad)
def conversions(x):
    return (
        x + 1,
        list("ab"),
        tuple([1]),
        set([1, 1]),
        frozenset([2]),
        dict([("a", 1)]),
        str(3),
        repr("q"),
        bool([]),
        int(2.7),
        bytes(2),
        chr(97),
        ord("b"),
        hex(255),
        bin(5),
    )


@program(args=grad)
def list_methods(x):
    a = [3, 1, 2]
    a.append(5)
    a.extend((7, 8))
    a.insert(1, 9)
    a.remove(3)
    b = a.pop()
    a.sort()
    c = a.copy()
    a.reverse()
    return x + b, a, c, a.index(2), a.count(1), a == c, [1, 2] < [1, 3], a * 2


@program(args=grad)
def dict_methods(x):
    d = {"a": x, "b": 2}
    d.update(c=3)
    d.setdefault("d", 4)
    d |= {"e": 5}
    e = d.pop("b")
    f = d.popitem()
    return (
        d["a"] + e,
        d,
        f,
        d.get("zz"),
        d.get("zz", 1),
        list(d.keys() & {"a"}),
        {"x": 1} == {"x": 1},
        dict.fromkeys("ab", 0),
    )


@program(args=grad)
def set_methods(x):
    s = {1, 2, 3}
    s.add(4)
    s.discard(9)
    s.update([5])
    return x + len(s | {7}), s & {1, 9}, s - {1}, s ^ {1}, s <= {1, 2, 3, 4, 5, 6}, s.union([8]), s.isdisjoint({100})


@program(args=grad)
def string_methods(x):
    t = " Hello World "
    return (
        x + len(t),
        t.strip().lower().split(),
        t.replace("l", "L").upper(),
        "-".join(["a", "b"]),
        t.startswith(" H"),
        t.find("W"),
        "a,b".partition(","),
        "x".isdigit(),
        "ab".center(6, "*"),
    )


@program(args=grad)
def math_and_operator(x):
    return (
        x * math.sqrt(2)
        + math.pi
        + math.floor(2.5)
        + operator.add(1, 2)
        + operator.itemgetter(1)([1, 2])
        + math.prod([1, 2]),
        operator.attrgetter("shape")(x),
        math.isnan(float("nan")),
    )


@program(args=grad)
def functools_parts(x):
    f = functools.partial(module_level, k=2)
    return f(x), functools.reduce(lambda a, b: a + b, [x, x, x]), functools.partial(f, scale=1.0)(x)


@functools.lru_cache
def cached(n):
    return n * 2


@program(args=grad)
def lru_cache(x):
    return x * cached(3) + cached(3)


@program(args=grad)
def itertools_parts(x):
    return (
        [a + b for a, b in itertools.product([x], [1, 2])],
        list(itertools.chain([1], [2])),
        list(itertools.chain.from_iterable([[1], [2]])),
        list(itertools.islice(itertools.count(3), 2)),
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.combinations([1, 2, 3], 2)),
        list(itertools.permutations([1, 2])),
        list(itertools.zip_longest([1], [2, 3])),
        list(itertools.repeat(1, 2)),
        list(itertools.starmap(pow, [(2, 3)])),
        [(k, list(g)) for k, g in itertools.groupby("aab")],
        list(itertools.pairwise([1, 2, 3])),
    )


@program(args=grad)
def collections_parts(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    o = collections.OrderedDict(b=1, a=2)
    o.move_to_end("b")
    q = collections.deque([1, 2, 3], maxlen=3)
    q.append(4)
    q.appendleft(0)
    return d["a"][0] + 1, dict(d), list(o), list(q), collections.Counter("aab")["a"]


@program(args=grad)
def copying(x):
    a = [x, [1]]
    b, c = copy.copy(a), copy.deepcopy([1, [2]])
    return b[1] is a[1], c, b[0] + 1


@program(args=grad)
def collections_abc(x):
    return x + isinstance([], collections.abc.Sequence) + isinstance({}, collections.abc.Mapping) + callable(len)


@program(args=grad)
def import_inside(x):
    import math as m
    from collections import OrderedDict

    return x + m.ceil(1.2), list(OrderedDict(a=1))


# --- torch


@program(args=grad)
def tensor_attributes(x):
    return (
        x + x.dim() + x.numel() + x.size(0) + x.ndim + x.element_size(),
        x.shape,
        x.dtype,
        x.device,
        x.is_cuda,
        x.requires_grad,
        x.stride(),
        x.is_contiguous(),
    )


@program(args=grad)
def tensor_factories(x):
    return (
        torch.zeros(2),
        torch.ones_like(x),
        torch.arange(3),
        x.new_zeros(2, 2),
        torch.full((2,), 1.5),
        torch.eye(2),
        torch.tensor([1, 2]),
        torch.empty(0),
    )


@program(args=grad)
def torch_functions(x):
    return (
        torch.cat([x, x]),
        torch.stack((x, x), dim=1),
        torch.einsum("ij,kj->ik", x, x),
        F.softmax(x, -1),
        torch.where(x > 0, x, 0.0),
        torch.topk(x, 2).values,
    )


@program(args=grad)
def named_results(x):
    m = x.max(dim=0)
    values, indices = x.sort(dim=1)
    return m.values, m.indices, values, indices


@program(args=grad)
def dtype_conversions(x):
    return (
        x.double().float(),
        x.to(torch.float16),
        x.int(),
        x.long().float(),
        x.bool(),
        x.type_as(x.double()),
        x.half().dtype,
    )


@program(args=grad)
def random_numbers(x):
    return F.dropout(x, 0.5), torch.rand(2), torch.randn_like(x), torch.randint(0, 10, (3,)), torch.randperm(4)


@program(args=grad)
def out_argument(x):
    y = torch.empty(3, 4)
    torch.add(x.detach(), 1, out=y)
    return y


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.blocks = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Tanh()])
        self.table = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 4)})
        self.register_buffer("count", torch.zeros(()))
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        self.count += 1
        for i, block in enumerate(self.blocks):
            x = block(x) + i
        for name, module in self.named_children():
            x = x + len(name) + len(list(module.parameters()))
        return self.norm(self.linear(x)) + self.table["a"](x)


@program(args=grad, breaks=True)
def nn_module(x):
    torch.manual_seed(0)
    return (
        F.linear(x, MODULE.linear.weight, MODULE.linear.bias) + sum(p.sum() for p in MODULE.parameters()),
        MODULE.training,
        sorted(MODULE.state_dict()),
    )


torch.manual_seed(0)
MODULE = Layer()


# --- breaks


@program(args=grad, graphs=2, breaks=True)
def print_breaks(x):
    y = x + 1
    print("between")
    return y * 2


@program(args=grad, graphs=2)
def item_breaks(x):
    n = x.sum().item()
    return x * n


@program(args=grad, graphs=2, breaks=True)
def data_dependent_if(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 1


@program(args=grad, graphs=3, breaks=True)
def break_in_loop(x):
    for i in range(3):
        x = x + i
        print(i)
    return x


@program(args=grad, graphs=2, breaks=True)
def break_in_with(x):
    with torch.no_grad():
        x = x * 2
        print("inside", torch.is_grad_enabled())
        x = x + 1
    return x, torch.is_grad_enabled()


@program(args=grad, breaks=True)
def break_in_try(x):
    try:
        x = x + 1
        print("inside")
        raise ValueError("v")
    except ValueError as error:
        x = x * 2
        print(error)
    finally:
        print("done")
    return x


@program(args=grad, graphs=3, breaks=True)
def break_in_inlined(x):
    def inner(y):
        y = y + 1
        print("deep")
        return y * 2

    z = inner(x) + inner(x)
    return z - 1


@program(args=grad, graphs=2, breaks=True)
def break_with_locals_of_every_kind(x):
    items, table, numbers, f = [x], {"k": x + 1}, {1, 2}, lambda v: v + len(items)
    record, it, g = Record(x), iter([1, 2, 3]), (i for i in range(3))
    next(it)
    print("break")
    items.append(1)
    return f(x) + table["k"], numbers, record.total(), next(it), list(g)


@program(args=grad, graphs=2, breaks=True)
def break_in_comprehension(x):
    return [print(i) or x + i for i in range(2)]


@program(args=grad, breaks=True)
def break_in_displays(x):
    return [*[x], *[print("list") or x + 1], x], {**{"a": x}, **{"b": print("dict")}}, {1, *[print("set") or 2]}


@program(args=grad, graphs=2, breaks=True)
def break_in_generator(x):
    def g():
        for i in range(2):
            print("g", i)
            yield x + i

    return list(g())


@program(args=grad, graphs=2, breaks=True)
def numpy_breaks(x):
    return x + float(x.detach().numpy().sum())


@program(args=grad, breaks=True)
def logging_is_queued(x):
    logging.getLogger("capture").warning("value %d", x.shape[0])
    warnings.warn("text", stacklevel=1)
    return x + 1


@program(args=grad, graphs=4, breaks=True)
def nested_functions_break(x):
    state = {"n": 0}

    def step(y):
        state["n"] += 1
        if y.sum() > 1e6:
            return y
        return y + state["n"]

    for _ in range(2):
        x = step(x)
    return x, state
