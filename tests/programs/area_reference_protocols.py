# ruff: noqa
"""How C reaches what Python wrote and the other way round: methods through their class and through super(), classes below builtin ones, special
methods that are no functions, what is iterated while it grows, __dict__ beside descriptors, __classcell__, metaclasses. A line a case."""

import abc, collections, collections.abc, contextlib, copy, dataclasses, enum, functools, itertools, operator, types, typing
from collections import *

import torch
from tests.support.registry import cases


class L(list):
    pass


class D(dict):
    pass


class S(set):
    pass


class T(tuple):
    pass


class Q(deque):
    pass


class O(OrderedDict):
    pass


class DD(defaultdict):
    pass


class C(Counter):
    pass


class LSuper(list):
    def append(self, x):
        super().append(x)
        return "mine"

    def extend(self, x):
        return super().extend(x)

    def __contains__(self, x):
        return super().__contains__(x)

    def __len__(self):
        return super().__len__() + 100

    def __iter__(self):
        return super().__iter__()

    def __getitem__(self, i):
        return super().__getitem__(i)

    def __setitem__(self, i, x):
        return super().__setitem__(i, x)

    def __delitem__(self, i):
        return super().__delitem__(i)

    def index(self, x):
        return super().index(x)

    def pop(self, *a):
        return super().pop(*a)

    def sort(self, **k):
        return super().sort(**k)


class DSuper(dict):
    def __contains__(self, x):
        return super().__contains__(x)

    def __len__(self):
        return super().__len__() + 100

    def __iter__(self):
        return super().__iter__()

    def __getitem__(self, i):
        return super().__getitem__(i)

    def __setitem__(self, i, x):
        return super().__setitem__(i, x)

    def __delitem__(self, i):
        return super().__delitem__(i)

    def get(self, *a):
        return super().get(*a)

    def update(self, *a, **k):
        return super().update(*a, **k)

    def items(self):
        return super().items()

    def pop(self, *a):
        return super().pop(*a)

    def setdefault(self, *a):
        return super().setdefault(*a)

    def copy(self):
        return super().copy()


class SSuper(set):
    def __contains__(self, x):
        return super().__contains__(x)

    def __len__(self):
        return super().__len__() + 100

    def __iter__(self):
        return super().__iter__()

    def add(self, x):
        return super().add(x)

    def discard(self, x):
        return super().discard(x)

    def update(self, *a):
        return super().update(*a)

    def union(self, *a):
        return super().union(*a)

    def pop(self):
        return super().pop()


class TSuper(tuple):
    def __contains__(self, x):
        return super().__contains__(x)

    def __len__(self):
        return super().__len__() + 100

    def __iter__(self):
        return super().__iter__()

    def __getitem__(self, i):
        return super().__getitem__(i)

    def index(self, x):
        return super().index(x)

    def count(self, x):
        return super().count(x)


class OSet(OrderedDict):
    def __setitem__(self, k, v):
        super().__setitem__(k, (v, "set"))


class DSet(dict):
    def __setitem__(self, k, v):
        super().__setitem__(k, (v, "set"))


class DDSet(defaultdict):
    def __setitem__(self, k, v):
        super().__setitem__(k, (v, "set"))


class OwnIter(dict):
    def __iter__(self):
        return iter(["x"])

    def keys(self):
        return ["y"]

    def __getitem__(self, k):
        return k * 2


class OwnKeys(dict):
    def keys(self):
        return ["y"]

    def __getitem__(self, k):
        return k * 2


class IterL(list):
    def __iter__(self):
        return iter([7])


class IterS(set):
    def __iter__(self):
        return iter([7])


class IterT(tuple):
    def __iter__(self):
        return iter([7])


