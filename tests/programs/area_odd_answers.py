# ruff: noqa
"""Methods that raise, iterators that misbehave, positions, equal keys, handled exceptions, attributes of functions, members of classes, unpacking."""

import collections, contextlib, copy, enum, functools, itertools, operator, sys, types, math, heapq, bisect, dataclasses, typing
import torch
from tests.support.registry import attempt, built, program, tensor, text, trap


class Ix:
    def __init__(self, v):
        self.v = v

    def __index__(self):
        return self.v


class Raising:
    def __init__(self, e):
        self.e = e

    def _r(self, *a):
        raise self.e

    __len__ = __bool__ = __index__ = __hash__ = __eq__ = __iter__ = __next__ = __contains__ = __getitem__ = __call__ = (
        __enter__
    ) = __add__ = __radd__ = __lt__ = __int__ = __float__ = __str__ = __repr__ = __format__ = __neg__ = __abs__ = (
        __round__
    ) = __reversed__ = __length_hint__ = _r


@program
def methods_that_raise(x):
    out = []
    n = 0
    for e in (KeyError("k"), TypeError("t"), AttributeError("a"), IndexError("i"), StopIteration("s"), ValueError("v")):
        r = Raising(e)
        n += attempt(
            out,
            lambda: len(r),
            lambda: bool(r),
            lambda: [1][r],
            lambda: hash(r),
            lambda: r == 1,
            lambda: r != 1,
            lambda: 1 == r,
            lambda: list(r),
            lambda: next(r, 5),
            lambda: 1 in r,
            lambda: r[0],
            lambda: r(),
            lambda: r + 1,
            lambda: 1 + r,
            lambda: r < 1,
            lambda: sorted([r, r]),
            lambda: int(r),
            lambda: float(r),
            lambda: str(r),
            lambda: repr(r),
            lambda: f"{r}",
            lambda: -r,
            lambda: abs(r),
            lambda: round(r),
            lambda: list(reversed(r)),
            lambda: {r: 1},
            lambda: r in [1],
            lambda: [1, r].index(2),
            lambda: dict(r),
            lambda: [*r],
            lambda: max(r),
            lambda: range(r),
            lambda: not r,
            lambda: any([r]),
            lambda: getattr(r, "nope", 3),
            lambda: hasattr(r, "nope"),
            lambda: operator.length_hint(r, 3),
            lambda: math.sqrt(r),
            lambda: "%s" % r,
            lambda: [r] == [1],
            lambda: [] + r,
            lambda: set([r]),
        )
        try:
            with r:
                pass
        except Exception as q:
            out.append(text(q))
    return x + n, out


@program
def iterators_that_misbehave(x):
    log = []

    class Again:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            log.append("iter")
            return self

        def __next__(self):
            self.n += 1
            if self.n % 2 == 0:
                raise StopIteration
            return self.n

        def __length_hint__(self):
            log.append("hint")
            return 1

    a = Again()
    out = [
        list(a),
        list(a),
        tuple(a),
        [*a],
        next(a, None),
        next(a, None),
        list(zip(a, [1, 2])),
        list(map(str, a)),
        list(enumerate(a)),
        sum(a),
        list(filter(None, a)),
        dict.fromkeys(a),
        set(a),
        sorted(a),
    ]
    b, *c = a
    d = [0, *a, *a]
    e = list(itertools.chain(a, a))
    f = list(itertools.islice(a, 1)) + list(itertools.islice(a, 5))
    return x + len(out), out, b, c, d, e, f, log


