"""``itertools``: generators and classes in the place of its iterators.

A generator is over once it has ended or raised. So it stands only for an iterator of C that is over then, too (``islice``, ``zip_longest``), or that
nothing can stop (``product``). The others ask their source again, whatever it said before: they are classes.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .answers import give_up

_MISSING = object()
_END: Any = object()


class Stage:
    """An iterator over others. A loop over one of these would call its ``__iter__`` again, which C does not: so each asks by ``next``."""

    def __iter__(self) -> Any:
        return self


class Chain(Stage):
    def __init__(self, iterables: Iterator[Iterable[Any]]) -> None:
        self.iterables: Any = iterables
        self.active: Any = None

    def __next__(self) -> Any:
        while self.iterables is not None:
            if self.active is None:
                iterables, self.iterables = self.iterables, None  # an error here is the end
                iterable = next(iterables, _END)
                if iterable is _END:
                    break
                self.active = iter(iterable)
                self.iterables = iterables
            item = next(self.active, _END)
            if item is not _END:
                return item
            self.active = None
        raise StopIteration


def chain(*iterables: Iterable[Any]) -> Iterator[Any]:
    return Chain(iter(iterables))


def chain_from_iterable(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    return Chain(iter(iterables))


# A wrong argument is an error of the call, not of the first item: so these look at their arguments, and generators do the rest.


def product(*iterables: Iterable[Any], repeat: int = 1) -> Iterator[Any]:
    if operator.index(repeat) < 0:
        raise ValueError("repeat argument cannot be negative")
    return _product([tuple(pool) for pool in iterables] * repeat)


def _product(pools: list[tuple[Any, ...]]) -> Iterator[Any]:
    for pool in pools:
        if not pool:
            return
    at = [0] * len(pools)
    while True:
        yield tuple([pool[i] for pool, i in zip(pools, at, strict=True)])
        place = len(pools) - 1
        while place >= 0:
            at[place] += 1
            if at[place] < len(pools[place]):
                break
            at[place] = 0
            place -= 1
        if place < 0:
            return


def repeat(object: Any, times: Any = _MISSING) -> Iterator[Any]:
    return _repeat(object, -1 if times is _MISSING else max(0, operator.index(times)))


def _repeat(value: Any, times: int) -> Iterator[Any]:
    while times != 0:
        yield value
        times -= 1


def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    no_number = (str, bytes, list, tuple, dict, set, frozenset, type(None))
    if isinstance(start, no_number) or isinstance(step, no_number):
        raise TypeError("a number is required")
    return _count(start, step)


def _count(n: Any, step: Any) -> Iterator[Any]:
    while True:
        yield n
        n = n + step


class Cycle(Stage):
    def __init__(self, iterable: Iterable[Any], /) -> None:
        self.iterator: Any = iter(iterable)
        self.saved: list[Any] = []
        self.place = 0

    def __next__(self) -> Any:
        if self.iterator is not None:
            item = next(self.iterator, _END)
            if item is not _END:
                self.saved.append(item)
                return item
            self.iterator = None
        if not self.saved:
            raise StopIteration
        item = self.saved[self.place]
        self.place = (self.place + 1) % len(self.saved)
        return item


def _slice_part(value: Any, default: Any, least: int, words: str) -> Any:
    if value is None:
        return default
    if not hasattr(value, "__index__"):
        raise ValueError(words)
    number = operator.index(value)
    if number < least:
        raise ValueError(words)
    return number


def islice(iterable: Iterable[Any], /, *args: Any) -> Iterator[Any]:
    if not 1 <= len(args) <= 3:
        few = len(args) < 1
        raise TypeError(f"islice expected at {'least 2' if few else 'most 4'} arguments, got {len(args) + 1}")
    s = slice(*args)
    if len(args) == 1:
        stop = _slice_part(
            s.stop, None, 0, "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
        )
    else:
        words = "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."
        stop = _slice_part(
            s.stop, None, 0, "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
        )
        start = _slice_part(s.start, 0, 0, words)
        step = _slice_part(s.step, 1, 1, "Step for islice() must be a positive integer or None.")
        return _islice(iter(iterable), start, stop, step)
    return _islice(iter(iterable), 0, stop, 1)


def _islice(it: Iterator[Any], start: int, stop: Any, step: int) -> Iterator[Any]:
    at = 0
    wanted = start
    while stop is None or at < stop:
        try:
            element = next(it)
        except StopIteration:
            return
        if at == wanted:
            yield element
            wanted += step
        at += 1


class Accumulate(Stage):
    def __init__(self, iterable: Iterable[Any], func: Any = None, *, initial: Any = None) -> None:
        self.iterator = iter(iterable)
        self.function = operator.add if func is None else func
        self.initial = initial
        self.total: Any = _MISSING

    def __next__(self) -> Any:
        if self.initial is not None:
            self.total, self.initial = self.initial, None
            return self.total
        item = next(self.iterator, _END)
        if item is _END:
            raise StopIteration
        self.total = item if self.total is _MISSING else self.function(self.total, item)
        return self.total


def zip_longest(*iterables: Iterable[Any], fillvalue: Any = None) -> Iterator[Any]:
    return _zip_longest([iter(it) for it in iterables], fillvalue)


def _zip_longest(iterators: list[Any], fillvalue: Any) -> Iterator[Any]:
    active = len(iterators)
    if not active:
        return
    while True:
        values = []
        for i, it in enumerate(iterators):
            try:
                value = next(it)
            except StopIteration:
                active -= 1
                if not active:
                    return
                iterators[i] = _repeat(fillvalue, -1)
                value = fillvalue
            values.append(value)
        yield tuple(values)


class Starmap(Stage):
    def __init__(self, function: Callable[..., Any], iterable: Iterable[Any], /) -> None:
        self.function = function
        self.iterator = iter(iterable)

    def __next__(self) -> Any:
        row = next(self.iterator, _END)
        if row is _END:
            raise StopIteration
        return self.function(*tuple(row))


class Takewhile(Stage):
    def __init__(self, predicate: Callable[[Any], Any], iterable: Iterable[Any], /) -> None:
        self.predicate = predicate
        self.iterator = iter(iterable)
        self.is_over = False

    def __next__(self) -> Any:
        item = _END if self.is_over else next(self.iterator, _END)
        if item is not _END:
            if self.predicate(item):
                return item
            self.is_over = True
        raise StopIteration


class Dropwhile(Stage):
    def __init__(self, predicate: Callable[[Any], Any], iterable: Iterable[Any], /) -> None:
        self.predicate = predicate
        self.iterator = iter(iterable)
        self.has_begun = False

    def __next__(self) -> Any:
        while (item := next(self.iterator, _END)) is not _END:
            if self.has_begun:
                return item
            if not self.predicate(item):
                self.has_begun = True
                return item
        raise StopIteration


class Filterfalse(Stage):
    def __init__(self, predicate: Any, iterable: Iterable[Any], /) -> None:
        self.predicate = predicate
        self.iterator = iter(iterable)

    def __next__(self) -> Any:
        while (item := next(self.iterator, _END)) is not _END:
            if not (item if self.predicate is None or self.predicate is bool else self.predicate(item)):
                return item
        raise StopIteration


class Compress(Stage):
    def __init__(self, data: Iterable[Any], selectors: Iterable[Any]) -> None:
        self.data = iter(data)
        self.selectors = iter(selectors)

    def __next__(self) -> Any:
        while (item := next(self.data, _END)) is not _END and (selector := next(self.selectors, _END)) is not _END:
            if selector:
                return item
        raise StopIteration


def pairwise(iterable: Iterable[Any], /) -> Iterator[Any]:
    return _pairwise(iter(iterable))


def _pairwise(it: Iterator[Any]) -> Iterator[Any]:
    try:
        before = next(it)
    except StopIteration:
        return
    while (x := next(it, _END)) is not _END:
        yield before, x
        before = x


def _size_of_rows(r: Any) -> int:
    if not isinstance(r, int):
        raise TypeError("Expected int as r")
    if r < 0:
        raise ValueError("r must be non-negative")
    return r


def permutations(iterable: Iterable[Any], r: Any = None) -> Iterator[Any]:
    pool = tuple(iterable)
    return _permutations(pool, len(pool) if r is None else _size_of_rows(r))


def _permutations(pool: tuple[Any, ...], size: int) -> Iterator[Any]:
    n = len(pool)
    if size > n:
        return
    order = list(range(n))
    left = [n - i for i in range(size)]  # how many choices each place still has
    yield tuple([pool[i] for i in order[:size]])
    while True:
        place = size - 1
        while place >= 0:
            left[place] -= 1
            if left[place]:
                other = n - left[place]
                order[place], order[other] = order[other], order[place]
                yield tuple([pool[i] for i in order[:size]])
                break
            order[place:] = order[place + 1 :] + order[place : place + 1]
            left[place] = n - place
            place -= 1
        if place < 0:
            return


def combinations(iterable: Iterable[Any], r: int) -> Iterator[Any]:
    if not isinstance(r, int):
        raise TypeError(f"'{type(r).__name__}' object cannot be interpreted as an integer")
    pool = tuple(iterable)
    return _combinations(pool, _size_of_rows(r))


def _combinations(pool: tuple[Any, ...], size: int) -> Iterator[Any]:
    n = len(pool)
    if size > n:
        return
    at = list(range(size))
    while True:
        yield tuple([pool[i] for i in at])
        place = size - 1
        while place >= 0 and at[place] == n - size + place:
            place -= 1
        if place < 0:
            return
        at[place] += 1
        for later in range(place + 1, size):
            at[later] = at[later - 1] + 1


def combinations_with_replacement(iterable: Iterable[Any], r: int) -> Iterator[Any]:
    if not isinstance(r, int):
        raise TypeError(f"'{type(r).__name__}' object cannot be interpreted as an integer")
    pool = tuple(iterable)
    return _combinations_with_replacement(pool, _size_of_rows(r))


def _combinations_with_replacement(pool: tuple[Any, ...], size: int) -> Iterator[Any]:
    n = len(pool)
    if not n and size:
        return
    at = [0] * size
    while True:
        yield tuple([pool[i] for i in at])
        place = size - 1
        while place >= 0 and at[place] == n - 1:
            place -= 1
        if place < 0:
            return
        at[place:] = [at[place] + 1] * (size - place)


class Groups(Stage):
    """``itertools.groupby``: one iterator behind all groups, so that a group ends when the next one is asked for."""

    def __init__(self, iterable: Iterable[Any], key: Any = None) -> None:
        self.iterator = iter(iterable)
        self.key = key
        self.target: Any = _MISSING
        self.current: Any = _MISSING
        self.value: Any = _MISSING
        self.turn = 0

    def has_step(self) -> bool:
        value = next(self.iterator, _END)
        if value is _END:
            return False
        self.current = value if self.key is None else self.key(value)
        self.value = value
        return True

    def __next__(self) -> Any:
        self.turn += 1
        while True:
            if self.current is _MISSING:
                pass
            elif self.target is _MISSING:
                break
            elif not (self.target is self.current or self.target == self.current):
                break
            if not self.has_step():
                raise StopIteration
        self.target = self.current
        return self.current, Group(self, self.turn, self.target)


class Group(Stage):
    def __init__(self, groups: Groups, turn: int, target: Any) -> None:
        self.groups = groups
        self.turn = turn
        self.target = target

    def __next__(self) -> Any:
        groups = self.groups
        if groups.turn != self.turn or (groups.value is _MISSING and not groups.has_step()):
            raise StopIteration
        if not (self.target is groups.current or self.target == groups.current):
            raise StopIteration
        value, groups.value, groups.current = groups.value, _MISSING, _MISSING
        return value


class Tee(Stage):
    def __init__(self, source: Iterator[Any], seen: list[Any], place: int) -> None:
        self.source = source
        self.seen = seen
        self.place = place

    def __next__(self) -> Any:
        if self.place == len(self.seen):
            item = next(self.source, _END)
            if item is _END:
                raise StopIteration
            self.seen.append(item)
        item = self.seen[self.place]
        self.place += 1
        return item


def tee(iterable: Iterable[Any], n: int = 2, /) -> tuple[Any, ...]:
    if operator.index(n) < 0:
        raise ValueError("n must be >= 0")
    if not n:
        return ()
    source = iter(iterable)
    if isinstance(source, Tee):
        copies = [source]
        while len(copies) < n:
            copies.append(Tee(source.source, source.seen, source.place))
        return tuple(copies)
    if hasattr(source, "__copy__"):
        give_up("itertools.tee() is given an iterator that can be copied")
    seen: list[Any] = []
    return tuple([Tee(source, seen, 0) for _ in range(n)])


REPLACEMENTS: dict[Any, Any] = {
    itertools.chain: chain,
    (itertools.chain, "from_iterable"): chain_from_iterable,
    itertools.product: product,
    itertools.repeat: repeat,
    itertools.count: count,
    itertools.cycle: Cycle,
    itertools.islice: islice,
    itertools.accumulate: Accumulate,
    itertools.zip_longest: zip_longest,
    itertools.starmap: Starmap,
    itertools.takewhile: Takewhile,
    itertools.dropwhile: Dropwhile,
    itertools.filterfalse: Filterfalse,
    itertools.compress: Compress,
    itertools.pairwise: pairwise,
    itertools.permutations: permutations,
    itertools.combinations: combinations,
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.groupby: Groups,
    itertools.tee: tee,
}