cases(
    "reference_protocols",
    "through_the_class",
    r"""
s = {1, 2}; set.discard(s, 1); set.add(s, 5); out.append((s, set.union(s, [9]), set.__contains__(s, 5), set.__len__(s)))
s = {1, 2}; set.remove(s, 7)
s = {1, 2}; set.update(s, [3], (4,), {5: 6}, 'ab'); out.append(sorted(map(str, s)))
l = [1]; list.append(l, 2); list.extend(l, (3,)); list.insert(l, 0, 0); out.append((l, list.pop(l), list.index(l, 1), list.count(l, 2), list.__len__(l), list.__contains__(l, 2), list.copy(l)))
l = [2, 1]; list.sort(l, reverse=True); list.reverse(l); out.append((l, list.__getitem__(l, 0), list.__add__(l, [1]), list.__mul__(l, 2), list.__eq__(l, [1, 2]), list.__lt__(l, [5])))
d = {'a': 1}; dict.update(d, b=2); dict.__setitem__(d, 'c', 3); out.append((d, dict.get(d, 'z', 0), dict.pop(d, 'a'), dict.setdefault(d, 'q', 4), dict.keys(d), list(dict.items(d)), dict.__contains__(d, 'b'), dict.__len__(d)))
o = OrderedDict(a=1, b=2); OrderedDict.move_to_end(o, 'a'); out.append((o, OrderedDict.popitem(o, last=False), OrderedDict.pop(o, 'zz', 5), OrderedDict.setdefault(o, 'x'), dict.get(o, 'a')))
d = defaultdict(list); defaultdict.__getitem__(d, 'a').append(1); out.append((d, defaultdict.copy(d), defaultdict.__missing__(d, 'n'), dict.get(d, 'zz'), d))
q = deque([1, 2]); deque.appendleft(q, 0); deque.rotate(q, 1); deque.extendleft(q, [8, 9]); out.append((q, deque.pop(q), deque.popleft(q), deque.count(q, 1), deque.__len__(q), deque.__contains__(q, 0)))
c = Counter('aab'); Counter.update(c, 'b'); out.append((c, Counter.most_common(c, 1), Counter.__getitem__(c, 'zz'), dict.get(c, 'a'), Counter.subtract(c, 'a'), Counter.total(c)))
list.append((1,), 2)
dict.get([], 1)
set.add([], 1)
dict.__getitem__([1], 0)
list.__len__(5)
set.union([1], [2])
deque.append([1], 2)
OrderedDict.move_to_end({'a': 1}, 'a')
list.append()
dict.__len__()
list.append([1])
tuple.index((1, 2), 2), tuple.count((1, 1), 1), tuple.__len__((1,)), tuple.__getitem__((4, 5), 1), tuple.__contains__((1, 2), 3), tuple.__add__((1,), (2,)), tuple.__hash__((1,)) == hash((1,))
str.upper('a'), str.join(',', ['a', 'b']), int.__add__(1, 2), int.__add__(1, 2.0), float.is_integer(2.0), bytes.hex(b'a')
str.upper(1)
int.__add__('a', 1)
frozenset.union(frozenset({1}), {2}), frozenset.__contains__(frozenset({1}), 1), frozenset.copy(frozenset({3})), frozenset.isdisjoint(frozenset({1}), [2])
object.__getattribute__(L([1]), 'append')(2), object.__eq__(1, 1), type.__call__(list, (1, 2)), type.__call__(D, a=1)
""",
    globals(),
)

cases(
    "reference_protocols",
    "through_super",
    r"""
l = LSuper([1, 2]); out.append((l.append(3), len(l), 3 in l, 9 in l, list(l), l[0], l[1:], l.index(2), l.pop(), l == [1, 2]))
l = LSuper([3, 1]); l.sort(); l[0] = 5; del l[1]; l.extend(i for i in range(2)); out.append((list(l), len(l)))
l = LSuper([1]); l[7]
l = LSuper([1]); l.index(7)
l = LSuper([1]); super(LSuper, l).append(4); out.append((super(LSuper, l).__len__(), super(LSuper, l).__contains__(4), super(LSuper, l).__getitem__(0), list(super(LSuper, l).__iter__())))
d = DSuper(a=1); d['b'] = 2; out.append((len(d), 'a' in d, list(d), d['a'], d.get('z'), list(d.items()), d.pop('a'), d.setdefault('q', 3), type(d.copy()).__name__, dict(d)))
d = DSuper(a=1); d.update([('x', 1)], y=2); del d['a']; out.append(sorted(dict.keys(d)))
d = DSuper(a=1); d['zz']
d = DSuper(a=1); del d['zz']
s = SSuper([1, 2]); s.add(3); s.discard(1); s.update([8], (9,)); out.append((len(s), 3 in s, sorted(s), sorted(s.union({5})), type(s.union({5})).__name__))
s = SSuper(); s.pop()
s = SSuper([frozenset([1])]); out.append(({1} in s, {2} in s))
t = TSuper([1, 2, 3]); out.append((len(t), 3 in t, 9 in t, list(t), t[0], t[1:], t.index(2), t.count(1), bool(t)))
super(LSuper, [1]).append(2)
super(LSuper, LSuper).append
super(5, 1)
super(int, 1).__add__(2), super(bool, True).__repr__(), super(str, 'a').__class__ is super, super(LSuper, LSuper()).__thisclass__ is LSuper, super(LSuper, LSuper()).__self_class__ is LSuper
super(DSuper, DSuper(a=1)).zz
super()
super(D, D(a=1)) + 1
super(D, D(a=1))['a']
len(super(D, D(a=1)))
""",
    globals(),
)

