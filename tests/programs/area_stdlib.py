# ruff: noqa
"""The library reference: functools, itertools, contextlib, enum, collections, dataclasses, typing, contextvars; numbers, text, sets, dictionaries."""

import cmath
import collections
import collections.abc
import contextlib
import contextvars
import dataclasses
import decimal
import enum
import fractions
import functools
import heapq
import bisect
import io
import itertools
import math
import operator
import string
import re
import typing

import torch
from tests.support.registry import built, program, tensor


# --- functools ---


@functools.lru_cache(maxsize=None)
def cached_number(n):
    return n * 2


@functools.cache
def cached_tuple(n):
    return (n, n + 1)


@program
def cache_of_numbers(x):
    return x * cached_number(3) + cached_number(3), cached_tuple(1)


@built
def cache_of_tensors():
    @functools.lru_cache
    def table(n):
        return torch.arange(n, dtype=torch.float32)

    def f(x):
        return x + table(4), table(4) is table(4)

    return f


@built(graphs=3)
def cache_of_lists():
    @functools.cache
    def made(n):
        return [n]

    def f(x):
        made(1).append(5)
        return x * len(made(1))

    return f


@built(graphs=2, breaks=True)
def cache_with_effects():
    log = []

    @functools.lru_cache(2)
    def made(n):
        log.append(n)
        return n + 1

    def f(x):
        return x * made(1) + made(1), list(log)

    return f


@built(breaks=True)
def cache_info_and_clear():
    @functools.cache
    def made(n):
        return n + 1

    def f(x):
        a = made(1)
        info = made.cache_info()
        made.cache_clear()
        return x * a, info.hits + info.misses > 0

    return f


@program
def reduce_forms(x):
    return (
        functools.reduce(lambda a, b: a + b, [x, x, x]),
        functools.reduce(operator.mul, [2, 3], 4),
        functools.reduce(max, (3, 9, 2)),
    )


@program(graphs=0)
def reduce_empty(x):
    try:
        functools.reduce(operator.add, [])
    except TypeError as e:
        return x, str(e)


@program
def partial_forms(x):
    p = functools.partial(torch.add, x, alpha=2)
    q = functools.partial(p, 1)
    return p(3), q(), p.func is torch.add, p.args[0] is x, p.keywords


@program
def wraps_forms(x):
    def deco(f):
        @functools.wraps(f)
        def w(*a):
            "wrapper doc"
            return f(*a)

        return w

    @deco
    def named(y):
        "named doc"
        return y * 2

    return named(x), named.__name__, named.__doc__, named.__wrapped__.__name__


@program
def cmp_to_key_sort(x):
    return x + 1, sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))


# --- itertools ---


@program
def itertools_infinite(x):
    c = itertools.count(2, 3)
    cy = itertools.cycle("ab")
    return (
        x * next(c),
        next(c),
        [next(cy) for _ in range(3)],
        list(itertools.repeat(7, 2)),
        list(itertools.islice(itertools.count(), 1, 8, 3)),
    )


@program
def itertools_combine(x):
    return (
        x + 1,
        list(itertools.chain([1], (2, 3), "a")),
        list(itertools.chain.from_iterable([[1], [2, 3]])),
        list(itertools.product([1, 2], "ab")),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        list(itertools.combinations("abc", 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
        list(itertools.zip_longest([1, 2], [3], fillvalue=0)),
        list(itertools.pairwise([1, 2, 3])),
    )


@program
def itertools_filter(x):
    return (
        x + 1,
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.accumulate([1, 2, 3], operator.mul, initial=2)),
        list(itertools.compress("abcd", [1, 0, 1, 0])),
        list(itertools.dropwhile(lambda v: v < 2, [1, 2, 1])),
        list(itertools.takewhile(lambda v: v < 2, [1, 2, 1])),
        list(itertools.filterfalse(lambda v: v % 2, range(4))),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 1])],
        [(k, len(list(g))) for k, g in itertools.groupby("aAbB", key=str.lower)],
    )


@program
def itertools_tee(x):
    a, b = itertools.tee([1, 2, 3])
    next(a)
    return x * next(b), list(a), list(b)


