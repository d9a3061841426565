# ruff: noqa
"""What goes on after its end: iterators over sources that end or raise and then give more, exceptions and weak references kept past a break, types of iterators."""

import functools
import itertools as I
import weakref

import torch
from tests.support.registry import program


class Pauses:
    """Ends after two items, again and again."""

    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n % 3 == 0:
            raise StopIteration
        return self.n


def bad_two(v):
    if v == 2:
        raise KeyError(v)
    return v


def flawed():
    return map(bad_two, [1, 2, 3, 4])


def twice(it):
    return list(it), list(it), next(it, "end"), next(it, "end")


def steps(it):
    out = []
    for _ in range(5):
        try:
            out.append(next(it))
        except Exception as error:
            out.append(f"{type(error).__name__}: {error}")
    return out


@program
def stages_over_a_source_that_goes_on(x):
    first, second = I.tee(Pauses())
    keys = I.groupby(Pauses())
    return [
        x + 1,
        twice(I.accumulate(Pauses())),
        twice(I.accumulate(Pauses(), initial=5)),
        twice(I.takewhile(lambda v: v < 7, Pauses())),
        twice(I.dropwhile(lambda v: v < 2, Pauses())),
        twice(I.dropwhile(lambda v: v < 6, Pauses())),
        twice(I.filterfalse(lambda v: v % 2, Pauses())),
        twice(I.filterfalse(None, Pauses())),
        twice(I.compress(Pauses(), I.cycle([1, 0]))),
        twice(I.compress(I.count(), Pauses())),
        twice(I.starmap(lambda v: v, map(lambda a: (a,), Pauses()))),
        twice(I.pairwise(Pauses())),
        twice(I.islice(Pauses(), 5)),
        twice(I.chain(Pauses(), Pauses())),
        twice(I.zip_longest(Pauses(), [1])),
        twice(first),
        twice(second),
        [k for k, _ in keys],
        [k for k, _ in keys],
        twice(zip(Pauses())),
        twice(map(str, Pauses())),
        twice(filter(None, Pauses())),
        twice(enumerate(Pauses())),
    ]


@program
def stages_that_raise_and_go_on(x):
    first, second = I.tee(flawed())
    _, group = next(I.groupby([1, 1, 3, 2], lambda v: v))
    return [
        x + 1,
        steps(I.accumulate([1, 2, 3, 4], lambda a, b: a + bad_two(b))),
        steps(I.takewhile(bad_two, [1, 2, 3, 4])),
        steps(I.dropwhile(bad_two, [1, 2, 3, 4, 0, 5])),
        steps(I.filterfalse(lambda v: not bad_two(v), [1, 2, 3, 4])),
        steps(I.starmap(bad_two, [(1,), (2,), (3,)])),
        steps(I.starmap(bad_two, [(1,), 3, (3,)])),
        steps(I.chain(flawed(), [9])),
        steps(I.chain.from_iterable([[1], 2, [3]])),
        steps(I.islice(flawed(), 3)),
        steps(I.pairwise(flawed())),
        steps(I.cycle(flawed())),
        steps(I.zip_longest(flawed(), [1, 2])),
        steps(I.compress(flawed(), [1, 1, 1, 1])),
        steps(I.compress([1, 2, 3, 4], flawed())),
        steps(first),
        steps(second),
        steps(k for k, _ in I.groupby([1, 2, 3, 4], bad_two)),
        steps(group),
        steps(iter(flawed().__next__, 9)),
    ]


@program
def stages_that_are_asked_while_they_work(x):
    out = []

    def add(a, b):
        out.append(next(sums, "end"))
        return a + b

    sums = I.accumulate([1, 2, 3, 4, 5], add)
    return list(sums), out, x + 1


@program
def tee_of_a_tee(x):
    a, b = I.tee([1, 2, 3])
    next(a)
    c, d = I.tee(a)
    return c is a, list(a), list(b), list(d), x + 1


