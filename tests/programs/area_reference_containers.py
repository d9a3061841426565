# ruff: noqa
"""Lists, tuples, dicts, sets, deques and the classes of collections, from the library reference: a line a case, with the words of errors."""

import math, cmath, operator, itertools, functools, collections, copy, re, string, json, struct, weakref, types, inspect, heapq, bisect, enum, dataclasses, typing, abc, contextlib, io, numbers, fractions, statistics, textwrap, collections.abc, sys
from typing import *
from collections import *
from dataclasses import dataclass, field, replace, asdict, astuple, fields, KW_ONLY, InitVar
from enum import Enum, IntEnum, Flag, auto
from functools import *

import torch
from tests.support.registry import cases


cases(
    "reference_containers",
    "part_1",
    r"""
l = [1]; l.append()
l = [1]; l.append(1, 2)
l = [1]; l.append(object=1)
l = [1]; l.extend()
l = [1]; l.extend(5)
l = [1]; l.extend([2], [3])
l = [1]; l.extend('ab'); l.extend({5: 6}); l.extend(range(2)); out.append(l)
l = [1]; l.insert(1)
l = [1]; l.insert('a', 1)
l = [1]; l.insert(1.5, 1)
l = [1]; l.insert(True, 5); l.insert(-10, 0); l.insert(100, 9); l.insert(None, 1)
l = [1]; l.pop(5)
l = []; l.pop()
l = [1]; l.pop('a')
l = [1]; l.pop(0, 1)
l = [1]; l.pop(1.0)
l = [1]; l.remove(5)
l = [1]; l.remove()
l = [1]; l.index(5)
l = [1]; l.index(1, 5)
l = [1, 2, 1]; out.append((l.index(1, 1), l.index(1, -2), l.index(2, 0, 2), l.count(1)))
l = [1]; l.index()
l = [1]; l.index(1, 'a')
l = [1]; l.index(1, None)
l = [1]; l.count()
""",
    globals(),
)

cases(
    "reference_containers",
    "part_2",
    r"""
l = [1]; l.count(1, 2)
l = [1]; l.clear(1)
l = [1]; l.copy(1)
l = [1]; l.reverse(1)
l = [1]; l.sort(1)
l = [1]; l.sort(reverse='a')
l = [1]; l.sort(key=5)
l = [1]; l.sort(foo=5)
l = [3, 1, 2]; l.sort(key=None, reverse=1); out.append(l)
l = [3, 'a']; l.sort()
l = [3, 1]; l.sort(key=lambda a: 1 / 0)
l = [3, 1, 2]; l.sort(key=lambda a: -a); out.append(l)
l = [1, 2]; l[5]
l = [1, 2]; l['a']
l = [1, 2]; l[1.0]
l = [1, 2]; l[None]
l = [1, 2]; l[1, 2]
l = [1, 2]; l[5] = 1
l = [1, 2]; l['a'] = 1
l = [1, 2]; del l[5]
l = [1, 2]; del l['a']
l = [1, 2]; l[0:1] = 5
l = [1, 2]; l[::2] = [1, 2, 3]
l = [1, 2]; l['a':]
l = [1, 2]; l[::0]
""",
    globals(),
)

cases(
    "reference_containers",
    "part_3",
    r"""
l = [1, 2]; l[::0] = []
l = [1, 2]; l[1:] = 'abc'; l[:0] = (x for x in [7]); out.append(l); del l[::2]; out.append(l)
l = [1, 2]; l += 5
l = [1, 2]; l += 'ab'; l *= 2; out.append(l)
l = [1, 2]; l *= 'a'
l = [1, 2]; l *= 1.5
l = [1, 2]; l + (3,)
l = [1, 2]; l - [1]
[1, 2] * 'a'
[1] in [[1]], 1 in [1.0], None in [], float('nan') in [float('nan')]
l = [1]; l.foo
l = [1]; l.foo = 1
l = [1]; del l.foo
l = [1]; l()
l = [1]; l.__getitem__()
l = [1]; l.__setitem__(0, 2); l.__delitem__(0); out.append(l)
l = [1]; l.__add__(5)
l = [1]; out.append(l.__eq__(5)); out.append(l.__lt__((1,)))
l = [1]; l.__hash__
hash([1])
list(5)
list(1, 2)
list(a=1)
list(), list('ab'), list({1: 2}), list((1, 2)), list(range(3)), list(map(str, [1]))
[].__class__, list.__name__, type([]) is list, [] is []
""",
    globals(),
)

