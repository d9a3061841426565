# ruff: noqa
"""Special methods that are None, static, of a class, a property or a function of C; odd answers; classes below numbers and containers given to C."""

import abc, collections, copy, contextlib, enum, functools, itertools, math, operator, sys, types, dataclasses
import torch
from tests.support.registry import attempt, built, program, tensor, text


@program(graphs=3, breaks=True)
def with_of_odd_methods(x):
    log = []

    class Base:
        def __enter__(self):
            log.append("enter")
            return 1

        def __exit__(self, *a):
            log.append(len(a))
            return True

    class NoneEnter(Base):
        __enter__ = None

    class NoneExit(Base):
        __exit__ = None

    class Static:
        __enter__ = staticmethod(lambda: "static")
        __exit__ = staticmethod(lambda *a: len(a) == 3)

    class Class:
        __enter__ = classmethod(lambda c: c.__name__)
        __exit__ = classmethod(lambda c, *a: True)

    class Property:
        @property
        def __enter__(self):
            log.append("property")
            return lambda: 5

        @property
        def __exit__(self):
            return lambda *a: []

    class Instance:
        def __init__(self):
            self.__enter__ = lambda: 1
            self.__exit__ = lambda *a: True

    class OnlyExit:
        def __exit__(self, *a):
            pass

    class Fails(Base):
        def __enter__(self):
            raise KeyError("in enter")

    class Odd(Base):
        def __exit__(self, *a):
            return Truth()

    class Truth:
        def __bool__(self):
            raise ValueError("truth")

    for make in (
        Base,
        NoneEnter,
        NoneExit,
        Static,
        Class,
        Property,
        Instance,
        OnlyExit,
        Fails,
        Odd,
        int,
        lambda: None,
        lambda: Base,
    ):
        try:
            with make() as v:
                log.append(v)
                x = x + 1
                raise IndexError("body")
        except Exception as e:
            log.append((type(e).__name__, str(e), type(e.__context__).__name__))
    return x, log


@program
def calls_of_odd_methods(x):
    class N:
        __call__ = None

    class St:
        __call__ = staticmethod(lambda *a: len(a))

    class Cl:
        __call__ = classmethod(lambda c, *a: (c.__name__, a))

    class Bi:
        __call__ = max

    class Pa:
        __call__ = functools.partial(lambda *a: a, "p")

    class Pr:
        __call__ = property(lambda s: lambda k: k * 2)

    class In:
        pass

    class Ty:
        __call__ = int

    class Me(type):
        def __call__(cls, *a):
            return ("meta", a)

    class Made(metaclass=Me):
        pass

    i = In()
    i.__call__ = lambda: 1
    out = []
    n = attempt(
        out,
        lambda: N()(),
        lambda: St()(1, 2),
        lambda: Cl()(1),
        lambda: Bi()(1, 2),
        lambda: Pa()(1),
        lambda: Pr()(4),
        lambda: i(),
        lambda: Ty()("7"),
        lambda: Made(1),
        lambda: 3(),
        lambda: "a"(),
    )
    n += attempt(
        out,
        lambda: callable(N()),
        lambda: callable(St()),
        lambda: callable(i),
        lambda: callable(Made),
        lambda: callable(3),
        lambda: list(map(Cl(), [1])),
        lambda: sorted([3, 1], key=St()),
        lambda: max([1, 2], key=N()),
    )
    return x + n, out