@program
def callable_that_stops(x):
    n = [0]

    def give():
        n[0] += 1
        if n[0] == 2:
            raise StopIteration
        return n[0]

    it = iter(give, 9)
    return list(it), list(it), x + 1


class Sentinel:
    def __init__(self):
        self.asked = []

    def __eq__(self, other):
        self.asked.append(other)
        return other == 3


@program
def sentinel_that_compares(x):
    s = Sentinel()
    return list(iter(I.count(1).__next__, s)), s.asked, x + 1


@program(graphs=3, breaks=True)
def stages_past_a_break(x):
    sums, rows, both = I.accumulate(Pauses()), I.starmap(bad_two, [(1,), (2,), (3,)]), I.chain(flawed(), [7])
    next(sums), next(rows), next(both)
    print("here")
    return twice(sums), steps(rows), steps(both), type(both).__name__, x + 1


@program(graphs=0, breaks=True)
def loop_over_stages_with_a_break(x):
    out = []
    for v in I.chain(I.accumulate([x, x]), I.filterfalse(None, [0, 1]), I.starmap(torch.add, [(x, 1)])):
        print("turn")
        out.append(v)
    return out


@program(graphs=0, breaks=True)
def attributes_of_a_stage(x):
    out = []
    for name in ("iterables", "active", "send", "gi_frame", "__length_hint__"):
        out.append(hasattr(I.chain([1]), name))
    try:
        I.chain([1]).extra = 1
    except AttributeError as error:
        out.append(str(error))
    return out, x + 1


def names_of(iterators):
    return [(type(it).__name__, list(it)) for it in iterators]


def ended(it):
    list(it)
    return it


@torch._dynamo.disable
def outside(*iterators):
    return names_of(iterators)


@program(breaks=True)
def types_of_iterators_outside(x):
    begun = iter("äbc")
    next(begun)
    return x + 1, outside(iter("abc"), begun, iter(b"ab"), iter([1]), iter((1,)), iter(range(2)), iter({1: 2}))


@program(breaks=True)
def types_of_ended_iterators_outside(x):
    return x + 1, outside(
        ended(iter([1])), ended(reversed([1])), ended(reversed((1,))), ended(iter(range(2))), ended(iter("ab"))
    )


@program(graphs=0, breaks=True)
def exception_kept_past_a_break(x):
    kept = []
    try:
        raise ValueError("a")
    except ValueError as error:
        kept.append(error)
    print("here")
    t = kept[0].__traceback__
    return str(kept[0]), t is None, t.tb_next is None, t.tb_lineno - t.tb_frame.f_code.co_firstlineno, x + 1


def raises(v):
    raise KeyError(v)


@program(graphs=0, breaks=True)
def exception_of_a_callee_kept_past_a_break(x):
    kept = None
    try:
        try:
            raises(1)
        except KeyError:
            raise ValueError("a")
    except ValueError as error:
        kept = error
    print("here")
    return str(kept), str(kept.__context__), kept.__context__.__traceback__.tb_next.tb_frame.f_code.co_name, x + 1


class Thing:
    pass


@program(graphs=0, breaks=True)
def weak_reference_past_a_break(x):
    y, thing = x + 1, Thing()
    of_tensor, of_thing = weakref.ref(y), weakref.ref(thing)
    z = y * 2
    print("here")
    return of_tensor() is None, of_thing() is None, z


@program(graphs=0, breaks=True)
def weak_reference_to_a_dropped_tensor(x):
    y = x + 1
    r = weakref.ref(y)
    z = y.sin()
    del y
    return r() is None, z


@program(graphs=0, breaks=True)
def key_that_cannot_be_hashed(x):
    key, out = functools.cmp_to_key(lambda a, b: 0), []
    for make in (lambda: {key(1): 1}, lambda: hash(key(1)), lambda: {key(1)}):
        try:
            out.append(make())
        except Exception as error:
            out.append(str(error))
    return x + 1, out
