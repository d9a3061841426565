# ruff: noqa
"""What programs of guests met later: classes as keys, objects that compare themselves with tensors, instances that say what they are, dicts of objects
behind a break, classes that their bases list, calls of C with arguments that capture cannot give to it."""

import abc
import bisect
import builtins
import collections
import copy
import decimal
import datetime
import enum
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
from tests.support.registry import built, cases, program, text, trap


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


@program(breaks=True)
def tensor_beside_what_compares(x):
    return x + 1, both_sides(x, Answers())


@program(breaks=True)
def tensor_beside_what_overrides(x):
    SAID.clear()
    return x + 1, both_sides(x, Overrides()), list(SAID)


@program(graphs=3, breaks=True)
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


@program(breaks=True)
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


@program(breaks=True)
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


@program(graphs=7, breaks=True)
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


@program(breaks=True)
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


@program(breaks=True)
def names_put_into_builtins(x):
    builtins.guest_of_breadth = 5
    try:
        return x + guest_of_breadth, trap(lambda: guest_that_is_not_there)
    finally:
        del builtins.guest_of_breadth


# --- the dict of an object is its own, behind a break as well ---


class Plain:
    pass


@program(graphs=0, breaks=True)
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


@program(graphs=0, breaks=True)
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
cases("guests", "objects_of_c", COPIES, globals(), graphs=0, breaks=True)


@program(graphs=3, breaks=True)
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


@program(graphs=5, breaks=True)
def lists_that_watch(x):
    Observed.log.clear()
    o = Observed([x * 3, x, x * 2])
    o.sort(key=lambda t: t.abs().sum().item())
    a, *b = o
    c, d, e = o
    n = [*o]
    return a + 1, b, e, len(n), list(Observed.log), torch.stack(o), list(Observed.log)


@program(graphs=2)
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


@program(graphs=6, breaks=True)
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


# --- numbers and texts of the program's classes have attributes and identity; members of enumerations have attributes ---


class Counted(float):
    pass


class Named(str):
    pass


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@built(graphs=2, breaks=True)
def attributes_of_a_number_change():
    number = Counted(2.5)
    number.calls = 0

    def fn(x):
        number.calls += 1
        return x + number.calls, number.calls, number * 2

    return fn


@built(graphs=2)
def attributes_of_a_number_are_looked_for():
    number = Counted(2.5)
    number.calls = 1

    def fn(x):
        before = (
            dict(vars(number)),
            hasattr(number, "later"),
            getattr(number, "later", None),
            number.__dict__.get("later"),
        )
        number.__dict__["later"] = len(vars(number))
        return x + number.calls, before, number.later, sorted(n for n in dir(number) if n in ("later", "calls"))

    return fn


@built(graphs=2, breaks=True)
def attributes_of_a_member_change():
    Colour.RED.seen = 0
    vars(Colour.BLUE).pop("seen", None)

    def fn(x):
        Colour.RED.seen += 1
        y = x * Colour.RED.seen, hasattr(Colour.BLUE, "seen"), Colour.RED.name, Colour(2).value
        Colour.BLUE.seen = 2
        return y

    return fn


@built(graphs=3, breaks=True)
def numbers_made_inside_are_new():
    kept = []

    def fn(x):
        a, b = Named("ab"), Counted(1.5)
        pair = (a, (b, 1))
        kept.append(a)
        marks = [hasattr(k, "mark") for k in (*kept, a, b)]
        same = [a is k for k in kept], a == "ab", a is Named("ab"), pair[0] is a
        end_graph(x)
        a.mark = len(kept)
        return x + b, marks, same, pair[1][0] is b, a.mark

    return fn


@built(breaks=True)
def numbers_made_inside_are_returned():
    before = []

    def made(x):
        return x + 1, Named("ab"), (Counted(2.0), [Named("c")]), {Named("k"): Counted(1)}

    def fn(x):
        y, a, b, c = made(x)
        end_graph(x)
        parts = a, b[0], b[1][0], *c, *c.values()
        out = [any(p is q for q in before) for p in parts]
        before.extend(parts)
        return y, out, parts

    return fn


# --- classes of the program's and the constructors of C ---


