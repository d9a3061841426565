# ruff: noqa
"""itertools, heapq, bisect, functools, copy, match, from the library reference: a line a case, with the words of errors."""

import math, cmath, operator, itertools, functools, collections, copy, re, string, json, struct, weakref, types, inspect, heapq, bisect, enum, dataclasses, typing, abc, contextlib, io, numbers, fractions, statistics, textwrap, collections.abc, sys
from typing import *
from collections import *
from dataclasses import dataclass, field, replace, asdict, astuple, fields, KW_ONLY, InitVar
from enum import Enum, IntEnum, Flag, auto
from functools import *

import torch
from tests.support.registry import cases


class C:
    def __init__(self, a=1):
        self.a = a


class LH:
    def __length_hint__(self):
        return 4


def boom():
    raise ValueError("boom")


class Ctx:
    def __init__(self, log, swallow=False):
        self.log = log
        self.swallow = swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, t, v, tb):
        self.log.append((t.__name__ if t else None, str(v), tb is None))
        return self.swallow


class It:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n > 3:
            raise StopIteration("val")
        return self.n


def chainit():
    try:
        try:
            boom()
        except ValueError as e:
            raise KeyError("k") from e
    except KeyError as e2:
        return e2


async def co(n):
    if n:
        return await co(n - 1) + 1
    return 1


async def agen():
    yield 1
    yield 2


class Aw:
    def __await__(self):
        r = yield "w"
        return r


async def aw():
    return await Aw()


@dataclass
class Pt:
    x: int
    y: int = 0


def mt(v):
    match v:
        case Pt(0, y):
            return ("origin-x", y)
        case Pt(x=px, y=py) if px > 5:
            return (px, py)
        case Pt():
            return "pt"
        case [1, [a, *b], {"k": k, **r}]:
            return (a, b, k, r)
        case (1 | 2) as n:
            return ("or", n)
        case {"a": 1, "b": [_, z]}:
            return z
        case str() | bytes():
            return "text"
        case float(f):
            return f
        case [x, *_] if x == 9:
            return "nine"
        case []:
            return "empty"
        case None:
            return "none"
        case -1:
            return "neg"
        case 1 + 2j:
            return "cplx"
        case _:
            return "default"


cases(
    "reference_library",
    "part_1",
    r"""
list(itertools.accumulate([1, 2, 3])), list(itertools.accumulate([1, 2, 3], operator.mul)), list(itertools.accumulate([1], initial=5)), list(itertools.accumulate([]))
list(itertools.accumulate(5))
list(itertools.accumulate())
list(itertools.accumulate([1], 5, 6))
list(itertools.batched)
list(itertools.chain('ab', [1])), list(itertools.chain.from_iterable(['ab', 'c'])), list(itertools.chain())
list(itertools.chain(5))
list(itertools.chain.from_iterable(5))
list(itertools.combinations('abc', 2)), list(itertools.combinations('ab', 3)), list(itertools.combinations_with_replacement('ab', 2)), list(itertools.permutations('abc', 2)), list(itertools.permutations('ab')), list(itertools.product('ab', [1, 2])), list(itertools.product('ab', repeat=2)), list(itertools.product())
itertools.combinations('ab', -1)
itertools.combinations('ab')
itertools.combinations('ab', 'a')
itertools.permutations('ab', 'a')
itertools.product('ab', repeat=-1)
itertools.product('ab', foo=1)
itertools.product('ab', repeat='a')
list(itertools.compress('abc', [1, 0, 1])), list(itertools.dropwhile(lambda a: a < 2, [1, 2, 1])), list(itertools.takewhile(lambda a: a < 2, [1, 2, 1])), list(itertools.filterfalse(None, [0, 1])), list(itertools.filterfalse(lambda a: a > 1, [1, 2]))
itertools.compress('abc')
itertools.dropwhile(5)
list(itertools.dropwhile(5, [1]))
list(itertools.islice('abcdef', 2)), list(itertools.islice('abcdef', 1, None, 2)), list(itertools.islice('abc', None)), list(itertools.islice(itertools.count(), 3, 5))
itertools.islice('abc', -1)
itertools.islice('abc', 'a')
itertools.islice('abc')
itertools.islice('abc', 1, 2, 0)
""",
    globals(),
)

