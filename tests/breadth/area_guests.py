# ruff: noqa
"""What programs of guests met later: classes as keys, objects that compare themselves with tensors, instances that say what they are, dicts of objects
behind a break, classes that their bases list, calls of C with arguments that capture cannot give to it."""

import bisect
import builtins
import collections
import copy
import decimal
import datetime
import fractions
import functools
import itertools
import operator
import statistics
import types
import warnings

import numpy
import torch
import torch._dynamo
from registry import cases, program, text, trap


def end_graph(y):
    torch._dynamo.graph_break()
    return y


# --- classes as keys and members ---


@program
def classes_in_sets_and_dicts(x):
    seen = set()
    for t, group in itertools.groupby([1.5, 2.5, 2, "a"], type):
        seen.add(t)
        list(group)
    made = {int: 1, float: 2.5, str: "s", torch.Tensor: x}
    out = sorted(k.__name__ for k in seen)
    out += [issubclass(k, (int, float)) for k in made]
    out += [k(v) if k is not torch.Tensor else type(v).__name__ for k, v in made.items()]
    out += [[k.__mro__[1].__name__ for k in made], sorted((k.__name__ for k in made), reverse=True)]
    out += [
        functools.reduce(lambda a, b: b if issubclass(b, a) else a, {bool}, int).__name__,
        [isinstance(1, k) for k in seen if k is int],
    ]
    return x + 1, out


@program
def functions_as_keys(x):
    table = {torch.sin: "sin", len: "len", operator.add: "add"}
    y = x
    for f, name in table.items():
        y = f(y) if name == "sin" else y + f(range(3)) if name == "len" else f(y, 1)
    return y, [f.__name__ for f in table]


@program
def means_of_mixed_numbers(x):
    return (
        x * statistics.mean([1, 2.5]),
        statistics.median([3, 1, 2]),
        statistics.mean([fractions.Fraction(1, 3), 2]),
        statistics.pstdev([1, 2, 3]),
    )


# --- a tensor has no answer: the other side is asked ---


class Answers:
    def __init__(self):
        self.log = []

    def __eq__(self, o):
        self.log.append("eq")
        return "eq"

    def __ne__(self, o):
        self.log.append("ne")
        return "ne"

    def __lt__(self, o):
        self.log.append("lt")
        return "lt"

    def __le__(self, o):
        self.log.append("le")
        return NotImplemented

    def __gt__(self, o):
        self.log.append("gt")
        return "gt"

    def __radd__(self, o):
        self.log.append("radd")
        return "radd"

    def __rsub__(self, o):
        self.log.append("rsub")
        return NotImplemented

    def __matmul__(self, o):
        self.log.append("matmul")
        return "matmul"

    __hash__ = None


class Overrides(Answers):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        SAID.append(f.__name__)
        return NotImplemented


SAID = []


def both_sides(x, r):
    ways = [
        operator.eq,
        operator.ne,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.add,
        operator.sub,
        operator.matmul,
        operator.mul,
    ]
    return [trap(f, x, r) for f in ways] + [trap(f, r, x) for f in ways], r.log


@program
def tensor_beside_what_compares(x):
    return x + 1, both_sides(x, Answers())


@program
def tensor_beside_what_overrides(x):
    SAID.clear()
    return x + 1, both_sides(x, Overrides()), list(SAID)


@program
def tensor_beside_containers_and_arrays(x):
    array = numpy.array([1.0, 2, 3, 4], dtype=numpy.float32)
    out = [trap(operator.eq, x, o) for o in ([1], (), {}, {1}, len, int, None, "s", slice(1), range(3))]
    out += [trap(operator.ne, x, o) for o in ([1], (), {}, None)]
    return (
        x + 1,
        out,
        trap(operator.eq, x, array),
        trap(operator.mul, x, array),
        trap(lambda: numpy.array([1, 2], dtype=numpy.int64).tolist()),
    )


# --- what an instance says of its class ---


class Says:
    __class__ = property(lambda self: dict)


class SaysTensor:
    __class__ = torch.Tensor


class Fails:
    @property
    def __class__(self):
        raise AttributeError("no class")


class Watches:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __getattribute__(self, n):
        log = object.__getattribute__(self, "log")
        if n != "log":
            log.append(n)
        return list if n == "__class__" else object.__getattribute__(self, n)