@program(graphs=0, breaks=True)
def iteration_of_odd_methods(x):
    class SelfNext:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            self.n -= 1
            if self.n < 0:
                raise StopIteration("end")
            return self.n

    class NoNext:
        def __iter__(self):
            return self

    class NextNone:
        __next__ = None

        def __iter__(self):
            return self

    class IterNone:
        __iter__ = None

        def __getitem__(self, i):
            return [1, 2][i]

    class ItemOnly:
        def __getitem__(self, i):
            return [1, 2][i]

    class ContainsNone(ItemOnly):
        __contains__ = None

    class StaticIter:
        __iter__ = staticmethod(lambda: iter("ab"))

    class ClassIter:
        __iter__ = classmethod(lambda c: iter(c.__name__))

    class GivesInt:
        def __iter__(self):
            return 3

    class Raises:
        def __iter__(self):
            raise KeyError("iter")

    class RaisesNext(SelfNext):
        def __next__(self):
            raise KeyError("next")

    out = []
    n = attempt(
        out,
        lambda: list(SelfNext(3)),
        lambda: list(NoNext()),
        lambda: list(NextNone()),
        lambda: list(IterNone()),
        lambda: list(ItemOnly()),
        lambda: list(StaticIter()),
        lambda: list(ClassIter()),
    )
    n += attempt(
        out,
        lambda: list(GivesInt()),
        lambda: list(Raises()),
        lambda: list(RaisesNext(2)),
        lambda: next(RaisesNext(1)),
        lambda: next(NoNext()),
        lambda: next(ItemOnly()),
        lambda: iter(IterNone()),
    )
    n += attempt(
        out,
        lambda: 1 in ItemOnly(),
        lambda: 9 in ItemOnly(),
        lambda: 1 in ContainsNone(),
        lambda: 1 in IterNone(),
        lambda: "a" in StaticIter(),
        lambda: 1 in SelfNext(3),
        lambda: 1 in GivesInt(),
        lambda: 1 in 5,
        lambda: [] in [[]],
    )
    n += attempt(
        out,
        lambda: max(SelfNext(3)),
        lambda: sum(ItemOnly()),
        lambda: dict(zip(ItemOnly(), "ab")),
        lambda: [*map(str, ItemOnly())],
        lambda: "".join(StaticIter()),
        lambda: tuple(NoNext()),
        lambda: set(ClassIter()) == set("ClassIter"),
    )
    n += attempt(
        out,
        lambda: next(SelfNext(0)),
        lambda: next(SelfNext(0), "d"),
        lambda: iter(SelfNext(1), 3),
        lambda: list(iter(SelfNext(3).__next__, 1)),
        lambda: [a for (a,) in zip(SelfNext(2))],
    )
    return x + n, out


@program(breaks=True)
def items_of_odd_methods(x):
    class N:
        __getitem__ = None
        __setitem__ = None
        __delitem__ = None

    class St:
        __getitem__ = staticmethod(lambda k: ("static", k))
        __setitem__ = staticmethod(lambda k, v: None)

    class Cl:
        __getitem__ = classmethod(lambda c, k: (c.__name__, k))

    class G:
        def __class_getitem__(cls, k):
            return (cls.__name__, k)

    class M(dict):
        def __missing__(self, k):
            return ("missing", k)

    class MN(dict):
        __missing__ = None

    class MS(dict):
        __missing__ = staticmethod(lambda k: ("static", k))

    class K:
        def __getitem__(self, k):
            return k

    def put(o, k, v):
        o[k] = v

    def drop(o, k):
        del o[k]

    out = []
    n = attempt(
        out,
        lambda: N()[1],
        lambda: put(N(), 1, 2),
        lambda: drop(N(), 1),
        lambda: St()[2],
        lambda: put(St(), 1, 2),
        lambda: drop(St(), 2),
        lambda: Cl()[3],
        lambda: G[4],
        lambda: G()[4],
        lambda: K()[1:2, ...],
        lambda: K()[()],
    )
    n += attempt(
        out,
        lambda: M()[1],
        lambda: M().get(1),
        lambda: MN()[1],
        lambda: MS()[1],
        lambda: 1 in M(),
        lambda: int[3],
        lambda: object()[1],
        lambda: K[1],
        lambda: (1, 2)["a"],
        lambda: [1]["a"],
        lambda: "a"[None],
        lambda: {}[[]],
        lambda: range(3)["a"],
    )
    n += attempt(
        out,
        lambda: put([1], 5, 1),
        lambda: put((1,), 0, 1),
        lambda: put("a", 0, 1),
        lambda: drop([1], 3),
        lambda: drop((1,), 0),
        lambda: drop({}, 1),
        lambda: put([1, 2], "a", 1),
        lambda: drop("abc", 0),
        lambda: put({}, [], 1),
    )
    return x + n, out


