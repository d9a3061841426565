# ruff: noqa
"""Lists, tuples, dictionaries, sets and their views: made inside, taken from outside, changed, returned."""

import collections
import types

import torch
from tests.support.registry import built, program, tensor


@program
def list_all_methods(x):
    l = [3, 1, 2]
    l.append(4)
    l.extend((5, 6))
    l.insert(1, 9)
    l.remove(9)
    a = l.pop()
    b = l.pop(0)
    l.sort()
    l.reverse()
    c = l.index(2)
    d = l.count(1)
    m = l.copy()
    l.clear()
    return x + a + b + c + d, m, l


@program
def list_operators(x):
    l = [1, 2] + [3]
    l += (4,)
    l *= 2
    k = l * 2
    return x + len(l) + len(k) + (l == [1]) + ([1, 2] < [1, 3]) + (2 in l) + (9 not in l) + l[-1] + l[1:3][0], l


@program
def list_slices(x):
    l = list(range(10))
    l[2:4] = [20, 30, 40]
    l[::3] = [0] * len(l[::3])
    del l[1:3]
    del l[-1]
    l[:0] = [7]
    return x + sum(l), l


@program
def list_of_tensors(x):
    l = [x, x + 1]
    l.append(x * 2)
    l[0] = l[0] - 1
    y = l.pop(1)
    return torch.stack(l), y, sum(l)


@program(graphs=0)
def list_sort_key(x):
    words = ["bb", "a", "ccc"]
    words.sort(key=len, reverse=True)
    pairs = sorted([(2, "b"), (1, "c"), (2, "a")], key=lambda p: (-p[0], p[1]))
    return x, words, pairs, sorted("hello"), sorted({3, 1, 2}), sorted({"b": 1, "a": 2})


@program
def list_min_max(x):
    l = [3, 1, 2]
    return (
        x
        + min(l)
        + max(l)
        + min(3, 1)
        + max(l, key=lambda v: -v)
        + min([], default=5)
        + max("a", "b", key=ord).__len__()
        + sum(l, 10)
    )


@program(graphs=0)
def list_from_argument(x):
    return x


@program(args=lambda i: [tensor(i), [1, 2, 3]])
def list_mutated_argument(x, l):
    l.append(4)
    l[0] = 7
    del l[1]
    return x + len(l)


@program(args=lambda i: [[tensor(i), tensor(i + 1)]])
def list_tensors_argument(l):
    l[0] = l[0] + 1
    l.append(l[1] * 2)
    return sum(l)


@program(args=lambda i: [tensor(i), [[1], [2]]])
def list_nested_mutation(x, l):
    inner = l[0]
    inner.append(5)
    l.append(inner)
    return x + len(inner), inner is l[2]


@program
def list_self_identity(x):
    a = []
    b = a
    b.append(1)
    return x + len(a), a, b, a is b


@program(graphs=0)
def list_repr_and_str(x):
    return x, str([1, "a", None]), repr((1,)), str({"a": [1]}), f"{[1, 2]}"


@program
def list_equality_of_tensors_list(x):
    l = [x]
    return x + (l == l) + (x in l)


@program
def list_index_error(x):
    try:
        [1, 2][5]
    except IndexError as e:
        return x + len(str(e))


@program
def list_unpack_star(x):
    a, *b, c = [1, 2, 3, 4]
    (d, e), f = [1, 2], 3
    return x + a + sum(b) + c + d + e + f


@program
def list_multiplied_alias(x):
    l = [[]] * 3
    l[0].append(1)
    return x + len(l[2]), l


@program
def tuple_methods(x):
    t = (1, 2, 3, 2)
    return x + t.count(2) + t.index(3) + len(t + (4,)) + len(t * 2) + t[0] + t[-1] + len(t[1:]) + (t < (2,)) + (
        2 in t
    ), t[::-1]


@program
def tuple_nested(x):
    t = (1, (2, (x, x + 1)))
    a, (b, (c, d)) = t
    return c * a + d * b, t


@program
def dict_all_methods(x):
    d = {"a": 1, "b": 2}
    d["c"] = 3
    d.update(d=4)
    d.update({"e": 5})
    d.update([("f", 6)])
    a = d.get("a", 0) + d.get("zz", 7)
    b = d.pop("b")
    c = d.pop("nope", 9)
    k = d.setdefault("a", 100) + d.setdefault("g", 8)
    last = d.popitem()
    e = d.copy()
    f = dict.fromkeys(["p", "q"], 1)
    del d["c"]
    n = len(d)
    d.clear()
    return x + a + b + c + k + n, last, e, f, d


@program
def dict_operators(x):
    d = {"a": 1} | {"b": 2}
    d |= {"c": 3}
    return x + len(d) + ("a" in d) + ("z" not in d) + (d == {"a": 1, "b": 2, "c": 3}), d