cases(
    "reference_protocols",
    "classes_below",
    r"""
[type(v).__name__ for v in (L([1]) + [2], L([1]) * 2, L([1])[:], L([1]).copy(), 2 * L([1]))]
[type(v).__name__ for v in (D(a=1).copy(), D(a=1) | {'b': 2}, {'b': 2} | D(a=1), D.fromkeys('ab'), dict.fromkeys('ab'))]
[type(v).__name__ for v in (S([1]).copy(), S([1]) | {2}, S([1]) & {1}, S([1]) - {1}, S([1]) ^ {1}, {1} | S([1]), S([1]).union([2]), S([1]).intersection([1]), S([1]).difference([1]), S([1]).symmetric_difference([1]))]
[type(v).__name__ for v in (T([1]) + (2,), T([1]) * 2, T([1])[:])]
[type(v).__name__ for v in (Q([1]).copy(), Q([1]) + Q([2]), Q([1]) * 2)]
[type(v).__name__ for v in (O(a=1).copy(), O(a=1) | {'b': 2}, O.fromkeys('ab'), DD(list).copy(), DD(list, a=1) | {}, DD.fromkeys('a'), C('ab').copy(), C('ab') + C('a'))]
o = OSet(a=1); o.update(b=2); o.update([('c', 3)]); o.setdefault('d', 4); out.append(list(o.items()))
o = OSet([('a', 1)]); out.append((list(o.copy().items()), list((o | {'z': 1}).items()), o.pop('a'), list(OSet.fromkeys('q', 1).items())))
d = DSet(a=1); d.update(b=2); d.setdefault('c', 3); d['e'] = 5; out.append((d, DSet.fromkeys('q', 1), dict(d), d | {'f': 1}))
d = DDSet(list); d['a']; d['b'] = 1; d.update(c=2); out.append(list(d.items()))
dict(OwnIter(a=1)), {**OwnIter(a=1)}, dict(OwnKeys(a=1)), {**OwnKeys(a=1)}, (lambda **k: k)(**OwnIter(a=1)), (lambda **k: k)(**OwnKeys(a=1)), list(OwnIter(a=1)), list(OwnKeys(a=1))
l = [1]; l.extend(IterL([5])); l += IterL([5]); out.append((l, list(IterL([5])), 5 in IterL([5]), 7 in IterL([5]), [0] + IterL([5]), tuple(IterL([5])), sorted(IterL([5])), len(IterL([5]))))
s = {1}; s.update(IterS([5])); s |= IterS([6]); out.append((sorted(s), list(IterS([5])), 5 in IterS([5]), 7 in IterS([5]), {0} | IterS([5]), set(IterS([5])), [*IterS([5])]))
list(IterT([5])), 5 in IterT([5]), 7 in IterT([5]), IterT([5]) + (1,), (lambda *a: a)(*IterT([5])), [*IterT([5])]
q = Q([1, 2], 3); out.append((len(q), 1 in q, list(q), bool(q), q == deque([1, 2]), q.maxlen, q[0]))
a, b = IterL([1, 2])
z, = IterL([1, 2]); out.append(z)
OrderedDict.fromkeys(('a',), value=1), OrderedDict.fromkeys(iterable='ab'), defaultdict.fromkeys(iter('ab'), 2), Counter.fromkeys('a')
dict.fromkeys('a', value=1)
O.fromkeys('ab', 1), dict.fromkeys({'x': 1}, 0), dict.fromkeys({1}, []), dict.fromkeys((i for i in range(2)))
dict.fromkeys(5)
int.from_bytes(b'a', 'big'), bytes.fromhex('61'), float.fromhex('0x1p1'), str.maketrans('a', 'b'), bool.from_bytes(b'\x00', 'big')
match_ = [type(v).__name__ for v in (L(), D(), Q())]; out.append(match_)
hash(T([1])) == hash((1,)), {T([1]): 2}[(1,)], {(1,): 2}[T([1])], T([1]) == (1,), T([1]) in {(1,)}
isinstance(Q(), deque), isinstance(DD(), dict), issubclass(O, dict), L.mro()[1] is list
""",
    globals(),
    breaks=True,
)

