# ruff: noqa
"""Objects that exist before the call: keys with their own hash, classes below containers and numbers, members, partials, caches, suspended generators."""

import collections, copy, enum, functools, itertools, operator, sys, types, math
import torch
from tests.support.registry import attempt, built, program, tensor, text


class Key:
    def __init__(self, h, n):
        self.h, self.n = h, n

    def __hash__(self):
        return self.h

    def __eq__(self, o):
        return self.n == getattr(o, "n", o)


class Logs(Key):
    log = []

    def __hash__(self):
        self.log.append(("hash", self.n))
        return self.h

    def __eq__(self, o):
        self.log.append(("eq", self.n))
        return self.n == getattr(o, "n", o)


@built(graphs=0, breaks=True)
def dicts_with_own_keys():
    k = Key(1, "a")
    d = {k: 1, Key(1, "b"): 2, 5: 3, "s": 4}
    s = {Key(7, "q"), 3}

    def f(x):
        out = [
            d[k],
            d[Key(1, "b")],
            d[5],
            d["s"],
            1 in d,
            Key(5, 5) in d,
            d.get(Key(hash("s"), "s")),
            3 in s,
            Key(7, "q") in s,
            Key(3, 3) in s,
            7 in s,
            len(d),
            len(s),
        ]
        d[Key(1, "a")] = d[k] + 1
        return x * d[k], out, [getattr(q, "n", q) for q in d]

    return f


@built(graphs=3, breaks=True)
def dicts_whose_keys_change():
    k = Key(1, "a")
    d = {k: 1}

    def f(x):
        k.h += 1
        out = [k in d, Key(1, "a") in d, len(d), list(d.values())]
        d[k] = k.h
        return x + len(d), out, len(d), sorted(q.h for q in d)

    return f


@built(graphs=2, breaks=True)
def keys_that_log():
    Logs.log = []
    k = Logs(1, "a")
    d = {k: 1, Logs(1, "b"): 2}
    s = {Logs(2, "c")}

    def f(x):
        out = [d[k], 1 in d, k in d, Logs(2, "c") in s, 2 in s, d.get(9), len(d)]
        r = (x + out[0], out, list(Logs.log))
        Logs.log.clear()
        return r

    return f


class L(list):
    def __iter__(self):
        return iter([7, 8])

    def __len__(self):
        return 5

    def __getitem__(self, i):
        return ("item", i)


class D(dict):
    def __iter__(self):
        return iter("zz")

    def keys(self):
        return ["k"]

    def __getitem__(self, k):
        return ("item", k)

    def __len__(self):
        return 9

    def __contains__(self, k):
        return k == "magic"


class S(set):
    def __iter__(self):
        return iter([9])

    def __len__(self):
        return 4

    def __contains__(self, v):
        return v == 9


class T(tuple):
    def __iter__(self):
        return iter("t")

    def __len__(self):
        return 6


@built(graphs=3)
def subclasses_of_containers():
    l, d, s, t = L([1, 2, 3]), D(a=1, b=2), S({1, 2}), T((1, 2))

    def f(x):
        out = [
            list(l),
            len(l),
            l[0],
            bool(l),
            [*l],
            tuple(l),
            sum(l),
            l + [1],
            list.__len__(l),
            list.__getitem__(l, 0),
            sorted(l),
            l == [1, 2, 3],
            list(reversed(l)),
            7 in l,
            1 in l,
            l.index(2),
        ]
        out += [
            list(d),
            len(d),
            d["q"],
            d.get("a"),
            "a" in d,
            "magic" in d,
            dict(d),
            {**d},
            list(d.items()),
            list(d.values()),
            dict.__len__(d),
            d == {"a": 1, "b": 2},
            list(dict.keys(d)),
            d | {},
            d.copy(),
        ]
        out += [
            list(s),
            len(s),
            9 in s,
            1 in s,
            s | {5},
            set(s),
            s == {1, 2},
            sorted(s),
            bool(s),
            {1} < s,
            set.__len__(s),
        ]
        out += [
            list(t),
            len(t),
            t[0],
            t + (3,),
            t == (1, 2),
            tuple(t),
            [*t],
            hash(t) == hash((1, 2)),
            1 in t,
            list(reversed(t)) if False else 0,
        ]
        l.append(4)
        d["c"] = 3
        s.add(3)
        return x * list.__len__(l), out, list.copy(l), dict.items(d), set.__len__(s)

    return f


