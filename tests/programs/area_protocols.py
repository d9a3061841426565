# ruff: noqa
"""Special methods: who is asked, in which order, how often, and what Python makes of an odd answer."""

import collections
import enum
import functools
import math
import operator
import sys
import types

import torch
from tests.support.registry import attempt, built, program, tensor, text


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Length:
    def __init__(self, value):
        self.value = value

    def __len__(self):
        return self.value


@program
def index_of_odd_answers(x):
    out, items = [], [10, 20, 30]
    n = 0
    for v in (1, -1, 1.5, "1", None, 2**65, -(2**65), Index(1), 3):
        i = Index(v)
        n += attempt(out, lambda: items[i], lambda: (1, 2, 3)[i], lambda: "abc"[i], lambda: range(5)[i])
        n += attempt(
            out, lambda: len(items[i:]), lambda: len("abc"[:i]), lambda: len((1, 2)[i:]), lambda: operator.index(i)
        )
        n += attempt(
            out, lambda: list(enumerate("ab", i)), lambda: range(0, i).stop, lambda: int(i), lambda: items.index(30, i)
        )
        n += attempt(out, lambda: collections.deque([1, 2, 3])[i], lambda: hex(i))
    return x + n, out


@program
def index_in_methods_of_lists(x):
    out = []
    n = 0
    for v in (0, 1.0, "a", 2**65, -5):
        l, i = [1, 2, 3], Index(v)
        n += attempt(
            out, lambda: l.insert(i, 9), lambda: l.pop(i), lambda: l, lambda: collections.deque([1, 2]).rotate(i)
        )
        n += attempt(out, lambda: [1] * (2**70 if v == 0 else 2), lambda: (1,) * -(2**70), lambda: [1].pop(2**70))
    return x * n, out


@program(breaks=True)
def index_that_is_true(x):
    out = []
    attempt(
        out, lambda: [1, 2][Index(True)], lambda: operator.index(True), lambda: len(Length(True)), lambda: range(True)
    )
    return x[Index(1)], x[Index(0) : Index(2)], out


@program(graphs=3, breaks=True)
def float_and_int_of_objects(x):
    class Both:
        def __float__(self):
            return 2.5

        def __int__(self):
            return 7

    class OddFloat:
        def __float__(self):
            return 3

    class OddInt:
        def __int__(self):
            return "7"

    class Neither:
        pass

    out = []
    n = attempt(out, lambda: float(Both()), lambda: int(Both()), lambda: float(Index(4)), lambda: int(Index(4)))
    n += attempt(
        out, lambda: float(OddFloat()), lambda: int(OddInt()), lambda: float(Neither()), lambda: int(Neither())
    )
    n += attempt(
        out, lambda: math.sqrt(Index(4)), lambda: math.floor(Both()), lambda: complex(Both()), lambda: complex(Index(2))
    )
    n += attempt(
        out, lambda: int(Index(3), 10), lambda: int("11", Index(2)), lambda: round(Both()), lambda: abs(Both())
    )
    return x * float(Both()) + n, out


@program
def round_with_none(x):
    class R:
        def __round__(self, *digits):
            return digits

    return x + 1, round(R()), round(R(), None), round(R(), 2), round(2.5, None), round(2.567, 1)


@program
def length_of_odd_answers(x):
    out = []
    n = 0
    for v in (0, 2, -1, 1.0, "a", None, 2**70, Index(3), Index(-3), Index("x")):
        n += attempt(
            out,
            lambda: len(Length(v)),
            lambda: bool(Length(v)),
            lambda: not Length(v),
            lambda: "yes" if Length(v) else "no",
        )
        n += attempt(out, lambda: (Length(v) and 1) == 1, lambda: operator.truth(Length(v)))
    return x + n, out


@program
def bool_of_odd_answers(x):
    class B:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            return self.value

    out = []
    n = 0
    for v in (True, False, 1, 0, None, "a", []):
        n += attempt(
            out,
            lambda: bool(B(v)),
            lambda: not B(v),
            lambda: any([B(v)]),
            lambda: all([B(v)]),
            lambda: list(filter(None, [B(v)])) != [],
        )
    return x + n, out


@program(breaks=True)
def truth_may_be_none(x):
    class NoBool:
        __bool__ = None

        def __len__(self):
            return 3

    class NoLen:
        __len__ = None

    out = []
    n = attempt(
        out,
        lambda: bool(NoBool()),
        lambda: len(NoBool()),
        lambda: bool(NoLen()),
        lambda: len(NoLen()),
        lambda: list(NoLen()),
    )
    return x + n, out


