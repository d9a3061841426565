# ruff: noqa
"""Dictionary views, mapping proxies, unions of kinds of dictionaries, OrderedDict, defaultdict, Counter, ChainMap, UserDict."""

import collections
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque

import torch
from tests.support.registry import built, program, tensor


@program
def view_sets(x):
    a, b = {"a": 1, "b": 2}, {"b": 2, "c": 3}
    return (
        x + len(a.keys() & b.keys()),
        sorted(a.keys() | b),
        sorted(a.keys() - b.keys()),
        sorted(a.keys() ^ b.keys()),
        a.keys() <= {"a", "b"},
        a.items() & b.items(),
    )


@program
def view_compared(x):
    a, b = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    return (
        x + 1,
        a.keys() == b.keys(),
        a.items() == b.items(),
        a.keys() == {"a", "b"},
        a.values() == b.values(),
        a.keys().isdisjoint({"z"}),
        a.keys() > {"a"},
    )


@program
def view_is_live(x):
    d = {"a": 1}
    k, v, i = d.keys(), d.values(), d.items()
    d["b"] = 2
    return x + len(k) + len(v) + len(i), list(k), list(v), list(i), "b" in k, ("b", 2) in i, 2 in v


@program
def view_reversed(x):
    d = {"a": 1, "b": 2}
    return x + 1, list(reversed(d)), list(reversed(d.keys())), list(reversed(d.values())), list(reversed(d.items()))


@program
def view_types(x):
    d = {"a": 1}
    return (
        x + 1,
        type(d.keys()).__name__,
        type(d.values()).__name__,
        type(d.items()).__name__,
        repr(d.keys()),
        repr(d.items()),
    )


@program
def view_mapping(x):
    d = {"a": 1}
    return x + d.keys().mapping["a"] + d.items().mapping["a"]


@program
def view_passed_on(x):
    def f(names, values):
        return dict(zip(names, values))

    d = {"a": x, "b": x + 1}
    return f(d.keys(), d.values())["b"]


@built
def view_from_outside():
    d = {"a": 1, "b": 2}
    k = d.keys()
    return lambda x: (x + len(k) + ("a" in k), sorted(k))


@program
def view_returned(x):
    d = {"a": 1}
    return x + 1, list(d.keys()), tuple(d.items()), set(d.values())


@program
def proxy_made(x):
    d = {"a": 1}
    p = types.MappingProxyType(d)
    d["b"] = 2
    return x + p["a"] + len(p), list(p), p.get("zz", 7), "b" in p, dict(p), list(p.items())


@program
def proxy_refuses(x):
    p = types.MappingProxyType({"a": 1})
    try:
        p["b"] = 2
    except TypeError as e:
        return x + 1, str(e)


@program(breaks=True)
def proxy_union(x):
    p = types.MappingProxyType({"a": 1})
    q = p | {"b": 2}
    return x + len(q), type(q).__name__, p == {"a": 1}, p.copy(), list(reversed(p))


@program
def proxy_of_class(x):
    class C:
        a = 1

    return x + C.__dict__["a"], "a" in C.__dict__, "zz" in vars(C)


@built
def proxy_from_outside():
    p = types.MappingProxyType({"a": 1, "b": [1, 2]})
    return lambda x: x + p["a"] + len(p["b"]) + sum(1 for _ in p)


class Sub(dict):
    pass


@program
def unions_of_kinds(x):
    a = {"a": 1}
    o = OrderedDict(b=2)
    d = defaultdict(int, c=3)
    out = [a | o, o | a, a | d, d | a, o | d, d | o, a | Sub(z=1), Sub(z=1) | a]
    return x + 1, [type(v).__name__ for v in out], [dict(v) for v in out]


@program
def unions_in_place(x):
    a = {"a": 1}
    a |= OrderedDict(b=2)
    o = OrderedDict(b=2)
    o |= a
    d = defaultdict(list)
    d |= {"a": [1]}
    a |= [("k", 5)]
    return x + len(a) + len(o) + len(d), a, o, dict(d)


@program
def union_refused(x):
    try:
        {} | [("a", 1)]
    except TypeError as e:
        return x + 1, str(e)


@program
def ordered_methods(x):
    o = OrderedDict(a=1, b=2, c=3)
    o.move_to_end("a")
    o.move_to_end("c", last=False)
    first = o.popitem(last=False)
    last = o.popitem()
    return x + len(o), first, last, list(reversed(o)), o


@program
def ordered_compared(x):
    a, b = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
    return x + 1, a == b, a == dict(b), a != b, a == {"a": 1, "b": 2}, repr(a)


@program
def ordered_copy(x):
    a = OrderedDict([("a", 1), ("b", 2)])
    b = a.copy()
    b["c"] = 3
    del b["a"]
    return (
        x + len(a),
        type(b).__name__,
        list(b.items()),
        OrderedDict.fromkeys("ab", 0),
        list(b.values()),
        b.setdefault("q", 1),
        b.pop("q"),
    )


@program
def default_made(x):
    d = defaultdict(list)
    for k, v in (("a", 1), ("b", 2), ("a", 3)):
        d[k].append(v)
    e = defaultdict(lambda: 5)
    return x + e["zz"] + len(d["a"]), dict(d), d.default_factory is list, "q" in d, d.get("q")