@program
def instances_that_say_their_class(x):
    w = Watches()
    asked = [Says(), SaysTensor(), Fails(), w]
    out = [
        [trap(isinstance, o, t) for t in (dict, torch.Tensor, list, int, object, type(o), (int, dict))] for o in asked
    ]
    out.append([type(o).__name__ for o in asked])
    out.append(trap(isinstance, Says(), collections.abc.Mapping))
    out.append(trap(isinstance, w, collections.abc.Sized))
    return x + 1, out, w.log


# --- except clauses ---


@program
def except_clauses_of_odd_things(x):
    def way(kinds):
        try:
            raise ValueError("v")
        except kinds:
            return "caught"

    odd = [
        "s",
        3,
        int,
        (TypeError, (KeyError, ValueError)),
        (ValueError, int),
        (),
        (KeyError, ValueError),
        [ValueError],
    ]
    return x + 1, [trap(way, k) for k in odd]


# --- named tuples, patterns ---


class Span(collections.namedtuple("Span", "start stop")):
    def __len__(self):
        return self.stop - self.start


@program
def named_tuples_that_are_too_short(x):
    short = tuple.__new__(Span, [1])
    out = [
        trap(lambda: short.stop),
        trap(len, short),
        trap(Span._make, [1]),
        trap(Span._make, [1, 5]),
        trap(Span._make, [1, 3, 4]),
        len(Span(1, 4)),
    ]
    not_a_class = 3

    def match(o):
        match o:
            case not_a_class():
                return 1
        return 2

    return x + 1, out, trap(match, 3)[:33]


# --- classes below classes, and their lists ---


class Base:
    pass


@program
def classes_that_bases_list(x):
    class Root:
        def f(self, t):
            return t

    class A(Root):
        def f(self, t):
            return super().f(t + 1)

    class B(Root):
        def f(self, t):
            return super().f(t * 2)

    y = B().f(A().f(x))
    before = [c.__name__ for c in Root.__subclasses__()]
    y = end_graph(y) + 1

    class C(A):
        pass

    z = C().f(y)
    return (
        y,
        z,
        before,
        [c.__name__ for c in Root.__subclasses__()],
        [c.__name__ for c in A.__subclasses__()],
        C.__base__.__name__,
    )


@program
def bases_that_are_assigned(x):
    class P:
        tag = "p"

    class Q:
        tag = "q"

    class S(P):
        pass

    out = [S.tag]
    S.__bases__ = (Q,)
    out += [S.tag, [k.__name__ for k in S.__mro__], trap(setattr, S, "__bases__", 3), trap(setattr, S, "__bases__", ())]
    return x + len(out), out


@program
def names_put_into_builtins(x):
    builtins.guest_of_breadth = 5
    try:
        return x + guest_of_breadth, trap(lambda: guest_that_is_not_there)
    finally:
        del builtins.guest_of_breadth


# --- the dict of an object is its own, behind a break as well ---


class Plain:
    pass


@program
def dicts_of_objects_behind_a_break(x):
    out = []
    a = Plain()
    d = a.__dict__
    end_graph(x)
    d["t"] = x
    out.append(a.t + 1)
    b = Plain()
    b.__dict__.update({"t": end_graph(x)})
    out.append(b.t + 2)
    c = Plain()
    store = vars(c).setdefault
    end_graph(x)
    store("t", x)
    out.append(c.t + 3)
    e = Plain()
    e.k = 1
    keys = vars(e).keys()
    end_graph(x)
    e.t = x
    out.append(list(keys))

    def f():
        pass

    f.a = 1
    g = f.__dict__
    end_graph(x)
    g["b"] = 2
    out.append(sorted(vars(f)))
    m = torch.nn.Module()
    own = m.__dict__
    end_graph(x)
    own["z"] = x
    out.append(m.z * 2)
    return x + 1, out, d is a.__dict__, own is m.__dict__


class Holder:
    def __init__(self, t):
        self.t, self.me, self.cfg = t, self, {"a": [1]}

    def __deepcopy__(self, memo):
        h = Holder.__new__(Holder)
        memo[id(self)] = h
        h.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return h


