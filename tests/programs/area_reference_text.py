# ruff: noqa
"""Text, bytes and how they are formatted, from the library reference: a line a case, with the words of errors."""

import math, cmath, operator, itertools, functools, collections, copy, re, string, json, struct, weakref, types, inspect, heapq, bisect, enum, dataclasses, typing, abc, contextlib, io, numbers, fractions, statistics, textwrap, collections.abc, sys
from typing import *
from collections import *
from dataclasses import dataclass, field, replace, asdict, astuple, fields, KW_ONLY, InitVar
from enum import Enum, IntEnum, Flag, auto
from functools import *

import torch
from tests.support.registry import cases


class P:
    def __init__(self, v):
        self.v = v

    def __str__(self):
        return f"P<{self.v}>"

    def __repr__(self):
        return f"P({self.v!r})"

    def __format__(self, spec):
        return f"F[{spec}|{self.v}]"

    def __bool__(self):
        return False


class Q:
    a = 5

    def __getitem__(self, k):
        return ("item", k)


cases(
    "reference_text",
    "part_1",
    r"""
'{} {}'.format(1, 'a'), '{0}{1}{0}'.format('a', 'b'), '{a} {b!r:>5}'.format(a=1, b='x'), '{:>{w}.{p}f}'.format(3.14159, w=8, p=2), '{0[1]} {0[0]}'.format([1, 2]), '{0[a]}'.format({'a': 3})
'{} {}'.format(1)
'{a}'.format(b=1)
'{0} {}'.format(1, 2)
'{'.format(1)
'}'.format(1)
'{!x}'.format(1)
'{:d}'.format('a')
'{0.foo}'.format(1)
'{0[5]}'.format([1])
'%s %r %d %5.2f %x %%' % ('a', 'b', 3, 1.5, 255), '%(a)s' % {'a': 1}, '%s' % 5, '%s' % (1,), '%-5s|' % 'a', '%c' % 97, '%*d' % (5, 3)
'%s %r' % (P(1), P(2))
'%d' % 'a'
'%s %s' % 'a'
'%s' % ('a', 'b')
'%(a)s' % 5
'%(a)s' % {}
'%y' % 1
'%' % 1
f'{P(3)} {P(3)!r} {P(3)!s} {P(3):abc} {P(4)!r:>8}'
str(P(1)), repr(P(1)), format(P(1)), format(P(1), 'x'), [P(1)], str([P(1)]), str({'a': P(1)}), str((P(1),))
string.capwords('hello world'), string.ascii_lowercase, string.digits, string.punctuation
'abc'.upper(), 'ABC'.lower(), 'abc'.capitalize(), 'aBc'.swapcase(), 'hello world'.title(), 'ß'.casefold(), 'abc'.center(9, '*'), 'abc'.ljust(5, '.'), 'abc'.rjust(5), '42'.zfill(5), '-42'.zfill(5), 'a\tb'.expandtabs(4)
'abcabc'.count('a'), 'abcabc'.count('a', 1), 'abcabc'.find('c'), 'abcabc'.rfind('c'), 'abc'.index('b'), 'abc'.rindex('c'), 'abc'.find('z'), 'abc'.startswith('ab'), 'abc'.startswith(('x', 'a')), 'abc'.endswith('c', 0, 2)
'abc'.index('z')
""",
    globals(),
)

cases(
    "reference_text",
    "part_2",
    r"""
'abc'.count()
'abc'.count(1)
'abc'.startswith(1)
'a,b,c'.split(','), 'a b  c'.split(), 'a,b,c'.split(',', 1), 'a,b,c'.rsplit(',', 1), 'a\nb\r\nc'.splitlines(), 'a\nb'.splitlines(True), 'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'abc'.partition('x'), ' a '.strip(), 'xax'.strip('x'), 'xax'.lstrip('x'), 'xax'.rstrip('x'), 'prefix'.removeprefix('pre'), 'file.py'.removesuffix('.py')
'abc'.split('')
'abc'.partition('')
'abc'.split(1)
'-'.join(['a', 'b']), '-'.join('abc'), '-'.join({'a': 1}), ''.join(c for c in 'xy'), '-'.join(map(str, [1, 2]))
'-'.join([1])
'-'.join(['a', 1])
'-'.join(5)
'-'.join()
'aXbX'.replace('X', 'Y'), 'aXbX'.replace('X', 'Y', 1), 'abc'.translate({97: 'X', 98: None}), 'abc'.translate(str.maketrans('ab', 'xy', 'c')), str.maketrans({'a': 1})
'abc'.replace('a')
str.maketrans('ab', 'c')
'abc'[1], 'abc'[-1], 'abc'[::-1], 'abc'[1:], 'abc'[5:]
'abc'[5]
'abc'['a']
'abc'[1.0]
'abc'[[1]]
'abc'[0] = 'x'
'b' in 'abc', '' in 'abc'
1 in 'abc'
'a' < 'b', 'a' == 1, 'a' != 'b', max('abc'), sorted('cab'), list('abc'), len('abc'), hash('a') == hash('a')
'abc'.encode(), 'é'.encode('latin-1'), 'é'.encode('ascii', 'ignore'), b'abc'.decode(), b'\xff'.decode('utf8', 'replace')
""",
    globals(),
)