@program(graphs=0, breaks=True)
def text_of_odd_methods(x):
    class S:
        def __init__(self, v):
            self.v = v

        def __str__(self):
            return self.v

        def __repr__(self):
            return self.v

        def __format__(self, spec):
            return self.v

    class N:
        __str__ = None

    class R:
        def __repr__(self):
            return "R()"

    class F:
        __format__ = None

    class Sub(str):
        pass

    class St:
        __str__ = staticmethod(lambda: "static")

    out = []
    n = 0
    for v in ("ok", 3, None, Sub("sub"), b"b"):
        n += attempt(
            out,
            lambda: str(S(v)),
            lambda: repr(S(v)),
            lambda: f"{S(v)}",
            lambda: format(S(v), "x"),
            lambda: "%s" % S(v),
            lambda: "{}".format(S(v)),
            lambda: str([S(v)]),
            lambda: f"{S(v)!r:>4}",
            lambda: "%r" % (S(v),),
        )
    n += attempt(
        out,
        lambda: str(N()),
        lambda: str(R()),
        lambda: f"{R()}",
        lambda: f"{R():>6}",
        lambda: f"{R()!s:>6}",
        lambda: f"{F()}",
        lambda: str(St()),
        lambda: f"{[R()]}",
        lambda: str({R(): R()}),
        lambda: str((R(),)),
        lambda: "%s %s" % (R(), 1),
        lambda: "{0!r}".format(R()),
    )
    n += attempt(
        out,
        lambda: type(str(S(Sub("s")))).__name__,
        lambda: str(ValueError(R())),
        lambda: str(KeyError(R())),
        lambda: repr(ValueError(R(), 1)),
        lambda: ascii(R()),
        lambda: print(R(), end="") or 1,
    )
    return x + n, out


@program(breaks=True)
def attributes_of_odd_methods(x):
    log = []

    class N:
        __getattr__ = None

    class St:
        __getattr__ = staticmethod(lambda n: ("static", n))

    class Fails:
        def __getattribute__(self, n):
            raise AttributeError("mine " + n)

        def __getattr__(self, n):
            return ("fallback", n)

    class Deep:
        @property
        def p(self):
            return self.missing

        @property
        def q(self):
            raise AttributeError("from q")

        def __getattr__(self, n):
            log.append(n)
            raise AttributeError("none " + n)

    class SetNone:
        __setattr__ = None

    class DelOdd:
        def __delattr__(self, n):
            log.append("del " + n)
            return 5

    class Meta(type):
        def __getattr__(cls, n):
            return "meta " + n

        @property
        def prop(cls):
            return cls.__name__

        m = 5

    class C(metaclass=Meta):
        m = 6

    class D:
        def __get__(self, o, t=None):
            return ("get", o is None)

    class H:
        d = D()

    h = H()
    h.__dict__["d"] = "own"

    def put(o, n, v):
        setattr(o, n, v)

    out = []
    n = attempt(
        out,
        lambda: N().a,
        lambda: St().a,
        lambda: Fails().a,
        lambda: Deep().p,
        lambda: Deep().q,
        lambda: hasattr(Deep(), "p"),
        lambda: getattr(Deep(), "q", 1),
        lambda: put(SetNone(), "a", 1),
        lambda: delattr(DelOdd(), "a"),
    )
    n += attempt(
        out,
        lambda: C.a,
        lambda: C().a,
        lambda: C.prop,
        lambda: C().prop,
        lambda: C.m,
        lambda: H.d,
        lambda: h.d,
        lambda: H().d,
        lambda: C.__name__,
        lambda: (3).real,
        lambda: (3).nope,
        lambda: getattr(3, "nope", 2),
        lambda: getattr(3, 4),
        lambda: put(3, "a", 1),
        lambda: put("a", "upper", 1),
    )
    n += attempt(
        out,
        lambda: put(len, "a", 1),
        lambda: delattr(3, "real"),
        lambda: put(C, "m", 7),
        lambda: C.m,
        lambda: delattr(C, "nope"),
        lambda: [].nope,
        lambda: put([], "append", 1),
        lambda: {}.nope,
        lambda: (lambda: 1).nope,
        lambda: h.d.nope,
        lambda: put(object(), "a", 1),
    )
    return x + n, out, log