@program
def copies_with_a_memo(x):
    h = Holder(x)
    d = copy.deepcopy(h)
    return d.t + 1, d.me is d, d.t is x, d.cfg == h.cfg, d.cfg is h.cfg


# --- functions of C and what they are called with ---

COPIES = """
copy.copy(_ for _ in ())
copy.deepcopy(_ for _ in ())
copy.copy(iter([1, 2])).__reduce__()[1]
copy.deepcopy(types)
copy.copy(types) is types
copy.deepcopy({}.keys())
copy.deepcopy(slice(1, 2))
copy.copy(property(len)).fget
copy.deepcopy(memoryview(b"ab"))
copy.copy(decimal.Decimal("1.5"))
copy.deepcopy(fractions.Fraction(1, 3))
copy.copy(datetime.date(2020, 1, 2)).isoformat()
bisect.bisect(torch.arange(5), 2)
bisect.bisect_left({1: 2}, 1)
bisect.bisect({1, 2}, 1)
bisect.bisect("abc", "b")
bisect.bisect(range(5), 2)
bisect.bisect((1, 2), 1.5)
bisect.insort((1, 2), 1)
hash(functools.cmp_to_key(lambda a, b: 0)(1))
{functools.cmp_to_key(lambda a, b: 0)(1): 1}
f"{datetime.date(2020, 1, 2):%Y-%m}"
f"{decimal.Decimal('1.25'):.1f}"
f"{fractions.Fraction(1, 3)}"
format(datetime.timedelta(1), "")
format(datetime.timedelta(1), "x")
format(object, "x")
format(slice(1), ">9")
issubclass(3, int)
issubclass(int, 3)
issubclass("s", (int, str))
warnings.warn("m", int)
warnings.warn("m", "x")
warnings.warn("m", object())
"""
cases("guests", "objects_of_c", COPIES, globals())


@program
def caches_that_cannot_hash(x):
    calls = []

    @functools.lru_cache(maxsize=2)
    def scale(n, *, kind="a"):
        calls.append(n)
        return float(n)

    y = x * scale(2)
    return y, trap(scale, []), trap(scale, 1, kind={}), trap(scale, {1}), trap(scale, (1, [])), trap(scale, "z"), calls


# --- lists of a class of the program's ---


class Observed(list):
    log = []

    def __setitem__(self, k, v):
        Observed.log.append("set")
        super().__setitem__(k, v)

    def __len__(self):
        Observed.log.append("len")
        return super().__len__()

    def __iter__(self):
        Observed.log.append("iter")
        return super().__iter__()


@program
def lists_that_watch(x):
    Observed.log.clear()
    o = Observed([x * 3, x, x * 2])
    o.sort(key=lambda t: t.abs().sum().item())
    a, *b = o
    c, d, e = o
    n = [*o]
    return a + 1, b, e, len(n), list(Observed.log), torch.stack(o), list(Observed.log)


@program
def names_of_iterators(x):
    return x + 1, [
        type(iter(o)).__name__
        for o in (x, x[0], x.unbind(0), x.tolist(), "ab", b"ab", frozenset((1,)), {1: 2}, {1}, range(2), x.shape)
    ]


# --- variables that inner functions use ---


@program
def empty_cells(x):
    def taken():
        def g():
            return e

        del e
        e = 1

    def after():
        def g():
            return e

        try:
            pass
        finally:
            del e
        e = 1

    def twice():
        e = 1

        def g():
            return e

        del e
        del e

    def inner():
        def g():
            nonlocal e
            del e

        g()
        e = 1

    return x + 1, [trap(f) for f in (taken, after, twice, inner)]


@program
def caches_after_changes(x):
    @functools.lru_cache
    def first():
        log.append(1)
        return 1

    @functools.lru_cache
    def second():
        return len(log)

    log = []
    y = x + first()
    log.append(2)
    z = y + second()
    log.append(3)
    return z + second() + first(), log, second.cache_info()


@program
def classes_made_inside_are_subscripted(x):
    class A:
        def __class_getitem__(cls, item):
            try:
                type("T", (type(cls),), {})
            except Exception as e:
                return text(e)
            return cls.__name__, item

    class B(A):
        pass

    class C:
        def __class_getitem__(cls, item):
            raise KeyError(item)

    return x + A[3][1], B[x.shape], trap(lambda: C[1]), trap(lambda: type(None)[1])