@program
def dict_views(x):
    d = {"a": 1, "b": 2}
    k, v, i = d.keys(), d.values(), d.items()
    n = len(k) + len(v) + len(i) + ("a" in k) + (1 in v) + (("a", 1) in i)
    d["c"] = 3
    return x + n + len(k), list(k), list(v), list(i), k & {"a"}, k | {"z"}, k - {"a"}, k ^ {"q"}, k.isdisjoint({"q"})


@program
def dict_views_compare(x):
    a, b = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    return x + (a.keys() == b.keys()) + (a.items() == b.items()) + (a.keys() <= {"a", "b", "c"}) + (a == b)


@program
def dict_iteration(x):
    d = {"a": 1.0, "b": 2.0}
    out = x
    for k in d:
        out = out + d[k]
    for k, v in d.items():
        out = out * v + len(k)
    for v in d.values():
        out = out - v
    for k in reversed(d):
        out = out + len(k)
    return out


@program
def dict_comprehension(x):
    d = {k: v for k, v in zip("abc", range(3))}
    e = {v: k for k, v in d.items() if v}
    return x + len(e), d, e


@program(args=lambda i: [{"a": tensor(i), "b": 2}])
def dict_argument(d):
    d["c"] = d["a"] * d["b"]
    d["a"] = d["a"] + 1
    d.pop("b")
    return d["c"]


@program(args=lambda i: [{"a": tensor(i), "b": tensor(i + 1)}])
def dict_argument_iterated(d):
    return {k: v + 1 for k, v in d.items()}, sum(d.values())


@program(args=lambda i: [tensor(i), {1: 2, (1, 2): 3, None: 4, 1.5: 5, torch.float32: 6}])
def dict_odd_keys(x, d):
    return x + d[1] + d[(1, 2)] + d[None] + d[1.5] + d[x.dtype]


@program
def dict_tensor_keys(x):
    y = x + 1
    d = {x: 1, y: 2}
    return x * d[x] + y * d[y]


@program
def dict_of_functions(x):
    ops = {"sin": torch.sin, "cos": torch.cos, "sq": lambda v: v * v}
    return ops["sin"](x) + ops["sq"](x)


@program
def dict_missing_key_caught(x):
    try:
        {}["k"]
    except KeyError as e:
        return x + len(e.args[0])


@program
def dict_changed_in_iteration(x):
    d = {"a": 1, "b": 2}
    try:
        for k in d:
            d[k + "x"] = 1
    except RuntimeError as e:
        return x + len(str(e))
    return x


@program
def dict_list_keys(x):
    d = {"a": 1, "b": 2}
    for k in list(d):
        if d[k] == 1:
            del d[k]
    return x + len(d), d


@program
def dict_nested(x):
    d = collections.defaultdict(lambda: collections.defaultdict(list))
    d["a"]["b"].append(x)
    d["a"]["b"].append(x + 1)
    return torch.cat(d["a"]["b"]), len(d)


@program
def dict_merge_star(x):
    a, b = {"p": 1}, {"q": 2}
    c = {**a, **b, "r": 3}

    def f(p, q, r=0):
        return p + q * r

    return x * f(**c)


@program
def set_all_methods(x):
    s = {1, 2, 3}
    s.add(4)
    s.discard(9)
    s.discard(1)
    s.remove(2)
    s.update([7, 8], {9})
    t = s.copy()
    s.intersection_update({3, 4, 7})
    s.difference_update({7})
    s.symmetric_difference_update({3, 10})
    n = len(s | {1}) + len(s & {4}) + len(s - {4}) + len(s ^ {4})
    return (
        x + n + s.issubset(t | {10}) + t.issuperset({7}) + s.isdisjoint({99}) + (s <= s) + (s < t),
        sorted(s),
        sorted(t),
        sorted(s.union([5])),
        sorted(s.intersection([4])),
        sorted(s.difference([4])),
        sorted(s.symmetric_difference([4])),
    )


@program
def set_operators_in_place(x):
    s = {1, 2}
    s |= {3}
    s &= {2, 3}
    s -= {2}
    s ^= {5}
    return x + len(s), s


@program
def set_pop_clear(x):
    s = {1}
    a = s.pop()
    s.add(2)
    s.clear()
    try:
        s.pop()
    except KeyError:
        a += 10
    return x + a, s


@program
def set_comprehension(x):
    s = {v % 3 for v in range(10)}
    return x + len(s) + (2 in s)


@program(args=lambda i: [tensor(i), {1, 2, 3}])
def set_outside_iterated(x, s):
    for v in s:
        x = x + v
    return x


@program(args=lambda i: [tensor(i), {"a", "b"}])
def set_outside_text(x, s):
    return x + len(s) + ("a" in s) + ("z" in s), sorted(s)


