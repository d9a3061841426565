# ruff: noqa
"""Calls, classes, exceptions, generators, enumerations, dataclasses, from the language reference: a line a case, with the words of errors."""

import math, cmath, operator, itertools, functools, collections, copy, re, string, json, struct, weakref, types, inspect, heapq, bisect, enum, dataclasses, typing, abc, contextlib, io, numbers, fractions, statistics, textwrap, collections.abc, sys
from typing import *
from collections import *
from dataclasses import dataclass, field, replace, asdict, astuple, fields, KW_ONLY, InitVar
from enum import Enum, IntEnum, Flag, auto
from functools import *

import torch
from tests.support.registry import cases


def two(a, b):
    return (a, b)


def kwo(a, *, k):
    return (a, k)


def pos(a, b=2, /, c=3):
    return (a, b, c)


def var(*a, **k):
    return (a, k)


class C:
    x = 1

    def __init__(self, a=1):
        self.a = a

    def m(self, n):
        return self.a + n

    @classmethod
    def cm(cls, n):
        return (cls.__name__, n)

    @staticmethod
    def sm(n):
        return n

    @property
    def p(self):
        return self.a

    def __len__(self):
        return 3


class D(C):
    def m(self, n):
        return super().m(n) + 1


class S:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1


class E1(Exception):
    pass


class E2(E1):
    def __init__(self, code, msg):
        super().__init__(msg)
        self.code = code


class M(type):
    def __call__(cls, *a):
        return ("made", cls.__name__, a)

    def __iter__(cls):
        return iter([1, 2])

    def __len__(cls):
        return 7

    def __getitem__(cls, k):
        return ("mg", k)

    def __contains__(cls, k):
        return k == 1

    def __getattr__(cls, n):
        return "meta " + n


class MM(metaclass=M):
    pass


class G:
    def __getattr__(self, n):
        if n.startswith("x"):
            return n * 2
        raise AttributeError(n)


class A0:
    def __init_subclass__(cls, tag=None, **k):
        super().__init_subclass__(**k)
        cls.tag = tag


class Desc:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, o, t=None):
        return ("get", self.name, o is None)

    def __set__(self, o, v):
        o.__dict__["_" + self.name] = v

    def __delete__(self, o):
        o.__dict__.pop("_" + self.name)


class WD:
    d = Desc()


class AB(abc.ABC):
    @abc.abstractmethod
    def f(self): ...


class Eq:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return isinstance(o, Eq) and self.v == o.v

    def __hash__(self):
        return hash(self.v)

    def __lt__(self, o):
        return self.v < o.v


def gen(n):
    try:
        for i in range(n):
            got = yield i
            if got:
                yield ("got", got)
    finally:
        pass
    return "end"


def sub():
    r = yield from gen(2)
    yield r


Color = Enum("Color", "RED GREEN")


class Num(IntEnum):
    ONE = 1
    TWO = 2


class Fl(Flag):
    A = auto()
    B = auto()
    AB = A | B


NT = namedtuple("NT", "a b", defaults=[5])


class TN(NamedTuple):
    a: int
    b: str = "x"

    def both(self):
        return (self.a, self.b)


@dataclass(order=True)
class DC:
    a: int
    b: list = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class FZ:
    a: int = 1


@dataclass(slots=True)
class SL:
    a: int
    b: int = 2


@dataclass
class KW:
    a: int
    _: KW_ONLY
    b: int = 3
    c: InitVar[int] = 0

    def __post_init__(self, c):
        self.d = self.a + c


@total_ordering
class TO:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v

    def __lt__(self, o):
        return self.v < o.v


@singledispatch
def sd(a):
    return "object"


@sd.register
def _(a: int):
    return "int"


@sd.register(list)
def _(a):
    return "list"


@lru_cache(maxsize=2)
def lc(n):
    return n * 2


class CP:
    n = 0

    @cached_property
    def v(self):
        self.n += 1
        return self.n


@contextlib.contextmanager
def cmgr(v):
    try:
        yield v
    except ValueError as e:
        pass


class PM:
    def f(self, a, b):
        return (a, b)

    g = partialmethod(f, 1)


glob = 5