@program
def itertools_tensors(x):
    parts = list(itertools.accumulate([x, x, x]))
    return (
        parts[-1],
        sum(a * b for a, b in itertools.combinations([x, x + 1, x + 2], 2)),
        list(itertools.starmap(torch.add, [(x, 1), (x, 2)])),
    )


# --- builtins over iterables ---


@program
def builtin_iterables(x):
    return (
        x + 1,
        list(zip([1, 2], "ab", strict=True)),
        list(enumerate("ab", start=3)),
        sum([1, 2], start=10),
        sum([[1], [2]], []),
        min([], default="d"),
        max("abc", "b", key=len),
        min((3, 1), (2, 5)),
        max([1, 5, 3], key=lambda v: -v),
        list(map(lambda a, b: a + b, [1, 2], [3, 4, 5])),
        list(filter(None, [0, 1, "", "a"])),
        any([]),
        all([]),
        list(reversed(range(3))),
        sorted(["b", "A", "c"], key=str.lower, reverse=True),
        sorted([(1, "b"), (0, "z"), (1, "a")], key=lambda p: p[0]),
        divmod(-7, 3),
        pow(3, -1, 7),
        round(2.5),
        round(-1.25, 1),
        abs(-3 + 4j),
    )


@program(graphs=0)
def zip_strict_error(x):
    log = []
    for a, b in (([1], [1, 2]), ([1, 2], [1])):
        try:
            list(zip(a, b, strict=True))
        except ValueError as e:
            log.append(str(e))
    return x, log


@program
def iter_forms(x):
    it = iter([3, 2, 1, 0, 5])
    vals = list(iter(lambda: next(it), 0))
    d = iter({"a": 1})
    return x + 1, vals, next(d), next(d, None), list(iter(range(2)))


@program
def sum_of_tensors(x):
    return sum([x, x + 1], start=torch.zeros_like(x)), sum(x), max([x.sum(), x.sum() * 0], key=lambda t: t.dim()).shape


# --- contextlib ---


class Closing:
    def __init__(self, log):
        self.log = log

    def close(self):
        self.log.append("close")


@program
def contextlib_closing(x):
    log = []
    with contextlib.closing(Closing(log)) as c:
        log.append("in")
    return x + len(log), log


@program
def contextlib_exit_stack(x):
    log = []

    @contextlib.contextmanager
    def cm(n):
        log.append(("in", n))
        try:
            yield n
        finally:
            log.append(("out", n))

    with contextlib.ExitStack() as s:
        a = s.enter_context(cm(1))
        s.push(lambda t, v, tb: log.append(t.__name__) or True)
        s.callback(lambda *p, **k: log.append((p, k)), 1, k=2)
        raise ValueError
    with contextlib.ExitStack() as s:
        s.enter_context(cm(2))
        kept = s.pop_all()
    log.append("after")
    kept.close()
    return x + a, log


@program
def contextlib_decorator(x):
    log = []

    @contextlib.contextmanager
    def cm():
        log.append("in")
        yield
        log.append("out")

    @cm()
    def f(y):
        return y * 2

    return f(x), f(x), log


class Deco(contextlib.ContextDecorator):
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("e")

    def __exit__(self, *a):
        self.log.append("x")


@program
def contextlib_class_decorator(x):
    log = []

    @Deco(log)
    def f(y):
        return y + 1

    return f(x), log


@program(breaks=True)
def contextlib_redirect(x):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("hello")
    return x + 1, out.getvalue()


VAR = contextvars.ContextVar("VAR", default=3)


@program
def context_variable(x):
    a = VAR.get()
    token = VAR.set(5)
    b = VAR.get()
    VAR.reset(token)
    return x * b + a, VAR.get()


# --- enum ---


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1

    def describe(self):
        return f"{self.name}:{self.value}"

    @classmethod
    def first(cls):
        return cls.RED

    @property
    def double(self):
        return self.value * 2

    @classmethod
    def _missing_(cls, value):
        return cls.GREEN if value == "g" else None


class Perm(enum.Flag):
    R = 4
    W = 2
    X = 1
    RW = R | W


class Num(enum.IntEnum):
    ONE = 1
    TWO = 2