class I(int):
    def __add__(self, o):
        return ("add", o)

    def __eq__(self, o):
        return ("eq",) if o == 5 else int(self) == o

    __hash__ = int.__hash__

    def __lt__(self, o):
        return int(self) > int(o)

    def __bool__(self):
        return False

    def __str__(self):
        return "I"

    def __index__(self):
        return 0


class Tx(str):
    def __len__(self):
        return 50

    def __str__(self):
        return "Tx"

    def __eq__(self, o):
        return o == "other"

    __hash__ = str.__hash__

    def __getitem__(self, i):
        return "!"


@built(graphs=0, breaks=True)
def subclasses_of_numbers():
    i, j, s = I(2), I(3), Tx("ab")
    d = {2: "two", "ab": "text"}

    def f(x):
        out = [
            i + 1,
            1 + i,
            i == 5,
            i == 2,
            i < j,
            sorted([i, j]) == [j, i],
            max(i, j) == 2,
            bool(i),
            str(i),
            f"{i}",
            "%s" % i,
            "%d" % i,
            [10, 20, 30][i],
            i * 2,
            -i,
            hash(i),
            i in [2],
            i in [9],
            int(i),
            range(i),
            "x" * i,
            not i,
            repr(i),
            i - 1,
            divmod(i, 2),
        ]
        out += [
            len(s),
            str(s),
            f"{s}",
            "%s" % s,
            s == "ab",
            s == "other",
            s[0],
            s + "c",
            s.upper(),
            "".join([s]),
            s in ["other"],
            "a" in s,
            list(s),
            s * 2,
            "ab" == s,
            hash(s) == hash("ab"),
            s.startswith("a"),
        ]
        attempt(
            out,
            lambda: d[i],
            lambda: d.get(s),
            lambda: s in d,
            lambda: {i: 1}[2],
            lambda: {s: 1}.get("ab"),
            lambda: len({s, "ab"}),
        )
        return x * i, x[i], out[:20], [str.__str__(o) if isinstance(o, str) else o for o in out]

    return f


class Grade(enum.Enum):
    LOW = 1
    HIGH = 2

    def __lt__(self, o):
        return self.value < o.value

    def __bool__(self):
        return self.value > 1

    def __str__(self):
        return "grade " + self.name

    def __add__(self, o):
        return self.value + o

    def __len__(self):
        return self.value

    def __call__(self, k):
        return self.value * k

    def __getitem__(self, k):
        return (self.name, k)

    def __iter__(self):
        return iter(self.name)

    def __contains__(self, o):
        return o == self.value


class Level(enum.IntEnum):
    A = 1
    B = 2

    def __add__(self, o):
        return "added"

    def __eq__(self, o):
        return "equal" if o == 7 else NotImplemented

    __hash__ = enum.IntEnum.__hash__


class Perm(enum.Flag):
    R = 1
    W = 2

    def __or__(self, o):
        return "or"


@program
def members_with_methods(x):
    g, h, a = Grade.LOW, Grade.HIGH, Level.A
    out = [
        g < h,
        bool(g),
        not h,
        str(g),
        f"{h}",
        "%s" % g,
        g + 1,
        len(h),
        h(3),
        g[2],
        list(g),
        1 in g,
        max(g, h).name,
        sorted([h, g])[0].name,
        a + 1,
        a == 7,
        a == 1,
        a < 2,
        a * 2,
        Perm.R | Perm.W,
        Perm.R & Perm.W == 0,
        {g: 1}[g],
        [g, h].index(h),
        g == g,
        g != h,
        hash(g) == hash(Grade.LOW),
        repr(g),
        g is Grade(1),
        Grade["HIGH"] is h,
        isinstance(a, int),
        [10, 20, 30][a],
        x.shape[a],
        sum([Level.A, Level.B]) if False else 0,
    ]
    attempt(
        out,
        lambda: g > 3,
        lambda: g + "a",
        lambda: Grade(9),
        lambda: Grade["no"],
        lambda: g.nope,
        lambda: g.value.nope,
        lambda: g - 1,
        lambda: a(1),
        lambda: setattr(g, "value", 3),
    )
    return x * h(2), out


