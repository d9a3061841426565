# ruff: noqa
"""Classes: special methods, descriptors, dataclasses, enumerations, metaclasses; objects made inside and given from outside."""

import abc
import copy
import dataclasses
import enum
import functools
import typing
import weakref

import torch
from tests.support.registry import built, program, tensor


class Vec:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return Vec(self.v + (o.v if isinstance(o, Vec) else o))

    def __radd__(self, o):
        return Vec(o + self.v)

    def __sub__(self, o):
        return Vec(self.v - o.v)

    def __rsub__(self, o):
        return Vec(o - self.v)

    def __mul__(self, o):
        return Vec(self.v * o)

    __rmul__ = __mul__

    def __matmul__(self, o):
        return self.v @ o.v.t()

    def __truediv__(self, o):
        return Vec(self.v / o)

    def __floordiv__(self, o):
        return "floordiv"

    def __mod__(self, o):
        return "mod"

    def __pow__(self, o):
        return Vec(self.v**o)

    def __neg__(self):
        return Vec(-self.v)

    def __pos__(self):
        return self

    def __invert__(self):
        return "inv"

    def __abs__(self):
        return Vec(self.v.abs())

    def __iadd__(self, o):
        self.v = self.v + o
        return self

    def __and__(self, o):
        return "and"

    def __or__(self, o):
        return "or"

    def __xor__(self, o):
        return "xor"

    def __lshift__(self, o):
        return "lshift"

    def __rshift__(self, o):
        return "rshift"

    def __divmod__(self, o):
        return (1, 2)

    def __round__(self, n=None):
        return 5

    def __int__(self):
        return 3

    def __float__(self):
        return 2.5

    def __index__(self):
        return 1

    def __bool__(self):
        return False

    def __len__(self):
        return 7

    def __contains__(self, k):
        return k == 3

    def __getitem__(self, k):
        return self.v[k]

    def __setitem__(self, k, v):
        self.last = (k, v)

    def __delitem__(self, k):
        self.deleted = k

    def __call__(self, a, b=1):
        return self.v * a + b

    def __eq__(self, o):
        return isinstance(o, Vec)

    def __hash__(self):
        return 11

    def __lt__(self, o):
        return True

    def __le__(self, o):
        return False

    def __repr__(self):
        return "Vec()"

    def __str__(self):
        return "vec"

    def __format__(self, spec):
        return "fmt" + spec

    def __iter__(self):
        return iter([1, 2])

    def __reversed__(self):
        return iter([2, 1])


@program
def operators_binary(x):
    a, b = Vec(x), Vec(x + 1)
    c = a + b - a
    d = 2 + a
    e = a * 3 + 1
    f = 3 * a
    return c.v + d.v + e.v + f.v + (a @ b).sum() + (a / 2).v + (a**2).v + (10 - a).v


@program
def operators_tensor_on_the_left(x):
    return (x + Vec(x)).v


@program(graphs=0)
def operators_more(x):
    a = Vec(x)
    return x, a // 1, a % 2, a & 1, a | 1, a ^ 1, a << 1, a >> 1, ~a, divmod(a, 2), round(a), (+a) is a


@program
def operators_unary(x):
    return (-Vec(x)).v + abs(Vec(x)).v


@program
def operators_in_place(x):
    a = Vec(x)
    b = a
    a += 5
    a *= 2
    return a.v + b.v


@program
def conversions(x):
    a = Vec(x)
    return (
        x + int(a) + float(a) + [10, 20][a] + bool(a) + len(a) + len(range(a)),
        str(a),
        repr(a),
        f"{a:>3}",
        f"{a}",
        "%s" % a if False else str(a),
    )


@program
def containers_protocol(x):
    a = Vec(x)
    a[0] = 5
    del a[2]
    return x + (3 in a) + (4 in a) + a[0], a.last, a.deleted, list(a), list(reversed(a)), [*a]


@program
def call_protocol(x):
    return Vec(x)(2) + Vec(x)(3, b=4)


@program
def comparison_protocol(x):
    a, b = Vec(x), Vec(x)
    return x + (a == b) + (a != b) + (a < b) + (a <= b) + (a > b) + (a == 3), a is b


