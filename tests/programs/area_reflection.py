# ruff: noqa
"""Programs that change or make what programs are made of, and break, raise or return on the way: classes, text, identities, coroutines, numbers of one's own."""

import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import threading

import torch
from tests.support.registry import built, program, tensor


def graph_break():
    torch._dynamo.graph_break()


# --- stores on classes ---


@built(graphs=4, breaks=True)
def store_then_break():
    class A:
        n = 0

    def f(x):
        A.n += 1
        y = x * A.n
        print("break")
        A.n += 1
        return y + A.n, A.n

    return f


@built(graphs=2)
def store_then_raise():
    class A:
        n = 0

    def f(x):
        A.n += 1
        if A.n == 2:
            raise ValueError(A.n)
        return x * A.n

    return f


@built(graphs=2)
def store_caught():
    class A:
        n = 0

    def f(x):
        try:
            A.n += 1
            raise KeyError
        except KeyError:
            A.n += 10
        return x + A.n

    return f


@built
def store_shadowed_by_instance():
    class A:
        k = 1

    a = A()

    def f(x):
        A.k = 5
        y = x * a.k
        a.k = 2
        z = x * a.k
        del a.k
        return y, z, a.k, A.k

    return f


@built(graphs=2)
def store_on_base_read_on_child():
    class A:
        k = 1

    class B(A):
        pass

    class C(B):
        def get(self):
            return super().k + self.k

    c = C()

    def f(x):
        A.k += 1
        first = c.get()
        B.k = 100
        second = c.get()
        del B.k
        return x * first, second, c.k

    return f


@built(args=lambda i: [tensor(i), i], graphs=3)
def store_changed_outside():
    class A:
        k = 1

    def f(x, i):
        if i == 1:
            A.k = 50
        A.k = A.k * 2
        return x * A.k

    return f


@built
def store_property_from_outside():
    class A:
        def __init__(self):
            self.v = 3

    prop = property(lambda self: self.v * 2)

    def f(x):
        A.double = prop
        return x * A().double

    return f


@built
def store_tensor_and_function():
    class A:
        cache = {}

    def f(x):
        A.last = x * 2
        A.go = staticmethod(lambda y: y + 1) if False else (lambda self, y: y + 1)
        return A().go(A.last), A.last is A().last

    return f


@built(graphs=2)
def store_on_module_class():
    class M(torch.nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            M.calls += 1
            return x * self.calls

    return M()


@built(graphs=2)
def store_many_instances():
    class Node:
        made = 0

        def __init__(self, v):
            Node.made += 1
            self.v = v
            self.serial = Node.made

    def f(x):
        nodes = [Node(x * i) for i in range(3)]
        return sum(n.v for n in nodes), [n.serial for n in nodes], Node.made

    return f


@built(graphs=2)
def store_with_slots_class():
    class A:
        __slots__ = ("a",)
        shared = 0

    def f(x):
        o = A()
        o.a = 1
        A.shared += o.a
        try:
            o.shared = 3
        except AttributeError as e:
            text = str(e)
        return x + A.shared, text

    return f


@built
def store_immutable():
    def f(x):
        try:
            int.foo = 1
        except TypeError as e:
            return x + 1, str(e)

    return f


@built(graphs=3)
def store_metaclass_setattr():
    log = []

    class Meta(type):
        def __setattr__(cls, name, value):
            log.append(name)
            super().__setattr__(name, value * 2)

    class A(metaclass=Meta):
        pass

    def f(x):
        A.k = 3
        return x * A.k, list(log)

    return f


# --- classes made inside ---


@program
def class_returned_instance(x):
    class P:
        def __init__(self, v):
            self.v = v

    p = P(x * 2)
    return p.v, type(p).__name__


@program
def class_escapes(x):
    class P:
        k = 2

    return x * P.k, P().__class__.__name__, [P.k for _ in range(2)]


@program
def class_with_operators(x):
    class V:
        def __init__(self, t):
            self.t = t

        def __add__(self, o):
            return V(self.t + o.t)

        def __eq__(self, o):
            return isinstance(o, V)

        def __hash__(self):
            return 7

        def __len__(self):
            return 3

        def __iter__(self):
            yield self.t
            yield self.t * 2

        def __getitem__(self, i):
            return self.t[i]

        def __call__(self, n):
            return self.t * n

        def __contains__(self, v):
            return v == 1

        def __getattr__(self, name):
            return name.upper()

        def __repr__(self):
            return "V!"

    v = V(x) + V(x)
    a, b = v
    return a + b + v(3), v[0], len(v), 1 in v, v.abc, f"{v}", v == V(x), {v: 1}[V(x)], hash(v)


@program
def class_with_context(x):
    class C:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, t, v, tb):
            self.log.append(t.__name__ if t else None)
            return True

    log = []
    with C(log):
        raise ValueError
    with C(log) as c:
        y = x + 1
    return y, log


