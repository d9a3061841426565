# ruff: noqa
"""Errors, dunders that answer wrongly, subclasses of builtins, properties, scopes, from the language reference: a line a case, with the words of errors."""

import math, cmath, operator, itertools, functools, collections, copy, re, string, json, struct, weakref, types, inspect, heapq, bisect, enum, dataclasses, typing, abc, contextlib, io, numbers, fractions, statistics, textwrap, collections.abc, sys
from typing import *
from collections import *
from dataclasses import dataclass, field, replace, asdict, astuple, fields, KW_ONLY, InitVar
from enum import Enum, IntEnum, Flag, auto
from functools import *

import torch
from tests.support.registry import cases


class E1(Exception):
    pass


class Ctx:
    def __init__(self, log, swallow=False):
        self.log = log
        self.swallow = swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, t, v, tb):
        self.log.append((t.__name__ if t else None, str(v)))
        return self.swallow


class BadEnter:
    def __exit__(self, *a):
        pass


class BadExit:
    def __enter__(self):
        return 1


class NoIter:
    __iter__ = None


class BadIter:
    def __iter__(self):
        return 5


class BadLen:
    def __len__(self):
        return -1


class StrLen:
    def __len__(self):
        return "a"


class BadBool:
    def __bool__(self):
        return 5


class BadRepr:
    def __repr__(self):
        return 5


class BadStr:
    def __str__(self):
        return 5


class BadHash:
    def __hash__(self):
        return "a"


class BadIndex:
    def __index__(self):
        return "a"


class GoodIndex:
    def __index__(self):
        return 1


class NoHash:
    __hash__ = None


class Cmp:
    def __eq__(self, o):
        return "eq"

    def __lt__(self, o):
        return []

    def __contains__(self, o):
        return "yes"


class Add:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return NotImplemented

    def __radd__(self, o):
        return ("radd", o)

    def __iadd__(self, o):
        self.v += o
        return self

    def __call__(self, *a, **k):
        return (a, k)

    def __getitem__(self, i):
        if i > 2:
            raise IndexError("stop")
        return i * 10

    def __matmul__(self, o):
        return "mm"

    def __neg__(self):
        return "neg"

    def __round__(self, n=None):
        return ("round", n)

    def __divmod__(self, o):
        return "dm"

    def __pow__(self, o, m=None):
        return ("pow", o, m)

    def __abs__(self):
        return "abs"

    def __int__(self):
        return 42

    def __float__(self):
        return 4.5

    def __complex__(self):
        return 1j

    def __trunc__(self):
        return "t"

    def __floor__(self):
        return "fl"

    def __ceil__(self):
        return "ce"

    def __reversed__(self):
        return "rev"

    def __dir__(self):
        return ["b", "a"]

    def __sizeof__(self):
        return 5


class SubInt(int):
    def __add__(self, o):
        return "sub"


class SubStr(str):
    pass


class SubList(list):
    def append(self, v):
        super().append(v * 2)


class SubDict(dict):
    def __missing__(self, k):
        return ("missing", k)

    def __setitem__(self, k, v):
        super().__setitem__(k, v + 1)


class SubTuple(tuple):
    pass


class Prop:
    def __init__(self):
        self._x = 1

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, v):
        if v < 0:
            raise ValueError("negative")
        self._x = v

    @x.deleter
    def x(self):
        del self._x

    @property
    def bad(self):
        raise AttributeError("inner")


class GA:
    def __getattribute__(self, n):
        if n == "z":
            return "gz"
        return super().__getattribute__(n)

    def __setattr__(self, n, v):
        super().__setattr__(n, v * 2)

    def __delattr__(self, n):
        raise AttributeError("no " + n)


class A:
    def f(self):
        return ["A"]


class B(A):
    def f(self):
        return ["B"] + super().f()


class C(A):
    def f(self):
        return ["C"] + super().f()


class D(B, C):
    def f(self):
        return ["D"] + super().f()


def counter():
    n = 0

    def inc():
        nonlocal n
        n += 1
        return n

    return inc


def fin(v):
    try:
        if v == 1:
            return "try"
        if v == 2:
            raise ValueError("v")
    except ValueError:
        return "except"
    else:
        return "else"
    finally:
        if v == 3:
            return "finally"


def deflt(a, l=[]):
    l.append(a)
    return l


def rec(n):
    return 1 if n == 0 else n * rec(n - 1)


def unbound():
    if 0:
        q = 1
    return q


def delq():
    q = 1
    del q
    return q


