# ruff: noqa
"""Corners of the language where a model of it is easily wrong: order, identity, scopes, rounding, protocols that fall back on others."""

import collections
import contextlib
import functools
import itertools
import math
import operator

import torch
from tests.support.registry import built, program, tensor


@program(graphs=0)
def evaluation_order_of_calls(x):
    log = []

    def t(v):
        log.append(v)
        return v

    def f(*a, **k):
        return 0

    f(t(1), *[t(2)], t(3), k=t(4), **{"z": t(5)})
    l = [0, 0]
    l[t(0)] = t(9)
    t(1) if t(True) else t(2)
    t(0) or t(7)
    t(0) and t(8)
    return x, log


@program(graphs=0)
def augmented_evaluates_once(x):
    log = []

    def index():
        log.append(1)
        return 0

    l = [1, 2]
    l[index()] += 5
    d = {"a": [1]}
    d["a"] += [2]
    return x, l, log, d


@program(graphs=0)
def tuple_in_place_raises(x):
    t = ([1],)
    try:
        t[0] += [2]
    except TypeError:
        pass
    return x, t


@program(graphs=0)
def list_in_place_aliases(x):
    a = b = [1]
    a += [2]
    c = d = (1,)
    c += (2,)
    e = f = [1]
    e = e + [2]
    return x, a, b, c, d, e, f


@program
def default_evaluated_once(x):
    n = 5

    def f(a=n):
        return a

    n = 7
    return x + f()


@program
def late_binding_of_closures(x):
    fs = []
    for i in range(3):
        fs.append(lambda: i)
    return x + sum(f() for f in fs)


@program
def comprehension_scope(x):
    i = 10
    l = [i for i in range(3)]
    d = {k: i for k in "ab"}
    return x + i, l, d


@program
def class_scope_comprehension(x):
    n = 3
    return x + sum([n for _ in range(2)])


@program
def exception_variable_is_deleted(x):
    e = 5
    try:
        raise ValueError
    except ValueError as e:
        pass
    try:
        e
    except UnboundLocalError:
        return x + 1
    return x


@program
def finally_overrides(x):
    def f():
        for i in range(3):
            try:
                return i
            finally:
                continue
        return 10

    def g():
        try:
            return 1
        finally:
            return 2

    def h():
        try:
            raise ValueError
        finally:
            return 3

    return x + f() + g() + h()


@program(graphs=0)
def nested_exception_context(x):
    def chain(e):
        out = []
        while e is not None:
            out.append(type(e).__name__)
            e = e.__context__
        return out

    try:
        try:
            try:
                1 / 0
            except ZeroDivisionError:
                [][0]
        except IndexError:
            {}["k"]
    except KeyError as e:
        return x, chain(e)


@program
def return_in_with(x):
    log = []

    @contextlib.contextmanager
    def c(n):
        log.append(n)
        yield
        log.append(-n)

    def f():
        with c(1), c(2):
            return len(log)

    return x + f(), log


@program(graphs=0)
def generator_state_interleaved(x):
    def g(n):
        for i in range(n):
            yield i

    a, b = g(3), g(3)
    out = [next(a), next(b), next(a), next(b), next(a)]
    return x, out, next(a, "end"), list(b)


@program(graphs=0)
def zip_consumes(x):
    it = iter([1, 2, 3, 4])
    pairs = list(zip(it, it))
    it = iter([1, 2, 3])
    short = list(zip(it, [1]))
    rest = list(it)
    return x, pairs, short, rest


@program(graphs=0)
def map_stops_at_shortest(x):
    it = iter([1, 2, 3])
    return x, list(map(operator.add, it, [10])), list(it)


@program(graphs=0)
def islice_leaves_the_rest(x):
    it = iter(range(6))
    a = list(itertools.islice(it, 2))
    b = list(itertools.islice(it, 1, None, 2))
    return x, a, b


@program(graphs=0)
def takewhile_eats_one(x):
    it = iter([1, 2, 9, 3])
    a = list(itertools.takewhile(lambda v: v < 5, it))
    return x, a, list(it)