@program
def class_self_reference(x):
    class Tree:
        def __init__(self, depth):
            self.kids = [Tree(depth - 1), Tree(depth - 1)] if depth else []

        def count(self):
            return 1 + sum(k.count() for k in self.kids)

        @classmethod
        def of(cls, n):
            return cls(n)

        class Inner:
            k = 4

    return x * Tree.of(3).count() + Tree.Inner.k


@program
def class_body_code(x):
    n = x.shape[0]

    class A:
        items = [i * n for i in range(3)]
        total = sum(items)
        if n > 2:
            big = True
        for i in range(2):
            last = i
        del i

        def get(self):
            return self.total

        alias = get

    return x * A().alias(), A.items, A.big, A.last, hasattr(A, "i")


@program(graphs=3, breaks=True)
def class_body_breaks(x):
    class A:
        print("inside")
        k = 3

    return x * A.k


@program(graphs=2, breaks=True)
def class_method_breaks(x):
    class A:
        def go(self, y):
            z = y * 2
            print("inside")
            return z + 1

    return A().go(x) + 1


@program
def class_with_metaclass_inside(x):
    class Meta(type):
        def __new__(mcls, name, bases, ns, **kw):
            ns["added"] = len(ns)
            cls = super().__new__(mcls, name, bases, ns)
            cls.kw = kw
            return cls

        def __call__(cls, *a):
            obj = super().__call__(*a)
            obj.tag = "made"
            return obj

    class A(metaclass=Meta, flag=1):
        k = 2

        def __init__(self, v):
            self.v = v

    a = A(x)
    return a.v * A.k, a.tag, A.kw, A.added > 0, type(A).__name__


@program
def class_with_descriptor_inside(x):
    class Doubled:
        def __set_name__(self, owner, name):
            self.key = "_" + name

        def __get__(self, obj, owner):
            return self if obj is None else getattr(obj, self.key, 1) * 2

        def __set__(self, obj, value):
            setattr(obj, self.key, value + 1)

    class A:
        field = Doubled()

    a = A()
    before = a.field
    a.field = 4
    return x * a.field, before, A.field.key, a.__dict__


@program
def class_with_cached_property(x):
    class A:
        def __init__(self, t):
            self.t = t

        @functools.cached_property
        def big(self):
            return self.t * 10

        @property
        def small(self):
            return self.t / 10

    a = A(x)
    return a.big + a.big, a.small, "big" in a.__dict__


@program
def class_exception_hierarchy(x):
    class Base(Exception):
        def __init__(self, code):
            super().__init__(code)
            self.code = code

    class Child(Base):
        pass

    out = []
    for e in (Base(1), Child(2)):
        try:
            raise e
        except Child as c:
            out.append(("child", c.code))
        except Base as b:
            out.append(("base", b.code, b.args))
    return x + len(out), out


@program
def class_derived_from_containers(x):
    class D(dict):
        def __missing__(self, k):
            return k * 2

    class L(list):
        def total(self):
            return sum(self)

    class T(tuple):
        def first(self):
            return self[0]

    d, l, t = D(a=1), L([1, 2, 3]), T((x, 2))
    return t.first() * d["ab".__len__()] + l.total(), len(l), d["a"], isinstance(t, tuple)


@program
def class_abstract_inside(x):
    import abc

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

        def double(self):
            return self.area() * 2

    class Square(Shape):
        def __init__(self, s):
            self.s = s

        def area(self):
            return self.s * self.s

    try:
        Shape()
    except TypeError as e:
        text = str(e)
    return Square(x).double(), text, isinstance(Square(x), Shape)


@program(graphs=0, breaks=True)
def class_generic_inside(x):
    import typing

    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v):
            self.v = v

    return Box(x).v + 1, Box[int](x).v + 2


@program
def class_type_three_arguments(x):
    base = type("Base", (), {"k": 2})
    child = type("Child", (base,), {"go": lambda self, y: y * self.k})
    return child().go(x), child.__mro__[1].__name__, issubclass(child, base)