@program
def length_is_asked_before_iteration(x):
    log = []

    class L:
        def __iter__(self):
            log.append("iter")
            return iter([1, 2, 3])

        def __len__(self):
            log.append("len")
            return 3

    class Hint:
        def __iter__(self):
            return iter([4])

        def __length_hint__(self):
            log.append("hint")
            return 1

    a = L()
    out = [list(a), tuple(a), [*a], (*a,), {*a}, sorted(a), max(a), sum(a), list(zip(a)), list(map(str, a)), 2 in a]
    l = [0]
    l.extend(a)
    l += a
    b, c, d = a
    e, *f = a
    (lambda *k: out.append(k))(*a)
    l[1:1] = a
    q = collections.deque(a)
    out += [l, b, e, f, q, list(Hint()), [*Hint()], tuple(Hint()), set(Hint()), "".join(map(str, Hint()))]
    return x + len(a), out, log


@program
def length_that_raises_before_iteration(x):
    class Raises:
        def __init__(self, error):
            self.error = error

        def __iter__(self):
            return iter([1])

        def __len__(self):
            raise self.error

    class OddHint:
        def __init__(self, value):
            self.value = value

        def __iter__(self):
            return iter([1])

        def __length_hint__(self):
            return self.value

    out = []
    n = attempt(
        out,
        lambda: list(Raises(ValueError("v"))),
        lambda: list(Raises(TypeError("t"))),
        lambda: [*Raises(KeyError("k"))],
    )
    n += attempt(
        out,
        lambda: {*Raises(ValueError("v"))},
        lambda: tuple(Raises(ValueError("v"))),
        lambda: sum(Raises(ValueError("v"))),
    )
    n += attempt(
        out,
        lambda: list(OddHint(-1)),
        lambda: list(OddHint("a")),
        lambda: list(OddHint(NotImplemented)),
        lambda: list(OddHint(5)),
    )
    n += attempt(
        out,
        lambda: operator.length_hint(OddHint(-1)),
        lambda: operator.length_hint(OddHint(NotImplemented), 8),
        lambda: operator.length_hint(Raises(TypeError("t")), 4),
    )
    n += attempt(
        out,
        lambda: operator.length_hint(OddHint(None)),
        lambda: operator.length_hint(Length(4)),
        lambda: operator.length_hint(object(), 3),
    )
    return x + n, out


class Keyed:
    def __init__(self, number, name):
        self.number, self.name = number, name

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        return self.name == getattr(other, "name", other)


@program(graphs=2, breaks=True)
def keys_that_equal_others(x):
    d = {Keyed(hash("a"), "a"): x, Keyed(hash(3), 3): x + 1}
    out = [
        "a" in d,
        3 in d,
        d.get("a") is x,
        3.0 in d,
        "b" in d,
        {"a": 1}.get(Keyed(hash("a"), "a")),
        Keyed(hash(5), 5) in {5},
        {5} - {Keyed(hash(5), 5)} == set(),
    ]
    d["a"] = x * 2
    return d[Keyed(hash("a"), "a")], len(d), out


@program
def keys_by_value(x):
    d = {Keyed(1, "a"): x, Keyed(1, "b"): x + 1, Keyed(2, "a"): x + 2}
    d[Keyed(1, "a")] = x * 3
    s = {Keyed(7, "q"), Keyed(7, "q"), Keyed(7, "r")}
    return (
        d[Keyed(1, "a")] + d[Keyed(1, "b")],
        len(d),
        len(s),
        Keyed(2, "a") in d,
        Keyed(3, "a") in d,
        [k.name for k in d],
    )


@program(breaks=True)
def hash_changes_between_uses(x):
    k = Keyed(1, "a")
    d = {k: x}
    k.number = 2
    out = [k in d, len(d), [q.name for q in d], Keyed(1, "a") in d]
    d[k] = x + 1
    k.number = 1
    return d[k], out, len(d)


@program(graphs=0, breaks=True)
def equality_changes_between_uses(x):
    k = Keyed(1, "a")
    d = {k: x}
    k.name = "b"
    return x, Keyed(1, "a") in d, Keyed(1, "b") in d, k in d