@program
def hash_protocol(x):
    a, b = Vec(x), Vec(x + 1)
    d = {a: 1}
    d[b] = 2
    return x + d[a] + len(d) + hash(a) + len({a, b})


@program
def truth_protocol(x):
    if Vec(x):
        return x
    return x + 1


@program(args=lambda i: [Vec(tensor(i))])
def object_argument(a):
    a.v = a.v + 1
    a.extra = 3
    return a.v * a.extra + a(2)


class Tracked:
    count = 0
    registry = {}

    def __init__(self, **kw):
        for k, v in kw.items():
            setattr(self, k, v)


@program
def dynamic_attributes(x):
    t = Tracked(a=1, b=x)
    setattr(t, "c", 5)
    n = getattr(t, "c") + getattr(t, "zz", 7)
    delattr(t, "a")
    return t.b + n, hasattr(t, "a"), sorted(vars(t)), t.__dict__["c"]


@program
def class_attribute_read(x):
    t = Tracked()
    t.count += 1
    return x + t.count + Tracked.count + len(Tracked.registry)


@built(graphs=2)
def class_attribute_write():
    class K:
        n = 0

    def f(x):
        K.n += 1
        return x + 1

    return f


class Guarded:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, k, v):
        self.log.append(k)
        object.__setattr__(self, k, v)

    def __getattr__(self, k):
        if k.startswith("auto_"):
            return len(k)
        raise AttributeError(k)

    def __delattr__(self, k):
        self.log.append("del " + k)
        object.__delattr__(self, k)


@program
def attribute_hooks(x):
    g = Guarded()
    g.a = 1
    del g.a
    return x + g.auto_abc + hasattr(g, "nope"), g.log


class Watching:
    def __init__(self):
        self.a = 5

    def __getattribute__(self, k):
        v = object.__getattribute__(self, k)
        return v * 2 if k == "a" else v


@program
def getattribute(x):
    return x + Watching().a


class Temperature:
    def __init__(self, c):
        self._c = c

    @property
    def f(self):
        return self._c * 1.8 + 32

    @f.setter
    def f(self, v):
        self._c = (v - 32) / 1.8

    @f.deleter
    def f(self):
        self._c = 0

    @classmethod
    def zero(cls):
        return cls(0)

    @staticmethod
    def twice(v):
        return v * 2

    @functools.cached_property
    def slow(self):
        return self._c + 100


@program
def properties(x):
    t = Temperature(x)
    a = t.f
    t.f = a + 1
    b = t.f
    z = Temperature.zero()
    z.f = 50
    del z.f
    return a + b + z._c, Temperature.twice(3), t.twice(4), type(t).zero()._c


@program
def cached_property(x):
    t = Temperature(x)
    return t.slow + t.slow, "slow" in t.__dict__, t.slow is t.slow


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name, 0)

    def __set__(self, obj, value):
        if value < 0:
            raise ValueError("negative")
        setattr(obj, self.name, value)


class Account:
    balance = Positive()

    def __init__(self, b):
        self.balance = b


@program
def descriptors(x):
    a = Account(5)
    a.balance = a.balance + 1
    try:
        a.balance = -1
    except ValueError:
        a.balance += 10
    return x + a.balance


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@program
def slots(x):
    s = Slotted(x)
    s.b = 2
    s.a = s.a + s.b
    try:
        s.c = 1
    except AttributeError:
        s.b = 9
    del s.b
    return s.a, hasattr(s, "b")


@program(args=lambda i: [Slotted(tensor(i))])
def slots_argument(s):
    s.b = s.a * 2
    s.a = s.b + 1
    return s.a


class Base:
    kind = "base"

    def __init__(self, n):
        self.n = n

    def go(self, x):
        return x + self.n

    @classmethod
    def make(cls, n):
        return cls(n)

    def __init_subclass__(cls, **kw):
        cls.subclassed = True


class Mid(Base):
    def go(self, x):
        return super().go(x) * 2


class Other(Base):
    def go(self, x):
        return super().go(x) - 5


class Leaf(Mid, Other):
    kind = "leaf"

    def __init__(self, n):
        super().__init__(n + 1)

    def go(self, x):
        return super(Leaf, self).go(x) + 100