@program
def abstract_classes_with_other_bases(x):
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Number(int, Shape):
        def __add__(self, other):
            return "sum"

    class Listed(list, Shape): ...

    class Table(dict, Shape): ...

    class Pair(tuple, Shape): ...

    class Wrong(Exception, Shape): ...

    class Early(Shape):
        def __new__(cls, log):
            log.append("early")
            return super().__new__(cls)

    class Never(Shape):
        def __new__(cls, log):
            log.append("never")
            return 5

    log = []
    out = [
        trap(lambda: Number(5) + 1),
        trap(lambda: len(Listed([1, 2]))),
        trap(lambda: Table(a=1)["a"]),
        trap(lambda: Pair((1, 2))[1]),
        trap(lambda: Wrong("w").args),
    ]
    out += [
        trap(Shape),
        trap(lambda: Early(log)),
        trap(lambda: Never(log)),
        trap(lambda: Shape(1)),
        trap(lambda: object.__new__(Shape)),
        log,
    ]
    return x + 1, out


@program(graphs=3, breaks=True)
def containers_that_are_given_keywords(x):
    class Pair(tuple):
        pass

    class Started(tuple):
        def __init__(self, *args, **kwargs):
            self.kwargs = kwargs

    class Whole(int):
        pass

    class Sign(str):
        pass

    class Many(set):
        pass

    class Row(list):
        pass

    out = [
        trap(lambda: len(Pair((1,), default=False))),
        trap(lambda: len(Pair((1,), 2))),
        trap(lambda: Started((1,), k=2).kwargs),
        trap(lambda: len(Started((1,), 2))),
    ]
    out += [
        trap(lambda: Whole(k=1) + 1),
        trap(lambda: Sign(k=1) + ""),
        trap(lambda: len(Many([1], k=1))),
        trap(lambda: len(Row([1], k=1))),
        trap(lambda: Whole("10", base=2) + 0),
    ]
    out += [trap(lambda: Sign(b"ab", encoding="utf8") + ""), trap(lambda: Whole() + 1), trap(lambda: Sign() + "a")]
    return x + 1, out


@program
def places_before_insert_is_asked(x):
    out = [
        trap(bisect.insort, (1, 2), int),
        trap(bisect.insort, (1, 2), 1),
        trap(bisect.insort_left, (1, 2), "a"),
        trap(bisect.insort, (), 1),
        trap(bisect.insort, [1, "a"], 2),
    ]
    return x + 1, out


@program(graphs=3, breaks=True)
def caches_and_keys_without_a_plain_hash(x):
    @functools.lru_cache(maxsize=4)
    def scale(n, *, kind="a"):
        return float(n)

    out = [trap(scale, a) for a in (("%s", []), [], (1, (2, {})), slice(1), {1}, "z", ((),))]
    return x * scale(2), out, trap(scale, 1, kind=([],)), trap(scale, 1, kind=())


class Alike:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


@built(breaks=True)
def caches_and_arguments_that_are_alike():
    @functools.lru_cache
    def number(a, b=0):
        return a.n

    def fn(x):
        return x + number(Alike(x.shape[0])), number(Alike(7)), number(b=1, a=Alike(8)), number((Alike(2)), 1)

    return fn


@program(graphs=3, breaks=True)
def control_flow_with_names_that_it_does_not_take(x):
    from torch._higher_order_ops.while_loop import while_loop

    def one(v):
        return v + 1

    def two(v):
        return v - 1

    def asks(v):
        return v.sum() < 0

    out = [
        trap(torch.cond, x.sum() > 0, one, two, (x,), reverse=1),
        trap(torch.cond, x.sum() > 0, one, two, (x,), pred=1),
    ]
    out += [trap(while_loop, asks, one, (x,), extra=1), trap(while_loop, asks, one, (x,), cond_fn=1)]
    return x + 1, out


# --- labels of the profiler ---


class Labelled(torch.profiler.record_function):
    pass


@program(graphs=2, breaks=True)
def labels_as_decorators(x):
    @torch.profiler.record_function("inner")
    def twice(x):
        return x * 2

    @Labelled("own")
    def broken(x):
        return end_graph(x) + 1

    return twice(x) + broken(x), twice.__name__, broken.__name__


@program
def labels_have_attributes(x):
    with torch.profiler.record_function("a", "b") as label:
        y = x + 1
    return y, label.name, label.args, label.run_callbacks_on_exit


# --- generators that delegate, and are thrown into behind a break ---


class Endless:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return self

    def __next__(self):
        return self.x * 2

    def throw(self, *error):
        raise StopIteration("thrown")