cases(
    "reference_language",
    "part_1",
    r"""
two(1)
two()
two(1, 2, 3)
two(1, b=2, c=3)
two(1, a=2)
two(**{'a': 1})
two(*[1], **{'b': 2})
two(*5)
two(**5)
two(**{1: 2})
two(1, **{'b': 1}, **{'b': 2})
two(1, 2, **{'b': 1})
kwo(1)
kwo(1, 2)
kwo(1, k=2), kwo(a=1, k=3)
kwo(1, 2, k=3)
pos(a=1)
pos(1, b=2)
pos(1, 2, 3), pos(1, c=5)
pos()
pos(1, 2, 3, 4)
var(1, *[2], a=3, **{'b': 4})
(lambda a: a)()
(lambda: 1)(2)
C().m()
""",
    globals(),
)

cases(
    "reference_language",
    "part_2",
    r"""
C().m(1, 2)
C(1, 2)
C(b=1)
C.m(1)
C.m()
C().cm(1), C.cm(2), C.sm(3), C().sm(4), C().p
C().foo
C.foo
C().p = 5
del C().foo
c = C(); c.z = 1; del c.z; c.z
c = C(); c.x = 5; del c.x; out.append(c.x); del c.x
C()()
C()[0]
C() + 1
1 + C()
-C()
C() < C()
C() == C(), C() != 1
len(C()), bool(C())
iter(C())
next(C())
with C(): pass
D().m(1), D.mro() == [D, C, object], D.__bases__, D.__name__, D.__qualname__, D.__mro__[1] is C, issubclass(D, C), isinstance(D(), C)
s = S(); s.b
""",
    globals(),
)

cases(
    "reference_language",
    "part_3",
    r"""
s = S(); s.c = 1
s = S(); del s.a; s.a
s = S(); s.__dict__
raise E1
raise E1('a', 1)
raise E2(5, 'm')
raise 5
raise C
raise None
raise E1 from 5
assert False
assert False, 'msg'
assert 1 == 2, ('a', 1)
x.foo
undefined_name
del undefined_name
out.append(glob); glob2 = glob + 1; out.append(glob2)
y; y = 1
MM(1, 2), list(MM), len(MM), MM[3], 1 in MM, 2 in MM, MM.foo
G().xa
G().ya
getattr(G(), 'ya', 7), hasattr(G(), 'ya'), hasattr(G(), 'x')
w = WD(); w.d = 5; out.append((w.d, WD.d, w.__dict__)); del w.d; out.append(w.__dict__)
AB()
Eq(1) == Eq(1), Eq(1) != Eq(2), {Eq(1): 'a'}[Eq(1)], Eq(1) in [Eq(1)], len({Eq(1), Eq(1), Eq(2)}), sorted([Eq(2), Eq(1)])[0].v, max(Eq(1), Eq(3)).v
""",
    globals(),
)

cases(
    "reference_language",
    "part_4",
    r"""
Eq(1) <= Eq(2)
Eq(1) > Eq(0)
[Eq(1), Eq(2)].index(Eq(2)), [Eq(1)].count(Eq(1)), (Eq(1),) == (Eq(1),)
[Eq(1)].remove(Eq(5))
g = gen(3); out.append((next(g), g.send(None), g.send('q'), next(g))); next(g)
g = gen(1); out.append(list(g)); out.append(list(g)); next(g)
g = gen(1); g.send(5)
g = gen(2); next(g); g.throw(ValueError('v'))
g = gen(2); next(g); g.throw(ValueError)
g = gen(2); g.throw(KeyError, 'k')
g = gen(2); g.close(); next(g)
g = gen(2); next(g); g.close(); out.append(list(g)); out.append(g.close())
g = gen(2); g.throw(5)
g = gen(2); g.throw()
g = gen(2); g.send()
g = gen(2); g.foo
list(sub()), type(gen(1)).__name__, gen.__name__, gen(1).__name__
g = gen(1); out.append(next(g)); 
(i for i in 5)
[i for i in 5]
{i: j for i, j in [1]}
[a for a in range(3) if a % 2 for b in 'xy'], {a: a * 2 for a in range(2)}, {a % 2 for a in range(4)}
Color.RED, Color['RED'], Color(1), Color.RED.name, Color.RED.value, list(Color), len(Color), Color.RED in Color, Color.RED == Color.GREEN, Color.RED is Color(1), isinstance(Color.RED, Color), repr(Color.RED), str(Color.RED), Color.__members__['RED'], hash(Color.RED) == hash(Color.RED)
Color(5)
Color['BLUE']
""",
    globals(),
    graphs=0,
    breaks=True,
)