@program(graphs=4, breaks=True)
def hash_with_effects(x):
    log = []

    class Logs:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            log.append(("hash", self.n))
            return 1

        def __eq__(self, other):
            log.append(("eq", self.n))
            return self is other

    a, b = Logs("a"), Logs("b")
    d = {a: x, b: x + 1}
    d[a] = x * 2
    s = {a, b}
    out = [a in d, b in s, d.get(b) is d[b], len(s | {a})]
    return d[a], out, log


@program
def hash_of_odd_answers(x):
    out = []
    n = 0
    for v in (0, -1, 2**61 - 1, 2**61, -(2**62), 2**80, True, 1.0, "s", None):
        n += attempt(
            out, lambda: hash(Keyed(v, "q")), lambda: {Keyed(v, "q"): 1}[Keyed(v, "q")], lambda: len({Keyed(v, "q")})
        )
    return x + n, out


@program
def nan_and_never_equal_in_containers(x):
    class Never:
        def __eq__(self, other):
            return False

    e, nan = Never(), float("nan")
    out = [
        e in [e],
        e in (e,),
        [e] == [e],
        (e, 1) == (e, 1),
        [e].index(e),
        [e].count(e),
        {1: e} == {1: e},
        e == e,
        e != e,
        Never.__hash__,
    ]
    out += [nan in [nan], (nan,) == (nan,), {nan: 1}[nan], [nan].count(nan), nan in {nan}, [nan] != [float("nan")]]
    attempt(out, lambda: {e: 1}, lambda: hash(e), lambda: {e})
    return x + len(out), out


@program
def reflected_only_where_overridden(x):
    log = []

    class A:
        def __add__(self, o):
            log.append("A.add")
            return "add"

        def __radd__(self, o):
            log.append("A.radd")
            return "radd"

        def __mul__(self, o):
            return NotImplemented

        def __divmod__(self, o):
            return "divmod"

        def __rdivmod__(self, o):
            return "rdivmod"

    class Same(A):
        pass

    class Other(A):
        def __radd__(self, o):
            log.append("Other.radd")
            return NotImplemented

        def __rdivmod__(self, o):
            return "Other.rdivmod"

    class Adds(A):
        def __rmul__(self, o):
            return "Adds.rmul"

        def __add__(self, o):
            return "Adds.add"

    out = [
        A() + Same(),
        Same() + A(),
        A() + Other(),
        Other() + A(),
        A() * Adds(),
        A() + Adds(),
        1 + A(),
        A() + 1,
        divmod(A(), Same()),
        divmod(A(), Other()),
        divmod(1, A()),
    ]
    attempt(out, lambda: A() * A(), lambda: A() - A(), lambda: 1 * A(), lambda: divmod(A(), x) is None)
    a = A()
    a += Other()
    return x + 1, a, out, log


@program
def reflected_of_number_classes(x):
    class I(int):
        def __add__(self, o):
            return "I.add"

        def __radd__(self, o):
            return "I.radd"

    class J(I):
        pass

    class K(I):
        def __radd__(self, o):
            return "K.radd"

    class F(float):
        def __rmul__(self, o):
            return ("F.rmul", o)

    return (
        x * 2,
        I(1) + J(2),
        I(1) + K(2),
        1 + I(2),
        1 + J(2),
        J(1) + I(2),
        2.0 * F(3),
        2 * F(3),
        F(2) * F(3),
        F(2) * 3.0,
        I(1) - J(4),
    )


@program
def comparison_of_subclasses_of_containers(x):
    class T(tuple):
        def __eq__(self, o):
            return NotImplemented

        __hash__ = tuple.__hash__

        def __lt__(self, o):
            return "T<"

    class L(list):
        def __eq__(self, o):
            return "L=" if len(o) == 1 else NotImplemented

    class D(dict):
        def __eq__(self, o):
            return NotImplemented

    class S(set):
        def __le__(self, o):
            return "S<="

    out = [
        T((1,)) == (1,),
        (1,) == T((1,)),
        T((1,)) == T((1,)),
        T((1,)) != (1,),
        (1,) != T((2,)),
        T((1,)) < (2,),
        (2,) > T((1,)),
        (0,) < T((1,)),
    ]
    out += [
        L([1, 2]) == [1, 2],
        [1, 2] == L([1, 2]),
        L([1]) == [1],
        [1] == L([1]),
        L([1, 2]) != [1, 2],
        L([1]) != [1],
        [1, 2] < L([1, 3]),
    ]
    out += [
        D(a=1) == {"a": 1},
        {"a": 1} == D(a=1),
        D(a=1) != {"a": 2},
        S({1}) <= {1},
        {1, 2} >= S({1}),
        S({1}) < {1, 2},
        S({1}) == {1},
    ]
    return x + len(out), out