class Meta(type):
    def __add__(cls, o):
        return cls.__name__ + str(o)

    def __len__(cls):
        return 4

    def __iter__(cls):
        return iter([1, 2])

    def __getitem__(cls, k):
        return k

    def __contains__(cls, v):
        return v == 3

    def __eq__(cls, o):
        return cls is o or o == "eq"

    def __hash__(cls):
        return 11

    def __bool__(cls):
        return False

    def __call__(cls, *a):
        return ("called", a) if a else super().__call__()


class WithMeta(metaclass=Meta):
    v = 3


@program(breaks=True)
def classes_from_outside_with_operators(x):
    C = WithMeta
    out = [
        C + 1,
        len(C),
        list(C),
        C[5],
        3 in C,
        4 in C,
        C == "eq",
        C == 3,
        C != C,
        hash(C),
        bool(C),
        C(1),
        type(C()).__name__,
        {C: 2}[C],
        C in [3],
        [C].index(C),
        not C,
        C.v,
        C is WithMeta,
        isinstance(C(), C),
        [*C],
        sorted([2, 1], key=C) == [2, 1],
    ]
    attempt(out, lambda: C - 1, lambda: C()[1], lambda: len(C()), lambda: 1 + C)
    return x * len(C), out


class Desc:
    def __init__(self, f):
        self.f = f

    def __get__(self, o, t):
        return self.f


class Odd:
    __len__ = Desc(lambda: 3)
    __bool__ = Desc(lambda: False)
    __add__ = Desc(lambda o: ("add", o))
    __getitem__ = Desc({"a": 1}.get)
    __call__ = Desc(max)
    __iter__ = Desc(lambda: iter("ab"))
    __eq__ = Desc(lambda o: o == 1)
    __hash__ = Desc(lambda: 5)
    __contains__ = staticmethod(lambda v: v == 2)
    __neg__ = classmethod(lambda c: c.__name__)
    __enter__ = Desc(lambda: "in")
    __exit__ = Desc(lambda *a: True)
    __str__ = Desc(lambda: "odd")
    __index__ = Desc(lambda: 1)
    __float__ = staticmethod(lambda: 2.5)
    __next__ = staticmethod(lambda: 7)
    __lt__ = Desc(lambda o: "lt")
    __iadd__ = Desc(lambda o: "iadd")
    __radd__ = Desc(lambda o: "radd")
    __reversed__ = Desc(lambda: iter("ba"))
    __round__ = Desc(lambda *a: "round")
    __format__ = Desc(lambda s: "fmt" + s)
    __abs__ = staticmethod(lambda: "abs")
    __setitem__ = staticmethod(lambda k, v: None)
    __delitem__ = staticmethod(lambda k: None)
    __length_hint__ = staticmethod(lambda: 3)
    __dir__ = staticmethod(lambda: ["b", "a"])
    __divmod__ = staticmethod(lambda o: "divmod")
    __pow__ = staticmethod(lambda *o: o)
    __missing__ = None
    __getattr__ = staticmethod(lambda n: "attr " + n)


@program(graphs=0, breaks=True)
def descriptors_as_methods(x):
    o = Odd()
    out = []
    attempt(
        out,
        lambda: len(o),
        lambda: bool(o),
        lambda: o + 1,
        lambda: 1 + o,
        lambda: o["a"],
        lambda: o(1, 2),
        lambda: list(o),
        lambda: o == 1,
        lambda: o != 1,
        lambda: hash(o),
        lambda: {o: 1}[o],
        lambda: 2 in o,
        lambda: -o,
        lambda: str(o),
        lambda: [1, 2][o],
        lambda: float(o),
        lambda: int(o),
        lambda: next(o),
        lambda: o < 1,
        lambda: sorted([o, o]) and 1,
        lambda: list(reversed(o)),
        lambda: round(o),
        lambda: round(o, 2),
        lambda: f"{o:x}",
        lambda: "%s" % o,
        lambda: abs(o),
        lambda: operator.setitem(o, 1, 2),
        lambda: operator.delitem(o, 1),
        lambda: operator.length_hint(o),
        lambda: dir(o),
        lambda: divmod(o, 1),
        lambda: o**2,
        lambda: pow(o, 2, 3),
        lambda: o.zork,
        lambda: [*o],
        lambda: range(o),
        lambda: "abc"[o],
        lambda: [1] * o,
        lambda: math.sqrt(o),
        lambda: any([o]),
        lambda: o in [1],
        lambda: "x" if o else "y",
        lambda: max([o, o]) is o,
    )
    with o as v:
        out.append(v)
        raise KeyError
    p = o
    p += 1
    return x * float(o), x[o], out, p