@program(graphs=0)
def groupby_shared_iterator(x):
    groups = [(k, next(g)) for k, g in itertools.groupby([1, 1, 2, 2, 1])]
    return x, groups


@program(graphs=0)
def tee_independent(x):
    a, b = itertools.tee(iter([1, 2, 3]))
    return x, next(a), next(a), next(b), list(a), list(b)


@program(graphs=0)
def dict_order_after_changes(x):
    d = {"a": 1, "b": 2, "c": 3}
    d.pop("a")
    d["a"] = 4
    d["b"] = 5
    d.update(z=1, b=6)
    return x, list(d.items())


@program(graphs=0)
def dict_equal_keys(x):
    d = {1: "int"}
    d[True] = "bool"
    d[1.0] = "float"
    return x, d, list(d)[0], {0: "a", False: "b"}


@program(graphs=0)
def set_equal_members(x):
    s = {1, True, 1.0}
    return x, s, {0} == {False}, len({0.0, -0.0})


@program(graphs=0)
def nan_identity(x):
    n = float("nan")
    return x, n in [n], [n] == [n], n == n, {n: 1}.get(n), float("nan") in [float("nan")]


@program(graphs=0)
def integer_division_signs(x):
    return x, [
        -7 // 2,
        -7 % 2,
        7 // -2,
        7 % -2,
        divmod(-7, 2),
        -7.5 // 2,
        -7.5 % 2,
        math.fmod(-7, 2),
        round(2.5),
        round(3.5),
        round(-2.5),
        round(2.675, 2),
        int(-2.7),
        math.floor(-2.5),
    ]


@program(graphs=0)
def big_integers(x):
    n = 2**100
    return x, n, n // 3, n % 1000, -n >> 3, n.bit_length(), int(str(n)) == n, n * 1.0


@program(graphs=0)
def float_text(x):
    return x, [
        str(0.1 + 0.2),
        repr(1e16),
        str(1e-7),
        f"{1.5:.0f}",
        f"{2.5:.0f}",
        f"{1234567.891:,.2f}",
        f"{0.00012:g}",
        f"{255:#x}",
        f"{5:08b}",
        f"{-3:+d}",
        f"{'a':*^5}",
        f"{True}",
        f"{None!r}",
        "%.3e" % 12345.678,
        "%5s|%-5s" % ("a", "b"),
    ]


@program(graphs=0)
def string_methods_corners(x):
    return x, [
        "a,b,c".split(",", 1),
        "".split(),
        "".split(","),
        " a ".split(" "),
        "abc".partition("z"),
        "ß".upper(),
        "İ".lower() == "i̇",
        "abc"[5:],
        "abc"[-2:],
        "abc"[::-2],
        "a" * 0,
        "a\nb\r\nc".splitlines(),
        "x".join("abc"),
        "abc".find(""),
        "aaa".replace("a", "b", 2),
        "%d%%" % 5,
    ]


@program(graphs=0)
def slices_out_of_range(x):
    l = [1, 2, 3]
    return x, l[10:], l[-10:2], l[2:1], l[::-1], l[5::-2], l[None:None], l[slice(1, None)], (1, 2, 3)[-1:], "abc"[1:10]


@program(graphs=0)
def extended_slice_assignment(x):
    l = list(range(6))
    l[::2] = [10, 20, 30]
    l[1:1] = [7, 7]
    l[-1:] = []
    try:
        l[::2] = [1]
    except ValueError as e:
        return x, l, str(e)


@program(graphs=0)
def comparison_chains_short_circuit(x):
    log = []

    def t(v):
        log.append(v)
        return v

    r = t(1) < t(0) < t(5)
    s = t(1) < t(2) < t(3)
    return x, r, s, log


@program(graphs=0)
def boolean_results_of_operators(x):
    return x, [1 and 2, 0 and 2, [] or "a", None or 0, not [], "" or [] or {}, 1 and [] and 3]


@program(graphs=0)
def star_unpack_of_strings_and_dicts(x):
    a, *b = "hello"
    *c, d = {"k": 1, "l": 2}
    e = [*"ab", *{1: 2}, *range(2)]
    return x, a, b, c, d, e, {**{"a": 1}, "a": 2}