@program(graphs=0)
def sort_asks_twice(x):
    log = []

    class A:
        def __init__(self, n):
            self.n = n

        def __lt__(self, o):
            log.append(("<", self.n, o.n))
            return NotImplemented if self.n == 2 else self.n < o.n

        def __gt__(self, o):
            log.append((">", self.n, o.n))
            return self.n > o.n

    class B(A):
        pass

    out = [
        [a.n for a in sorted([A(3), A(1), A(2)])],
        [a.n for a in sorted([A(3), B(2)])],
        max(A(1), A(2)).n,
        min([A(2), A(1)]).n,
    ]
    l = [A(2), A(1)]
    l.sort(reverse=True)
    out.append([a.n for a in l])
    out.append([p[0].n for p in sorted([(A(3), 1), (A(1), 0)])])
    return x, out, log


@program(graphs=0)
def sort_of_number_classes(x):
    class Down(int):
        def __lt__(self, o):
            return int(self) > int(o)

    class Text(str):
        def __lt__(self, o):
            return len(self) < len(o)

    a = [int(v) for v in sorted([Down(1), Down(3), Down(2)])]
    b = [str(v) for v in sorted([Text("ccc"), Text("a"), Text("bb")])]
    c = sorted([3, 1, 2], key=Down)
    return (
        x,
        a,
        b,
        [int(v) for v in c],
        int(max([Down(1), Down(3)])),
        int(min(Down(1), Down(3))),
        sorted([Down(2), 5, Down(1)]) != [],
    )


@program(graphs=3, breaks=True)
def order_of_members_of_enumerations(x):
    log = []

    class Grade(enum.Enum):
        A = 5
        B = 4

        def __lt__(self, o):
            log.append("lt")
            return self.value < o.value

        def __eq__(self, o):
            log.append("eq")
            return self is o

        __hash__ = enum.Enum.__hash__

        def __add__(self, o):
            log.append("add")
            return self.value + o

    out = [
        Grade.B < Grade.A,
        Grade.A == Grade.A,
        Grade.A != Grade.B,
        [g.name for g in sorted(Grade)],
        Grade.A + 1,
        max(Grade).name,
    ]
    return x * out[4], out, log


@program
def backward_by_items(x):
    log = []

    class K:
        def __getitem__(self, i):
            log.append(i)
            return [7, 8, 9][i]

        def __len__(self):
            return 3

    class Longer(K):
        def __len__(self):
            return 10

    class T(tuple):
        def __len__(self):
            return 1

    class U(tuple):
        def __getitem__(self, i):
            return "item"

    class L(list):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            return "item"

    class D(dict):
        def __iter__(self):
            return iter("zz")

        def keys(self):
            return "q"

    r = reversed(K())
    out = [
        next(r),
        list(reversed(Longer())),
        list(reversed(T((1, 2)))),
        list(reversed(U((1, 2)))),
        list(reversed(L([1, 2]))),
        list(reversed(D(a=1, b=2))),
    ]
    out.append(list(r))
    attempt(
        out,
        lambda: reversed({1}),
        lambda: reversed(3),
        lambda: list(reversed(Length(3))),
        lambda: list(reversed("abc")),
        lambda: next(reversed([])),
    )
    return x * out[0], out, log


@program
def exceptions_of_generators(x):
    out = []

    def name():
        e = sys.exc_info()[0]
        return e and e.__name__

    def gen():
        out.append(name())
        try:
            raise KeyError("in")
        except KeyError:
            out.append(name())
            yield x + 1
            out.append(name())
            try:
                raise
            except KeyError as e:
                out.append(str(e))
            yield x + 2
        out.append(name())
        yield x + 3
        out.append(name())

    g = gen()
    a = next(g)
    out.append(name())
    try:
        raise ValueError("out")
    except ValueError:
        b = next(g)
        out.append(name())
        c = next(g)
        out.append((name(), sys.exception().args))
        list(g)
    out.append(name())
    return a + b + c, out


