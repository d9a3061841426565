# ruff: noqa
"""Hashes of special objects, objects of the program's own given to torch, numbers made of objects, enumerations, typing, named tuples, dataclasses."""

import abc
import collections
import dataclasses
import enum
import functools
import operator
import typing
from typing import Any, Generic, NamedTuple, Optional, TypeVar, Union

import torch
from tests.support.registry import built, program, tensor


class Index:
    def __init__(self, i):
        self.i = i

    def __index__(self):
        return self.i


class Number:
    def __init__(self, v):
        self.v = v

    def __float__(self):
        return float(self.v)

    def __int__(self):
        return int(self.v)

    def __bool__(self):
        return self.v != 0

    def __complex__(self):
        return complex(self.v)

    def __round__(self, n=None):
        return round(self.v, n) if n is not None else round(self.v)

    def __trunc__(self):
        return int(self.v)

    def __floor__(self):
        return int(self.v) - 1

    def __abs__(self):
        return abs(self.v)


class Op:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return o + self.v

    __radd__ = __add__

    def __mul__(self, o):
        return NotImplemented

    def __rmul__(self, o):
        return o * self.v


@program
def index_of_object(x):
    i = Index(1)
    return (
        x + [5, 6, 7][i] + (8, 9)[i] + len("abc"[: Index(2)]) + operator.index(i),
        hex(i),
        range(5)[i],
        list(range(i)),
    )


@program(breaks=True)
def float_of_object(x):
    n = Number(2.5)
    return x * float(n) + int(n), bool(n), complex(n), round(n), abs(n)


@program(graphs=3, breaks=True)
def math_of_object(x):
    import math

    n = Number(2.5)
    return x + math.sqrt(n) + math.floor(n) + math.trunc(n), math.isclose(n, 2.5)


@program(breaks=True)
def int_of_index(x):
    return x + int(Index(4)) + float(Index(2)), bin(Index(3)), bytes(Index(2)), "ab" * Index(2), [1] * Index(2)


@program(graphs=0, breaks=True)
def index_refused(x):
    out = []
    for f in (
        lambda: [1][Number(0)],
        lambda: int(object()),
        lambda: float(Op(1)),
        lambda: range(1.5),
        lambda: operator.index("a"),
    ):
        try:
            f()
        except TypeError as e:
            out.append(str(e))
    return x + len(out)


@program
def reflected_with_tensor(x):
    return x * Op(3.0)


@program
def reflected_add(x):
    return Op(3.0) + x


@program
def index_in_tensor(x):
    return x[Index(1)]


@program(graphs=0, breaks=True)
def index_as_dimension(x):
    return x.sum(Index(0))


@program(breaks=True)
def index_as_size(x):
    return torch.zeros(Index(2), 3) + x[:2, :3]


@program
def hash_of_special(x):
    h = [
        hash(v) for v in (None, Ellipsis, NotImplemented, int, len, torch.float32, True, 1.5, (1, "a"), frozenset([1]))
    ]
    return x + len(h), h[2] == hash(NotImplemented), h[3] == hash(int), hash(1) == hash(1.0)


@program
def hash_of_functions(x):
    def f():
        pass

    d = {fail: 1, f: 2, len: 3, torch.relu: 4, torch.nn.Linear: 5, Index.__index__: 6}
    return x + d[fail] + d[f] + d[len] + d[torch.relu] + d[torch.nn.Linear] + d[Index.__index__]


def fail():
    raise ValueError


@program
def hash_of_methods(x):
    i = Index(1)
    d = {i.__index__: 1}
    return x + d[i.__index__]


@program
def hash_of_objects(x):
    a, b = Index(1), Index(1)
    d = {a: 1, b: 2}
    return x + d[a] + d[b], len({a, b, a}), a == b, a != b, hash(a) == hash(a)


@program
def hash_equal_objects(x):
    class P:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            return hash(self.v)

        def __eq__(self, o):
            return self.v == o.v

    return x + {P(1): 5}[P(1)], len({P(1), P(1), P(2)}), hash(P("a")) == hash("a")


@program
def hash_of_module_parts(x):
    m = torch.nn.Linear(4, 4)
    seen = {m, m}
    d = {m.weight: 1, m.bias: 2}
    return x + len(seen) + d[m.weight]