@program(graphs=0)
def unpacking_errors(x):
    out = []
    for make in (
        lambda: (lambda: [0 for a, b in [(1,)]])(),
        lambda: (lambda: [0 for a, b in [(1, 2, 3)]])(),
        lambda: [0 for a, *b, c in [(1,)]],
        lambda: [0 for a, b in [5]],
    ):
        try:
            make()
        except (ValueError, TypeError) as e:
            out.append(str(e))
    return x, out


@program(graphs=0)
def call_errors(x):
    def f(a, b, *, c):
        pass

    out = []
    for make in (
        lambda: f(),
        lambda: f(1),
        lambda: f(1, 2),
        lambda: f(1, 2, 3, c=1),
        lambda: f(1, 2, c=3, d=4),
        lambda: f(1, 2, c=3, a=4),
        lambda: len(),
        lambda: int("x"),
        lambda: [].pop(),
        lambda: {}.popitem(),
        lambda: "a" + 1,
        lambda: 1 + "a",
        lambda: None + 1,
        lambda: [1] + (2,),
        lambda: -"a",
        lambda: 3(),
        lambda: "a".nope,
        lambda: [1]["a"],
        lambda: 1 < "a",
        lambda: max([]),
        lambda: next(iter([])),
        lambda: {[]: 1},
        lambda: "abc".index("z"),
        lambda: [1].remove(2),
        lambda: [1].index(5),
        lambda: (1,).index(5),
    ):
        try:
            make()
            out.append("no error")
        except Exception as e:
            out.append(f"{type(e).__name__}: {e}")
    return x, out


class Reflected:
    def __radd__(self, o):
        return ("radd", o)

    def __rsub__(self, o):
        return NotImplemented

    def __eq__(self, o):
        return "eq"

    def __lt__(self, o):
        return NotImplemented

    def __gt__(self, o):
        return "gt"


@program(graphs=0)
def reflected_operators(x):
    r = Reflected()
    out = [1 + r, [1] + r, r == 1, 1 == r, r != 1, 5 < r]
    try:
        1 - r
    except TypeError as e:
        out.append(str(e))
    try:
        r < 5
    except TypeError as e:
        out.append(str(e))
    return x, out


class Left:
    def __add__(self, o):
        return "left"


class Right(Left):
    def __radd__(self, o):
        return "right first"


@program(graphs=0)
def subclass_reflected_first(x):
    return x, Left() + Right(), Right() + Left(), Left() + 1


class OnlyLen:
    def __len__(self):
        return 0


class OnlyGetitem:
    def __getitem__(self, i):
        if i >= 3:
            raise IndexError
        return i


class OnlyIter:
    def __iter__(self):
        yield 1
        yield 2


class OnlyNext:
    n = 0

    def __next__(self):
        self.n += 1
        if self.n > 2:
            raise StopIteration
        return self.n

    def __iter__(self):
        return self


@program(graphs=0)
def protocol_fallbacks(x):
    return (
        x,
        bool(OnlyLen()),
        list(OnlyGetitem()),
        2 in OnlyGetitem(),
        list(OnlyIter()),
        2 in OnlyIter(),
        list(OnlyNext()),
        max(OnlyIter()),
        [*OnlyGetitem()],
        tuple(OnlyNext()),
        sum(OnlyIter()),
    )


class Eq:
    def __init__(self, k):
        self.k = k

    def __eq__(self, o):
        return isinstance(o, Eq) and self.k == o.k

    def __hash__(self):
        return hash(self.k)


@program(graphs=0)
def equality_in_containers(x):
    a, b = Eq(1), Eq(1)
    d = {a: "first"}
    d[b] = "second"
    return (
        x,
        len(d),
        d[Eq(1)],
        list(d)[0] is a,
        b in {a},
        [a] == [b],
        (a, 1) == (b, 1),
        [a].count(b),
        a in (b,),
        len({Eq(i % 2) for i in range(4)}),
        {Eq(1): 1} == {Eq(1): 1},
    )


@program(graphs=0)
def attribute_lookup_order(x):
    class_attribute = []

    class D:
        pass

    return x


class DataDescriptor:
    def __get__(self, o, t):
        return "data"

    def __set__(self, o, v):
        raise AttributeError("read only")