@program
def default_none(x):
    d = defaultdict(None, a=1)
    try:
        d["b"]
    except KeyError as e:
        return x + d["a"], str(e)


@program
def default_copy(x):
    d = defaultdict(int, a=1)
    e = d.copy()
    e["b"] += 1
    return x + e["b"], type(e).__name__, e.default_factory is int, dict(d), repr(d)


@program
def default_nested(x):
    d = defaultdict(lambda: defaultdict(int))
    d["a"]["b"] += 2
    d["a"]["c"] += 1
    return x + d["a"]["b"], {k: dict(v) for k, v in d.items()}


@program
def default_of_tensors(x):
    d = defaultdict(lambda: torch.zeros(4))
    d["a"] = d["a"] + x
    return d["a"] + d["b"]


@program
def counter_made(x):
    c = Counter("abracadabra")
    return x + c["a"] + c["zz"], c.most_common(2), sorted(c.elements()), c.total()


@program
def counter_arithmetic(x):
    a, b = Counter(a=3, b=1), Counter(a=1, b=2)
    return x + 1, a + b, a - b, a & b, a | b, +a, a == Counter(b=1, a=3), a <= a + b


@program
def counter_updates(x):
    c = Counter()
    c.update("aab")
    c.subtract({"a": 1})
    c["z"] += 5
    del c["b"]
    return x + c["z"], dict(c), list(c.items()), type(c.copy()).__name__


@program
def counter_of_list(x):
    c = Counter([len(w) for w in ["a", "bb", "cc"]])
    return x + c[2], max(c, key=c.get), sorted(c.items())


@program
def chain_made(x):
    a, b = {"a": 1}, {"a": 2, "b": 3}
    c = ChainMap(a, b)
    c["c"] = 4
    return x + c["a"] + c["b"], dict(c), a, len(c), sorted(c), "b" in c, c.get("zz", 9)


@program
def chain_children(x):
    c = ChainMap({"a": 1})
    d = c.new_child({"a": 5})
    return x + d["a"] + d.parents["a"], len(d.maps), list(d.keys()), d.pop("a"), d["a"]


@program
def chain_missing(x):
    c = ChainMap({"a": 1})
    try:
        del c["q"]
    except KeyError as e:
        return x + 1, str(e)


@program
def user_dict(x):
    class U(UserDict):
        def __setitem__(self, k, v):
            super().__setitem__(k.lower(), v)

    u = U(A=1)
    u["B"] = 2
    return x + u["a"] + len(u), dict(u), "b" in u, u.get("q")


@program
def user_list(x):
    u = UserList([1, 2])
    u.append(3)
    return x + sum(u), u[1], len(u), list(u + [4]), u == [1, 2, 3]


@built
def kinds_from_outside():
    o, d, c, m = OrderedDict(a=1), defaultdict(int, b=2), Counter("aab"), ChainMap({"k": 1}, {"l": 2})

    def f(x):
        return x + o["a"] + d["b"] + c["a"] + m["l"], list(o), dict(d), c.most_common(1)

    return f


@built(graphs=3)
def kinds_from_outside_changed():
    o, d, c = OrderedDict(a=1), defaultdict(list), Counter()

    def f(x):
        o["n"] = len(o)
        o.move_to_end("a")
        d["k"].append(len(d))
        c["z"] += 1
        return x + len(o) + len(d) + c["z"], list(o)

    return f


@program
def dict_from_pairs(x):
    return (
        x + 1,
        dict([("a", 1)], b=2),
        dict({"a": 1}, a=5),
        dict(zip("ab", (1, 2))),
        {**{"a": 1}, **OrderedDict(b=2)},
        dict(enumerate("ab")),
    )


@program
def dict_equality_of_kinds(x):
    return (
        x + 1,
        {"a": 1} == OrderedDict(a=1),
        defaultdict(int, a=1) == {"a": 1},
        Counter(a=1) == {"a": 1},
        Counter(a=1) == Counter(a=1, b=0),
    )


@program
def deque_methods(x):
    d = deque([1, 2, 3], maxlen=3)
    d.append(4)
    d.appendleft(0)
    d.rotate(1)
    d.extend([7])
    return x + d[0], list(d), d.maxlen, d.count(7), d.index(7), d.pop(), d.popleft()


@program
def mapping_abc(x):
    from collections.abc import Mapping, MutableMapping, Set as AbstractSet

    return (
        x + 1,
        isinstance({}, Mapping),
        isinstance(OrderedDict(), MutableMapping),
        isinstance({}.keys(), AbstractSet),
        isinstance(types.MappingProxyType({}), Mapping),
        isinstance(ChainMap(), Mapping),
    )


@program
def keys_of_many_kinds(x):
    d = {
        1: "i",
        1.5: "f",
        "s": "s",
        None: "n",
        (1, 2): "t",
        True: "b",
        frozenset([1]): "z",
        int: "c",
        torch.float32: "d",
    }
    return x + len(d), d[1], d[(1, 2)], d[frozenset([1])], d[int], d[torch.float32]


@program
def popitem_order(x):
    d = {"a": 1, "b": 2}
    a = d.popitem()
    d.update(a=3, q=4)
    return x + len(d), a, d


@program
def changes_while_iterated(x):
    d = {"a": 1}
    try:
        for k in d:
            d[k + "x"] = 1
    except RuntimeError as e:
        return x + 1, str(e)