@program
def hash_of_partial(x):
    f = functools.partial(max, 1)
    return x + {f: 4}[f] + f(3)


@program
def hash_of_devices(x):
    d = {x.device: 1, x.dtype: 2, x.layout: 3, torch.strided: 4, x.shape: 5, torch.contiguous_format: 6}
    return x + d[torch.device("cpu")] + d[torch.strided] + d[torch.Size([3, 4])] + d[torch.contiguous_format]


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"

    @property
    def short(self):
        return self.name[0]

    @classmethod
    def default(cls):
        return cls.RED


class Mode(enum.IntEnum):
    A = 1
    B = 2


class Flags(enum.Flag):
    X = enum.auto()
    Y = enum.auto()


class Kind(str, enum.Enum):
    ONE = "one"
    TWO = "two"


@program
def enum_members(x):
    c = Colour.RED
    return (
        x + c.value,
        c.name,
        c.short,
        Colour("g") is Colour.GREEN,
        Colour["RED"] is c,
        [m.name for m in Colour],
        len(Colour),
        c in Colour,
        Colour.default() is c,
        repr(c),
        str(c),
    )


@program
def enum_as_key(x):
    d = {Colour.RED: 1, Colour.GREEN: 2}
    return (
        x + d[Colour.GREEN],
        hash(Colour.RED) == hash(Colour.RED),
        Colour.RED == Colour.RED,
        Colour.RED != Colour.GREEN,
    )


@program
def enum_int(x):
    return x + Mode.A + Mode.B * 2, Mode(2) is Mode.B, Mode.A < Mode.B, [1, 2, 3][Mode.A], x.sum(Mode.A)


@program
def enum_flags(x):
    f = Flags.X | Flags.Y
    return x + f.value, Flags.X in f, bool(Flags.X & Flags.Y), (f & ~Flags.X) is Flags.Y


@program
def enum_str(x):
    return x + 1, Kind.ONE == "one", Kind("two").value, {"one": 5}[Kind.ONE], Kind.ONE.upper(), f"{Kind.ONE.value}"


@program
def enum_refused(x):
    try:
        Colour(99)
    except ValueError as e:
        return x + 1, str(e)


@program(graphs=3, breaks=True)
def enum_made_inside(x):
    class Local(enum.Enum):
        A = 1
        B = 2

    return x + Local.A.value, Local(2).name, [m.name for m in Local]


@program
def enum_made_by_call(x):
    E = enum.Enum("E", "A B")
    return x + E.A.value + E["B"].value


@program
def enum_members_table(x):
    return x + 1, list(Colour.__members__), Colour.__members__["RED"] is Colour.RED


@program
def enum_matched(x):
    match Mode.B:
        case Mode.A:
            return x
        case Mode.B:
            return x + 2


class Pair(NamedTuple):
    a: Any
    b: int = 2

    def total(self):
        return self.a + self.b


@program
def named_tuple(x):
    p = Pair(x)
    q = p._replace(b=5)
    return q.total() + p.b, q._fields, p._asdict()["b"], Pair._make([1, 2]), Pair._field_defaults


@program(graphs=3, breaks=True)
def named_tuple_inside(x):
    class Local(NamedTuple):
        a: int
        b: int = 3

    l = Local(1)
    return x + l.a + l.b, l == (1, 3), l._fields


@program
def named_tuple_by_function(x):
    P = collections.namedtuple("P", "a b", defaults=[4])
    p = P(1)
    return x + p.a + p.b, P._fields, p._replace(a=2).a, p._asdict()


@program(graphs=0, breaks=True)
def named_tuple_typed_by_call(x):
    P = NamedTuple("P", [("a", int), ("b", int)])
    return x + P(1, 2).b


T = TypeVar("T")


class Box(Generic[T]):
    def __init__(self, v: T):
        self.v = v

    def get(self) -> T:
        return self.v


class Items:
    def __class_getitem__(cls, k):
        return (cls.__name__, k)


@program
def generic_class(x):
    b = Box[int](3)
    return x + b.get() + Box(2).v