class PlainDescriptor:
    def __get__(self, o, t):
        return "plain" if o is not None else "class"


class Lookup:
    a = DataDescriptor()
    b = PlainDescriptor()
    c = "class value"

    def __init__(self):
        self.__dict__["a"] = "instance a"
        self.__dict__["b"] = "instance b"
        self.__dict__["c"] = "instance c"

    def __getattr__(self, n):
        return "fallback " + n


@program(graphs=0)
def descriptor_priority(x):
    o = Lookup()
    try:
        o.a = 1
    except AttributeError as e:
        message = str(e)
    return x, o.a, o.b, o.c, o.d, Lookup.b, Lookup.c, message


class Meta(type):
    def __contains__(cls, k):
        return k == 1

    def __iter__(cls):
        return iter([1, 2])

    def __add__(cls, o):
        return o

    def __instancecheck__(cls, o):
        return o == 5


class WithMeta(metaclass=Meta):
    pass


@program(graphs=0)
def metaclass_protocols(x):
    return x, 1 in WithMeta, 2 in WithMeta, list(WithMeta), WithMeta + 7


@program(graphs=0)
def metaclass_instance_check(x):
    return x, isinstance(5, WithMeta), isinstance(6, WithMeta)


class Base:
    log = []

    def __init_subclass__(cls, **k):
        Base.log.append(cls.__name__)

    def __class_getitem__(cls, k):
        return (cls.__name__, k)


class Derived(Base):
    pass


@program(graphs=0)
def class_getitem(x):
    return x, Base[int], Derived["a"], list(Base.log)


class CM:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append("+" + self.name)
        return self.name

    def __exit__(self, t, v, tb):
        self.log.append("-" + self.name + (":" + t.__name__ if t else ""))
        return self.swallow


@program(graphs=0)
def nested_managers_with_exceptions(x):
    log = []
    with CM(log, "a", True):
        with CM(log, "b") as b:
            log.append(b)
            raise KeyError("z")
    try:
        with CM(log, "c"):
            raise ValueError
    except ValueError:
        log.append("caught")
    return x, log


@program(graphs=0)
def manager_exit_raises(x):
    class_ = CM

    @contextlib.contextmanager
    def bad():
        try:
            yield 1
        finally:
            raise RuntimeError("exit")

    try:
        with bad():
            pass
    except RuntimeError as e:
        return x, str(e), e.__context__ is None


@program(graphs=0)
def exit_stack_order(x):
    log = []
    with contextlib.ExitStack() as s:
        s.enter_context(CM(log, "a"))
        s.callback(log.append, "callback")
        s.enter_context(CM(log, "b"))
        log.append("body")
    return x, log


@program(graphs=0)
def generator_return_and_delegation(x):
    def inner():
        x = yield 1
        return x * 2

    def outer():
        r = yield from inner()
        s = yield from [7, 8]
        yield (r, s)

    g = outer()
    out = [next(g), g.send(5), next(g), next(g)]
    return x, out, list(g)


@program(graphs=0)
def generator_close_runs_finally(x):
    log = []

    def g():
        try:
            yield 1
            yield 2
        except GeneratorExit:
            log.append("exit")
            raise
        finally:
            log.append("finally")

    it = g()
    next(it)
    it.close()
    return x, log, next(it, "done")


@program(graphs=0)
def generator_stop_iteration_inside(x):
    def g():
        yield next(iter([]))

    try:
        list(g())
    except RuntimeError as e:
        return x, str(e)


@program(graphs=0)
def sorted_is_stable(x):
    rows = [(1, "b"), (0, "z"), (1, "a"), (0, "y")]
    return (
        x,
        sorted(rows, key=lambda r: r[0]),
        sorted(rows, key=lambda r: r[0], reverse=True),
        sorted([3, 1, 2], key=lambda v: -v),
        sorted("bca", reverse=True),
        min(rows, key=lambda r: r[0]),
        max(rows, key=lambda r: r[0]),
    )


@program(graphs=0)
def sort_with_comparisons(x):
    class_ = functools.cmp_to_key(lambda a, b: (a % 3) - (b % 3))
    return x, sorted([5, 3, 1, 4], key=class_)