cases(
    "reference_language",
    "part_5",
    r"""
Color.BLUE
Color.RED < Color.GREEN
Color.RED = 5
Color.RED.value = 5
Num.ONE + 1, Num.ONE < Num.TWO, Num(2), Num.ONE == 1, f'{Num.ONE}', str(Num.ONE), [10, 20][Num.ONE], sum(Num), Num.ONE | 2, max(Num), int(Num.TWO)
Num('a')
Fl.A | Fl.B, Fl.A & Fl.B, ~Fl.A, Fl.AB, Fl(3), Fl.A in Fl.AB, bool(Fl.A & Fl.B), list(Fl.AB), Fl.A ^ Fl.B, Fl(0), repr(Fl.A | Fl.B), Fl.AB.name
Fl(99)
Fl.A | 1
n = NT(1); out.append((n, n.a, n[1], n._replace(a=9), n._asdict(), n._fields, NT._make([3, 4]), n == (1, 5), len(n), [*n], n._field_defaults, n + (7,), repr(n), n.index(5), n.count(1), hash(n) == hash((1, 5))))
NT()
NT(1, 2, 3)
NT(c=1)
NT(1).c
NT(1)._replace(z=1)
NT._make([1])
n = NT(1); n[0] = 5
a, b = NT(1); out.append((a, b))
TN(1).both(), TN(1), TN(a=2, b='y').b, TN(3)._replace(b='q'), TN.__annotations__, isinstance(TN(1), tuple)
TN()
DC(1), DC(1) == DC(1, [5]), DC(1) < DC(2), repr(DC(1)), DC(1).b, sorted([DC(2), DC(1)]), replace(DC(1), a=5), asdict(DC(1, [2])), astuple(DC(1)), [f.name for f in fields(DC)], dataclasses.is_dataclass(DC)
DC()
DC(1, 2, 3)
DC(c=1)
DC(1) < 5
""",
    globals(),
)

cases(
    "reference_language",
    "part_6",
    r"""
hash(DC(1))
replace(DC(1), z=1)
asdict(5)
fields(5)
f = FZ(); f.a = 5
f = FZ(); del f.a
f = FZ(); f.z = 1
hash(FZ(1)) == hash(FZ(1)), FZ(1) == FZ(1), {FZ(1): 2}[FZ(1)], replace(FZ(1), a=3)
s = SL(1); s.b = 5; out.append((s, s.a, SL(1) == SL(1))); s.zz = 1
KW(1), KW(1, b=5, c=2).d
KW(1, 2)
TO(1) < TO(2), TO(1) <= TO(1), TO(2) > TO(1), TO(1) >= TO(2), TO(1) != TO(2)
sd(1), sd([1]), sd('a'), sd(True), sd.dispatch(int) is not None
sd()
lc(1), lc(1), lc(2)
lc()
c = CP(); out.append((c.v, c.v, c.n, c.__dict__))
with cmgr(3) as v: out.append(v); raise ValueError('x')
with cmgr(3) as v: raise KeyError('k')
with cmgr(3) as v, cmgr(4) as w: out.append((v, w))
with contextlib.suppress(KeyError): {}[1]
with contextlib.suppress(KeyError): [][1]
with contextlib.nullcontext(5) as v: out.append(v)
with contextlib.ExitStack() as st: out.append(st.enter_context(cmgr(1))); st.callback(out.append, 9); st.push(lambda *a: out.append(a[0]) or True); raise KeyError
with contextlib.closing(gen(2)) as g: out.append(next(g))
""",
    globals(),
)