@program(breaks=True)
def in_place_of_odd_methods(x):
    class A:
        def __init__(self, v):
            self.v = v

        def __iadd__(self, o):
            return None

        def __isub__(self, o):
            return NotImplemented

        def __sub__(self, o):
            return ("sub", o)

        __imul__ = None

        def __mul__(self, o):
            return "mul"

        def __ior__(self, o):
            self.v |= o
            return self

    class R:
        def __rsub__(self, o):
            return "rsub"

        def __radd__(self, o):
            return "radd"

    def f(op, a, b):
        return op(a, b)

    out = []
    a = A(1)
    b = a
    a |= 6
    out += [a is b, a.v]
    n = attempt(
        out,
        lambda: f(operator.iadd, A(1), 2),
        lambda: f(operator.isub, A(1), 2),
        lambda: f(operator.imul, A(1), 2),
        lambda: f(operator.itruediv, A(1), 2),
        lambda: f(operator.iadd, 1, R()),
        lambda: f(operator.isub, 1, R()),
        lambda: f(operator.iadd, [1], R()),
        lambda: f(operator.iadd, (1,), R()),
        lambda: f(operator.iadd, [1], 3),
        lambda: f(operator.imul, [1], "a"),
        lambda: f(operator.ior, {1: 2}, [(3, 4)]),
        lambda: f(operator.ior, {1}, [1]),
        lambda: f(operator.iadd, "a", 1),
        lambda: f(operator.ipow, A(1), 2),
    )
    t = ([1],)
    try:
        t[0] += [2]
    except TypeError as e:
        out.append((text(e), t))
    return x + n, out


@program(breaks=True)
def unary_of_odd_methods(x):
    class N:
        __neg__ = None
        __abs__ = None
        __pos__ = staticmethod(lambda: "static")
        __invert__ = classmethod(lambda c: c.__name__)

        def __floor__(self):
            return "floor"

        __ceil__ = None

        def __trunc__(self):
            return "trunc"

    out = []
    n = attempt(
        out,
        lambda: -N(),
        lambda: abs(N()),
        lambda: +N(),
        lambda: ~N(),
        lambda: math.floor(N()),
        lambda: math.ceil(N()),
        lambda: math.trunc(N()),
        lambda: -"a",
        lambda: ~1.0,
        lambda: +[],
        lambda: abs(()),
        lambda: -None,
        lambda: not N(),
        lambda: operator.neg(N()),
        lambda: round(N()),
        lambda: math.floor(object()),
        lambda: math.ceil("a"),
    )
    return x + n, [str(o) for o in out]


@program(breaks=True)
def binary_of_odd_methods(x):
    class N:
        __add__ = None
        __sub__ = staticmethod(lambda o: ("static", o))
        __mul__ = classmethod(lambda c, o: (c.__name__, o))
        __truediv__ = property(lambda s: lambda o: ("property", o))
        __mod__ = max
        __matmul__ = functools.partial(lambda *a: len(a))

    class R:
        __radd__ = None
        __rsub__ = lambda s, o: "rsub"
        __rmul__ = staticmethod(lambda o: "static")

    class E:
        __eq__ = None
        __lt__ = staticmethod(lambda o: "lt")
        __gt__ = classmethod(lambda c, o: "gt")

    out = []
    n = attempt(
        out,
        lambda: N() + 1,
        lambda: N() - 1,
        lambda: N() * 1,
        lambda: N() / 1,
        lambda: N() % 1,
        lambda: N() @ 1,
        lambda: 1 + R(),
        lambda: 1 - R(),
        lambda: 1 * R(),
        lambda: N() + R(),
        lambda: "a" + R(),
        lambda: [] + R(),
        lambda: x + R(),
        lambda: R() + x,
    )
    n += attempt(
        out,
        lambda: E() == 1,
        lambda: 1 == E(),
        lambda: E() != 1,
        lambda: E() < 1,
        lambda: 1 < E(),
        lambda: 1 > E(),
        lambda: E() in [1],
        lambda: [E()] == [1],
        lambda: [1, E()].index(5),
        lambda: sorted([E(), E()]) and 1,
        lambda: max(E(), 1) and 1,
    )
    return x + n, [str(o) if not isinstance(o, str) else o.split(" object at")[0] for o in out]