@program
def sum_of_floats(x):
    mixed = [1, True, 0.1, 2, 1e16, 1.0, -1e16, False, 0.2]
    return (
        x,
        sum([0.1] * 10),
        sum([1e16, 1.0, -1e16]),
        sum(mixed),
        sum(mixed, 0.5),
        sum([2**62, 2**62, 0.1, 0.2, 0.3]),
        sum([0.1, 0.2, 2**70, 0.3, 0.4]),
        sum([float("inf"), 1.0, 2.0]),
        sum([-0.0, -0.0], -0.0),
        sum([0.1, 0.2, x.sum(), 0.3]),
        sum(i * 0.1 for i in range(10)),
    )


@program(graphs=0)
def sum_and_join_types(x):
    return x, sum([0.1] * 3), sum([[1], [2]], []), sum([True, True]), sum((), 5), type(sum([1, 2.0])).__name__


@program(graphs=0)
def any_all_short_circuit(x):
    log = []

    def t(v):
        log.append(v)
        return v

    return x, any(t(v) for v in [0, 1, 2]), all(t(v) for v in [1, 0, 2]), log


@program(graphs=0)
def enumerate_reversed_views(x):
    d = {"a": 1, "b": 2}
    return (
        x,
        list(reversed(d)),
        list(reversed(d.items())),
        list(reversed(d.values())),
        list(enumerate(d, 5)),
        dict(enumerate("ab")),
    )


@program(graphs=0)
def int_from_things(x):
    return x, [
        int(True),
        int(2.9),
        int(-2.9),
        int("  12 "),
        int("-5"),
        int("101", 2),
        int("z", 36),
        float("  1.5 "),
        float("inf"),
        bool("False"),
        complex("1+2j"),
        str(b"a", "utf-8"),
        bytes(3),
        list("ab"),
        tuple({1: 2}),
        set("aab") == {"a", "b"},
        dict([("a", 1)], b=2),
        frozenset([1]) | {2},
    ]


@program(graphs=0)
def range_corners(x):
    return (
        x,
        list(range(5, 0, -2)),
        len(range(0, 10, 3)),
        range(3) == range(0, 3, 1),
        4 in range(0, 10, 2),
        range(10)[2:8:3],
        range(10)[-1],
        range(0).__bool__() if hasattr(range(0), "__bool__") else bool(range(0)),
        range(5).index(3),
        list(reversed(range(3))),
    )


@program(graphs=0)
def identity_of_small_things(x):
    a, b = (), ()
    return x, a is b, None is None, ... is ..., [] is [], x is x, x.shape is x.shape, (x,)[0] is x, [x][0] is x


@program
def tensor_identity(x):
    y = x
    z = x.view(3, 4)
    w = x.add_(1)
    return (
        y is x,
        z is x,
        w is x,
        x.detach() is x,
        x.contiguous() is x,
        x.to(torch.float32) is x,
        x.float() is x,
        x.requires_grad_(False) is x,
    )


@program
def aliased_outputs(x):
    y = x + 1
    v = y.view(-1)
    v.add_(5)
    return y, v, [y, v, y]


@program
def output_is_input_view(x):
    return x[0], x.t(), x, x.view(-1)[2:]


@program
def mutation_order(x):
    a = x.clone()
    b = a * 2
    a.add_(1)
    c = a * 2
    a[0] = 0
    return a, b, c


@program
def mutation_through_alias(x):
    rows = [r for r in x]
    rows[1].mul_(3)
    x[2] = rows[1]
    return x, rows[2]


@program(graphs=0, breaks=True)
def python_numbers_and_tensors(x):
    return (
        x * True,
        x + 2**40,
        x - 1e-300,
        x * float("inf"),
        x / 3,
        3 / x,
        x // 2,
        x % 2,
        2**x,
        x**0.5,
        -x,
        +x,
        abs(x),
        round(x),
        x.long() // 2,
        x.long() / 2,
        7 // x.long().abs().add(1),
        x.long() ** 2,
        x.bool() & True,
        ~x.bool(),
    )