cases(
    "reference_containers",
    "part_4",
    r"""
l = [1, [2]]; m = l[:]; m[1].append(3); out.append((l, l.copy() == m))
l = [1]; l.append(l); out.append(repr(l))
l = [1]; l.append(l); out.append(l == l)
l = [1, 2, 3]; out.append([l.append(a) or a for a in l if len(l) < 6])
it = iter([1]); next(it); next(it)
it = iter([1]); out.append((next(it), next(it, 'd'), next(it, None), list(it)))
it = iter([1, 2]); out.append((it.__length_hint__(), next(it), it.__length_hint__()))
it = iter([]); next(it, 1, 2)
it = iter([1]); it[0]
it = iter([1]); len(it)
l = [1]; it = iter(l); list(it); l.append(2); out.append(list(it))
l = [1, 2]; it = iter(l); next(it); l.append(3); out.append(list(it))
l = [1, 2, 3]; it = reversed(l); next(it); l.pop(); out.append(list(it))
iter(lambda: 1, 1).__class__.__name__, list(iter([1, 2, 3].pop, 1))
iter(5, 5)
t = (1, 2); t[5]
t = (1, 2); t['a']
t = (1, 2); t[0] = 1
t = (1, 2); del t[0]
t = (1, 2); t.append(1)
t = (1, 2); t.index(5)
t = (1, 2); t.index()
t = (1, 2); t.count()
t = (1, 2); t += (3,); t *= 2; out.append((t, t.index(3), t.count(1), t[1:], t[::-1]))
t = (1, 2); t += [3]
""",
    globals(),
)

cases(
    "reference_containers",
    "part_5",
    r"""
(1, 2) + [3]
tuple(5)
tuple(1, 2)
tuple(a=1)
(1, 2).__add__((3,)), (1,).__contains__(1), (1, 2).__getitem__(1), (1, 2).__hash__() == hash((1, 2)), (1,).__len__()
d = {}; d['a']
d = {1: 2}; d[[]]
d = {1: 2}; d[{}] = 1
d = {1: 2}; del d[5]
d = {1: 2}; d.pop(5)
d = {1: 2}; d.pop()
d = {1: 2}; d.pop(1, 2, 3)
d = {1: 2}; out.append((d.pop(5, None), d.pop(1), d))
d = {}; d.popitem()
d = {1: 2, 3: 4}; out.append((d.popitem(), d)); d.popitem(1)
d = {1: 2}; d.get()
d = {1: 2}; d.get(1, 2, 3)
d = {1: 2}; d.get(1, default=3)
d = {1: 2}; d.get([])
d = {1: 2}; d.setdefault()
d = {1: 2}; out.append((d.setdefault(1, 5), d.setdefault(7), d.setdefault(8, []), d))
d = {1: 2}; d.setdefault([], 1)
d = {1: 2}; d.update(5)
d = {1: 2}; d.update([5])
d = {1: 2}; d.update([(1, 2, 3)])
""",
    globals(),
)

cases(
    "reference_containers",
    "part_6",
    r"""
d = {1: 2}; d.update(['abc'])
d = {1: 2}; d.update(1, 2)
d = {1: 2}; d.update(['ab'], c=5); d.update({7: 8}); d.update(); d.update([(1, 9)]); out.append(d)
d = {1: 2}; d.update(None)
d = {1: 2}; d.clear(1)
d = {1: 2}; d.copy(1)
d = {1: 2}; d.keys(1)
d = {1: 2}; d.items(1)
d = {1: 2}; d.foo
d = {1: 2}; d.foo = 5
d = {1: 2}; d | [(1, 2)]
d = {1: 2}; d |= [(3, 4)]; out.append(d)
d = {1: 2}; d |= 5
d = {1: 2}; out.append((d | {1: 3, 4: 5}, {4: 5} | d, d))
dict(5)
dict([1])
dict([(1, 2, 3)])
dict(1, 2)
dict([[1, 2]], a=3), dict(a=1, b=2), dict({1: 2}), dict(zip('ab', [1, 2])), dict()
dict(**{'a': 1}, **{'a': 2})
dict(**{1: 2})
{**{1: 2}, **5}
{**{1: 2}, 1: 3, **{4: 5}}
dict.fromkeys('ab'), dict.fromkeys([1, 2], 5), dict.fromkeys([])
dict.fromkeys(5)
""",
    globals(),
)