@program(args=lambda i: [tensor(i), {1, 2}])
def set_outside_mutated(x, s):
    s.add(5)
    s.discard(1)
    return x + len(s)


@program(args=lambda i: [tensor(i), frozenset([1, 2])])
def frozenset_argument(x, s):
    out = x
    for v in s:
        out = out * v
    return out + (1 in s), s | {3}


@program
def frozenset_methods(x):
    s = frozenset([1, 2, 3])
    return x + len(s) + (1 in s) + len(s & {1}) + len(s | {9}) + s.issubset({1, 2, 3, 4}) + len({s: 1}) + (
        s == {1, 2, 3}
    ), s.union([7])


@program
def set_of_tensors(x):
    y = x + 1
    s = {x, y}
    s.add(x)
    return x + len(s) + (y in s)


@program
def set_of_tuples(x):
    s = {(1, 2), (3, 4)}
    return x + ((1, 2) in s) + len(s)


@program
def ordered_dict(x):
    d = collections.OrderedDict([("a", 1), ("b", 2), ("c", 3)])
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    first = next(iter(d))
    k, v = d.popitem(last=False)
    return x + v, list(d), first, k, d


@program
def default_dict(x):
    d = collections.defaultdict(list)
    d["a"].append(1)
    d["b"].append(x)
    e = collections.defaultdict(int)
    for c in "hello":
        e[c] += 1
    return d["b"][0] + e["l"] + len(d["zz"]), d.default_factory is list, dict(e), d


@program
def counter(x):
    c = collections.Counter("hello")
    c.update("ll")
    c["z"] += 2
    c.subtract({"h": 1})
    return (
        x + c["l"] + c["missing"] + sum(c.values()),
        c.most_common(1),
        sorted(c.elements()),
        dict(c + collections.Counter("a")),
        c.total(),
    )


@program
def deque_methods(x):
    d = collections.deque([1, 2, 3])
    d.append(4)
    d.appendleft(0)
    a = d.pop()
    b = d.popleft()
    d.extend([5, 6])
    d.extendleft([7])
    d.rotate(1)
    d.reverse()
    n = d.count(5) + d.index(5) + d[0] + len(d) + (5 in d)
    d.remove(5)
    d.insert(1, 9)
    e = d.copy()
    d.clear()
    return x + a + b + n, list(e), d


@program
def deque_maxlen(x):
    d = collections.deque(maxlen=2)
    for i in range(4):
        d.append(x + i)
    return d[0] + d[1], len(d), d.maxlen


@program(args=lambda i: [tensor(i), collections.deque([1, 2])])
def deque_argument(x, d):
    d.append(3)
    out = x
    for v in d:
        out = out + v
    return out


@program
def chain_map(x):
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    child = m.new_child({"c": 4})
    m["z"] = 9
    return x + m["a"] + m["b"] + child["c"] + len(m), dict(m), m.maps[0]


@program
def named_tuple_factory(x):
    P = collections.namedtuple("P", ["a", "b"])
    p = P(1, b=x)
    return p.a + p.b, p


PAIR = collections.namedtuple("PAIR", "a b", defaults=[5])


@program
def named_tuple_methods(x):
    p = PAIR(x)
    q = p._replace(a=x + 1)
    a, b = q
    return a + b + p[0] + len(p), p._asdict()["b"], PAIR._fields, PAIR._make([1, 2]), q, p == p, isinstance(p, tuple)


@program
def user_dict(x):
    d = collections.UserDict({"a": 1})
    d["b"] = 2
    return x + d["a"] + d["b"] + len(d)


@program
def user_list(x):
    l = collections.UserList([1, 2])
    l.append(3)
    return x + sum(l) + len(l)


@program
def mapping_proxy(x):
    d = {"a": 1}
    p = types.MappingProxyType(d)
    d["b"] = 2
    return x + p["a"] + p["b"] + len(p), sorted(p)


@program
def simple_namespace(x):
    n = types.SimpleNamespace(a=1, b=x)
    n.c = 3
    return n.b + n.a + n.c, hasattr(n, "q"), n


@program(args=lambda i: [types.SimpleNamespace(a=tensor(i), k=2)])
def simple_namespace_argument(n):
    n.r = n.a * n.k
    return n.r


class MyList(list):
    def total(self):
        return sum(self)

    def __getitem__(self, i):
        return super().__getitem__(i) * 2


class MyDict(dict):
    def __missing__(self, key):
        return 42

    def twice(self, k):
        return self[k] * 2


class MyTuple(tuple):
    __slots__ = ()

    def first(self):
        return self[0]


class MySet(set):
    def has(self, v):
        return v in self


@program
def list_subclass(x):
    l = MyList([1, 2])
    l.append(3)
    return x + l.total() + l[0] + len(l), l