@program
def inheritance(x):
    l = Leaf.make(2)
    return (
        l.go(x),
        l.kind,
        Leaf.__mro__[1] is Mid,
        isinstance(l, Base),
        issubclass(Leaf, Other),
        Leaf.subclassed,
        Leaf.__name__,
        type(l).__bases__[0] is Mid,
    )


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    @property
    @abc.abstractmethod
    def name(self): ...


class Square(Shape):
    def __init__(self, s):
        self.s = s

    def area(self):
        return self.s**2

    @property
    def name(self):
        return "square"


@program
def abstract_classes(x):
    try:
        Shape()
    except TypeError:
        x = x + 1
    s = Square(3)
    return x * s.area(), s.name, isinstance(s, Shape)


@dataclasses.dataclass
class Point:
    a: int
    b: typing.Any = 2
    c: list = dataclasses.field(default_factory=list)
    d: int = dataclasses.field(init=False, default=4)

    def __post_init__(self):
        self.e = self.a if isinstance(self.a, int) else 0


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 5


@dataclasses.dataclass(slots=True, kw_only=True)
class Keyed:
    a: int
    b: int = 3


@program
def dataclass_basic(x):
    p = Point(1, b=x)
    p.c.append(3)
    p.a += 1
    return p.b * p.a + p.d + p.e + len(p.c), p.c


@program
def dataclass_frozen(x):
    f = Frozen(1)
    try:
        f.a = 3
    except dataclasses.FrozenInstanceError:
        x = x + 1
    return x + f.b + (f == Frozen(1)) + (f < Frozen(2)) + (hash(f) == hash(Frozen(1))), {f: 1}[f]


@program
def dataclass_functions(x):
    p = Point(1, 7)
    q = dataclasses.replace(p, b=9) if False else Point(1, 9)
    return (
        x + len(dataclasses.fields(p)) + dataclasses.is_dataclass(p),
        dataclasses.asdict(p),
        dataclasses.astuple(p),
        p == q,
    )


@program
def dataclass_replace(x):
    f = dataclasses.replace(Frozen(1), b=7)
    return x + f.b


@program(graphs=0)
def dataclass_repr(x):
    return x, repr(Frozen(1)), str(Frozen(2))


@program
def dataclass_slots(x):
    k = Keyed(a=2)
    k.b += 1
    return x + k.a + k.b


@program(args=lambda i: [Point(2, tensor(i))])
def dataclass_argument(p):
    p.b = p.b + p.a
    return p.b * 2


@program(args=lambda i: [Frozen(2), tensor(i)])
def dataclass_frozen_argument(f, x):
    return x + f.a * f.b, dataclasses.replace(f, a=9)


@program(graphs=0)
def dataclass_returned(x):
    return Point(1, x), Frozen(3)


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def pretty(self):
        return self.name.lower()

    @classmethod
    def default(cls):
        return cls.GREEN


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Perm(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    RW = R | W


class Mode(str, enum.Enum):
    FAST = "fast"


@program
def enum_basic(x):
    c = Color.RED
    return (
        x
        + c.value
        + (c is Color.RED)
        + (c == Color.GREEN)
        + (Color(2) is Color.GREEN)
        + Color["RED"].value
        + len(Color),
        c.name,
        c.pretty,
        Color.default(),
        [k.name for k in Color],
        c in Color,
        isinstance(c, Color),
    )


@program
def enum_int_flag(x):
    p = Perm.R | Perm.W
    return (
        x * Level.HIGH + Level.LOW + (Level.HIGH > 3) + (p == Perm.RW) + bool(Perm.R & p) + (Perm.R in p),
        p,
        Level(10),
    )


@program
def enum_str(x):
    return x + (Mode.FAST == "fast") + len(Mode.FAST.value) + Mode.FAST.startswith("f"), {Mode.FAST: 1}["fast"]


@program(args=lambda i: [tensor(i), Color.GREEN if i % 2 else Color.RED], graphs=2)
def enum_argument(x, c):
    if c == Color.RED:
        return x + 1
    return x - 1


@program
def enum_dict_key(x):
    return x + {Color.RED: 1, Color.GREEN: 2}[Color.GREEN]


class Typed(typing.NamedTuple):
    a: int
    b: str = "x"

    def size(self):
        return self.a + len(self.b)


@program
def typing_named_tuple(x):
    t = Typed(2)
    return x + t.a + t.size(), t, t._replace(b="zz"), Typed._fields


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, v: T):
        self.v = v