cases(
    "reference_exceptions",
    "part_1",
    r"""
[fin(i) for i in range(4)]
log = []; c = Ctx(log, True); exec("with c: raise KeyError(1)") if 0 else None; out.append(log)
with BadEnter(): pass
iter(NoIter())
iter(BadIter())
for i in BadIter(): pass
len(BadLen())
len(StrLen())
bool(BadLen())
bool(BadBool())
if BadBool(): pass
repr(BadRepr())
str(BadRepr())
str(BadStr())
f'{BadStr()}'
hash(BadHash())
[1][BadIndex()]
hash(NoHash())
{NoHash()}
{NoHash(): 1}
Cmp() == 1, Cmp() != 1, Cmp() < 1, 1 == Cmp(), 1 in Cmp(), Cmp() in [1]
1 > Cmp()
Cmp() > 1
""",
    globals(),
)

cases(
    "reference_exceptions",
    "part_2",
    r"""
a = Add(1); a += 5; out.append(a.v); a + 1
a = Add(1); a - 1
a = Add(1); a -= 1
a = Add(1); ~a
a = Add(1); +a
a = Add(1); a < 1
a = Add(1); a[5]
a = Add(1); a['k']
a = Add(1); a[0] = 1
a = Add(1); del a[0]
a = Add(1); len(a)
a = Add(1); with_a = math.sqrt(a); out.append(with_a)
SubInt(5) + 1, SubInt(5) - 1, 1 + SubInt(5), SubInt(5) * 2, type(SubInt(5) * 2).__name__, SubInt('7') == 7, hash(SubInt(3)) == 3, [1, 2, 3][SubInt(1)], range(SubInt(2)), str(SubInt(9)), f'{SubInt(9):03d}', isinstance(SubInt(1), int)
SubStr('ab').upper(), SubStr('ab') + 'c', type(SubStr('ab') + 'c').__name__, SubStr('a') == 'a', len(SubStr('abc')), {SubStr('k'): 1}['k'], 'x' in SubStr('xyz')
p = Prop(); p.x = 5; out.append(p.x); p.x = -1
p = Prop(); del p.x; p.x
p = Prop(); p.bad
hasattr(Prop(), 'bad'), getattr(Prop(), 'bad', 'dflt')
Prop.x, 
Prop().y
g = GA(); g.a = 2; out.append((g.a, g.z)); g.q
g = GA(); g.a = 1; del g.a
D().f(), [k.__name__ for k in D.__mro__], super(B, D()).f()
rec(5)
unbound()
""",
    globals(),
)

cases(
    "reference_exceptions",
    "part_3",
    r"""
delq()
try_var
[1, 2, 3].nope
(1).nope
'a'.nope()
len.nope
D.nope
D().nope = 1
type.nope
int.nope
int('1', nope=1)
[].sort(nope=1)
sorted([1], nope=1)
dict(a=1).get(k=1)
'a'.join(nope=1)
'a'.split(nope=1)
e = ValueError('a', 1); out.append((e.args, str(e), repr(e), e.__cause__, e.__context__, e.__suppress_context__)); e.add_note('n'); out.append(e.__notes__); e.add_note(5)
e = KeyError('k'); out.append((str(e), repr(e), e.args))
e = StopIteration(5); out.append((e.value, e.args))
e = SystemExit(3); out.append(e.code)
e = E1(1, 2, 3); e.extra = 5; out.append((e.extra, e.args, str(e)))
ExceptionGroup('m', [ValueError(1)]).message, len(ExceptionGroup('m', [ValueError(1), KeyError(2)]).exceptions), str(ExceptionGroup('m', [ValueError(1)]))
isinstance(ExceptionGroup('m', [ValueError(1)]), Exception), issubclass(KeyError, LookupError), ZeroDivisionError.__mro__[1].__name__
""",
    globals(),
)

cases(
    "reference_exceptions",
    "part_4",
    r"""
raise KeyError from ValueError('c')
raise ValueError('x') from None
raise StopIteration(5)
1 / 0
[][0]
{}['a']
int('x')
a, b = 1,
a, b = b, a
x @ 5
from collections import Counter as CC; out.append(CC('a'))
assert (1, 'msg')
global_q
del out[5]
out[5] = 1
lst = [3, 1, 2]; lst.sort(key=lambda v: (v % 2, v)); out.append(lst); lst.sort(key=str, reverse=True); out.append(lst)
lst = [(1, 'b'), (0, 'x'), (1, 'a')]; lst.sort(key=lambda t: t[0]); out.append(lst); out.append(sorted(lst, key=lambda t: t[0], reverse=True))
m = [[0] * 2] * 2; m[0][0] = 1; out.append(m)
(lambda *a, k=1, **kw: (a, k, kw))(1, 2, k=3, z=4), (lambda a, b=2, /, c=3, *, d=4: (a, b, c, d))(1, c=5)
[*range(2), *'ab', *{1: 2}], {**{'a': 1}, 'b': 2, **{'a': 3}}, (*[1], 2), {*[1, 1], 2}
[(i, j) for i in range(3) for j in range(i) if i != j], {k: v for k, v in zip('ab', range(2))}, list(i * j for i in (1, 2) for j in (3, 4)), [[i for i in range(j)] for j in range(3)]
""",
    globals(),
    graphs=0,
    breaks=True,
)