@program(breaks=True)
def classes_with_operators(x):
    class Meta(type):
        def __add__(cls, o):
            return (cls.__name__, o)

        def __len__(cls):
            return 3

        def __iter__(cls):
            return iter("xyz")

        def __contains__(cls, v):
            return v == "in"

        def __getitem__(cls, k):
            return ("item", k)

        def __eq__(cls, o):
            return o == "me" or cls is o

        def __hash__(cls):
            return 7

        def __lt__(cls, o):
            return cls.__name__ < o.__name__

        def __bool__(cls):
            return cls.__name__ != "B"

        def __neg__(cls):
            return "neg"

        def __repr__(cls):
            return "<" + cls.__name__ + ">"

        def __enter__(cls):
            return "entered"

        def __exit__(cls, *a):
            return True

    class A(metaclass=Meta):
        pass

    class B(A):
        pass

    out = [
        A + 1,
        len(A),
        list(A),
        "in" in A,
        "out" in A,
        A[2],
        A == "me",
        A == B,
        A != A,
        hash(A),
        A < B,
        bool(A),
        bool(B),
        -A,
        str(A),
        repr([B]),
        f"{A}",
        sorted([B, A]) == [A, B],
        {A: 1}[A],
        A in [B, A],
        not B,
    ]
    with A as v:
        out.append(v)
        raise KeyError
    attempt(out, lambda: A() + 1, lambda: len(A()), lambda: A - 1, lambda: 1 + A, lambda: A()[1])
    return x + len(out), [o if not isinstance(o, type) else o.__name__ for o in out]


@program(graphs=0, breaks=True)
def numbers_given_to_c(x):
    class I(int):
        def __index__(self):
            return 100

        def __int__(self):
            return 50

        def __float__(self):
            return 2.5

    class F(float):
        def __float__(self):
            return 9.0

        def __int__(self):
            return 8

    class B(int):
        def __bool__(self):
            return False

    class L(str):
        def __len__(self):
            return 99

        def __iter__(self):
            return iter("zz")

        def __contains__(self, o):
            return True

        def __getitem__(self, i):
            return "item"

    i, f, s = I(3), F(1.5), L("ab")
    out = [
        chr(I(65)),
        "x" * i,
        [1] * i,
        (1, 2, 3, 4)[i],
        "abcdef"[i],
        range(i),
        hex(i),
        bin(i),
        int(i),
        float(i),
        divmod(i, 2),
        pow(i, 2, 5),
        math.sqrt(I(4)),
        math.floor(f),
        round(f),
        float(f),
        int(f),
        f + 1,
        i + 1,
        sum([i, i]),
        max(i, 1),
        [1, 2, 3, 4, 5].pop(i),
        list(range(10))[i:],
        "%d %f %s" % (i, f, s),
        bool(B(1)),
        not B(1),
        B(1) and 5,
        "abc".center(I(5)),
        bytes(I(2)),
        [10, 20, 30, 40].index(40, I(1)),
    ]
    out += [
        len(s),
        list(s),
        "c" in s,
        s[0],
        "".join(s),
        "-".join([s, s]),
        s.upper(),
        "xab".endswith(s),
        s in "xaby",
        {"ab": 1}[s],
        str(s),
        sorted(s),
        set(s),
        tuple(s),
        [*s],
        s == "ab",
        s + "c",
        "c" + s,
        s.split("a"),
        "ab".replace(s, "q"),
        min(s),
        s * 2,
        dict.fromkeys(s),
        list(map(ord, s)),
        int(L("12")),
        float(L("1.5")),
        isinstance(s, str),
        "{}".format(s),
        "%s" % s,
        f"{s}",
        repr(s),
        s.join(["1", "2"]),
        s.find("b"),
        list(enumerate(s)),
        all(s),
        s.encode(),
    ]
    return x * i + f, x[i - 2], [str.__str__(o) if isinstance(o, str) else o for o in out]