@program
def typing_generics(x):
    b = Box[int](3)
    c = Box(x)
    return c.v + b.v + typing.cast(int, 5), isinstance(b, Box)


class Proto(typing.Protocol):
    def go(self): ...


@typing.runtime_checkable
class HasGo(typing.Protocol):
    def go(self, x): ...


@program
def typing_protocol(x):
    return x + isinstance(Mid(1), HasGo) + isinstance(3, HasGo)


class TD(typing.TypedDict):
    a: int


@program
def typing_typed_dict(x):
    d: TD = TD(a=1)
    return x + d["a"], d


class Meta(type):
    def __call__(cls, *a, **k):
        o = super().__call__(*a, **k)
        o.tagged = True
        return o

    def __getitem__(cls, k):
        return k * 2

    def __len__(cls):
        return 5

    @property
    def label(cls):
        return "L" + cls.__name__


class WithMeta(metaclass=Meta):
    def __init__(self, a):
        self.a = a


@program
def metaclass(x):
    o = WithMeta(3)
    return x + o.a + o.tagged + WithMeta[4] + len(WithMeta), WithMeta.label


class Singleton:
    _one = None

    def __new__(cls, *a):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one


class WithNew:
    def __new__(cls, n):
        o = object.__new__(cls)
        o.n = n * 2
        return o

    def __init__(self, n):
        self.m = n


@program
def new_method(x):
    w = WithNew(3)
    return x + w.n + w.m


@program
def class_inside(x):
    class A:
        k = 2

        def __init__(self, v):
            self.v = v

        def go(self):
            return self.v * self.k

    return A(x).go()


@program(graphs=3, breaks=True)
def class_inside_inherits(x):
    class A(Base):
        def go(self, v):
            return super().go(v) + 1

    return A(2).go(x)


@program
def dataclass_inside(x):
    @dataclasses.dataclass
    class P:
        a: int
        b: int = 2

    return x + P(1).b


@program(graphs=3, breaks=True)
def type_call_three(x):
    A = type("A", (Base,), {"k": 3})
    return x + A(1).k


@program
def type_queries(x):
    return (
        x
        + (type(x) is torch.Tensor)
        + (type(3) is int)
        + (type([]) == list)
        + isinstance(x, torch.Tensor)
        + isinstance(True, int)
        + isinstance(3, (str, int))
        + issubclass(bool, int)
        + isinstance(3, int | str),
        type(x).__name__,
        (3).__class__,
        type(None),
    )


@program
def isinstance_abc(x):
    from collections.abc import Callable, Iterable, Mapping, Sequence

    return (
        x
        + isinstance([], Sequence)
        + isinstance({}, Mapping)
        + isinstance("a", Iterable)
        + isinstance(len, Callable)
        + isinstance(x, Iterable)
    )


@program
def dir_and_vars(x):
    t = Tracked(a=1, b=2)
    return x + len(vars(t)) + ("a" in dir(t)) + ("count" in dir(t))


@program
def callable_forms(x):
    return x + callable(len) + callable(Vec) + callable(Vec(x)) + callable(3) + callable(lambda: 0) + callable(x)


@program
def bound_methods(x):
    m = Mid(1)
    f = m.go
    g = Base.go
    return f(x) + g(m, x), f.__self__ is m, f.__func__ is Mid.go, f.__name__, f == m.go


@program
def method_stored(x):
    m = Mid(2)
    m.alias = m.go
    return m.alias(x)


@program(graphs=3)
def id_compare(x):
    y = x
    return x + (id(x) == id(y))


@program
def copy_shallow(x):
    t = Tracked(a=[1], b=x)
    u = copy.copy(t)
    u.a.append(2)
    return u.b + len(t.a), copy.copy([1, 2]), copy.copy({"a": 1})


@program
def copy_deep(x):
    d = {"a": [1, {"b": 2}], "t": (1, [2])}
    e = copy.deepcopy(d)
    e["a"][1]["b"] = 5
    e["t"][1].append(3)
    return x + d["a"][1]["b"], e, d