@program
def class_dataclass_inside(x):
    @dataclasses.dataclass(order=True)
    class P:
        a: int
        b: list = dataclasses.field(default_factory=list)

    p, q = P(1), P(2, [3])
    return x * q.a, p < q, p == P(1), q.b


# --- text ---


@program
def exec_with_loop(x):
    space = {"y": x, "n": 3}
    exec("total = 0\nfor i in range(n):\n    total = total + y * i", space)
    return space["total"], sorted(k for k in space if not k.startswith("__"))


@program
def eval_errors(x):
    log = []
    for text in ("missing_name", "1 / 0", "[][0]"):
        try:
            eval(text)
        except Exception as e:
            log.append((type(e).__name__, str(e)))
    return x + 1, log


@program
def eval_with_locals(x):
    a = 5
    return eval("x * a + b", {"x": x, "a": a}, {"b": 1}), eval("(lambda q: q + 1)(a)")


@program
def exec_class(x):
    space = {}
    exec("class K:\n    v = 7\n    def go(self, y):\n        return y * self.v", space)
    return space["K"]().go(x)


@program
def exec_then_eval(x):
    exec("made = 11")
    return x * eval("made"), "made" in locals()


# --- identity ---


@program
def id_as_key(x):
    a, b = [1], [1]
    seen = {id(a): "a", id(b): "b"}
    return x + len(seen), seen[id(a)], id(a) == id(a), id(a) == id(b), id(a) in seen


@program
def deep_copy_own_memo(x):
    class N:
        def __init__(self):
            self.peer = None

        def __deepcopy__(self, memo):
            made = N()
            memo[id(self)] = made
            made.peer = copy.deepcopy(self.peer, memo)
            return made

    a, b = N(), N()
    a.peer, b.peer = b, a
    c = copy.deepcopy(a)
    return x + 1, c.peer.peer is c, c is a


@program
def repr_of_nested_dataclasses(x):
    return x + 1, repr(Inner(1)), repr(Outer(Inner(2), [Inner(3)]))


@dataclasses.dataclass
class Inner:
    a: int


@dataclasses.dataclass
class Outer:
    i: Inner
    l: list


# --- remembered results ---


@built
def remembered_tensor_returned():
    @functools.lru_cache
    def table(n):
        return torch.ones(n)

    def f(x):
        t = table(4)
        return t, x + t, table(4) is t

    def g(x):
        first = f(x)
        return first[1] + table(4), first[0] is table(4)

    return g


@built(breaks=True)
def remembered_tensor_written():
    @functools.cache
    def table(n):
        return torch.zeros(n)

    def f(x):
        t = table(4)
        t += 1
        return x + t

    return f


@built(graphs=2)
def remembered_and_global():
    state = {"k": 1}

    @functools.cache
    def scaled(n):
        return n * state["k"]

    def f(x):
        y = x * scaled(3)
        state["k"] += 1
        return y

    return f


# --- coroutines ---


async def add(a, b):
    return a + b


async def twice(x):
    y = await add(x, x)
    return await add(y, 1)


def drive(c):
    try:
        c.send(None)
    except StopIteration as e:
        return e.value


@program
def coroutine_chain(x):
    return drive(twice(x))


async def failing(x):
    raise ValueError("inside")


@program
def coroutine_raises(x):
    try:
        drive(failing(x))
    except ValueError as e:
        return x + 1, str(e)


class AsyncCM:
    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        self.log.append("in")
        return 3

    async def __aexit__(self, *a):
        self.log.append("out")


class AsyncIter:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


async def async_statements(x, log):
    async with AsyncCM(log) as k:
        async for i in AsyncIter(3):
            x = x + i * k
    return x


@program
def coroutine_statements(x):
    log = []
    return drive(async_statements(x, log)), log


@program
def coroutine_reused(x):
    c = add(x, 1)
    first = drive(c)
    try:
        c.send(None)
    except RuntimeError as e:
        return first, str(e)


@program
def coroutine_closed(x):
    c = add(x, 1)
    c.close()
    return x + 1


@program(graphs=0)
def coroutine_not_iterable(x):
    c = add(x, 1)
    try:
        for _ in c:
            pass
    except TypeError as e:
        text = str(e)
    c.close()
    return x, text


# --- numbers of one's own ---


class Money(int):
    def __new__(cls, v, unit="EUR"):
        self = super().__new__(cls, v)
        self.unit = unit
        return self

    def __add__(self, o):
        return Money(int(self) + int(o), self.unit)

    def __radd__(self, o):
        return Money(o + int(self), "R" + self.unit)

    def __lt__(self, o):
        return int(self) > int(o)

    def __repr__(self):
        return f"{int(self)}{self.unit}"