cases(
    "reference_library",
    "part_2",
    r"""
itertools.islice('abc', 1, 2, 3, 4)
list(itertools.islice(itertools.count(5, 2), 3)), list(itertools.islice(itertools.count(0.5), 2)), list(itertools.islice(itertools.cycle('ab'), 5)), list(itertools.repeat(1, 3)), list(itertools.cycle(''))
itertools.count('a')
itertools.count(1, 2, 3)
itertools.cycle(5)
itertools.repeat()
itertools.repeat(1, 'a')
list(itertools.repeat(1, -2))
[(k, list(g)) for k, g in itertools.groupby('aabbc')], [(k, list(g)) for k, g in itertools.groupby([1, 3, 2], key=lambda a: a % 2)]
itertools.groupby(5)
a, b = itertools.tee([1, 2, 3]); out.append((next(a), list(b), list(a)))
itertools.tee([1], -1)
itertools.tee(5)
list(itertools.zip_longest('ab', [1], fillvalue=0)), list(itertools.zip_longest()), list(itertools.pairwise([1, 2, 3])), list(itertools.starmap(pow, [(2, 3)]))
itertools.zip_longest('ab', foo=1)
itertools.pairwise()
list(itertools.starmap(pow, [5]))
list(itertools.starmap(5, [(1,)]))
heapq.nlargest(2, [1, 3, 2]), heapq.nsmallest(2, [1, 3, 2]), list(heapq.merge([1, 3], [2])), heapq.nlargest(1, ['a', 'bb'], key=len)
h = [3, 1, 2]; heapq.heapify(h); heapq.heappush(h, 0); out.append((h, heapq.heappop(h), heapq.heapreplace(h, 5), heapq.heappushpop(h, 0), h))
heapq.heappop([])
heapq.heappush(5, 1)
""",
    globals(),
)

cases(
    "reference_library",
    "part_3",
    r"""
heapq.heapify('a')
heapq.heappush([1], 'a')
l = [1, 3]; bisect.insort(l, 2); bisect.insort_left(l, 2); out.append(l)
bisect.bisect([1, 2], 1, lo=-1)
bisect.bisect([1, 'a'], 1)
bisect.insort([1], 1, lo=-1)
bisect.bisect()
[mt(v) for v in [Pt(0, 5), Pt(7, 1), Pt(1), [1, [2, 3, 4], {'k': 5, 'z': 6}], 1, 2, {'a': 1, 'b': [0, 7]}, 'a', b'b', 1.5, [9, 8], [], None, -1, 1+2j, object, (1,), {'a': 1}, deque([9, 1]), range(0), True]]
c = co(0); c.close()
c = aw(); out.append(c.send(None)); c.send(5)
c = aw(); c.send(None); c.throw(ValueError('t'))
log = []; 
log = []; exec('y = 5', {}); out.append(eval('1 + 2'))
math.prod(5)
isinstance(5, numbers.Number), numbers.Integral.__name__, issubclass(bool, numbers.Integral)
list(It()), [*It()], sum(It()), dict(zip(It(), 'abc')), tuple(It()), max(It()), sorted(It(), reverse=True), list(zip(It(), It())), list(map(str, It())), 2 in It(), ','.join(map(str, It()))
a, *b = It(); out.append((a, b)); a, b = It()
it = It(); out.append([next(it), next(it), next(it)]); next(it)
for i in It(): pass
log = []; 
types.FunctionType, types.MethodType, types.GeneratorType, types.SimpleNamespace(a=1).a, types.ModuleType.__name__, types.NoneType, types.EllipsisType
types.MethodType(lambda s: s, 5)()
types.DynamicClassAttribute.__name__
types.coroutine(lambda: 5)()
contextlib.ExitStack().close(), contextlib.AbstractContextManager.__name__
""",
    globals(),
)

cases(
    "reference_library",
    "part_4",
    r"""
functools.reduce(max, [1, 5, 3]), functools.partial(int, base=2)('101'), functools.partial(print).func is print
functools.wraps(len)(lambda: 1).__doc__ is not None
functools.total_ordering(type('T', (), {}))
functools.cmp_to_key(lambda a, b: a - b)(3) < functools.cmp_to_key(lambda a, b: a - b)(5)
functools.cmp_to_key()
N2 = namedtuple('N2', 'x y'); out.append((N2(1, 2), N2(1, 2).x, N2._fields))
namedtuple('N', 'a a')
namedtuple('N', 'def')
namedtuple('N', '_a')
namedtuple('N', 'a b', defaults=[1, 2, 3])
N3 = namedtuple('N3', ['a', 'def'], rename=True); out.append(N3._fields)
collections.abc.Sequence.register
isinstance(LH(), collections.abc.Sized), operator.length_hint(LH()), list(collections.abc.Mapping.__abstractmethods__) is not None
l = [1]; l.append(l); m = copy.deepcopy(l); out.append((m[1] is m, m is l))
statistics.stdev([1, 2, 3]), statistics.mode([1, 1, 2]), statistics.variance([1, 2])
fractions.Fraction(3, 6), fractions.Fraction('1/3') * 3, float(fractions.Fraction(1, 4)), fractions.Fraction(1, 3) < 1, round(fractions.Fraction(7, 2))
string.Template('a').template
""",
    globals(),
)

# The stand-in for an object of C is seen: these run as they are.
cases(
    "reference_library",
    "stand_ins",
    r"""
repr(itertools.count(5)), repr(itertools.repeat(1, 2))
type(itertools.count()).__name__, type(itertools.chain()).__name__
isinstance(itertools.chain(), collections.abc.Iterator), isinstance(itertools.count(), itertools.count)
""",
    globals(),
    graphs=3,
    breaks=True,
)