@program(graphs=3, breaks=True)
def containers_given_to_c(x):
    log = []

    class L(list):
        def __iter__(self):
            log.append("iter")
            return iter([7, 8])

        def __len__(self):
            log.append("len")
            return 5

        def __getitem__(self, i):
            log.append("get")
            return "item"

        def __contains__(self, v):
            return v == 99

        def __bool__(self):
            return False

    class D(dict):
        def __getitem__(self, k):
            return "item"

        def get(self, k, d=None):
            return "get"

        def __contains__(self, k):
            return True

    class S(set):
        def __iter__(self):
            return iter([5])

        def __contains__(self, v):
            return True

        def __len__(self):
            return 9

    class T(tuple):
        def __iter__(self):
            return iter("t")

    l, d, s, t = L([1, 2, 3]), D(a=1), S({1, 2}), T((1, 2))
    out = [
        list(l),
        tuple(l),
        [*l],
        sum(l),
        max(l),
        sorted(l),
        len(l),
        bool(l),
        1 in l,
        99 in l,
        l[0],
        list(reversed(l)),
        l + [4],
        [4] + l,
        l * 2,
        l == [1, 2, 3],
        [1, 2, 3] == l,
        list(zip(l)),
        list(map(str, l)),
        list(enumerate(l)),
        "".join(map(str, l)),
        set(l),
        dict.fromkeys(l),
        l.index(2),
        l.count(1),
        l.copy(),
        str(l),
        any(l),
    ]
    out += [
        d["zz"],
        d.get("q"),
        "q" in d,
        dict(d),
        {**d},
        len(d),
        list(d),
        list(d.items()),
        d == {"a": 1},
        "%(a)s" % d,
        "{a}".format(**d),
        "{a}".format_map(d),
        d | {"b": 2},
        d.setdefault("a", 3),
        d.pop("a", 4),
    ]
    out += [
        list(s),
        len(s),
        7 in s,
        s | {3},
        {3} | s,
        s & {1},
        s == {1, 2},
        s <= {1, 2, 3},
        set(s),
        frozenset(s),
        s.union([4]),
        sorted(s),
        bool(s),
        s - {1},
        s.issubset({1, 2}),
    ]
    out += [
        list(t),
        t[0],
        len(t),
        t + (3,),
        (0,) + t,
        t == (1, 2),
        [*t],
        tuple(t),
        t * 2,
        hash(t) == hash((1, 2)),
        {t: 1}.get((1, 2)),
        "%s %s" % t,
        t[:1],
        max(t),
    ]
    a, *b = t
    c = [0]
    c += l
    c.extend(t)
    c[0:0] = s
    (lambda *k: out.append(k))(*l)
    return x + len(out), out, a, b, c, log