cases(
    "reference_text",
    "part_3",
    r"""
'a'.encode('foo')
'abc'.foo
'abc'.upper(1)
str(1, 2)
str(b'a', 'ascii', 'strict'), str(object=5), str()
b'abc'[0], b'abc'[1:], b'abc'.upper(), b'a,b'.split(b','), b'abc'.find(b'c'), b'abc'.hex(), bytes.fromhex('6162'), bytes([1, 2]), bytes(3), bytes('a', 'utf8'), b'a' + b'b', b'a' * 3, b'abc'.startswith(b'a'), b'-'.join([b'a', b'b']), b'abc'.replace(b'a', b'x'), 97 in b'abc', b'ab' in b'abc', list(b'ab')
bytes('a')
bytes([300])
bytes(-1)
b'a' + 'b'
b'abc'.split('a')
b'a%sb' % b'x', b'%d' % 5
bytes.fromhex('zz')
re.compile('(')
re.match('(a)', 'a').group(5)
struct.pack('<ih', 1, 2), struct.unpack('<ih', b'\x01\x00\x00\x00\x02\x00'), struct.calcsize('ih')
struct.pack('i', 'a')
struct.unpack('i', b'a')
struct.pack('z', 1)
textwrap.dedent('  a\n  b'), textwrap.fill('a b c d', 3), textwrap.shorten('hello world', 8), textwrap.indent('a\nb', '> ')
'a' 'b', r'\n', 'é', '\N{BULLET}', "it's"
'%s' % None, '%s' % True, '%5s' % 'ab', '%.1s' % 'ab', '%+d' % 5, '%#x' % 255, '%e' % 12345.678, '%g' % 1e-10, '%i' % 3.9
'{:,}'.format(1234567), '{:_}'.format(1234567), '{:.3}'.format(3.14159), '{:e}'.format(1234.5), '{:%}'.format(0.25), '{:b} {:o} {:X}'.format(5, 8, 255), '{:+}'.format(5), '{: }'.format(5), '{:=+5}'.format(3), '{:^5}'.format('a'), '{:*<5}'.format('a'), '{:c}'.format(97), '{:#b}'.format(5), '{!a}'.format('é')
'{:>10}'.format([1])
'a{}b{{}}c'.format(1), '{:{}}'.format('a', 5), '{:{}{}}'.format('a', '>', 5), '{0:{1}}'.format('a', '^7')
""",
    globals(),
)

cases(
    "reference_text",
    "part_4",
    r"""
'{}'.format(), 
'{x}'.format_map({})
""",
    globals(),
)

cases(
    "reference_text",
    "formatted_objects",
    r"""
'{}'.format(P(3)), '{!r}'.format(P(3)), '{!s}'.format(P(3)), '{:>10}'.format(P(3)), '{0.v}'.format(P(7))
'{0[x]} {0.a}'.format(Q())
'%s' % P(1)
'%s' % [P(1)]
'{}'.format([1, P(2)]), '{}'.format({'a': P(1)}), '{}'.format(None), '{}'.format(int)
'{0.shape}'.format(x), f'{x.shape} {x.dtype} {x.device} {x.ndim}'
'{:.2f}'.format(P(1)), f'{P(1):{P(2)}}'
'{a.v} {b[0]} {c[k]}'.format(a=P(9), b=[1], c={'k': 2})
'{} {0}'.format(P(1))
'{0} {}'.format(P(1))
'{1}'.format(P(1))
'{k}'.format(P(1))
'{} {}'.format(P(1))
'{0.zz}'.format(P(1))
'{0.}'.format(P(1))
'{:{}}|{!s:>{w}}'.format(P(1), 'q', P(2), w=9)
'{{}} {} }}'.format(P(1))
'}'.format(P(1))
'{:{:{}}}'.format(P(1), 2, 3)
'%5s|%-8r|%.2s' % (P(1), P(2), P(3))
'%s %s' % (P(1),)
'%s' % (P(1), 2)
'%(a)s %(b)r' % {'a': P(1), 'b': P(2)}
'%(z)s' % {'a': P(1)}
'%s %d%%' % (P(1), 5)
""",
    globals(),
)