cases(
    "reference_language",
    "part_7",
    r"""
with 5: pass
PM().g(2), PM.g(PM(), 3)
p = partial(two, 1); out.append((p(2), p(b=3), p.func is two, p.args, p.keywords)); p(1, 2)
p = partial(two, b=1); out.append((p(5), p(5, b=6))); p()
partial(5)
partial()
reduce(lambda a, b: a + b, [1, 2, 3]), reduce(lambda a, b: a * b, [], 5), reduce(operator.add, 'abc')
reduce(operator.add, [])
reduce(operator.add, 5)
reduce(operator.add)
reduce(5, [1, 2])
sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a)), wraps(two)(lambda: 1).__name__
super().foo
super(C, D()).m(1), super(D, D()).p
super(5, 6)
super(C, 5)
super(D, C()).m
type('T', (C,), {'y': 5})().y, type('T', (), {}).__name__
type('T', (bool,), {})
type(5, (), {})
type(C()) is C, C().__class__ is C, C.__class__, type(C), type(None), type(...), type(NotImplemented)
isinstance(C(), (int, C)), isinstance(5, Color), callable(C), callable(C())
issubclass(5, C)
issubclass(C, 5)
vars(C()), C().__dict__, C.__dict__['x']
""",
    globals(),
)

cases(
    "reference_language",
    "part_8",
    r"""
dir(C())[-1], 'm' in dir(C)
getattr(C(), 'a'), setattr(C(), 'q', 1), delattr(C(), 'a')
delattr(C(), 'q')
hasattr(5)
a = b = []; a.append(1); out.append((a is b, a == [1], a is not [1]))
1 < 2 < 3, 1 < 3 < 2, 1 == 1.0 == True, 'a' in 'ab' in ['ab'], 3 > 2 >= 2 != 1
1 < 2 < 'a'
(z := 5) + z, [w := 1, w + 1], out.append(z)
[y for x1 in range(3) if (y := x1 * 2)], out.append(y)
*a, b = range(4); out.append((a, b)); (c, *d), e = [1, 2, 3], 4; out.append((c, d, e))
lst = [1, 2, 3]; lst[0], lst[1] = lst[1], lst[0]; out.append(lst); i, lst[i] = 2, 9; out.append(lst)
fs = [lambda: i for i in range(3)]; out.append([f() for f in fs]); fs = [lambda i=i: i for i in range(3)]; out.append([f() for f in fs])
int.__call__(5), int('5')
print.__name__, len.__name__, [].append.__name__, 'a'.upper.__name__, C().m.__name__, C.m.__qualname__, (lambda: 1).__name__
two.__defaults__, pos.__defaults__, kwo.__kwdefaults__, two.__code__.co_varnames, two.__doc__, two.__module__, var.__annotations__
two.zz
...  .foo
None.foo
NotImplemented
not ..., ... is Ellipsis, bool(NotImplemented) 
lambda: (yield)
inspect.signature(pos), str(inspect.signature(var)), list(inspect.signature(two).parameters), inspect.isfunction(two), inspect.isclass(C), inspect.ismethod(C().m), inspect.isgenerator(gen(1)), inspect.isgeneratorfunction(gen)
str(inspect.signature(two).bind(1, 2).args), inspect.getdoc(two), inspect.getmro(D)
inspect.signature(two).bind(1)
isinstance([], List)
""",
    globals(),
)

cases(
    "reference_language",
    "part_9",
    r"""
isinstance([], List[int])
int | str, isinstance(5, int | None), (int | str) == (str | int), type(int | str)
int | 5
list[int](), list[int]([1]), dict[str, int](a=1)
copy.replace
operator.add(1, 2), operator.itemgetter(1)([1, 2]), operator.itemgetter(0, 1)('ab'), operator.attrgetter('a')(C()), operator.attrgetter('a', 'x')(C()), operator.methodcaller('m', 2)(C()), operator.contains([1], 1), operator.not_(0), operator.truth(1), operator.index(5), operator.concat('a', 'b'), operator.countOf([1, 1], 1), operator.indexOf([1, 2], 2), operator.getitem([1], 0), operator.length_hint([1, 2]), operator.is_(None, None), operator.pow(2, 3), operator.matmul, operator.xor(1, 3), operator.floordiv(7, 2), operator.iadd([1], [2])
operator.itemgetter()
operator.itemgetter(5)([1])
operator.attrgetter('foo')(5)
operator.attrgetter(5)
operator.methodcaller('foo')(5)
operator.methodcaller()
operator.add(1, 'a')
operator.indexOf([1], 5)
operator.index(1.5)
operator.length_hint(5), operator.length_hint(iter([1, 2])), operator.length_hint(C())
weakref.ref(5)
c = C(); r = weakref.ref(c); out.append((r() is c, r() is None, weakref.ref(c) == r))
""",
    globals(),
)