cases(
    "reference_protocols",
    "sets_in_sets",
    r"""
{1} in {frozenset([1])}, {2} in {frozenset([1])}, S([1]) in {frozenset([1])}, {1} in frozenset({frozenset([1])}), frozenset([1]) in {frozenset([1])}
s = {frozenset([1])}; s.discard({1}); out.append(s)
s = {frozenset([1])}; s.remove({1}); out.append(s)
s = {frozenset([1])}; s.remove({2})
s = {frozenset([1])}; s.add({1})
s = set(); {1} in {}
{1} in [frozenset([1])], {1} in ({1},), {1: 2}.get(frozenset([1]))
{1} in {}.keys()
{frozenset([1]): 2}[{1}]
[] in {1}
[] in frozenset({1})
s = {1}; s.discard([])
a = object(); s = {a}; out.append((a in s, frozenset(s) in {frozenset([a])}, s in {frozenset([a])}, {frozenset([a]): 1}[frozenset([a])]))
hash(frozenset([1])) == hash(frozenset([1])), {frozenset([1, 2]): 1}[frozenset([2, 1])]
{1, 2} < {1, 2, 3}, {1} <= frozenset([1]), {1} == frozenset([1]), frozenset([1]) | {2}, {2} | frozenset([1])
s = {3, 1, 2}; out.append((s.pop(), s.pop(), s.pop())); s.pop()
s = {1}; s |= {2, 3}; s &= {2, 9}; s ^= {5}; s -= {2}; out.append(s)
s = {1}; s |= [2]
s = {1, 2}; out.append((s.issubset([1, 2, 3]), s.issuperset([1]), s.isdisjoint('ab'), s.issuperset([]), s.union(), s.union([5], (6,), {7: 8}), s.intersection([1], (1, 2)), s.difference({1: 0}), s.symmetric_difference([1, 1, 5])))
s = {1, 2}; s.intersection_update([1], [1, 5]); s.symmetric_difference_update([1, 9, 9]); s.difference_update([9], []); out.append(s)
s = {1}; s.update([2, [], 3])
s = {1}; s.update([2, [], 3]) if 0 else None; out.append(s)
list({'b', 'a', 'c'} | {'d'}), list({5, 3, 100, 7}.union(range(20))), list(frozenset('hello') - frozenset('l')), list({i * 7 for i in range(12)} & set(range(50)))
s = set(range(10)); s -= set(range(0, 10, 2)); s.update(range(40, 60)); s.discard(41); out.append(list(s))
""",
    globals(),
)