class Auto(enum.Enum):
    A = enum.auto()
    B = enum.auto()


class Text(enum.StrEnum):
    HELLO = enum.auto()


class IFlag(enum.IntFlag):
    A = 1
    B = 2


@program
def enum_basic(x):
    return (
        x * Color.GREEN.double,
        Color.RED.describe(),
        Color.CRIMSON is Color.RED,
        Color["GREEN"],
        Color.first(),
        [c.name for c in Color],
        len(Color),
        Color.RED in Color,
        str(Color.RED),
        repr(Color.RED),
        Color.RED == 1,
    )


@program(graphs=0, breaks=True)
def enum_missing(x):
    try:
        Color(77)
    except ValueError as e:
        text = str(e)
    return x + 1, Color("g"), text, Color(1)


@program
def enum_flags(x):
    p = Perm.R | Perm.W
    return (
        x + 1,
        p == Perm.RW,
        Perm.R in p,
        (p & Perm.W).name,
        ~Perm.R,
        bool(p & Perm.X),
        p ^ Perm.R,
        [m.name for m in p],
        len(p),
        p.value,
        Perm(5),
        IFlag.A | 2,
        IFlag.A + 1,
    )


@program
def enum_numbers(x):
    return (
        x * Num.TWO,
        Num.ONE + 1,
        Num.ONE < Num.TWO,
        [1, 2, 3][Num.ONE],
        Auto.B.value,
        Text.HELLO.upper(),
        Text.HELLO == "hello",
        f"{Num.ONE}",
        {Num.ONE: "a"}[1],
    )


@program
def enum_members(x):
    return (
        x + 1,
        list(Color.__members__),
        {c: c.value for c in Color},
        sorted(Color, key=lambda c: -c.value),
        isinstance(Color.RED, Color),
        hash(Color.RED) == hash(Color.RED),
        Color.RED != Color.GREEN,
    )


@program(args=lambda i: [tensor(i), list(Color)[i % 2]])
def enum_argument(x, c):
    match c:
        case Color.RED:
            return x
        case Color.GREEN:
            return x * 2


@program
def enum_errors(x):
    log = []
    for f in (lambda: Color["NO"], lambda: Color.NO, lambda: setattr(Color, "RED", 3)):
        try:
            f()
        except Exception as e:
            log.append((type(e).__name__, str(e)))
    return x + 1, log


# --- collections ---


@program
def chain_map(x):
    base = {"a": 1, "b": 2}
    c = collections.ChainMap({"a": 10}, base)
    c["new"] = 5
    child = c.new_child({"b": 7})
    return (
        x * c["a"],
        c["b"],
        dict(c),
        base,
        child["b"],
        child.parents["b"],
        len(c),
        "a" in c,
        list(c),
        c.get("zz", 3),
        c.maps[0],
    )


class MyDict(collections.UserDict):
    def __getitem__(self, k):
        return super().__getitem__(k) * 2


@program
def user_dict(x):
    d = MyDict(a=2)
    d["b"] = 3
    d.update({"c": 4})
    return (
        x * d["a"],
        d.get("b"),
        list(d.items()),
        len(d),
        "c" in d,
        d.pop("c"),
        d.data,
        d | {"z": 1} == {"a": 2, "b": 3, "z": 1},
    )


class MyList(collections.UserList):
    def append(self, v):
        super().append(v * 10)


@program
def user_list(x):
    l = MyList([1, 2])
    l.append(3)
    l += [4]
    l.insert(0, 9)
    return x * l[1], l.data, len(l), l[1:].data, 30 in l, list(reversed(l)), l.index(30), (l + [1]).data, sorted(l)


class MyString(collections.UserString):
    pass


@program
def user_string(x):
    s = MyString("ab")
    return x * len(s), (s + "c").data, s.upper() == "AB", s[0] == "a"


@program
def counter_arithmetic(x):
    a, b = collections.Counter("abca"), collections.Counter(a=1, z=2)
    c = collections.Counter(a)
    c.subtract(b)
    a.update("z")
    return (
        x * a["a"],
        a + b,
        a - b,
        a & b,
        a | b,
        a.most_common(1),
        sorted(a.elements()),
        a.total(),
        a["none"],
        c,
        +c,
        -c,
        a > b,
        list(a),
    )


