# ruff: noqa
"""Numbers, ranges, slices and the builtins that take them, from the library reference: a line a case, with the words of errors."""

import math, cmath, operator, itertools, functools, collections, copy, re, string, json, struct, weakref, types, inspect, heapq, bisect, enum, dataclasses, typing, abc, contextlib, io, numbers, fractions, statistics, textwrap, collections.abc, sys
from typing import *
from collections import *
from dataclasses import dataclass, field, replace, asdict, astuple, fields, KW_ONLY, InitVar
from enum import Enum, IntEnum, Flag, auto
from functools import *

import torch
from tests.support.registry import cases


cases(
    "reference_numbers",
    "part_1",
    r"""
[(7).bit_length(), (7).bit_count(), (255).to_bytes(2,'big'), (255).to_bytes(2, byteorder='little', signed=True), (3).as_integer_ratio(), (3).conjugate(), (3).real, (3).imag, (3).numerator, (3).denominator]
(256).to_bytes(1, 'big')
(-1).to_bytes(1, 'big')
(1).to_bytes(1, 'middle')
int.from_bytes(b'\x01\x02', 'big')
int.from_bytes([1, 2], byteorder='little', signed=True)
int('12', 3)
int('z', 36)
int('9', 8)
int('0x1f', 0)
int('abc')
int('1_000')
int(None)
int([1])
int(1.9)
int(float('nan'))
int(float('inf'))
int('1', 1)
int(1, 2)
int(' 12 ')
int(b'12')
int(x='3')
float('1e3')
float(' -inf ')
float('a')
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_2",
    r"""
float([])
float(10**400)
complex('1+2j')
complex('1 + 2j')
complex(1, '2')
complex('1', 2)
complex(1, 2) / 0
[abs(3+4j), (1+2j).conjugate(), (1+2j).real, (1+2j).imag, 1j ** 2]
1 < 2j
(1.5).as_integer_ratio()
float('inf').as_integer_ratio()
float('nan').as_integer_ratio()
[(0.1).hex(), float.fromhex('0x1.8p3'), (2.0).is_integer(), (2.5).is_integer()]
float.fromhex('zz')
1 / 0
1 // 0
1 % 0
1.0 / 0
1.0 // 0
1.0 % 0
divmod(1, 0)
divmod(1.0, 0)
divmod(-7, 2), divmod(7, -2), divmod(-7.5, 2)
0 ** -1
0.0 ** -1
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_3",
    r"""
(-8) ** (1/3)
pow(2, -1, 7)
pow(2, -1, 4)
pow(2, 3, 0)
pow(2, 3.0, 5)
pow('a', 2)
2 ** 1000
1 << -1
1 << 70
1 >> 100
-1 >> 100
~5, -5, +5, not 5
round(2.5), round(3.5), round(-2.5), round(2.675, 2), round(1234, -2), round(1.5, None)
round('a')
round(1.5, 'a')
round(float('nan'))
round(float('inf'))
round(10**20, -19)
abs('a')
abs(-3), abs(-3.5), abs(True)
-'a'
~1.5
'a' + 1
1 + 'a'
[] + ()
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_4",
    r"""
() + []
'a' * 'b'
'a' * 2.0
[1] * -1
'a' * True
None + 1
1 + None
1 < 'a'
'a' < 1
[1] < [1, 2], (1, 2) < (1, 3), [1, 2] == (1, 2)
[1] < (1,)
None < None
{} < {}
1 if [] else 2
1 == 1.0, 1 == True, hash(1) == hash(1.0)
float('nan') == float('nan')
True + True, True & False, True ^ True, ~True, True << 3
True & 2, True | 2.0
bool('a', 'b')
bool(x=1)
int(True), float(True), complex(True), str(True), repr(True)
bin(10), oct(8), hex(255), bin(-3)
bin('a')
hex(1.5)
chr(97), ord('a'), chr(0x10ffff)
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_5",
    r"""
chr(-1)
chr('a')
ord('ab')
ord(1)
ord(b'a')
sum([1, 2], 3), sum([0.1] * 10), sum([[1], [2]], [])
sum(['a', 'b'], '')
sum(['a', 'b'])
sum(5)
max(1, 2), max([3, 1]), max([], default=4), max('abc', key=ord), min({3: 1, 2: 0})
max([])
max(1)
max()
max(1, 2, default=3)
max([1, 'a'])
min([], default=None)
min(1, 'a')
math.gcd(12, 18), math.lcm(4, 6), math.gcd(), math.isqrt(17), math.comb(5, 2), math.perm(5, 2), math.perm(5), math.factorial(5), math.prod([1, 2, 3]), math.prod([2.0], start=3)
math.isqrt(-1)
math.comb(-1, 2)
math.factorial(-1)
math.factorial(2.5)
math.sqrt(-1)
math.log(0)
math.log(8, 2), math.log2(8), math.log10(100), math.log1p(0.5), math.exp(1), math.expm1(1e-5), math.exp2(3)
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_6",
    r"""
math.log(-1)
math.log('a')
math.exp(1000)
math.pow(0, -1)
math.pow(2, 0.5), math.hypot(3, 4), math.hypot(1, 2, 3), math.dist((1, 2), (4, 6)), math.cbrt(27)
math.dist((1,), (1, 2))
math.floor(2.5), math.ceil(2.5), math.trunc(-2.5), math.modf(2.5), math.frexp(8.0), math.ldexp(0.5, 4), math.fmod(-7, 3), math.remainder(7, 4), math.copysign(1, -0.0), math.nextafter(1, 2), math.ulp(1.0)
math.floor('a')
math.floor(float('inf'))
math.fmod(1, 0)
math.isclose(1, 1 + 1e-10), math.isclose(1, 1.1, rel_tol=0.2), math.isnan(1), math.isinf(1e400), math.isfinite(1)
math.isclose(1, 2, rel_tol=-1)
math.fsum([0.1] * 10), math.degrees(1), math.radians(180), math.sin(1), math.cos(1), math.tan(1), math.asin(1), math.acos(1), math.atan(1), math.atan2(1, -1), math.sinh(1), math.cosh(1), math.tanh(1), math.asinh(1), math.acosh(2), math.atanh(0.5), math.erf(1), math.erfc(1), math.gamma(5), math.lgamma(5)
math.acos(2)
math.gamma(0)
math.pi, math.e, math.tau, math.inf, math.nan
cmath.sqrt(-1), cmath.phase(1j), cmath.polar(1 + 1j), cmath.rect(1, 2), cmath.exp(1j), cmath.isnan(1j)
(5).__add__(3), (5).__add__(3.0), (5).__radd__(2), (5.0).__add__(1), (5).__lt__(6), (5).__eq__('a'), (5).__format__('04d'), (5).__repr__(), (5).__bool__(), (5).__index__(), (5).__float__(), (5).__divmod__(3)
(5).__add__()
(5).__add__(1, 2)
(1).foo
(1).foo = 3
int.__add__(1, 2)
int.__add__('a', 2)
int.bit_length(5), int.bit_length(True)
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_7",
    r"""
int.bit_length('a')
int.foo
isinstance(True, int), issubclass(bool, int), isinstance(1, (str, int)), isinstance(1, int | str), isinstance(1.0, numbers.Real)
isinstance(1, 5)
issubclass(1, int)
isinstance(1, [int])
isinstance(1, list[int])
fractions.Fraction(1, 3) + fractions.Fraction(1, 6), str(fractions.Fraction('0.25'))
fractions.Fraction(1, 0)
statistics.mean([1, 2, 3]), statistics.median([1, 3, 2])
format(1234567.891, ',.2f'), format(5, '08b'), format(255, '#x'), format(1e10, 'g'), format(0.5, '%'), format(-5, '+'), format(5, '<5'), format(True), format(1234, '_'), format(65, 'c'), format(1.0, 'n')
format(5, 'z')
format(5.5, 'd')
format('a', 'd')
format(5, '.2d')
format(None, 'd')
format(5, 3)
format([], 's')
format(1+2j, '.2f')
f"{3.14159:.2f} {10:>5} {'a':^5} {5:0>3} {1e5:,} {3!r} {'a'!r:>5} {'é'!a}"
f"{3.14159:{6}.{2}f} {5:{'0'}{'>'}{4}}"
f"{5:{'q'}}"
f"{5=} {5 + 1 = } {'a'=!s}"
f"{{}} {{{5}}}"
10 .__class__, type(5), type(5).__name__, (5).__class__.__mro__
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_8",
    r"""
0.1 + 0.2, 1e300 * 1e10, -0.0, 5 // 2.0, -5 // 2, -5 % 3, 5 % -3, -5.5 % 2
int.__doc__ is None
sys.maxsize + 1, sys.float_info.max
hash([])
hash({})
hash(([],))
hash(slice(1))
1 is 1, None is None, 1 is not None
i = 5; i += 2; i -= 1; i *= 3; i //= 2; i **= 2; i %= 50; i <<= 1; i >>= 1; i |= 8; i &= 12; i ^= 3; out.append(i)
i = 5; i /= 2; out.append(i); i @= 3
a = b = 3; a, b = b, a + 1; out.append((a, b))
a = 'x'; a += 1
a = None; a += 1
a = 1; a()
a = 1; a[0]
a = 1; a[0] = 2
a = 1; del a[0]
a = 1; a.b
len(5)
iter(5)
next(5)
next([])
for i in 5: pass
[*5]
a, b = 5
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_9",
    r"""
a, b = [1]
a, b = [1, 2, 3]
a, *b = []
a, *b, c = [1]
a, b = 'abc'
a, b = {1: 2}
(a, b), c = 1, 2
a, b = None
[a, b] = (1,); out.append(a)
reversed(5)
reversed({1, 2})
enumerate(5)
zip(5)
zip([1], 5)
map(5)
map(5, 5)
list(map(5, [1]))
sorted(5)
sorted([1, 'a'])
sorted([3, 1, 2], reverse=True), sorted('hello'), sorted({'b': 1, 'a': 2}), sorted([1, -2, 3], key=abs), sorted([(1, 'b'), (1, 'a')])
sorted([1], 2)
sorted([1], key=5)
sorted([1], reverse='a')
sorted([1], foo=1)
sorted([3, 1], reverse=None)
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_10",
    r"""
sorted()
any(5)
all([1, 0]), any([]), all([])
list(filter(None, [0, 1, 2])), list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(zip([1, 2], 'ab')), list(enumerate('ab', 5)), list(reversed([1, 2])), list(enumerate('ab', start=2))
enumerate('ab', 'a')
enumerate()
list(zip([1, 2], [1], strict=True))
list(zip([1], [1, 2], strict=True))
list(zip([1], [1], [1, 2], strict=True))
list(zip(strict=True)), list(zip())
callable(5), callable(int), callable(lambda: 1)
vars(5)
getattr(5, 'real'), getattr(5, 'foo', None), hasattr(5, 'foo')
getattr(5, 'foo')
getattr(5, 5)
getattr(5)
setattr(5, 'a', 1)
delattr(5, 'a')
ascii('é'), repr('a\n'), repr("a'b"), str(b'a'), str(b'a', 'utf8')
divmod('a', 1)
pow(1, 2, 3, 4)
type(5)(6), type('a')(5)
type(1, 2)
object() == object()
object(1)
""",
    globals(),
)

cases(
    "reference_numbers",
    "part_11",
    r"""
int.__new__(int, 5), object.__new__(int)
slice(1, 2).indices(5), slice(None, None, -1).indices(5), slice(1, 10, 2).start, slice(1) == slice(1), slice(1, 2) < slice(1, 3)
slice(1, 2, 0).indices(5)
slice()
slice('a').indices(5)
slice(1).indices(-1)
repr(slice(1, None, 'a'))
range(5)[1], range(5)[1:3], list(range(5, 0, -2)), range(5).index(3), range(5).count(3), 3 in range(5), 3.0 in range(5), len(range(0, 10, 3)), range(3) == range(0, 3, 1), range(0) == range(2, 2), hash(range(3)) == hash(range(3)), range(5).start, range(1, 5, 2).stop, range(5).step, reversed(range(3)).__class__.__name__
range(5)[9]
range(5)['a']
range(1, 2, 0)
range(1.5)
range('a')
range()
range(1, 2, 3, 4)
range(5).index(9)
range(5).index('a')
'a' in range(5)
range(3).start
range(3).foo
range(3) + range(3)
range(3) < range(4)
bool(range(0)), str(range(1, 3)), repr(range(1, 3, 2))
""",
    globals(),
)