cases(
    "reference_protocols",
    "read_while_growing",
    r"""
y = [1]; y.extend(y[-1] + z for z in range(3)); out.append(y)
y = [1]; y += (len(y) for z in range(3)); out.append(y)
y = [1]; y.extend(map(lambda z: len(y), range(3))); out.append(y)
y = [1]; list.extend(y, (len(y) for _ in range(2))); operator.iadd(y, (len(y) for _ in range(2))); out.append(y)
y = [1, 2]; y[1:] = (len(y) for z in range(3)); out.append(y)
y = [1, 2]; y[:0] = [len(y) for z in range(3)]; out.append(y)
y = [1, 2]; y.extend(y); y += y; out.append(y)
y = [1]; y.__init__(len(y) for z in range(3)); out.append(y)
y = set(); y.update(len(y) for z in range(3)); out.append(y)
y = {1}; y.update((len(y), z) for z in range(2)); y.update(y); out.append(sorted(map(str, y)))
y = {1, 2, 3}; y.difference_update(z for z in (1, 2) if len(y) > 1); out.append(y)
y = {1}; y.__init__(len(y) for z in range(3)); out.append(y)
y = {1, 2}; out.append((y.intersection(z for z in (1, 5)), y.union(len(y) for z in range(2)), y.difference(len(y) for z in range(2))))
y = {}; y.update((len(y), z) for z in range(3)); out.append(y)
y = {}; y |= ((len(y), z) for z in range(3)); out.append(y)
y = {9: 9}; y.__init__((len(y), z) for z in range(3)); out.append(y)
y = OrderedDict(); y.update((len(y), z) for z in range(3)); out.append(y)
y = Counter(); y.update(str(len(y)) for z in range(3)); out.append(y)
y = deque([1]); y.extend(len(y) for z in range(3)); y += (len(y) for z in range(2)); y.extendleft(len(y) for z in range(2)); out.append(y)
y = deque([1], 2); y.extend(len(y) for z in range(3)); y.extend(y); y.extendleft(y); out.append(y)
y = deque([1]); y.extend(z for z in y)
y = []; out.append((sorted(len(y) for z in range(3)), list(len(y) for z in range(3)), [*y, *(len(y) for z in range(2))], {*(len(y) for z in range(2))}))
y = [1]; y.extend(1 // (1 - z) for z in range(3))
y = [1]; z = [y.extend(1 // (1 - i) for i in range(3)) for _ in ()]; out.append(y)
g = (i for i in range(9)); out.append(({0}.issuperset(g), next(g), {3}.isdisjoint(g), next(g)))
g = (i for i in range(9)); a, b = g
g = (i for i in range(9)); t = [0]
g = itertools.count(); a, b = g
it = iter(range(9)); out.append((3 in it, next(it), dict(zip(it, it))))
d = {'a': 1}; [d.update(b=2) for k in d]
d = {'a': 1}; v = d.keys(); w = d.items(); u = d.values(); d['b'] = 2; del d['a']; out.append((list(v), list(w), list(u), len(v), 'a' in v, ('b', 2) in w, 2 in u))
d = {1: 2}; out.append(((1, 2) in d.items(), (1, 3) in d.items(), 5 in d.items(), (1, 2, 3) in d.items())); ([], 1) in d.items()
l = [3, 1, 2]; l.sort(key=lambda v: len(l)); out.append(l)
""",
    globals(),
)

cases(
    "reference_protocols",
    "made_again",
    r"""
s = {1, 2, 3}; s.__init__({4, 5}); t = {1}; t.__init__(); out.append((s, t))
l = [1, 2]; l.__init__([3]); m = [1]; m.__init__(); n = [1]; n.__init__(n); out.append((l, m, n))
d = {'a': 1}; d.__init__(b=2); d.__init__([('c', 3)]); d.__init__(); out.append(d)
q = deque([1, 2], 5); q.__init__([3, 4, 5], 2); out.append((q, q.maxlen)); q.__init__(); out.append((q, q.maxlen)); q.__init__([1], maxlen=3); out.append((q, q.maxlen))
d = defaultdict(list, a=1); d.__init__(); out.append((d, d.default_factory)); d['zz']
d = defaultdict(list, a=1); d.__init__(int, b=2); out.append((d, d['q']))
o = OrderedDict(a=1); o.__init__(b=2); out.append(o)
c = Counter('aab'); c.__init__('b'); out.append(c)
t = (1,); t.__init__(); t.__init__(5)
z = 5; z.__init__(); z.__init__(7)
l = []; l.__init__(1, 2)
s = set(); s.__init__(1, 2)
s = set(); s.__init__(a=1)
s = {1}; s.__init__(5)
s = {1}; s.__init__([[]])
l = [1]; l.__init__(5)
d = {}; d.__init__(5)
d = {}; d.__init__(1, 2)
l = L([1]); l.__init__([2]); s = S([1]); s.__init__([2]); e = D(a=1); e.__init__(b=2); out.append((l, sorted(s), e))
list.__init__([1], [2]), set.__init__({1}, [2]), dict.__init__({}, a=1), object.__init__(object())
list.__init__((1,), [2])
e = ValueError(1); e.__init__(2, 3); out.append(e.args)
n = types.SimpleNamespace(a=1); n.__init__(b=2); out.append(n)
""",
    globals(),
)


class Shadow:
    def __init__(self):
        self.__dict__["x"] = 1

    @property
    def x(self):
        return self.__dict__["x"] * 10


class SetShadow(Shadow):
    @property
    def y(self):
        return self.__dict__.get("y", 0)

    @y.setter
    def y(self, v):
        self.__dict__["y"] = v + 1