class Angle(float):
    def __mul__(self, o):
        return Angle(float(self) * o)

    def __eq__(self, o):
        return abs(float(self) - float(o)) < 0.5

    def __hash__(self):
        return 1


class Path(str):
    def __truediv__(self, o):
        return Path(str(self) + "/" + o)

    def __len__(self):
        return 99


@program
def own_int(x):
    m = Money(3)
    n = 4 + m
    return (
        x * m,
        m + 1,
        n.unit,
        m - 1,
        -m,
        m < 1,
        m > 1,
        m == 3,
        m * 2,
        2 * m,
        m // 2,
        7 % m,
        m**2,
        bool(Money(0)),
        f"{m} {m:03d} {m!r}",
        str(m),
        [10, 20, 30, 40][m],
        list(range(m)),
    )


@program
def own_int_in_containers(x):
    m = Money(2)
    d = {m: "m"}
    return (
        x + 1,
        d[2],
        2 in d,
        m in [1, 2],
        {m, 2},
        sorted([Money(1), Money(3), Money(2)]),
        max(Money(1), Money(5)),
        sum([Money(1), Money(2)]),
        int(m),
        float(m),
        hash(m) == hash(2),
        isinstance(m, int),
        type(m + 1).__name__,
    )


@program
def own_int_torch(x):
    m = Money(2)
    return x.sum(Money(0)), torch.zeros(m, 3).shape, x * m, m * x, m + 1, x[m], x.reshape(Money(4), 3).shape


@program
def own_float(x):
    a = Angle(1.5)
    return x * (a * 2), a == 1.7, a == 3.0, a + 1, a.is_integer(), round(a, 1), a > 1, float(a), repr(a), {a: 1}


@program
def own_text(x):
    p = Path("a") / "b"
    return (
        x + len(p),
        p.upper(),
        p == "a/b",
        p[0],
        "a" in p,
        list(p),
        p.split("/"),
        f"{p}",
        p + "c",
        type(p + "c").__name__,
        ",".join([p, "z"]),
        p.startswith("a"),
        bool(p),
        {p: 1}["a/b"],
    )


@program(graphs=0)
def own_number_returned(x):
    m = Money(5, "USD")
    m.note = [x]
    return m, Path("q") / "r"


@program(args=lambda i: [tensor(i), Money(i + 1, "U")], graphs=3)
def own_number_argument(x, m):
    return x * (m + 1), m.unit, m


# --- threads and contexts ---


LOCAL = threading.local()
VAR = contextvars.ContextVar("V", default=1)
UNSET = contextvars.ContextVar("UNSET")


@built(graphs=3)
def local_changes():
    local = threading.local()

    def f(x):
        local.a = getattr(local, "a", 0) + 1
        local.t = x
        y = x * local.a
        del local.t
        return y, hasattr(local, "t"), sorted(local.__dict__)

    return f


@program(graphs=2, breaks=True)
def local_and_break(x):
    LOCAL.b = 4
    y = x * LOCAL.b
    print("break")
    LOCAL.b += 1
    return y + LOCAL.b


@program(graphs=0, breaks=True)
def variable_and_break(x):
    t = VAR.set(5)
    y = x * VAR.get()
    print("break")
    VAR.reset(t)
    return y + VAR.get()


@built(graphs=2)
def variable_set_and_left():
    variable = contextvars.ContextVar("left", default=1)

    def f(x):
        variable.set(variable.get() + 1)
        return x * variable.get()

    return f


@program(graphs=0, breaks=True)
def variable_unset(x):
    try:
        UNSET.get()
    except LookupError:
        return x + 1, UNSET.get(7)


@program(graphs=0, breaks=True)
def attribute_errors_of_library_types(x):
    log = []
    for o in (
        collections.deque([1]),
        LOCAL,
        collections.OrderedDict(),
        collections.Counter(),
        functools.partial(len),
        Money(1),
        [],
        1,
        "a",
        collections.defaultdict(int),
    ):
        try:
            o.nothing
        except AttributeError as e:
            log.append(str(e))
    return x + 1, log


DICT_OF_CLASS = type.__dict__["__dict__"].__get__


@program
def dict_of_class_by_its_slot(x):
    class Inside:
        y = 4

    return x + DICT_OF_CLASS(Money)["__module__"].count(".") + DICT_OF_CLASS(Inside)["y"]