@program(graphs=0, breaks=True)
def positions_in_many_places(x):
    out, l = [], list(range(6))
    n = attempt(
        out,
        lambda: l[Ix(2)],
        lambda: l[Ix(1) : Ix(4)],
        lambda: l[:: Ix(2)],
        lambda: l.pop(Ix(0)),
        lambda: l.insert(Ix(1), 9),
        lambda: l[Ix(9)],
        lambda: operator.itemgetter(Ix(1))(l),
        lambda: operator.setitem(l, Ix(0), 7),
        lambda: operator.delitem(l, Ix(-1)),
        lambda: operator.setitem(l, slice(Ix(0), Ix(2)), [1, 1, 1]),
        lambda: l,
        lambda: l * Ix(2),
        lambda: Ix(2) * l,
        lambda: "ab" * Ix(2),
        lambda: (1,) * Ix(0),
        lambda: slice(Ix(1), Ix(3)).indices(5),
        lambda: range(Ix(1), Ix(9), Ix(3)),
        lambda: range(10)[Ix(3)],
        lambda: range(10)[Ix(1) : Ix(3)],
        lambda: "abc"[Ix(1) :],
        lambda: b"abc"[Ix(1)],
        lambda: list(itertools.islice(l, Ix(2))),
        lambda: list(itertools.repeat(1, Ix(2))),
        lambda: heapq.nlargest(Ix(2), l),
        lambda: round(2.567, Ix(1)),
        lambda: int("z", Ix(36)),
        lambda: "a".ljust(Ix(3)) + "|",
        lambda: bytes(Ix(3)),
        lambda: bin(Ix(5)),
        lambda: l.index(1, Ix(0), Ix(3)),
        lambda: "abcabc".find("a", Ix(1)),
        lambda: "a,b,c".split(",", Ix(1)),
        lambda: math.factorial(Ix(4)),
        lambda: math.comb(Ix(5), Ix(2)),
        lambda: 1 << Ix(2),
        lambda: Ix(3) + 1,
        lambda: pow(2, Ix(3)),
        lambda: divmod(Ix(7), 2),
        lambda: enumerate("ab", Ix(5)).__next__(),
        lambda: collections.deque([1, 2, 3], Ix(2)),
        lambda: sum([1], Ix(2)),
        lambda: chr(Ix(97)),
        lambda: [1, 2, 3].__getitem__(Ix(1)),
        lambda: (5).__add__(Ix(1)),
        lambda: x.sum(dim=Ix(0)).shape[0],
        lambda: x.transpose(Ix(0), 1).shape,
        lambda: torch.zeros(Ix(2)).shape,
        lambda: x[Ix(0), Ix(1)].shape,
        lambda: x.reshape(Ix(4), 3).shape,
    )
    return x + n, out


@program(graphs=3, breaks=True)
def sets_and_dicts_with_equal_numbers(x):
    class One:
        def __hash__(self):
            return 1

        def __eq__(self, o):
            return o == 1

    class Never:
        def __hash__(self):
            return 1

        def __eq__(self, o):
            return False

    o, v = One(), Never()
    out = [
        len({1, 1.0, True}),
        {1: "a", True: "b"},
        {1.0: "a"}[1],
        o in {1: 2},
        1 in {o: 2},
        o in [1.0],
        len({o, 1}),
        len({1, o}),
        v in {v},
        v in {1},
        len({v, v}),
        {v: 3}.get(v),
        o in {v},
        len({o, v, 1}),
        {1: "x"}.get(o),
        {o: "y"}.get(True),
        {1, 2} & {o} == {1},
        {o} | {1} == {1},
        frozenset([o]) == frozenset([1]),
        {(o, 2)} == {(1, 2)},
        {(1, 2): 5}.get((o, 2)),
        [o, v].index(1),
    ]
    d = {1: x}
    d[o] = x + 1
    return d[1], len(d), [type(k).__name__ for k in d], out