def delegates_inner(x, log):
    try:
        yield x + 1
        yield x + 2
    except KeyError as e:
        log.append(str(e))
        yield 3
        return 8


def delegates(x, log):
    try:
        log.append((yield from delegates_inner(x, log)))
    except ValueError as e:
        log.append(str(e))
        yield 7
    try:
        log.append((yield from delegates_inner(x, log)))
        log.append((yield from Endless(x)))
        yield 9
    finally:
        log.append("end")


@program(graphs=2, breaks=True)
def thrown_into_a_delegation(x):
    log = []
    made = delegates(x, log)
    out = [next(made)]
    end_graph(x)
    out += [made.throw(ValueError("v")), next(made)]
    end_graph(x)
    out += [made.throw(KeyError("k")), next(made)]
    end_graph(x)
    out.append(made.throw(OSError("o")))
    end_graph(x)
    out.append(trap(made.throw, ArithmeticError("a")))
    return out, log


@program(breaks=True)
def delegations_that_are_left(x):
    logs = [], [], []
    closed, raised, freed = (delegates(x, log) for log in logs)
    out = [next(closed), next(raised), next(freed)]
    end_graph(x)
    closed.close()
    out.append(trap(raised.throw, OSError("o")))
    del freed
    return out, logs


# --- what C does in place comes before what a class says of the plain operator ---


class Row(list):
    def __add__(self, other):
        return "add"

    def __radd__(self, other):
        return "radd"


class Table(dict):
    def __or__(self, other):
        return "or"

    def __ror__(self, other):
        return "ror"


class Heap(set):
    def __or__(self, other):
        return "or"

    def __sub__(self, other):
        return "sub"

    def __rsub__(self, other):
        return "rsub"


class Reflected:
    def __radd__(self, other):
        return "radd"

    def __ror__(self, other):
        return "ror"

    def __iter__(self):
        return iter([("k", 2)])


class PlainRow(list):
    pass


@program(breaks=True)
def operators_in_place(x):
    def both(op, a, *others):
        out = []
        for other in others:
            mine = copy.copy(a)
            r = trap(op, mine, other)
            out.append((type(r).__name__, r is mine, list(r) if type(r) is not str else r))
        return out

    out = [
        both(operator.iadd, Row([1]), [2], Row([3]), PlainRow([4]), (5,), Reflected(), 6),
        both(operator.iadd, PlainRow([1]), [2], Row([3]), Reflected()),
    ]
    out += [
        both(operator.iadd, [1], [2], Row([3]), Reflected()),
        both(operator.imul, Row([1]), 2),
        both(operator.imul, PlainRow([1]), 2),
    ]
    out += [
        both(operator.ior, Table(a=1), {"b": 2}, Table(c=3), [("d", 4)], Reflected(), 5),
        both(operator.ior, {"a": 1}, Table(b=2), Reflected()),
    ]
    out += [
        both(operator.ior, Heap([1]), {2}, Heap([3]), frozenset([4]), Reflected(), [5]),
        both(operator.isub, Heap([1, 2]), {2}, Heap([1]), 5),
    ]
    out += [
        both(operator.isub, {1, 2}, Heap([1]), 5),
        both(operator.iand, Heap([1, 2]), {2}),
        both(operator.ixor, Heap([1, 2]), {2, 3}),
        both(operator.ior, {1}, Heap([2])),
    ]
    return x + 1, out


@program(breaks=True)
def dicts_that_change_while_they_are_reversed(x):
    def shrinks(d):
        for k in reversed(d):
            d.popitem()

    def ahead(d):
        for k in d:
            d[k + "x"] = 1

    def grows(d):
        for k, v in reversed(d.items()):
            d[k + "x"] = 1

    def written(d):
        out = []
        for v in reversed(d.values()):
            d["a"] = 5
            out.append(v)
        return out

    def at_the_end(d):
        for k in d:
            if k == "c":
                d["new"] = 1

    def broken(d):
        out = []
        for k, v in reversed(d.items()):
            out.append((k, end_graph(v)))
        return out

    out = []
    for f in (shrinks, ahead, grows, written, at_the_end, broken):
        for made in (dict, collections.OrderedDict):
            d = made(a=x, b=2, c=3)
            out += [trap(f, d), list(d)]
    kinds = [type(reversed(v)).__name__ for v in ({}, {}.keys(), {}.values(), {}.items(), collections.OrderedDict())]
    return x + 1, out, kinds, [list(reversed(v)) for v in ({"a": x, "b": 1}, {"a": x, "b": 1}.items())]