@program
def ordered_dict(x):
    d = collections.OrderedDict([("a", 1), ("b", 2), ("c", 3)])
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    first = d.popitem(last=False)
    return x * first[1], list(d), d == {"a": 1, "b": 2}, d == collections.OrderedDict(a=1, b=2), list(reversed(d))


@program
def default_dict(x):
    d = collections.defaultdict(list)
    d["a"].append(1)
    d["b"]
    n = collections.defaultdict(lambda: 7, k=1)
    return x * n["zz"], dict(d), d.get("q"), n == {"k": 1, "zz": 7}, n.default_factory(), sorted(n)


@program
def deque_methods(x):
    d = collections.deque([1, 2, 3], maxlen=4)
    d.append(4)
    d.append(5)
    d.appendleft(0)
    d.rotate(1)
    d.extend([8])
    d.extendleft([9])
    return (
        x * d[0],
        list(d),
        d.maxlen,
        d.pop(),
        d.popleft(),
        len(d),
        d.count(2),
        d.index(2),
        3 in d,
        list(reversed(d)),
        d.copy() == d,
    )


NT = collections.namedtuple("NT", "a b c", defaults=[3])


@program
def named_tuples(x):
    t = NT(1, b=2)
    u = t._replace(a=x)
    return (
        u.a * t.c,
        t._asdict(),
        NT._fields,
        NT._field_defaults,
        NT._make([1, 2, 3]),
        t == (1, 2, 3),
        t < (1, 3),
        repr(t),
        t + (4,),
        t.index(2),
        t.count(1),
    )


class Abstract(collections.abc.MutableMapping):
    def __init__(self):
        self.d = {}

    def __getitem__(self, k):
        return self.d[k]

    def __setitem__(self, k, v):
        self.d[k] = v

    def __delitem__(self, k):
        del self.d[k]

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)


@program
def abstract_mapping(x):
    m = Abstract()
    m["a"] = 2
    m.update(b=3)
    m.setdefault("c", 4)
    return (
        x * m["a"],
        m.pop("b"),
        list(m.items()),
        m.get("no"),
        "a" in m,
        m == {"a": 2, "c": 4},
        m.keys() & {"a"},
        isinstance(m, collections.abc.Mapping),
        list(m.values()),
    )


class Seq(collections.abc.Sequence):
    def __init__(self, *v):
        self.v = v

    def __getitem__(self, i):
        return self.v[i]

    def __len__(self):
        return len(self.v)


@program
def abstract_sequence(x):
    s = Seq(1, 2, 3, 2)
    return x * s[0], s.index(2), s.count(2), list(reversed(s)), 3 in s, isinstance(s, collections.abc.Iterable), list(s)


@program(graphs=0)
def abstract_checks(x):
    return (
        x,
        [
            isinstance([], t)
            for t in (
                collections.abc.Sized,
                collections.abc.Hashable,
                collections.abc.Callable,
                collections.abc.Sequence,
                collections.abc.MutableSequence,
                collections.abc.Set,
            )
        ],
        isinstance({}.keys(), collections.abc.Set),
        isinstance(len, collections.abc.Callable),
    )


# --- dataclasses ---


@dataclasses.dataclass
class Base:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: int = dataclasses.field(default=3, repr=False, compare=False)
    K: typing.ClassVar[int] = 9

    def __post_init__(self):
        self.d = self.a + self.c


@dataclasses.dataclass
class Child(Base):
    e: float = 1.0


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 2


@dataclasses.dataclass(slots=True, kw_only=True)
class SlotsKw:
    a: int
    t: object = None


@dataclasses.dataclass
class InitVarred:
    a: int
    scale: dataclasses.InitVar[int] = 2
    out: int = dataclasses.field(init=False)

    def __post_init__(self, scale):
        self.out = self.a * scale


@program
def dataclass_basic(x):
    b = Base(1)
    b.b.append(4)
    c = Child(2, e=0.5)
    return x * b.d, Base(1).b, b == Base(1, [4], c=9), c.d, c.e, Base.K, repr(Frozen(1)), c != b