@program
def handled_exceptions_everywhere(x):
    out = []

    def now():
        e = sys.exception()
        return e and type(e).__name__

    @contextlib.contextmanager
    def cm():
        out.append(("enter", now()))
        try:
            yield 1
        except KeyError:
            out.append(("caught", now()))
        finally:
            out.append(("finally", now()))
        out.append(("after", now()))

    class It:
        def __iter__(self):
            return self

        def __next__(self):
            out.append(("next", now()))
            try:
                raise OSError
            except OSError:
                out.append(("in next", now()))
            raise StopIteration

    def gen():
        try:
            yield now()
            raise ValueError("g")
        except ValueError as e:
            out.append((now(), type(e.__context__).__name__))
            yield now()
        yield now()

    try:
        raise IndexError("outer")
    except IndexError:
        with cm():
            out.append(("body", now()))
            raise KeyError
        out.append(now())
        out.append(list(It()))
        g = gen()
        out += [next(g), next(g)]
        out.append([now() for _ in range(2)])
        out.append(list(map(lambda _: now(), [1])))
        try:
            raise
        except IndexError as e:
            out.append((str(e), e.__context__ is None))
        out.append(next(g))
    out.append(now())
    h = gen()
    out += [next(h), next(h), next(h), now()]
    try:
        raise
    except RuntimeError as e:
        out.append(text(e))
    return x + len(out), out


@program(breaks=True)
def functions_with_odd_attributes(x):
    def f(a, b=2, *c, d=4, **e):
        "doc"
        return a, b, c, d, e

    out = [f(1), f.__defaults__, f.__kwdefaults__, f.__name__, f.__doc__]
    f.__defaults__ = (7, 8)
    out.append(f())
    f.__kwdefaults__ = {"d": 9, "zz": 1}
    out.append(f())
    f.__defaults__ = ()
    f.__kwdefaults__ = {}
    attempt(
        out,
        lambda: f(),
        lambda: f(1),
        lambda: f(1, 2),
        lambda: f(1, 2, d=3),
        lambda: f(1, 2, 3, d=4, q=5),
        lambda: f(1, a=1),
        lambda: f(**{"a": 1, "b": 2, "d": 3}),
        lambda: f(*[1, 2], **{"d": 1}),
    )
    f.__name__ = "g"
    f.__qualname__ = "q.g"
    attempt(
        out,
        lambda: f(),
        lambda: setattr(f, "__name__", 3),
        lambda: setattr(f, "__defaults__", 3),
        lambda: setattr(f, "__kwdefaults__", 3),
        lambda: setattr(f, "__dict__", 3),
        lambda: f.nope,
        lambda: delattr(f, "nope"),
        lambda: setattr(f, "__closure__", None),
        lambda: setattr(f, "__code__", 3),
    )
    f.x = 1
    out += [f.x, f.__dict__, hasattr(f, "y")]
    return x + len(out), out


@program(graphs=3, breaks=True)
def class_bodies_with_odd_members(x):
    out = []

    class A:
        a = property(lambda s: 1)
        b = staticmethod(lambda: 2)
        c = classmethod(lambda k: k.__name__)
        d = functools.partial(lambda *a: a, 3)
        e = len
        f = lambda s: s
        g = functools.partialmethod(lambda s, v: v, 5)
        h = functools.cached_property(lambda s: [6])
        i = int
        j = [].append
        k = operator.attrgetter("a")
        l = torch.relu
        m = lambda: 7
        n = None
        o = types.SimpleNamespace(z=8)
        p = slice(1)

    a = A()
    attempt(
        out,
        lambda: a.a,
        lambda: a.b(),
        lambda: a.c(),
        lambda: a.d(1),
        lambda: a.e([1]),
        lambda: a.f() is a,
        lambda: a.g(),
        lambda: a.h is a.h,
        lambda: a.i("3"),
        lambda: a.j(1),
        lambda: a.k(a),
        lambda: a.l(x).shape,
        lambda: a.m(),
        lambda: a.n,
        lambda: a.o.z,
        lambda: a.p,
        lambda: A.f(1),
        lambda: A.a.fget(a),
        lambda: A.h.func(a),
        lambda: setattr(a, "a", 1),
        lambda: setattr(a, "b", 1) or a.b,
        lambda: setattr(a, "h", 1) or a.h,
        lambda: delattr(a, "h") or a.h,
        lambda: sorted(vars(a)),
    )
    return x + 1, out