@program
def context_of_what_a_generator_raises(x):
    out = []

    def gen():
        try:
            yield 1
        finally:
            out.append(repr(sys.exception()))
        raise TypeError("from the generator")

    def inner():
        try:
            raise OSError("o")
        except OSError:
            yield from gen()

    for make in (gen, inner):
        g = make()
        next(g)
        try:
            raise ValueError("outside")
        except ValueError:
            try:
                next(g)
            except TypeError as e:
                out.append((repr(e.__context__), e.__suppress_context__))
        out.append(repr(sys.exception()))
    return x + len(out), out


@program
def thrown_into_generators(x):
    out = []

    def gen():
        while True:
            try:
                yield x
            except LookupError as e:
                out.append((repr(sys.exception()), repr(e.__context__)))
                yield x * 2
                out.append(repr(sys.exception()))

    g = gen()
    a = next(g)
    try:
        raise ValueError("outside")
    except ValueError:
        b = g.throw(KeyError("k"))
        out.append(repr(sys.exception()))
        c = next(g)
    out.append(repr(sys.exception()))
    return a + b + c, out


@program
def more_defaults_than_parameters(x):
    def g(a=1, b=2, *, c=3):
        return a, b, c

    g.__defaults__ = (4, 5, 6, 7)
    out = [g(), g(0), g(b=1)]
    attempt(out, lambda: g(1, 2, 3))
    g.__defaults__ = (9,)
    attempt(out, lambda: g(), lambda: g(1))
    g.__kwdefaults__ = None
    attempt(out, lambda: g(1))
    return x + out[0][0], out


@program
def making_instances_by_hand(x):
    class N:
        pass

    class Init:
        def __init__(self, a):
            self.a = a

    class New:
        def __new__(cls, *a):
            return object.__new__(cls)

    class I(int):
        pass

    out = []
    attempt(
        out,
        lambda: object.__new__(N, 1),
        lambda: type(object.__new__(Init, 1)).__name__,
        lambda: object.__new__(New, 1),
        lambda: N().__init__(1),
        lambda: New(1, 2).__init__(3),
    )
    attempt(
        out,
        lambda: int.__new__(str),
        lambda: int.__new__(3),
        lambda: int.__new__(),
        lambda: object.__new__(I),
        lambda: int.__new__(I, 3) + 1,
        lambda: list.__new__(dict),
        lambda: dict.__new__(list),
    )
    attempt(
        out,
        lambda: object.__new__(),
        lambda: object.__new__("a"),
        lambda: N(1),
        lambda: Init(),
        lambda: object(1),
        lambda: tuple.__new__(tuple, [1, 2]),
        lambda: object.__init__(N(), 1),
    )
    return x * object.__new__(Init).__class__(3).a, [str(o) for o in out]


@program
def hooks_of_subclasses_with_arguments(x):
    log = []

    class Base:
        def __init_subclass__(cls, /, tag=None, **rest):
            super().__init_subclass__(**rest)
            log.append((cls.__name__, tag))

    class A(Base, tag=1):
        pass

    try:

        class B(Base, other=1):
            pass

    except TypeError as e:
        log.append(str(e).rsplit(".", 2)[-1])
    attempt(log, lambda: object.__init_subclass__(), lambda: object.__subclasshook__(int) is NotImplemented)
    return x + 1, log


@program
def methods_made_by_hand(x):
    out = []
    n = attempt(
        out,
        lambda: types.MethodType(3, 4),
        lambda: types.MethodType(len, None),
        lambda: types.MethodType(len, [1, 2])(),
        lambda: types.MethodType([], [])(),
        lambda: types.MethodType(Index, 4)().value,
    )
    return x + n, out


@program(graphs=0, breaks=True)
def attributes_of_partials(x):
    p = functools.partial(torch.add, x, alpha=2)
    out = [hasattr(p, "__name__"), hasattr(p, "func"), p.args[0] is x, p.keywords]
    p.label = "add"
    out += [p.label, p.__dict__, vars(p)]
    functools.update_wrapper(p, len)
    out += [p.__name__, p.__wrapped__ is len]
    del p.label
    attempt(out, lambda: p.label, lambda: setattr(p, "func", 1), lambda: delattr(p, "args"))
    return p(x), out


@program(breaks=True)
def what_caches_know(x):
    @functools.lru_cache(maxsize=2)
    def f(a, b=1):
        return a * 10

    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    out = [f(1), f(1), f(2), f(3), tuple(f.cache_info()), f.cache_parameters(), f.__name__]
    f.cache_clear()
    f.label = 3
    out += [tuple(f.cache_info()), f.label, fib(10), tuple(fib.cache_info()), f.__wrapped__(4)]
    return x * f(2), out