@program
def dataclass_functions(x):
    b = Base(1, [1, 2])
    r = dataclasses.replace(b, a=5)
    return (
        x * r.a,
        r.b is b.b,
        dataclasses.asdict(b),
        dataclasses.astuple(b),
        [f.name for f in dataclasses.fields(Child)],
        dataclasses.is_dataclass(b),
        r.d,
    )


@program
def dataclass_frozen(x):
    f = Frozen(1)
    try:
        f.a = 2
    except dataclasses.FrozenInstanceError as e:
        text = str(e)
    return x * f.a, text, f < Frozen(2), {f: 1}[Frozen(1)], hash(f) == hash(Frozen(1, 2)), sorted([Frozen(3), f])[0].a


@program
def dataclass_slots_kw(x):
    s = SlotsKw(a=2, t=x)
    try:
        SlotsKw(1)
    except TypeError as e:
        text = str(e)
    return s.t * s.a, text, hasattr(s, "__dict__"), dataclasses.replace(s, a=4).a


@program
def dataclass_init_var(x):
    i = InitVarred(3, scale=4)
    return x * i.out, dataclasses.asdict(i)


@program
def dataclass_returned(x):
    return Base(1, [x * 2]), Frozen(3), SlotsKw(a=1, t=x + 1)


@program
def dataclass_with_tensor_dict(x):
    return dataclasses.asdict(Base(1, [3]))["b"], dataclasses.replace(SlotsKw(a=1, t=x), t=x * 2).t


# --- typing ---


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, v: T):
        self.v = v

    def get(self) -> T:
        return self.v


@typing.runtime_checkable
class HasGo(typing.Protocol):
    def go(self): ...


class Goes:
    def go(self):
        return 1


UserId = typing.NewType("UserId", int)


class TD(typing.TypedDict, total=False):
    a: int


@program
def typing_runtime(x):
    b = Box[int](3)
    return (
        x * b.get(),
        isinstance(Goes(), HasGo),
        isinstance(3, HasGo),
        UserId(4),
        typing.cast(int, "s"),
        TD(a=1),
        typing.get_origin(list[int]) is list,
        typing.get_args(dict[str, int])[1] is int,
        typing.Optional[int] == typing.Union[int, None],
        isinstance(3, int | str),
        isinstance(None, int | None),
    )


@program
def typing_generic_subclass(x):
    class_made = Box[torch.Tensor]
    return class_made(x).get() + 1, class_made.__origin__ is Box


@program
def typing_hints(x):
    return x + 1, typing.get_type_hints(Box.get), typing.TYPE_CHECKING


# --- numbers ---