@program
def comparisons_chain_and_containers(x):
    log = []

    class E:
        def __init__(self, n, r):
            self.n, self.r = n, r

        def __eq__(self, o):
            log.append(self.n)
            return self.r

        def __lt__(self, o):
            log.append(self.n + "<")
            return self.r

        __hash__ = None

    a, b = E("a", []), E("b", "yes")
    out = [
        a == 1,
        b == 1,
        a != 1,
        b != 1,
        a in [1, 2],
        b in [1],
        [a] == [1],
        [b] == [1],
        (a, 1) == (b, 1),
        [1, b].index(5),
        [b, b].count(3),
        {1: a} == {1: b},
        {1: b} == {1: a},
        a < b,
        b < a < b,
        [a] < [b],
        [b] < [a],
        (b, 1) < (a, 2),
        not a == b,
    ]
    attempt(
        out,
        lambda: {a: 1},
        lambda: {a},
        lambda: hash(a),
        lambda: a > 3,
        lambda: [1].remove(a),
        lambda: [a].remove(4),
        lambda: [b].remove(4),
        lambda: a in {1: 2},
    )
    return x + len(out), out, log


@program(breaks=True)
def new_returns_odd_things(x):
    log = []

    class A:
        def __new__(cls, v=None):
            log.append(cls.__name__)
            return super().__new__(cls) if v is None else v

        def __init__(self, v=None):
            log.append("init")
            self.v = v

    class B(A):
        pass

    class St:
        @staticmethod
        def __new__(cls):
            return "static"

    class InitReturns:
        def __init__(self):
            return 5

    class InitNone:
        __init__ = None

    class InitStatic:
        __init__ = staticmethod(lambda *a: log.append(a))

    class NewNone:
        __new__ = None

    out = []
    b = B()
    n = attempt(
        out,
        lambda: A(3),
        lambda: type(A()).__name__,
        lambda: A(b) is b,
        lambda: b.v is b,
        lambda: B(A()).v,
        lambda: St(),
        lambda: InitReturns(),
        lambda: InitNone(),
        lambda: type(InitStatic()).__name__,
        lambda: NewNone(),
        lambda: A.__new__(B).__class__.__name__,
        lambda: type(b)(None).v,
    )
    return x + n, out, log


@program(graphs=0, breaks=True)
def raises_of_odd_things(x):
    class NotAnException:
        pass

    class New(Exception):
        def __new__(cls, *a):
            return 5

    class Init(Exception):
        def __init__(self, a, b):
            super().__init__(a)
            self.b = b

    class Str(Exception):
        def __str__(self):
            return 3

    out = []

    def r(e, cause=out):
        if cause is out:
            raise e
        raise e from cause

    n = attempt(
        out,
        lambda: r(NotAnException),
        lambda: r(NotAnException()),
        lambda: r(3),
        lambda: r(None),
        lambda: r("a"),
        lambda: r(New),
        lambda: r(Init),
        lambda: r(Init(1, 2)),
        lambda: r(ValueError, KeyError),
        lambda: r(ValueError, 3),
        lambda: r(ValueError("v"), None),
        lambda: r(int),
        lambda: r(StopIteration(4)),
        lambda: r(KeyError("a")),
        lambda: r(KeyError()),
        lambda: r(OSError(2, "no", "f")),
    )
    try:
        raise Str()
    except Str as e:
        try:
            str(e)
        except TypeError as t:
            out.append(text(t))
    for c in (3, (ValueError, 3), "a", NotAnException, (), [ValueError]):
        try:
            try:
                raise ValueError("v")
            except c:
                out.append("caught")
        except Exception as e:
            out.append((type(e).__name__, str(e), type(e.__context__).__name__))
    return x + n, out


@program(graphs=3, breaks=True)
def delegation_to_odd_iterators(x):
    log = []

    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 3:
                raise StopIteration("returned")
            return self.n

        def send(self, v):
            log.append(("send", v))
            return v

        def close(self):
            log.append("close")

    def gen():
        r = yield from It()
        log.append(r)
        yield x

    def plain():
        r = yield from [1, 2]
        log.append(r)

    g = gen()
    out = [next(g), g.send("s"), next(g)]
    g.close()
    out += list(gen())[:3]
    p = plain()
    next(p)
    attempt(out, lambda: p.send(3), lambda: list(plain()), lambda: next(iter(plain())))
    return x + len(out), out, log