@program
def cached_properties_without_a_dictionary(x):
    class S:
        __slots__ = ("v",)

        @functools.cached_property
        def c(self):
            return 1

    class A:
        @functools.cached_property
        def c(self):
            return x * 2

    A.late = functools.cached_property(lambda self: 1)
    a, out = A(), []
    attempt(out, lambda: S().c, lambda: a.late, lambda: a.c is a.c, lambda: sorted(vars(a)), lambda: type(A.c).__name__)
    return a.c, out


@program
def slots_that_are_empty(x):
    class A:
        __slots__ = ("a", "b")

    a, out = A(), []
    a.b = x
    attempt(
        out,
        lambda: a.a,
        lambda: delattr(a, "a"),
        lambda: delattr(a, "b"),
        lambda: a.b,
        lambda: delattr(a, "b"),
        lambda: setattr(a, "c", 1),
        lambda: delattr(a, "c"),
        lambda: hasattr(a, "b"),
    )
    return x + 1, out


@program(breaks=True)
def concatenation_of_sequences_alone(x):
    class Adds:
        def __add__(self, o):
            return "added"

    class Sequence(Adds):
        def __getitem__(self, i):
            raise IndexError

    c, ic = operator.concat, operator.iconcat
    out, l = [], [1]
    n = attempt(
        out,
        lambda: c(1, 2),
        lambda: c([1], [2]),
        lambda: c([1], (2,)),
        lambda: c((1,), (2,)),
        lambda: c("a", "b"),
        lambda: c("a", 1),
        lambda: c(1, "a"),
    )
    n += attempt(
        out,
        lambda: c([x], [x]) == [x, x],
        lambda: ic(l, (2,)),
        lambda: l,
        lambda: ic(1, 2),
        lambda: ic("a", "b"),
        lambda: c(Adds(), Adds()),
        lambda: c(Sequence(), Sequence()),
    )
    return x + n, out


@program(graphs=0, breaks=True)
def wrapped_in_groups(x):
    out = []
    try:
        raise ValueError("plain")
    except* ValueError as g:
        out.append((repr(g), g.args, len(g.exceptions)))
        x = x + len(g.exceptions)
    try:
        raise ExceptionGroup("m", [KeyError(1), ValueError(2)])
    except* KeyError as g:
        out.append((repr(g), g.args[0], type(g.args[1]).__name__))
    except* ValueError as g:
        out.append(repr(g))
    return x, out


@program(graphs=0, breaks=True)
def text_of_classes_below_text(x):
    class S(str):
        def __str__(self):
            return "str"

        def __format__(self, spec):
            return "format" + spec

    class R(str):
        def __repr__(self):
            return "repr"

    class I(int):
        def __str__(self):
            return "int"

        def __index__(self):
            return 40

    s, r, i = S("q"), R("q"), I(3)
    out = [
        "%s" % s,
        "%s" % (s,),
        "%r" % r,
        "%s" % i,
        "%d" % i,
        "%5s|" % s,
        "%(k)s" % {"k": s},
        "%x" % i,
        f"{s}",
        f"{s!s}",
        f"{s!r}",
        f"{s:>3}",
        f"{r!r}",
        str([s, r]),
        "{} {!s}".format(s, s),
    ]
    out += [
        "".join([s, r]),
        s + r,
        s * 2,
        [0, 1, 2, 3, 4][i],
        "abcdef"[i],
        list(range(i)),
        s.upper(),
        str(s),
        repr(r),
        "-".join(S("ab")),
    ]
    attempt(out, lambda: "%d" % s, lambda: "%s %s" % s, lambda: "no" % s)
    return x * i, [str.__str__(o) if isinstance(o, str) else o for o in out]


@program
def copies_of_odd_dicts(x):
    log = []

    class D(dict):
        def __iter__(self):
            log.append("iter")
            return iter("a")

        def keys(self):
            log.append("keys")
            return ["a"]

        def __getitem__(self, k):
            log.append(k)
            return k * 2

    d = D(a=1, b=2)
    out = [d.copy(), d | {}, {} | d, dict(d), {**d}, list(d), len(d), d == {"a": 1, "b": 2}, list(dict.keys(d))]
    e = {}
    e.update(d)
    return x + len(e), out, log, e