@program
def integer_division_signs(x):
    return (
        x + 1,
        [(a // b, a % b, divmod(a, b), math.fmod(a, b)) for a in (7, -7) for b in (3, -3)],
        -7 >> 1,
        ~5,
        5 & -2,
        6 ^ 3,
        2**-1,
        (-8) ** (1 / 3),
    )


@program
def float_specials(x):
    nan, inf = float("nan"), float("inf")
    return (
        x * -0.0,
        nan == nan,
        nan != nan,
        [nan] == [nan],
        inf > 10**400,
        -inf < 0,
        math.isnan(nan),
        math.copysign(1, -0.0),
        0.0 == -0.0,
        str(-0.0),
        inf - inf != 0,
        max(1.0, nan),
        min(nan, 1.0) != min(nan, 1.0),
        (0.1 + 0.2),
        1e308 * 10,
        float.fromhex("0x1p-2"),
        (2.5).is_integer(),
        (0.75).as_integer_ratio(),
        (1.5).hex(),
        round(0.5),
        round(1.5),
        round(2.675, 2),
        int(-2.7),
        math.floor(-2.5),
        math.trunc(-2.5),
        5.0 // 2,
        -5.5 % 2,
    )


@program
def big_integers(x):
    n = 10**30
    return (
        x + 1,
        n * n,
        n % 97,
        str(n),
        (n).bit_length(),
        (255).to_bytes(2, "big"),
        int.from_bytes(b"\x01\x00", "little"),
        (12).bit_count(),
        int("ff", 16),
        int("0b11", 0),
        n // 3,
        -n >> 3,
        pow(7, 100, 13),
        math.isqrt(n),
        math.gcd(12, 18),
        math.lcm(4, 6),
        math.factorial(20),
        math.comb(5, 2),
        (5).as_integer_ratio(),
        int("1_000"),
        n == float(n),
    )


@program
def complex_numbers(x):
    z = 3 + 4j
    return (
        x + abs(z),
        z.real,
        z.imag,
        z.conjugate(),
        z * 1j,
        z / 2,
        z**2,
        z == complex(3, 4),
        complex("1+2j"),
        cmath.phase(1j),
        bool(0j),
        repr(-z),
        str(complex(-0.0, 1)),
    )


@program
def bool_arithmetic(x):
    return (
        x * (True + True),
        True & False,
        True | 2,
        not 0,
        bool(""),
        int(True),
        sum([True, True]),
        True == 1,
        {1: "a", True: "b"},
        isinstance(True, int),
        str(True),
        ~True,
    )


@program
def fractions_and_decimals(x):
    return x * float(fractions.Fraction(1, 2) + fractions.Fraction(1, 3)), str(fractions.Fraction("0.25"))


@program
def math_functions(x):
    return (
        x * math.pi,
        math.hypot(3, 4),
        math.prod([2, 3]),
        math.fsum([0.1] * 10),
        math.log2(8),
        math.dist([0, 0], [3, 4]),
        math.isclose(0.1 + 0.2, 0.3),
        math.ceil(1.2),
        math.degrees(math.pi),
        math.frexp(8.0),
        math.modf(2.5),
        math.ldexp(0.5, 3),
        math.nextafter(1.0, 2.0),
        math.inf,
        math.perm(5, 2),
        math.log(8, 2),
        math.exp(0),
    )


# --- text and bytes ---


@program
def string_methods(x):
    s = "  Hello, World  "
    return (
        x + 1,
        [
            s.strip(),
            s.lower(),
            s.upper(),
            s.swapcase(),
            s.title(),
            s.lstrip(),
            s.rstrip(),
            s.split(","),
            s.replace("l", "L", 2),
            s.find("o"),
            s.rfind("o"),
            s.index("W"),
            s.count("l"),
            s.startswith("  H"),
            s.endswith(("x", "  ")),
            s.center(20, "*"),
            s.strip().ljust(15, "."),
            "7".zfill(3),
            "-7".zfill(4),
            "a-b-c".rsplit("-", 1),
            "a-b-c".partition("-"),
            "a-b".rpartition("-"),
            "ab\ncd".splitlines(),
            "a\tb".expandtabs(4),
            "abc".isalpha(),
            "12".isdigit(),
            "a1".isalnum(),
            " ".isspace(),
            "Ab".istitle(),
            "AB".isupper(),
            "x".isidentifier(),
            "ß".casefold(),
            "-".join(["a", "b"]),
            "abc".removeprefix("a"),
            "abc".removesuffix("c"),
            "abc"[::-1],
            "abc"[1:],
            "ab" * 2,
            "b" in "abc",
            "a" < "b",
            "abc".encode(),
            "hello".capitalize(),
            ord("a"),
            chr(97),
            ascii("é"),
        ],
        "hello".translate(str.maketrans("el", "ip")),
        "hello".translate(str.maketrans({"h": None, "e": "EE"})),
    )


@program
def format_specs(x):
    return x + 1, [
        f"{3.14159:.2f}",
        f"{42:08b}",
        f"{255:#x}",
        f"{1234567:,}",
        f"{0.25:%}",
        f"{'a':>5}|{'b':<5}|{'c':^5}",
        f"{-3:+d}{3:+d}",
        f"{1e10:g}",
        f"{5:e}",
        f"{'text':.2}",
        f"{3!r:>4}",
        "{0} {1} {0}".format(1, 2),
        "{a[k]} {b.real}".format(a={"k": 1}, b=3),
        "{:>{w}}".format(1, w=4),
        "%d %5.2f %s %r %% %x %-4s|" % (1, 2.5, "s", "r", 255, "ab"),
        "%(a)s" % {"a": 1},
        f"{True:d}",
        f"{None}",
        f"{[1, 2]}",
        f"{1_000_000:_}",
        f"{2 + 3j:.1f}",
        "{!r:>5}".format("a"),
    ]


@program
def bytes_methods(x):
    b = b"hello"
    return (
        x * b[0],
        b[1:3],
        b.decode(),
        b.hex(),
        bytes([1, 2]),
        bytes(2),
        b + b"!",
        b.upper(),
        b.split(b"l"),
        b"l" in b,
        104 in b,
        list(b),
        b.replace(b"l", b"L"),
        b.find(b"l"),
        bytes.fromhex("0aff"),
        b"%d" % 3,
        b.startswith(b"he"),
        b == b"hello",
        b < b"i",
        b"".join([b"a", b"b"]),
        "é".encode("utf-8"),
        b"\xe9".decode("latin-1"),
    )


@program(breaks=True)
def bytearray_methods(x):
    b = bytearray(b"abc")
    b[0] = 122
    b.append(33)
    b.extend(b"xy")
    return x + len(b), bytes(b), b.decode(), b.find(b"c")


@program(breaks=True)
def regular_expressions(x):
    m = re.match(r"(?P<a>\d+)-(\w+)", "12-ab c")
    return (
        x * int(m.group("a")),
        m.groups(),
        m.span(),
        re.sub(r"\d", "#", "a1b2"),
        re.findall(r"[a-z]", "a1b"),
        re.split(r",\s*", "a, b,c"),
        re.compile("x+").search("axxb").start(),
        re.fullmatch("a", "ab"),
        [m.group() for m in re.finditer(r"\d", "1a2")],
    )


@program(breaks=True)
def string_module(x):
    return x + 1, string.ascii_lowercase[:3], string.Template("$a b").substitute(a=1), string.capwords("a b")


# --- sets ---


@program
def set_operators(x):
    a, b = {1, 2, 3}, frozenset([2, 3, 4])
    c = set(a)
    c |= {9}
    c -= {1}
    c &= {2, 9, 8}
    c ^= {2, 7}
    return (
        x + len(a),
        a | b,
        a & b,
        a - b,
        a ^ b,
        b - a,
        a < {1, 2, 3, 4},
        a >= {1},
        a.isdisjoint({7}),
        c,
        type(b | a).__name__,
        type(a | b).__name__,
        a == {3, 2, 1},
        a != b,
        {1} <= b,
        hash(b) == hash(frozenset([4, 3, 2])),
    )


@program
def set_methods(x):
    s = {3, 1}
    s.add(2)
    s.discard(99)
    s.remove(1)
    s.update([5, 6], (7,))
    u = s.union([8], {9})
    s.intersection_update({2, 3, 5})
    s.difference_update([5])
    s.symmetric_difference_update({3, 4})
    p = s.copy()
    p.clear()
    try:
        s.remove(1000)
    except KeyError as e:
        err = e.args
    return (
        x + len(u),
        sorted(s),
        sorted(u),
        p,
        err,
        {1, 2}.issubset([1, 2, 3]),
        {1, 2}.issuperset([1]),
        sorted({1, 2}.symmetric_difference([2, 3])),
        len({1, 1.0, True}),
        {frozenset([1]): 2}[frozenset([1])],
    )


# --- dictionaries ---


@program
def dict_views(x):
    d = {"a": 1, "b": 2, "c": 3}
    k, v, i = d.keys(), d.values(), d.items()
    d["d"] = 4
    return (
        x * len(k),
        list(v),
        ("a", 1) in i,
        k & {"a", "z"},
        k | {"q"} == {"a", "b", "c", "d", "q"},
        k - {"a"} == {"b", "c", "d"},
        list(reversed(d)),
        list(reversed(d.items())),
        k == {"a", "b", "c", "d"},
        "a" in k,
        3 in v,
        sorted(k ^ {"a", "n"}),
        k.isdisjoint(["z"]),
        k.mapping["a"],
    )


@program
def dict_methods(x):
    d = dict(a=1, **{"b": 2})
    e = dict([("c", 3)], d=4)
    d.update(e, z=0)
    popped = d.pop("a"), d.pop("none", "dflt"), d.popitem()
    d.setdefault("q", []).append(1)
    merged = {"x": 1} | {"x": 2, "y": 3}
    merged |= [("w", 5)]
    n = dict.fromkeys("ab", 0)
    d["b"] = 20
    del d["c"]
    try:
        d["nope"]
    except KeyError as k:
        err = k.args[0]
    return (
        x * d["b"],
        list(d.items()),
        popped,
        merged,
        n,
        err,
        d.get("b"),
        d.get("no"),
        d == {"q": [1], "d": 4, "b": 20},
        len(d),
        d.copy() is d,
        list(d),
    )


@program
def dict_changed_during_iteration(x):
    d = {"a": 1}
    try:
        for k in d:
            d[k + "x"] = 1
    except RuntimeError as e:
        return x + 1, str(e)


@program
def list_methods(x):
    l = [3, 1, 2]
    l.append(4)
    l.extend((5, 6))
    l.insert(1, 9)
    l.remove(1)
    p = l.pop(), l.pop(0)
    l.reverse()
    l.sort(key=lambda v: -v)
    m = l[:]
    m[1:3] = [7, 7, 7]
    m[::2] = [0] * len(m[::2])
    del m[-1]
    try:
        m[::2] = [1]
    except ValueError as e:
        err = str(e)
    return (
        x * l[0],
        l,
        p,
        m,
        err,
        l.index(2),
        l.count(9),
        [1] * 3,
        [1] + [2],
        [1, 2] < [1, 3],
        l == l.copy(),
        [[]] * 2,
        l.__len__(),
        m.clear(),
    )


@program
def tuple_methods(x):
    t = (1, 2, 3, 2)
    return (
        x * t[1],
        t.index(2),
        t.count(2),
        t + (4,),
        t * 2,
        t[::-1],
        (1, 2) < (1, 3),
        t == tuple([1, 2, 3, 2]),
        hash((1, 2)) == hash((1, 2)),
        (),
        (1,),
        3 in t,
        t.__class__.__name__,
    )


@program
def range_methods(x):
    r = range(2, 20, 3)
    return (
        x * r[1],
        len(r),
        5 in r,
        r.index(8),
        r[::2],
        r == range(2, 19, 3),
        list(reversed(r)),
        r.start,
        r.stop,
        r.step,
        r.count(5),
        range(0),
        bool(range(0)),
        max(r),
        sum(r),
    )


@program
def slice_objects(x):
    s = slice(1, None, 2)
    return x[s], [1, 2, 3, 4][s], s.indices(5), s.start, s == slice(1, None, 2), x[:, slice(0, 2)]


@program
def heap_and_bisect(x):
    h = [5, 1, 4]
    heapq.heapify(h)
    heapq.heappush(h, 0)
    l = [1, 3, 5]
    bisect.insort(l, 4)
    return (
        x * heapq.heappop(h),
        h,
        heapq.nlargest(2, [1, 5, 3]),
        heapq.nsmallest(1, [4, 2]),
        bisect.bisect_left(l, 3),
        l,
        list(heapq.merge([1, 4], [2, 3])),
    )


@program
def sort_stability(x):
    data = [("b", 1), ("a", 1), ("c", 0)]
    return (
        x + 1,
        sorted(data, key=lambda p: p[1]),
        sorted(data, key=lambda p: p[1], reverse=True),
        sorted("bac"),
        sorted({3: 1, 1: 2}),
        sorted([True, 0, 0.5]),
    )


@program
def hash_and_id(x):
    a = [1]
    return (
        x + 1,
        hash("a") == hash("a"),
        hash(1) == hash(1.0),
        id(a) == id(a),
        a is a,
        hash((1, "a")) == hash((1, "a")),
        hash(None) == hash(None),
    )


@program
def dynamic_attribute_functions(x):
    class_ = collections.namedtuple("Made", ["p", "q"])
    m = class_(x, 2)
    return getattr(m, "p") * getattr(m, "q"), hasattr(m, "r"), getattr(m, "r", 5)