# --- small rules ---


@program(graphs=0, breaks=True)
def exceptions_whose_class_makes_others(x):
    class Odd(Exception):
        def __new__(cls, *a):
            return super().__new__(cls, *a) if a else ValueError("other")

        def __init__(self, v=1):
            self.v = v

    class Number(Exception):
        def __new__(cls, *a):
            return 5

    def bare():
        raise Odd

    def given():
        raise Odd(2) from KeyError

    def cause():
        raise KeyError(1) from Odd

    def number():
        raise Number

    def number_as_cause():
        raise KeyError(1) from Number

    out = []
    for f in (bare, given, cause, number, number_as_cause):
        try:
            f()
        except Exception as e:
            out.append((type(e).__name__, str(e), type(e.__cause__).__name__))
    return x + 1, out


@program
def positions_given_by_name(x):
    def f(a, b, c=0, /, d=0, **kw):
        return a

    def g(a, b, /, c, *, d, e=5):
        return a

    out = [
        trap(g, a=1, b=2, c=3, d=4),
        trap(g, b=2, c=3, d=4, a=1),
        trap(g, 1, b=2, c=3, d=4),
        trap(g, 1, 2, 3, d=4, z=1, a=1),
        trap(f, a=1, b=2),
        trap(g, zz=1, a=1),
    ]
    return x + 1, out


class Counts(int):
    def __radd__(self, other):
        return "radd"

    def __add__(self, other):
        return "add"


class Says(str):
    def __radd__(self, other):
        return "said"


@program(graphs=3, breaks=True)
def texts_beside_numbers_of_classes(x):
    n, s = Counts(2), Says("s")
    out = [
        trap(lambda: "a" + n),
        trap(lambda: n + "a"),
        trap(lambda: sum([n, n])),
        trap(lambda: "ab" * n),
        trap(lambda: n * "ab"),
        trap(lambda: "a" + s),
        trap(lambda: s + "a"),
        trap(lambda: b"a" + s),
    ]
    out += [trap(lambda: 1 + n), trap(lambda: "a" - n), trap(lambda: s * 2), trap(lambda: s + n), trap(lambda: [1] + n)]
    return x + 1, out


class Asked(collections.OrderedDict):
    def get(self, key, default=None):
        self.log.append(key)
        return super().get(key, default)


@program(breaks=True)
def patterns_ask_get(x):
    d = Asked(op="add", a=x)
    d.log = []
    match d:
        case {"missing": _}:
            return 0
        case {"op": "add" | "mul" as op, "a": torch.Tensor() as t, **rest}:
            return op, t * 2, rest, d.log


# --- keys with a hash of the program's are asked when what was changed is written back ---


class ByMode:
    base = 0

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return self.n + ByMode.base

    def __eq__(self, other):
        return self.n == other.n


@program(graphs=0, breaks=True)
def keys_of_a_class_made_inside(x):
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return self.n % 2

        def __eq__(self, other):
            return isinstance(other, Key) and self.n == other.n

    d = {Key(1): 1, Key(3): 3}
    d[Key(1)] = b"ab"
    try:
        return x * d[Key(1)], len(d)
    except Exception as e:
        return type(e).__name__, len(d), Key(5) in d, d.get(Key(3)), {Key(2), Key(2), Key(4)} == {Key(4), Key(2)}


@program(graphs=0, breaks=True)
def keys_that_look_at_a_variable(x):
    def numbers():
        return shift

    class Key:
        def __hash__(self):
            return numbers()

        def __eq__(self, other):
            return numbers() == 7

    end_graph(x)
    shift = 7
    d, s = {Key(): 1, Key(): 2}, {Key(), Key()}
    return end_graph(x) + 1, len(d), len(s), list(d.values())


@built(graphs=2, breaks=True)
def keys_that_look_at_an_attribute():
    ByMode.base = 0

    def fn(x):
        ByMode.base = ByMode.base + x.shape[0]
        d = {ByMode(1): x + 1, ByMode(2): 2}
        end_graph(x)
        return d[ByMode(1)], ByMode(2) in d, [k.n for k in d]

    return fn