cases(
    "reference_containers",
    "part_7",
    r"""
dict.fromkeys()
dict.fromkeys([[]])
d = {1: 2, 3: 4}; out.append((list(d), list(d.keys()), list(d.values()), list(d.items()), list(reversed(d)), list(reversed(d.items())), list(reversed(d.values()))))
d = {1: 2, 3: 4}; k = d.keys(); out.append((k & {1}, k | {5}, k - {1}, k ^ {1, 9}, {1} & k, {1, 2} - k, k.isdisjoint([5]), 1 in k, len(k), k == {1, 3}, k <= {1, 3, 5}, k < {1, 3}, k >= {1}, k > set()))
d = {1: 2}; d.keys() + [1]
d = {1: 2}; d.keys() & 5
d = {1: 2}; d.keys() & [1, 2], out.append(d.keys() | 'ab')
d = {1: 2}; d.keys()[0]
d = {1: 2}; d.values() & {1}
d = {1: 2}; out.append((d.values() == d.values(), 2 in d.values(), d.keys() == d.keys(), d.items() == d.items()))
d = {1: []}; d.items() & {1}
d = {1: 2}; k = d.keys(); d[5] = 6; out.append((list(k), len(k), k.mapping[5], repr(k), repr(d.values()), repr(d.items())))
d = {1: 2}; d.keys().mapping[7] = 1
d = {1: 2}; next(d)
d = {1: 2}; next(d.keys())
d = {1: 2}; it = iter(d); d[3] = 4; next(it)
d = {1: 2, 3: 4}; [d.pop(k) for k in d]
d = {1: 2}; it = iter(d.items()); out.append((next(it), next(it, 0), it.__length_hint__()))
d = {1: 'a', True: 'b', 1.0: 'c'}; out.append(d)
d = {'b': 1, 'a': 2}; d['b'] = 3; d.pop('a'); d['a'] = 1; out.append((d, list(d.items())))
d = {1: 2}; 1 in d, out.append((d.__contains__(1), d.__getitem__(1), d.__len__(), d.__eq__({1: 2}), d.__or__({3: 4}), d.__iter__().__class__.__name__))
d = {1: 2}; d.__missing__
d = {1: 2}; [] in d
d = {1: 2}; out.append(d.__eq__(5)); out.append({1: 2} == {1.0: 2.0}); out.append({1: 2} != {})
{} < {1: 2}
""",
    globals(),
)

cases(
    "reference_containers",
    "part_8",
    r"""
{1: 2} + {3: 4}
s = {1, 2}; s.add()
s = {1, 2}; s.add([])
s = {1, 2}; s.add(1, 2)
s = {1, 2}; s.remove(5)
s = {1, 2}; s.remove([])
s = {1, 2}; s.discard([])
s = {1, 2}; s.discard()
s = {1, 2}; s.remove('a')
s = {1, 2}; s.discard(5); s.discard(1); out.append(s)
s = set(); s.pop()
s = {1, 2}; s.pop(1)
s = {1}; out.append((s.pop(), s))
s = {1, 2}; s.update(5)
s = {1, 2}; s.update([3], 'a', {5: 6}); s.update(); out.append(s)
s = {1, 2}; s.union(5)
s = {1, 2}; out.append((s.union([3], [4]), s.intersection([1], [1, 2]), s.difference([1]), s.symmetric_difference([1, 5]), s.issubset([1, 2, 3]), s.issuperset([1]), s.isdisjoint([5]), s.copy(), s.union()))
s = {1, 2}; s.symmetric_difference()
s = {1, 2}; s.symmetric_difference([1], [2])
s = {1, 2}; s.issubset(5)
s = {1, 2}; s.intersection_update([1], [1, 5]); out.append(s); s.difference_update([1]); out.append(s); s.symmetric_difference_update([5, 6]); out.append(s)
s = {1, 2}; s | [1]
s = {1, 2}; s |= [1]
s = {1, 2}; s &= {1}; out.append(s); s -= {1}; out.append(s); s ^= {4}; s |= {7}; out.append(s)
s = {1, 2}; s + {1}
""",
    globals(),
)

