# ruff: noqa
"""Classes derived from set, frozenset, dict, list, tuple, str, int, float, with methods of their own or none."""

import collections

import torch
from tests.support.registry import built, program, tensor


class Set(set):
    pass


class Frozen(frozenset):
    pass


class Dict(dict):
    pass


class List(list):
    pass


class Tuple(tuple):
    pass


class Str(str):
    pass


class Int(int):
    pass


class Float(float):
    pass


class LoudSet(set):
    def __init__(self, *args):
        super().__init__(*args)
        self.added = []

    def add(self, v):
        self.added.append(v)
        super().add(v)

    def __contains__(self, v):
        return v == "always" or super().__contains__(v)


class NamedFrozen(frozenset):
    def __new__(cls, items, name="n"):
        self = super().__new__(cls, items)
        self.name = name
        return self

    def __repr__(self):
        return f"NamedFrozen({sorted(self)})"


class DefaultList(list):
    def __getitem__(self, i):
        try:
            return super().__getitem__(i)
        except IndexError:
            return 0

    def total(self):
        return sum(self)


class Point(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    @property
    def a(self):
        return self[0]

    def __add__(self, other):
        return Point(self[0] + other[0], self[1] + other[1])


class Metres(float):
    def __add__(self, other):
        return Metres(float(self) + float(other))

    @property
    def km(self):
        return self / 1000


class Level(int):
    def __new__(cls, v, name=""):
        self = super().__new__(cls, v)
        self.name = name
        return self


class Path(str):
    def __truediv__(self, other):
        return Path(self + "/" + other)

    @property
    def tail(self):
        return self.split("/")[-1]


class Attr(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Missing(dict):
    def __missing__(self, key):
        self[key] = value = len(self)
        return value


@program
def set_made(x):
    s = Set([1, 2, 3])
    s.add(4)
    s |= {5}
    s.discard(1)
    return x + len(s), sorted(s), type(s).__name__, 2 in s


@program
def set_operators(x):
    s = Set([1, 2, 3])
    t = s | {4}
    u = s & {1, 2}
    v = s - {1}
    w = s ^ {1, 9}
    return x + len(t), [type(k).__name__ for k in (t, u, v, w)], [sorted(k) for k in (t, u, v, w)]


@program
def set_compared(x):
    s = Set([1, 2])
    return (
        x + 1,
        s == {1, 2},
        s <= {1, 2, 3},
        s < {1, 2},
        s.issubset([1, 2, 3]),
        s.isdisjoint({7}),
        {1, 2} == s,
        s != {1},
    )


@program
def set_methods(x):
    s = Set("abc")
    t = s.copy()
    t.remove("a")
    u = s.union("de")
    v = s.intersection("ab")
    s.update("z")
    s.difference_update("a")
    s.symmetric_difference_update("bq")
    s.intersection_update("zqc")
    return x + len(s), sorted(s), sorted(t), sorted(u), sorted(v), type(t).__name__, type(u).__name__


@program
def set_own_methods(x):
    s = LoudSet([1])
    s.add(2)
    return x + len(s.added), "always" in s, 5 in s, sorted(s)


@built
def set_from_outside():
    s = Set([1, 2])

    def f(x):
        return x + len(s) + (1 in s), sorted(s)

    return f


@built(graphs=3, breaks=True)
def set_from_outside_changed():
    s = Set([1, 2])

    def f(x):
        s.add(len(s) + 1)
        return x + len(s), sorted(s)

    return f


@program
def set_returned(x):
    s = Set([1, 2])
    s.name = "s"
    return x + 1, s, s.name


@program
def set_of_tensors_not(x):
    s = Set()
    s.add((1, "a"))
    s.add(None)
    return x + len(s), (1, "a") in s, bool(s), not Set()


@program
def set_pop_and_clear(x):
    s = Set([5])
    v = s.pop()
    s.add(1)
    s.clear()
    return x + v + len(s)


@program
def frozenset_made(x):
    s = Frozen([1, 2])
    return x + len(s), 1 in s, sorted(s), type(s).__name__, s == frozenset([1, 2]), hash(s) == hash(frozenset([1, 2]))


@program
def frozenset_operators(x):
    s = Frozen([1, 2])
    t = s | {3}
    return x + len(t), type(t).__name__, type(s & {1}).__name__, sorted(s - {1}), s <= t, sorted(s.union([9]))


@program
def frozenset_with_fields(x):
    s = NamedFrozen([1, 2], "q")
    return x + len(s), s.name, repr(s)


@program
def frozenset_as_key(x):
    d = {Frozen([1]): 5}
    return x + d[frozenset([1])] + d[Frozen([1])]


@program
def frozenset_plain(x):
    s = frozenset([1, 2, 3])
    t = s.difference([1]).symmetric_difference({7})
    return x + len(t), sorted(t), s.isdisjoint([9]), s.issuperset([1]), frozenset() == frozenset(""), s.copy() is s


@program
def dict_made(x):
    d = Dict(a=1)
    d["b"] = 2
    d.update(c=3)
    return x + sum(d.values()), d, list(d), type(d).__name__, "a" in d


@program
def dict_union(x):
    d = Dict(a=1) | {"b": 2}
    e = {"b": 2} | Dict(a=1)
    f = Dict(a=1)
    f |= {"c": 3}
    return x + len(d), type(d).__name__, type(e).__name__, type(f).__name__, d, e, f


@program
def dict_copy(x):
    d = Dict(a=1)
    d.extra = 5
    e = d.copy()
    return x + d.extra, type(e).__name__, e == d, Dict.fromkeys("ab", 1), type(Dict.fromkeys("ab")).__name__


@program
def dict_attributes(x):
    d = Attr(a=1)
    d.b = 2
    return x + d.a + d.b, dict(d), hasattr(d, "zz")


@program
def dict_missing(x):
    d = Missing()
    return x + d["a"] + d["b"] + d["a"], dict(d), d.get("zz")


@program
def dict_pop_methods(x):
    d = Dict(a=1, b=2, c=3)
    a = d.pop("a")
    k = d.popitem()
    s = d.setdefault("z", 9)
    return x + a + s, k, list(reversed(d)), d.pop("none", None)


@program
def list_made(x):
    l = List([1, 2])
    l.append(3)
    l += [4]
    return (
        x + sum(l),
        l,
        type(l).__name__,
        l == [1, 2, 3, 4],
        type(l + [1]).__name__,
        type(l[:1]).__name__,
        type(l * 2).__name__,
    )


@program
def list_own_methods(x):
    l = DefaultList([1, 2])
    return x + l[0] + l[9] + l.total(), l[1:]


@program
def list_compared(x):
    l = List([1, 2])
    return (
        x + 1,
        l < [2],
        l != [1],
        l == List([1, 2]),
        l.index(2),
        l.count(1),
        l.copy(),
        type(l.copy()).__name__,
        list(reversed(l)),
    )


@program
def list_sorted(x):
    l = List([3, 1])
    l.sort()
    l.reverse()
    l.insert(0, 9)
    del l[1]
    return x + l.pop(), l, bool(List()), len(l)


@program
def tuple_made(x):
    t = Tuple([1, 2])
    return (
        x + t[0] + len(t),
        t == (1, 2),
        type(t + (3,)).__name__,
        type(t[:1]).__name__,
        hash(t) == hash((1, 2)),
        t.index(2),
        t.count(1),
    )


@program
def tuple_with_new(x):
    p = Point(1, 2) + Point(3, 4)
    return x + p.a + p[1], type(p).__name__, p == (4, 6)


@program
def tuple_of_tensors(x):
    p = Point(x, x + 1)
    a, b = p
    return a + b + p.a


@program
def str_made(x):
    s = Str("abc")
    return (
        x + len(s),
        s.upper(),
        type(s.upper()).__name__,
        s == "abc",
        s[1],
        s + "d",
        "b" in s,
        s.split("b"),
        f"{s}!",
        hash(s) == hash("abc"),
    )


@program
def str_own_methods(x):
    p = Path("a") / "b" / "c"
    return x + len(p), p.tail, type(p).__name__, p.startswith("a")


@program
def str_as_key(x):
    d = {Str("a"): 1}
    return x + d["a"] + {"a": 2}[Str("a")]


@program
def int_made(x):
    i = Int(5)
    return (
        x + i,
        i + 1,
        type(i + 1).__name__,
        i == 5,
        i > 4,
        hash(i) == hash(5),
        [1, 2, 3, 4, 5, 6][i],
        range(10)[i],
        f"{i}",
        -i,
        i // 2,
        int(i),
    )


@program
def int_with_fields(x):
    l = Level(3, "deep")
    return x * l, l.name, l + 1


@program
def int_as_size(x):
    return x.new_zeros(Int(2), Int(3)), x.sum(Int(0)), x[Int(1)]


@program
def float_made(x):
    m = Metres(3.0) + Metres(4.5)
    return x * m, m.km, type(m).__name__, m == 7.5, round(m, 1), m.is_integer()


@built
def derived_from_outside():
    l, d, t, s, i = List([1, 2]), Dict(a=1), Tuple((3,)), Str("ab"), Int(4)
    l.name = "l"

    def f(x):
        return x + l[0] + d["a"] + t[0] + len(s) + i, l.name, [type(v).__name__ for v in (l, d, t, s, i)]

    return f


@built(graphs=3)
def derived_from_outside_changed():
    l, d = List([1, 2]), Dict(a=1)

    def f(x):
        l.append(3)
        d["b"] = len(l)
        l.touched = True
        return x + len(l) + len(d)

    return f


@program
def instance_checks(x):
    all_ = (Set(), Frozen(), Dict(), List(), Tuple(), Str(), Int(), Float())
    kinds = (set, frozenset, dict, list, tuple, str, int, float)
    return (
        x + 1,
        [isinstance(v, k) for v, k in zip(all_, kinds)],
        [type(v) is k for v, k in zip(all_, kinds)],
        [bool(v) for v in all_],
    )


@program(breaks=True)
def representations(x):
    return (
        x + 1,
        repr(Set([1])),
        repr(Frozen([1])),
        repr(Dict(a=1)),
        repr(List([1])),
        repr(Tuple([1])),
        repr(Str("a")),
        repr(Int(1)),
        str(Float(1.5)),
    )


@program
def class_made_inside(x):
    class Local(list):
        def double(self):
            return [v * 2 for v in self]

    l = Local([1, 2])
    return x + sum(l.double())


@program
def set_class_made_inside(x):
    class Local(set):
        def has(self, v):
            return v in self

    l = Local([1, 2])
    return x + l.has(1) + l.has(5)


class WithInit(dict):
    def __init__(self, other=(), **kw):
        super().__init__()
        self.order = []
        for k, v in dict(other, **kw).items():
            self[k] = v

    def __setitem__(self, k, v):
        self.order.append(k)
        super().__setitem__(k, v)

    def __delitem__(self, k):
        self.order.remove(k)
        super().__delitem__(k)

    def __iter__(self):
        return iter(self.order[::-1])

    def keys(self):
        return list(self)


@program
def dict_with_order(x):
    d = WithInit({"a": 1}, b=2)
    d["c"] = 3
    del d["a"]
    return x + len(d), list(d), d.keys(), [k for k in d], "b" in d


class Hashed(list):
    def __hash__(self):
        return 7

    def __eq__(self, other):
        return isinstance(other, Hashed)


@program
def list_with_hash(x):
    d = {Hashed([1]): 5}
    return x + d[Hashed([2])]


class Iterates(list):
    def __iter__(self):
        return iter(range(3))

    def __len__(self):
        return 7


@program
def list_that_iterates(x):
    l = Iterates([9])
    return x + len(l), list(l), [v for v in l], sum(l), tuple(l), sorted(l), l[0]