@program
def copy_deep_object(x):
    t = Tracked(a=[1], k=2)
    u = copy.deepcopy(t)
    u.a.append(5)
    return x + len(t.a) + len(u.a)


@program(breaks=True)
def copy_deep_tensor(x):
    return copy.deepcopy(x) + 1


@program
def weak_references(x):
    t = Tracked(a=3)
    r = weakref.ref(t)
    return x + r().a, r() is t


KEPT = Tracked(a=4)
WEAK = weakref.ref(KEPT)


@program
def weak_reference_outside(x):
    return x + WEAK().a


@program(graphs=0, breaks=True)
def weak_dictionary(x):
    d = weakref.WeakKeyDictionary()
    t = Tracked()
    d[t] = 5
    return x + d[t]


class Visitor:
    def visit(self, node):
        return getattr(self, "visit_" + type(node).__name__, self.generic)(node)

    def visit_int(self, node):
        return node

    def visit_list(self, node):
        return sum(self.visit(n) for n in node)

    def generic(self, node):
        return 100


@program
def visitor_pattern(x):
    return x + Visitor().visit([1, [2, 3], "a"])


class Chain:
    def __init__(self):
        self.steps = []

    def add(self, f):
        self.steps.append(f)
        return self

    def run(self, x):
        for s in self.steps:
            x = s(x)
        return x


@program
def fluent(x):
    return Chain().add(torch.sin).add(lambda v: v * 2).add(torch.nn.functional.relu).run(x)


class Config(dict):
    def __getattr__(self, k):
        try:
            return self[k]
        except KeyError:
            raise AttributeError(k)

    def __setattr__(self, k, v):
        self[k] = v


@program
def dict_with_attributes(x):
    c = Config(a=1)
    c.b = 2
    return x + c.a + c.b + hasattr(c, "zz")


@program
def user_eq_in_list(x):
    return x + (Frozen(1) in [Frozen(1)]) + [Frozen(2), Frozen(1)].index(Frozen(1)) + [Frozen(1)].count(Frozen(1))


@program
def int_subclass(x):
    class_ = Level.HIGH
    return x + (class_ + 1) + class_ // 3


class MyInt(int):
    def double(self):
        return self * 2


class MyStr(str):
    def shout(self):
        return self.upper() + "!"


@program
def builtin_subclasses(x):
    return x + MyInt(3).double() + MyInt(4), MyStr("a").shout()


@program(args=lambda i: [tensor(i), MyInt(5)], graphs=3)
def int_subclass_argument(x, n):
    return x + n.double()


class Lazy:
    def __init__(self, f):
        self.f = f

    def __get__(self, obj, owner):
        v = self.f(obj)
        obj.__dict__[self.f.__name__] = v
        return v


class HasLazy:
    @Lazy
    def value(self):
        return 42


@program
def non_data_descriptor(x):
    h = HasLazy()
    return x + h.value + h.value + len(h.__dict__)


class Counter:
    def __init__(self):
        self.n = 0

    def step(self, x):
        self.n += 1
        return x + self.n


@built(graphs=2)
def method_with_state():
    return Counter().step


@built
def callable_object():
    class C:
        def __init__(self):
            self.k = 2

        def __call__(self, x):
            return x * self.k

    return C()


@program(graphs=0)
def del_method(x):
    class D:
        def __del__(self):
            pass

    return x


@program(graphs=0)
def str_of_class(x):
    return x, Vec.__name__, Vec.__module__ == __name__, Vec.__qualname__, str(int)


@program
def super_setattr(x):
    g = Guarded()
    g.v = x
    return g.v + len(g.log)


class Shown(enum.Enum):
    A = 1
    B = 2

    def __str__(self):
        return f"<{self.value}>"

    def __bool__(self):
        return self.value == 2


class Named(enum.StrEnum):
    X = "x"


@program
def enum_text(x):
    return (
        x + bool(Shown.A) + bool(Shown.B),
        str(Shown.A),
        repr(Color.RED),
        f"{Shown.B}",
        f"{Color.RED}",
        str(Level.LOW),
        f"{Level.LOW:>3}",
        str(Named.X),
        f"{Named.X}",
        "%s" % Shown.A,
        [Shown.A],
        str(Perm.R | Perm.W),
    )