@built(graphs=0, breaks=True)
def generators_left_suspended():
    def gen():
        try:
            raise KeyError("k")
        except KeyError:
            while True:
                yield sys.exc_info()[0].__name__

    g = gen()
    r = reversed(L([1, 2, 3]))
    z = zip([1, 2, 3, 4], "abcd")

    def f(x):
        try:
            raise ValueError("v")
        except ValueError:
            a = next(g)
            b = sys.exc_info()[0].__name__
        return x + 1, a, b, next(r, None), next(z), sys.exc_info()[0]

    return f


@built(graphs=0, breaks=True)
def partials_with_state():
    p = functools.partial(torch.add, alpha=2)
    q = functools.partial(p, torch.ones(3, 4))

    def f(x):
        out = [p.keywords["alpha"], hasattr(p, "n"), getattr(p, "n", 0), q.func is torch.add, q.keywords]
        p.n = getattr(p, "n", 0) + 1
        a = p(x, x)
        p.keywords["alpha"] = p.n
        return a, p(x, x), q(x), out, p.n, sorted(vars(p)), dict(q.keywords)

    return f


@built(breaks=True)
def caches_with_state():
    @functools.lru_cache(maxsize=2)
    def f(n):
        if n < 0:
            raise ValueError(n)
        return n * 2

    @functools.cache
    def fact(n):
        return n * fact(n - 1) if n > 1 else 1

    def run(x):
        out = [f(1), f(1), f(2), f(3), f(1), fact(5), fact(3), fact(6)]
        for v in (-1, -1, -2):
            try:
                f(v)
            except ValueError as e:
                out.append(str(e))
        return x * f(2), out, tuple(f.cache_info()), tuple(fact.cache_info())

    return run


class Old:
    def __init__(self, *a):
        self.a = a

    def __getitem__(self, i):
        return self.a[i]


class Sized(Old):
    def __len__(self):
        return len(self.a)


@built
def old_protocols():
    o, s = Old(1, 2, 3), Sized(4, 5)

    def f(x):
        out = [
            list(o),
            2 in o,
            9 in o,
            max(o),
            sum(o),
            [*o],
            list(zip(o, s)),
            dict(enumerate(o)),
            tuple(s),
            list(reversed(s)),
            sorted(s, reverse=True),
            len(s),
            bool(s),
            bool(o),
            list(iter(o)),
            list(map(str, s)),
        ]
        a, b, c = o
        d, *e = s
        attempt(
            out,
            lambda: len(o),
            lambda: reversed(o),
            lambda: o[1:],
            lambda: next(o),
            lambda: o == o,
            lambda: hash(o) and 1,
            lambda: o < o,
            lambda: {**s},
            lambda: dict(s),
            lambda: s[5],
        )
        return x * sum(s), out, a, b, c, d, e

    return f


class Cmp:
    def __init__(self, n):
        self.n = n

    def __lt__(self, o):
        return self.n < o.n if isinstance(o, Cmp) else NotImplemented


class SubCmp(Cmp):
    def __gt__(self, o):
        return ("gt", self.n)


@built
def order_by_one_method():
    a, b, c = Cmp(1), Cmp(2), SubCmp(0)

    def f(x):
        out = [
            a < b,
            b > a,
            [k.n for k in sorted([b, a])],
            max(a, b).n,
            min(b, a).n,
            a < c,
            c > a,
            c < a,
            [k.n for k in sorted([b, c, a])],
            [k.n for k in sorted([(b, 1), (a, 2)])] if False else 0,
            a == b,
            a != b,
            sorted([(2, a), (1, b)])[0][0],
        ]
        attempt(
            out,
            lambda: a <= b,
            lambda: a < 3,
            lambda: 3 < a,
            lambda: sorted([a, 3]),
            lambda: sorted([(1, a), (1, b)])[0][1].n,
            lambda: max([a, 3]),
        )
        return x + len(out), out

    return f