class Desc:
    def __set_name__(self, o, n):
        self.n = n

    def __get__(self, i, o=None):
        return self if i is None else ("got", i.__dict__.get(self.n))

    def __set__(self, i, v):
        i.__dict__[self.n] = ("set", v)

    def __delete__(self, i):
        del i.__dict__[self.n]


class WithDesc:
    a = Desc()


class NonData:
    def __get__(self, i, o=None):
        return "nondata"


class WithNonData:
    a = NonData()


class Slot:
    __slots__ = ("a", "__dict__")


class AttrDict(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


cases(
    "reference_protocols",
    "dictionaries_of_instances",
    r"""
o = Shadow(); o.__dict__['x'] = o.__dict__['x'] + 1; out.append((o.x, o.__dict__, vars(o)))
o = Shadow(); vars(o)['x'] = 7; vars(o).update(x=8, z=3); out.append((o.x, o.z, vars(o).pop('x')))
o = Shadow(); o.x = 5
o = Shadow(); del o.x
o = Shadow(); del o.__dict__['x']; o.x
o = SetShadow(); o.y = 5; o.__dict__['y'] += 10; out.append((o.y, o.__dict__))
o = WithDesc(); o.a = 5; out.append((o.a, o.__dict__)); o.__dict__['a'] = 7; out.append((o.a, vars(o))); del o.a; out.append((o.a, o.__dict__))
o = WithNonData(); out.append(o.a); o.a = 3; out.append((o.a, o.__dict__)); del o.a; out.append(o.a); o.__dict__['a'] = 9; out.append(o.a)
o = Slot(); o.a = 1; o.__dict__['a'] = 2; o.b = 3; out.append((o.a, o.__dict__)); del o.a; o.a
d = AttrDict(a=1); d.b = 2; d['c'] = 3; del d.a; out.append((d, d.b, d.zz, d.get('c'), d.__dict__))
o = Shadow(); setattr(o, 'w', 1); object.__setattr__(o, 'v', 2); o.__dict__.setdefault('u', 3); out.append((sorted(vars(o)), getattr(o, 'q', None), hasattr(o, 'x'), o.__dict__ is vars(o)))
o = Shadow(); o.__dict__ = {'x': 50}; out.append(o.x)
o = Shadow(); o.__dict__[5] = 1; out.append(vars(o))
o = Shadow(); o.__dict__.clear(); o.x
o = Shadow(); p = types.MappingProxyType(vars(o)); o.z = 1; out.append((p['x'], p['z'], len(p), sorted(p), p.get('q'), 'z' in p, p | {'a': 1}, p == vars(o), dict(p)))
d = {'a': 1}; p = types.MappingProxyType(d); k, v, i = p.keys(), p.values(), p.items(); d['b'] = 2; out.append((list(k), list(v), list(i), p, p.copy(), type(p.copy()).__name__, list(reversed(p))))
p = types.MappingProxyType({'a': 1}); p['a'] = 2
p = types.MappingProxyType([1])
types.MappingProxyType(5)
vars(5)
vars(Shadow)['x'] = 1
Shadow.__dict__['zz']
""",
    globals(),
    graphs=0,
    breaks=True,
)


class Meta(type):
    def __call__(cls, *a):
        return super(Meta, cls).__call__(*a)


class Made(metaclass=Meta):
    def __init__(self, v):
        self.v = v


class Single(type):
    def __call__(cls, *a):
        return ("made", type.__call__(cls, *a).__class__.__name__)


class Once(metaclass=Single):
    pass


class Sub(type):
    def __new__(m, name, bases, space, **k):
        return super().__new__(m, name + "_", bases, dict(space, k=k))

    def __init__(cls, name, bases, space, **k):
        super().__init__(name, bases, space)


class NoCell(type):
    def __new__(m, name, bases, space):
        space.pop("__classcell__", None)
        return super().__new__(m, name, bases, space)


class Getting(type):
    def __getattr__(cls, n):
        return n * 2

    def __len__(cls):
        return 7

    def __iter__(cls):
        return iter([1, 2])

    def __contains__(cls, x):
        return x == 3

    def __getitem__(cls, k):
        return k

    def __bool__(cls):
        return False


class Got(metaclass=Getting):
    pass


cases(
    "reference_protocols",
    "metaclasses",
    r"""
Made(3).v, type(Made(3)).__name__, Meta.__call__(Made, 4).v, type.__call__(Made, 5).v
Once(), Single.__call__(Once), type.__call__(Once).__class__.__name__
Got.abc, len(Got), list(Got), 3 in Got, Got[5], bool(Got), Got.__name__, getattr(Got, 'q')
Made()
Once(1)
type('N', (), {'a': 1}).a, type('N', (L,), {})([1]), type.__new__(type, 'N', (), {}).__name__, type(5), type(type) is type, type(Made) is Meta
type(5, a=1)
type()
type(1, 2)
type('N', (), 5)
type('N', 5, {})
type(5, (), {})
type('N', (5,), {})
type('N', (bool,), {})
type('N', (int, str), {})
type('N', (L, L), {})
type('N', (), {'__slots__': 5})
type('N', (), {'__slots__': ('a', 'a'), 'a': 1})
type('N', (), {'__classcell__': 42})
type('N', (), {'__qualname__': 5})
type.__init__(Made, 1, 2)
type.__init__(Made)
type.__init__(Made, 'a', (), {}), type.__init__(Made, 'a')
Meta('N', (), {})(*[]) is None, Meta('N', (Made,), {})(5).v
Sub('N', (), {}, z=1).k, Sub('N', (), {}).__name__
object.__new__(int)
object.__new__(Made, 1).__class__ is Made
int.__new__(int, 5), tuple.__new__(T, (1, 2)), list.__new__(L), str.__new__(str, 'a'), dict.__new__(D)
list.__new__(int)
object.__new__()
object.__new__(5)
""",
    globals(),
    graphs=0,
    breaks=True,
)


def classcell_number():
    class A:
        __classcell__ = 42


def classcell_none():
    class A:
        __classcell__ = None

        def f(self):
            return 1


def classcell_lost():
    class A(metaclass=NoCell):
        def f(self):
            return __class__


def classcell_lost_but_unused():
    class A(metaclass=NoCell):
        def f(self):
            return 5

    return A().f()


def classcell_of_another():
    spaces = []

    class M(type):
        def __new__(m, name, bases, space):
            spaces.append(space)
            if len(spaces) > 1:
                type.__new__(m, "other", (), dict(spaces[-1]))
                return type.__new__(m, name, bases, {k: v for k, v in space.items() if k != "__classcell__"})
            return type.__new__(m, name, bases, space)

    class A(metaclass=M):
        def f(self):
            return __class__.__name__

    first = A().f()

    class B(metaclass=M):
        def f(self):
            return __class__.__name__

    return first


def classcell_kept():
    class A:
        def f(self):
            return __class__.__name__, super().__hash__ is not None

    return A().f(), "__classcell__" in vars(A)


def metaclass_is_no_class():
    class A(metaclass=lambda name, bases, space, **k: (name, len(bases), k), z=1):
        x = 1

    return A


def metaclass_gives_number():
    class M(type):
        def __new__(m, *a):
            return 7

    class A(metaclass=M):
        def f(self):
            return __class__

    return A


def base_is_number():
    class A(5):
        pass


def base_has_entries():
    class E:
        def __mro_entries__(self, bases):
            return (L,)

    class A(E()):
        pass

    return A([1]), A.__bases__ == (L,), len(A.__orig_bases__)


def base_has_wrong_entries():
    class E:
        def __mro_entries__(self, bases):
            return 5

    class A(E()):
        pass


def keyword_to_object():
    class A(flag=1):
        pass


def subclass_hook():
    class A:
        def __init_subclass__(cls, **k):
            cls.got = k

    class B(A, a=1):
        pass

    return B.got


def super_in_comprehension():
    class A:
        def f(self):
            return [__class__.__name__ for _ in range(2)]

    return A().f()


def super_with_deleted_self():
    class A:
        def f(self):
            del self
            return super().f()

    A().f()


def super_without_arguments():
    class A:
        def f():
            return super().f()

    A.f()


def super_of_other_object():
    class A:
        def f(self):
            return super().__repr__

    A.f(5)


def super_in_inner_function():
    class A:
        def f(self):
            def g():
                return super().f()

            return g()

    A().f()


def super_with_number_as_class():
    __class__ = 5

    def f(self):
        return super().x

    f(1)


def super_two_arguments():
    class A:
        def f(self):
            return "A"

        @classmethod
        def g(cls):
            return cls.__name__

        @staticmethod
        def h():
            return "h"

        @property
        def p(self):
            return "p"

    class B(A):
        def f(self):
            return super().f() + super(B, self).f(), super().g(), super(B, self).g(), super().h(), super().p

        @classmethod
        def g(cls):
            return super().g(), super(B, cls).g()

    return B().f(), B.g(), B().g(), super(B, B).g(), super(B, B()).p, super(B, B).f(B())


def super_of_metaclass():
    class M(type):
        def __call__(cls, *a):
            return super(M, cls).__call__(*a), super().__call__(*a)

        def __repr__(cls):
            return "M:" + super(M, cls).__repr__()[:6]

        def mine(cls):
            return super().__name__ if False else cls.__name__

    class A(metaclass=M):
        def __init__(self, v=0):
            self.v = v

    return [a.v for a in A(3)], A.mine()


def new_gives_below():
    log = []

    class A:
        def __new__(cls):
            return object.__new__(B)

        def __init__(self):
            log.append("A")

    class B(A):
        def __init__(self):
            log.append("B")

    A()
    return log


def extend_keeps_what_came():
    y, s, d, q = [1], {1}, {}, deque()
    for f in (y.extend, s.update, lambda g: d.update((i, i) for i in g), q.extend):
        try:
            f(1 // (2 - z) for z in range(4))
        except ZeroDivisionError:
            pass
    try:
        s.update([50, [], 60])
    except TypeError:
        pass
    return y, sorted(s), d, list(q)


def sort_that_fails():
    l = [3, 1, "a", 2, 0]
    try:
        l.sort()
    except TypeError:
        pass
    m = [2, 1, 0]
    try:
        m.sort(key=lambda v: 1 // v)
    except ZeroDivisionError:
        pass
    return l, m


def sort_by_own_order():
    log = []

    class K:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            log.append((self.v, o.v, len(l)))
            return self.v < o.v

    l = [K(v) for v in (3, 1, 2, 2, 5, 4)]
    l.sort()
    r = sorted((K(v) for v in (1, 2, 3)), reverse=True)
    return [k.v for k in l], [k.v for k in r], log


def index_that_changes_the_list():
    l = [1, 2, 3]

    class I:
        def __index__(self):
            l.clear()
            return 2

    for f in (
        lambda: l[I()],
        lambda: l.pop(I()),
        lambda: l.__setitem__(I(), 0),
        lambda: l.__delitem__(I()),
        lambda: l[I() :],
    ):
        l[:] = [1, 2, 3]
        try:
            yield f()
        except IndexError as e:
            yield str(e)


def comparison_that_changes_the_list():
    class E:
        def __eq__(self, o):
            l.clear()
            return False

    for name in ("index", "count", "remove"):
        l = [E(), E(), 1]
        try:
            yield getattr(l, name)(5)
        except ValueError as e:
            yield str(e)


def unpacking_takes_one_more():
    log = []

    def g():
        for i in range(9):
            log.append(i)
            yield i

    try:
        a, b = g()
    except ValueError as e:
        return str(e), log


def match_by_flags():
    class Seq(collections.abc.Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return [7, 8][i]

    found = []
    for v in (Seq(), Q([1, 2]), L([1, 2]), "ab", D(a=1), range(2), {1, 2}):
        match v:
            case [a, b]:
                found.append((a, b))
            case {"a": c}:
                found.append(c)
            case _:
                found.append(None)
    return found


cases(
    "reference_protocols",
    "longer_ones",
    r"""
classcell_number()
classcell_none()
classcell_lost()
classcell_lost_but_unused()
classcell_of_another()
classcell_kept()
metaclass_is_no_class()
metaclass_gives_number()
base_is_number()
base_has_entries()
base_has_wrong_entries()
keyword_to_object()
subclass_hook()
super_in_comprehension()
super_with_deleted_self()
super_without_arguments()
super_of_other_object()
super_in_inner_function()
super_with_number_as_class()
super_two_arguments()
super_of_metaclass()
new_gives_below()
extend_keeps_what_came()
sort_that_fails()
sort_by_own_order()
list(index_that_changes_the_list())
list(comparison_that_changes_the_list())
unpacking_takes_one_more()
match_by_flags()
""",
    globals(),
    graphs=0,
    breaks=True,
)