@program
def dtype_promotion(x):
    i = torch.arange(3)
    return (
        i + 1,
        i + 1.5,
        i * True,
        i / 2,
        i + torch.tensor(1.5),
        x + torch.tensor(1.0, dtype=torch.float64),
        x.half() + x,
        i.to(torch.uint8) - 1,
        torch.tensor(3) + 2.5,
        x.sum() + i,
    )


@program(graphs=0)
def comparisons_of_tensors_in_containers(x):
    a = [x, 1]
    return x, a == a, (x, 2) == (x, 2), a.index(1) if False else 0, x in [x], [1, 2] == [1, 2]


@program(graphs=0)
def none_and_tensors(x):
    return x, x is None, x is not None, x == None, None in [1, None], [None, x].index(None)


@program
def chained_methods_in_place(x):
    y = x.clone().add_(1).mul_(2).t_()
    y[0, 0] += 5
    y.T[1, 1] = 7
    return y


@program
def shadowed_builtins(x):
    len = lambda v: 100
    sum = max
    return x + len([1]) + sum(1, 2)


@program
def nonlocal_chain(x):
    a = 1

    def f():
        nonlocal a
        a += 1

        def g():
            nonlocal a
            a *= 10
            return a

        return g()

    r = f()
    return x + r, a


@program(graphs=0)
def recursion_with_accumulator(x):
    def walk(n, acc=None):
        acc = [] if acc is None else acc
        acc.append(n)
        if n:
            walk(n - 1, acc)
        return acc

    return x, walk(3), walk(1)


@program(graphs=0)
def del_variable_and_item(x):
    a = [1, 2, 3]
    d = {"a": 1, "b": 2}
    del a[0], d["a"]
    b = a
    del a
    return x, b, d


@program
def global_in_nested_function(x):
    def f():
        global SEEN
        SEEN = x.shape[0]
        return SEEN

    return x + f() + SEEN


SEEN = 0


@program
def walrus_forms(x):
    if (n := x.shape[0]) > 2 and (m := n * 2):
        x = x + m
    while (n := n - 1) > 0:
        x = x + n
    return x, n, [y := 5, y**2], (z := 3) + z


@program(graphs=0)
def lambda_forms(x):
    f = lambda a, b=2, *c, d=4, **e: (a, b, c, d, e)
    return x, f(1), f(1, 3, 5, d=6, z=7), (lambda: (yield))().__class__.__name__


@program(graphs=0, breaks=True)
def conditional_imports(x):
    try:
        import not_a_module_at_all
    except ImportError:
        return x + 1
    return x


@program(graphs=0)
def match_everything(x):
    def f(v):
        match v:
            case 0 | 1:
                return "small"
            case int() | float() if v < 0:
                return "negative"
            case [1, [2, *r], {"k": (a, b)}]:
                return ("deep", r, a, b)
            case {"t": "x", **rest} if rest:
                return ("mapping", rest)
            case (a, b):
                return ("pair", a, b)
            case [*_, last]:
                return ("last", last)
            case str() as s if len(s) > 2:
                return s
            case None | True:
                return "constant"
            case collections.OrderedDict():
                return "ordered"
            case _:
                return "other"

    return x, [
        f(v)
        for v in (
            0,
            -2,
            -1.5,
            [1, [2, 3, 4], {"k": (5, 6)}],
            {"t": "x", "u": 1},
            (8, 9),
            [1, 2, 3],
            "abc",
            "a",
            None,
            True,
            {},
            {1, 2},
        )
    ]


class Loud(int):
    log = []

    def __add__(self, other):
        Loud.log.append("add")
        return int(self) + other

    def __str__(self):
        Loud.log.append("str")
        return "loud"


@built(graphs=3)
def number_with_operators():
    Loud.log.clear()

    def f(x):
        n = Loud(3)
        return x + (n + 4), str(n), len(Loud.log)

    return f


class Tagged(str):
    @property
    def size(self):
        return len(self)

    def twice(self):
        return self + self


@program(args=lambda i: [tensor(i), Tagged("ab")], graphs=3)
def text_with_methods(x, t):
    return x + t.size, t.twice(), t.upper(), t == "ab", f"{t}!", {t: 1}["ab"]