@program(graphs=3, breaks=True)
def copies_by_protocol(x):
    log = []

    class A:
        def __init__(self, v):
            self.v = v

        def __copy__(self):
            log.append("copy")
            return A(self.v)

        def __deepcopy__(self, memo):
            log.append("deep")
            return A(copy.deepcopy(self.v, memo))

    class B:
        def __init__(self, v):
            self.v = v

    class S:
        __slots__ = ("a", "b")

    s = S()
    s.a = [1]
    b = B([1, [2]])
    c, d = copy.copy(b), copy.deepcopy(b)
    e, f = copy.copy(A(3)), copy.deepcopy(A([4]))
    g, h = copy.copy(s), copy.deepcopy(s)
    out = [
        c.v is b.v,
        d.v is b.v,
        d.v,
        e.v,
        f.v,
        g.a is s.a,
        h.a is s.a,
        hasattr(h, "b"),
        copy.copy([1]),
        copy.deepcopy({1: [2]}),
        copy.copy((1,)),
        copy.deepcopy((1, [2])),
        copy.copy(len) is len,
    ]
    return x + 1, out, log


@program(graphs=0, breaks=True)
def total_order_and_dataclasses(x):
    @functools.total_ordering
    class T:
        def __init__(self, n):
            self.n = n

        def __lt__(self, o):
            return self.n < o.n if isinstance(o, T) else NotImplemented

        def __eq__(self, o):
            return isinstance(o, T) and self.n == o.n

    @dataclasses.dataclass(order=True)
    class D:
        a: int
        b: list = dataclasses.field(default_factory=list, compare=False)

    @dataclasses.dataclass(frozen=True)
    class F:
        a: int

    out = [
        T(1) <= T(1),
        T(2) > T(1),
        T(1) >= T(2),
        sorted([T(2), T(1)])[0].n,
        D(1) < D(2),
        D(1) == D(1, [2]),
        max(D(1), D(3)).a,
        F(1) == F(1),
        {F(1): 2}[F(1)],
        len({F(1), F(1), F(2)}),
        sorted([D(2), D(1)])[0].a,
    ]
    attempt(
        out,
        lambda: T(1) < 3,
        lambda: D(1) < 3,
        lambda: D(1) == 3,
        lambda: F(1) < F(2),
        lambda: setattr(F(1), "a", 2),
        lambda: hash(D(1)),
        lambda: hash(F(1)) == hash(F(1)),
    )
    return x + len(out), out


@program(breaks=True)
def caches_and_partials_together(x):
    calls = []

    @functools.lru_cache(maxsize=2)
    def f(a, *, k=1):
        return a + k

    p = functools.partial(f, k=3)
    out = [p(1), p(1), f(1, k=3), f.cache_info().hits, p.func is f, p.keywords]
    q = functools.partial(p, k=4)
    out += [q(1), q.func is f, q.keywords, p.keywords]
    p.keywords["k"] = 10
    out += [p(1), q(1), functools.partial(p)(1)]
    p.note = 1
    r = functools.partial(p, 2)
    out += [r.func is f, r.func is p, r()]
    return x * out[0], out


OUTER = functools.partial(torch.add, alpha=2)
OUTER.label = "outer"


@program
def partials_from_outside(x):
    out = [
        OUTER.label,
        hasattr(OUTER, "nope"),
        OUTER.keywords["alpha"],
        getattr(OUTER, "__name__", "none"),
        sorted(vars(OUTER)),
    ]
    return OUTER(x, x), out


@functools.lru_cache
def cached_outside(n):
    return n * 2


cached_outside.label = "cached"


@built(breaks=True)
def caches_from_outside():
    cached_outside.cache_clear()

    def f(x):
        out = [
            cached_outside(3),
            cached_outside(3),
            cached_outside(4),
            cached_outside.label,
            cached_outside.__name__,
            hasattr(cached_outside, "nope"),
            cached_outside.__wrapped__(5),
        ]
        try:
            cached_outside("a", 1)
        except TypeError as e:
            out.append(text(e))
        return x * cached_outside(3), out, tuple(cached_outside.cache_info())

    return f