cases(
    "reference_containers",
    "part_9",
    r"""
s = {1, 2}; s < 5
s = {1, 2}; s[0]
s = {1, 2}; out.append((s < {1, 2, 3}, s <= {1, 2}, s > {1}, s == {2, 1}, s != {1}, s == frozenset([1, 2]), s == [1, 2]))
s = {1, 2}; hash(s)
{[]}
{{}}
{frozenset([1])}, frozenset([1, 2]) | {3}, {3} | frozenset([1]), frozenset() == set()
set(5)
set(1, 2)
set(a=1)
frozenset(5)
frozenset([[]])
frozenset([1]).add(2)
frozenset([1, 2]).union([3]), frozenset([1]) & {1}, frozenset([1, 2]) - {1}, frozenset([1]) ^ {2}, frozenset([1]).issubset({1, 2}), hash(frozenset([1])) == hash(frozenset([1]))
s = {1, 2}; it = iter(s); s.add(9); next(it)
s = {1}; s.foo
s = {1}; s.__contains__(1), out.append((s.__or__({2}), s.__or__([2]), s.__and__({1}), s.__len__(), s.__eq__({1}), s.__le__({1})))
q = deque([1, 2, 3], maxlen=3); q.append(4); q.appendleft(0); out.append((q, q.maxlen)); q.rotate(1); q.rotate(); q.rotate(-5); out.append(list(q))
q = deque([1]); q.pop(); q.pop()
q = deque([1]); q.popleft(); q.popleft()
q = deque([1]); q.pop(0)
q = deque([1]); q.remove(5)
q = deque([1]); q.index(5)
q = deque([1, 2, 1]); out.append((q.index(1, 1), q.count(1), q[0], q[-1], q.copy(), 1 in q, len(q), q == deque([1, 2, 1]), q < deque([2]), q + deque([1]), q * 2, reversed(q).__class__.__name__, list(reversed(q))))
q = deque([1]); q[5]
""",
    globals(),
)

cases(
    "reference_containers",
    "part_10",
    r"""
q = deque([1]); q['a']
q = deque([1]); q[0:1]
q = deque([1]); q[5] = 1
q = deque([1]); del q[5]
q = deque([1], maxlen=1); q.insert(0, 1)
q = deque([1, 3]); q.insert(1, 2); q.extend([4]); q.extendleft([0, -1]); q.reverse(); q.remove(2); q[0] = 9; del q[1]; out.append(q); q.clear(); out.append(q); q += [5]; q *= 2; out.append(q)
q = deque(5)
deque([1], -1)
deque([1], 'a')
deque([1], 1, 2)
q = deque([1]); q + [1]
q = deque([1]); q == [1], out.append(q == [1])
q = deque([1]); it = iter(q); q.append(2); next(it)
q = deque([1]); hash(q)
q = deque([1]); q.append()
q = deque([1]); q.rotate('a')
q = deque([1]); q.foo
repr(deque([1, 2], 3)), repr(deque())
o = OrderedDict(a=1, b=2, c=3); o.move_to_end('a'); out.append(list(o.items())); o.move_to_end('a', last=False); out.append(o); out.append((o.popitem(), o.popitem(last=False), o))
o = OrderedDict(a=1); o.move_to_end('z')
o = OrderedDict(); o.popitem()
o = OrderedDict(a=1); o.pop('z')
o = OrderedDict(a=1); o['z']
o = OrderedDict(a=1); del o['z']
OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1), OrderedDict(a=1, b=2) == dict(b=2, a=1), OrderedDict(a=1) | {'b': 2}, list(reversed(OrderedDict(a=1, b=2))), OrderedDict.fromkeys('ab', 1), repr(OrderedDict(a=1)), OrderedDict(a=1).copy(), OrderedDict([('x', 1)]).setdefault('x', 2)
""",
    globals(),
)