@program
def dict_subclass(x):
    d = MyDict(a=1)
    d["b"] = 5
    return x + d["zz"] + d.twice("a") + len(d), d


@program
def tuple_subclass(x):
    t = MyTuple((1, 2))
    return x + t.first() + len(t), t


@program
def set_subclass(x):
    s = MySet([1, 2])
    s.add(3)
    return x + s.has(2) + len(s)


@program(args=lambda i: [MyList([tensor(i), tensor(i + 1)])])
def list_subclass_argument(l):
    l.append(l[0])
    return l[1] + len(l)


@program(args=lambda i: [MyDict(a=tensor(i))])
def dict_subclass_argument(d):
    d["r"] = d["a"] + d["q"]
    return d["r"]


@program(args=lambda i: [collections.OrderedDict(a=tensor(i), b=tensor(i + 1))])
def ordered_dict_argument(d):
    d.move_to_end("a")
    return sum(d.values()), list(d)


@program(args=lambda i: [collections.defaultdict(list, a=[tensor(i)])])
def default_dict_argument(d):
    d["b"].append(d["a"][0] + 1)
    return d["b"][0]


@program(args=lambda i: [PAIR(tensor(i), 3)])
def named_tuple_argument(p):
    return p.a * p.b, p._replace(b=1)


@program
def comprehension_forms(x):
    a = [i * j for i in range(3) for j in range(i) if j % 2 == 0]
    b = [[j for j in range(i)] for i in range(3)]
    c = {i: [j for j in range(i)] for i in range(2)}
    d = tuple(i for i in range(3))
    e = [y for y in (x + 1, x + 2)]
    f = [z := 3, z + 1]
    return sum(e) + sum(a) + len(b) + len(c) + sum(d) + sum(f)


@program
def walrus_in_comprehension(x):
    out = [y for i in range(3) if (y := i * 2) > 0]
    return x + sum(out) + y


@program
def torch_size(x):
    s = x.shape
    t = s + (2,)
    u = torch.Size([1, 2])
    return (
        x.reshape(s[::-1]),
        t,
        u,
        s.numel(),
        len(s),
        list(s),
        s == (3, 4),
        s[1:] + u,
        tuple(s),
        isinstance(s, tuple),
        s * 2,
    )


@program
def zip_forms(x):
    a = list(zip([1, 2], "ab", strict=True))
    b = list(zip(*a))
    try:
        list(zip([1], [1, 2], strict=True))
    except ValueError as e:
        c = str(e)
    return x + len(a) + len(b), a, b, c


@program
def enumerate_reversed_map_filter(x):
    out = x
    for i, v in enumerate([1, 2], start=5):
        out = out + i * v
    for v in reversed([1, 2, 3]):
        out = out * v
    out = out + sum(map(lambda a, b: a * b, [1, 2], [3, 4]))
    out = out + sum(filter(None, [0, 1, 2])) + sum(filter(lambda v: v > 1, [1, 2]))
    return out, list(map(str, [1, 2])), list(enumerate("ab"))


@program
def iter_with_sentinel(x):
    values = [1, 2, 3, 0, 5]
    it = iter(values)
    total = 0
    for v in iter(lambda: next(it), 0):
        total += v
    return x + total


@program
def iter_next_default(x):
    it = iter([1, 2])
    return x + next(it) + next(it) + next(it, 10), list(it)


@program
def any_all(x):
    return x + any([0, 1]) + all([1, 1]) + any(v > 2 for v in range(4)) + all([]) + any([])


@program
def sorted_of_tensors_by_key(x):
    parts = [x[i] for i in range(3)]
    order = sorted(range(3), key=lambda i: -i)
    return torch.stack([parts[i] for i in order])


@built(graphs=3)
def closure_list_accumulates():
    seen = []

    def f(x):
        seen.append(x.shape[0])
        return x + len(seen)

    return f


@built(graphs=2)
def closure_dict_cache():
    cache = {}

    def f(x):
        key = tuple(x.shape)
        if key not in cache:
            cache[key] = torch.zeros(4)
        return x + cache[key]

    return f


GLOBAL_LIST = [1, 2, 3]
GLOBAL_DICT = {"scale": 2.0, "names": ["a", "b"]}
GLOBAL_SET = {1, 2, 3}
GLOBAL_FROZEN = frozenset({"a", "b"})


@program
def globals_read(x):
    return (
        x * GLOBAL_DICT["scale"] + sum(GLOBAL_LIST) + len(GLOBAL_DICT["names"]) + (2 in GLOBAL_SET) + len(GLOBAL_FROZEN)
    )


@program
def globals_iterated(x):
    for v in GLOBAL_SET:
        x = x + v
    for k in GLOBAL_FROZEN:
        x = x * len(k)
    return x