@program
def generic_alias(x):
    a = list[int]
    return (
        x + len(a([1, 2])),
        a.__origin__ is list,
        typing.get_args(dict[str, int]),
        typing.get_origin(Optional[int]) is Union,
    )


@program
def class_getitem(x):
    return x + 1, Items[3], Items["a", "b"]


@program
def typing_casts(x):
    y = typing.cast(int, 3)
    z: Optional[int] = None
    return x + y, typing.get_type_hints(Pair.total), isinstance(3, int | str)


@program
def typed_dict(x):
    class D(typing.TypedDict):
        a: int

    return x + D(a=1)["a"]


class Shown(typing.Protocol):
    def show(self): ...


@typing.runtime_checkable
class Sized(typing.Protocol):
    def __len__(self): ...


@program
def protocol_checks(x):
    return x + isinstance([], Sized) + isinstance(3, Sized)


@dataclasses.dataclass
class Config:
    a: int = 1
    b: list = dataclasses.field(default_factory=list)
    c: float = dataclasses.field(default=2.0, repr=False, compare=False)
    d: int = dataclasses.field(init=False)

    def __post_init__(self):
        self.d = self.a * 2


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: str = "x"


@dataclasses.dataclass(slots=True)
class Slots:
    a: Any
    b: int = 1


@program
def dataclass_made(x):
    c = Config(3)
    c.b.append(x)
    return c.b[0] + c.d, repr(Config(1)), Config(1) == Config(1, c=5.0), [f.name for f in dataclasses.fields(c)]


@program
def dataclass_helpers(x):
    c = Config(3, [1])
    return (
        x + dataclasses.replace(Frozen(1), a=2).a,
        dataclasses.asdict(c),
        dataclasses.astuple(Frozen(1)),
        dataclasses.is_dataclass(c),
    )


@program
def dataclass_frozen(x):
    f = Frozen(1)
    try:
        f.a = 2
    except dataclasses.FrozenInstanceError as e:
        return x + {f: 3}[Frozen(1)], f < Frozen(2), str(e), hash(f) == hash(Frozen(1))


@program
def dataclass_slots(x):
    s = Slots(x)
    s.b += 1
    return s.a + s.b, s == Slots(s.a, 2)


@program
def dataclass_inside(x):
    @dataclasses.dataclass
    class Local:
        a: int
        b: int = 2

    return x + Local(1).a + Local(1).b


@program
def dataclass_fields_loop(x):
    c = Frozen(4, "y")
    for f in dataclasses.fields(c):
        v = getattr(c, f.name)
        if f.type in (int, "int") or isinstance(v, int):
            x = x + v
    return x, dataclasses.fields(Frozen)[1].default


class Scale:
    """Given to torch as it is."""

    def __init__(self, t):
        self.t = t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*[a.t if isinstance(a, Scale) else a for a in args], **(kwargs or {}))


@program
def own_object_to_torch(x):
    return torch.add(Scale(x), 2) + torch.relu(Scale(x))


@program
def abstract_class(x):
    class Base(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

    class Below(Base):
        def f(self):
            return 3

    try:
        Base()
    except TypeError:
        x = x + 1
    return x + Below().f()


@program
def metaclass_inside(x):
    class Meta(type):
        def __getitem__(cls, k):
            return k + 1

        def __len__(cls):
            return 4

    class C(metaclass=Meta):
        pass

    return x + C[1] + len(C)


@program(graphs=0, breaks=True)
def object_to_size(x):
    return x.view(Index(4), Index(3)) if hasattr(x, "view") else x


@program
def format_of_objects(x):
    class F:
        def __format__(self, spec):
            return f"<{spec}>"

        def __str__(self):
            return "s"

    return x + 1, f"{F():>3}", f"{F()!s}", "{:a}".format(F()), "%s" % F(), format(F(), "q")


@program(graphs=3, breaks=True)
def sum_and_sorted_of_objects(x):
    @functools.total_ordering
    class V:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            return self.v < o.v

        def __eq__(self, o):
            return self.v == o.v

    s = sorted([V(3), V(1), V(2)])
    return x + s[0].v, max(s).v, V(1) >= V(1), min(s, key=lambda v: -v.v).v