cases(
    "reference_containers",
    "part_11",
    r"""
OrderedDict(5)
OrderedDict(1, 2)
o = OrderedDict(a=1); o.update(b=2); o |= {'c': 3}; out.append((o, list(o.keys()), list(o.values())))
d = defaultdict(list); d['a'].append(1); out.append((d, d.default_factory, d.get('z'), 'z' in d, d['q'], len(d)))
d = defaultdict(); d['a']
d = defaultdict(5)
d = defaultdict(lambda: 7, [('a', 1)]); out.append((d['b'], dict(d))); d.default_factory = None; d['zz']
d = defaultdict(lambda: 1 / 0); d['a']
d = defaultdict(int); d.__missing__('a'), out.append(d)
d = defaultdict(int); d.pop('a')
c = Counter('abca'); out.append((c, c.most_common(), c.most_common(1), c['z'], sorted(c.elements()), c.total(), list(c)))
c = Counter('abca'); c.update('ab'); c.subtract('a'); c.update(a=5); out.append((c, c + Counter('a'), c - Counter('aaaaaaaaaa'), c & Counter('a'), c | Counter('zz'), +c, -c)); del c['q']; out.append(c.pop('a'))
c = Counter(a=3, b=1); c += Counter(b=2); out.append(c); c -= Counter(a=5); out.append(c); c |= Counter(z=1); c &= Counter(z=4); out.append(c)
Counter(a=1) == Counter(a=1, b=0), Counter(a=1) <= Counter(a=2), Counter(a=1) < Counter(a=1), repr(Counter(a=1)), Counter([1, 1, 2]), Counter({1: 2})
Counter(5)
Counter.fromkeys('a')
Counter(1, 2)
c = Counter(a=1); c.most_common('a')
c = Counter(); c['x'] += 1; out.append((c, c.copy(), dict(c))); c.clear(); out.append(c)
m = ChainMap({1: 2}, {1: 3, 4: 5}); out.append((m[1], m[4], len(m), list(m), m.get(9), 4 in m, dict(m), m.maps, m.parents, m.new_child({7: 8}), m | {1: 9}, bool(m))); m[9] = 9; out.append(m); m.pop(9); m[9]
m = ChainMap({1: 2}, {3: 4}); del m[3]
m = ChainMap({1: 2}, {3: 4}); m.pop(3)
m = ChainMap({}); m.popitem()
m = ChainMap({1: 2}); out.append((repr(m), m == {1: 2}, list(m.items()), m.copy(), ChainMap.fromkeys('ab')))
u = UserDict({1: 2}); u[3] = 4; out.append((u, u.data, len(u), u.get(9), 1 in u, u | {5: 6}, u == {1: 2, 3: 4}, list(u), u.copy(), u.pop(1), repr(u))); u[99]
""",
    globals(),
)

cases(
    "reference_containers",
    "part_12",
    r"""
u = UserList([3, 1]); u.append(2); u.sort(); out.append((u, u.data, u + [1], u * 2, u[0], u[0:2], u.index(3), u.count(1), u == [1, 2, 3], u < [5], u.pop(), repr(u))); u[99]
u = UserString('abc'); out.append((u.upper(), u + 'd', u[1], len(u), u == 'abc', 'b' in u, repr(u), str(u)))
p = types.MappingProxyType({1: 2}); p[1] = 2
p = types.MappingProxyType({1: 2}); del p[1]
p = types.MappingProxyType({1: 2}); p[9]
p = types.MappingProxyType({1: 2}); p.pop(1)
d = {1: 2}; p = types.MappingProxyType(d); d[3] = 4; out.append(p[3])
n = types.SimpleNamespace(a=1, b=2); n.c = 3; del n.a; out.append((n, n.b, n == types.SimpleNamespace(b=2, c=3), vars(n), repr(n))); n.zz
n = types.SimpleNamespace(a=1); del n.zz
P = namedtuple('P', 'a b', defaults=[5])
isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance({1}, collections.abc.Set), isinstance('', collections.abc.Sequence), isinstance(1, collections.abc.Hashable), isinstance([], collections.abc.Hashable), isinstance(iter([]), collections.abc.Iterator), isinstance((i for i in []), collections.abc.Generator), isinstance(len, collections.abc.Callable), isinstance({}.keys(), collections.abc.KeysView), isinstance(deque(), collections.abc.MutableSequence), isinstance(range(3), collections.abc.Sequence), issubclass(list, collections.abc.Iterable), isinstance(b'', collections.abc.ByteString)
class A: pass
c = typing.Counter('aab'); out.append((type(c).__name__, dict(c)))
o = typing.OrderedDict(a=1); out.append((type(o).__name__, list(o)))
d = typing.DefaultDict(list); d['a'].append(1); out.append(dict(d))
l = typing.List([1]); out.append(l)
l = [1]; l.append(l); d = {1: l}; l.append(d); out.append(repr(d))
s = {1}; [s.add(i + 5) for i in s]
type(iter([])).__name__, type(iter({})).__name__, type(iter('a')).__name__, type(iter(range(1))).__name__, type(iter((1,))).__name__, type(reversed([1])).__name__, type(iter({1})).__name__
""",
    globals(),
)