@program(graphs=4)
def unpacking_of_odd_things(x):
    class Pairs:
        def __iter__(self):
            return iter([("a", 1), ["b", 2], "cd"])

    class Keys:
        def keys(self):
            return ["k"]

        def __getitem__(self, k):
            return k * 2

    class Short:
        def keys(self):
            return 3

        def __getitem__(self, k):
            return k

    class NoItem:
        def keys(self):
            return ["k"]

    def f(*a, **k):
        return a, k

    def t(v):
        a, b = v
        return a, b

    def s(v):
        a, *b, c = v
        return a, b, c

    out = []
    n = attempt(
        out,
        lambda: dict(Pairs()),
        lambda: dict(Keys()),
        lambda: {**Keys()},
        lambda: f(**Keys()),
        lambda: f(**Pairs()),
        lambda: {**Short()},
        lambda: dict(Short()),
        lambda: {**NoItem()},
        lambda: f(**NoItem()),
        lambda: f(*Pairs()),
        lambda: f(*3),
        lambda: f(**3),
        lambda: f(*None),
        lambda: t("ab"),
        lambda: t("abc"),
        lambda: t(3),
        lambda: t({1: 2, 3: 4}),
        lambda: t(x[:2, 0].tolist() and [1, 2]),
        lambda: s("a"),
        lambda: s("ab"),
        lambda: s(range(5)),
        lambda: s(3),
        lambda: f(**{1: 2}),
        lambda: f(**{"a": 1}, **{"a": 2}),
        lambda: f(a=1, **{"a": 2}),
        lambda: {**{"a": 1}, "a": 2},
        lambda: [*[1], *"ab", *{3: 4}],
        lambda: {*[1], *[1]},
        lambda: (*range(2), *()),
        lambda: dict([(1,)]),
        lambda: dict([1]),
        lambda: dict([[1, 2, 3]]),
        lambda: dict(3),
        lambda: dict("ab"),
        lambda: dict(["ab"]),
        lambda: t(iter([1, 2])),
        lambda: t(x[:2]) and 1,
        lambda: dict(a=1, **Keys()),
    )
    return x + n, out


@program(graphs=4, breaks=True)
def convolutions_without_channels(x):
    said = []
    for sizes, weights in (
        ((2, 0, 4), (2, 0, 1)),
        ((2, 0, 4, 4), (2, 0, 3, 3)),
        ((2, 0, 4, 4, 4), (3, 0, 1, 1, 1)),
        ((0, 3, 4), (2, 3, 1)),
        ((2, 3, 0), (2, 3, 1)),
    ):
        act = getattr(torch.nn.functional, f"conv{len(sizes) - 2}d")
        said.append(trap(lambda: act(torch.ones(sizes), torch.ones(weights)).shape))
        said.append(trap(lambda: act(torch.ones(sizes), torch.ones(weights), padding=1).shape))
    return x + 1, said


@program(args=lambda i: [tensor(i), i], calls=6, graphs=6, breaks=True)
def struct_sequences_of_wrong_size(x, n):
    kind = type(x.max(0))
    given = [(x,), (x, x, x), 3, [x, x], "ab", iter((x, x))][n]

    class Pair(tuple):
        pass

    return trap(lambda: kind(given)), trap(lambda: kind()), trap(lambda: Pair((1,), (2,))), kind((x, 2)).indices


@program(args=lambda i: [tensor(i).requires_grad_()], graphs=2, breaks=True)
def leaves_after_detaching(x):
    y, z = x * 1, x * 2
    print("a graph ends")
    y.detach_()
    said = [y.is_leaf, y.grad_fn is None, y.requires_grad]
    z.detach_()
    z.requires_grad_()
    return said, z.is_leaf, z.grad_fn is None, z.requires_grad, y
