"""``itertools``: generators in the place of its iterators."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_MISSING = object()


def chain(*iterables: Iterable[Any]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


def chain_from_iterable(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    return _chain(iter(iterables))


def _chain(iterables: Iterator[Iterable[Any]]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


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


def cycle(iterable: Iterable[Any], /) -> Iterator[Any]:
    return _cycle(iter(iterable))


def _cycle(it: Iterator[Any]) -> Iterator[Any]:
    saved = []
    for element in it:
        yield element
        saved.append(element)
    while saved:
        yield from saved


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


def accumulate(iterable: Iterable[Any], func: Any = None, *, initial: Any = None) -> Iterator[Any]:
    return _accumulate(iter(iterable), operator.add if func is None else func, initial)


def _accumulate(it: Iterator[Any], func: Any, initial: Any) -> Iterator[Any]:
    total = initial
    if initial is None:
        try:
            total = next(it)
        except StopIteration:
            return
    yield total
    for element in it:
        total = func(total, element)
        yield total


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


def starmap(function: Callable[..., Any], iterable: Iterable[Any], /) -> Iterator[Any]:
    return _starmap(function, iter(iterable))


def _starmap(function: Callable[..., Any], it: Iterator[Any]) -> Iterator[Any]:
    for args in it:
        row = tuple(args)
        yield function(*row)


def takewhile(predicate: Callable[[Any], Any], iterable: Iterable[Any], /) -> Iterator[Any]:
    return _takewhile(predicate, iter(iterable))


def _takewhile(predicate: Callable[[Any], Any], it: Iterator[Any]) -> Iterator[Any]:
    for x in it:
        if not predicate(x):
            return
        yield x


def dropwhile(predicate: Callable[[Any], Any], iterable: Iterable[Any], /) -> Iterator[Any]:
    return _dropwhile(predicate, iter(iterable))


def _dropwhile(predicate: Callable[[Any], Any], it: Iterator[Any]) -> Iterator[Any]:
    for x in it:
        if not predicate(x):
            yield x
            break
    yield from it


def filterfalse(predicate: Any, iterable: Iterable[Any], /) -> Iterator[Any]:
    return _filterfalse(predicate, iter(iterable))


def _filterfalse(predicate: Any, it: Iterator[Any]) -> Iterator[Any]:
    for x in it:
        if not (x if predicate is None or predicate is bool else predicate(x)):
            yield x


def compress(data: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    return _compress(iter(data), iter(selectors))


def _compress(data: Iterator[Any], selectors: Iterator[Any]) -> Iterator[Any]:
    for d, s in zip(data, selectors, strict=False):
        if s:
            yield d


def pairwise(iterable: Iterable[Any], /) -> Iterator[Any]:
    return _pairwise(iter(iterable))


def _pairwise(it: Iterator[Any]) -> Iterator[Any]:
    try:
        before = next(it)
    except StopIteration:
        return
    for x in it:
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


class Groups:
    """``itertools.groupby``: one iterator behind all groups, so that a group ends when the next one is asked for."""

    def __init__(self, iterable: Iterable[Any], key: Any = None) -> None:
        self.iterator = iter(iterable)
        self.key = key
        self.target: Any = _MISSING
        self.current: Any = _MISSING
        self.value: Any = _MISSING
        self.turn = 0

    def __iter__(self) -> Any:
        return self

    def step(self) -> None:
        self.value = next(self.iterator)
        self.current = self.value if self.key is None else self.key(self.value)

    def __next__(self) -> Any:
        self.turn += 1
        while True:
            if self.current is _MISSING:
                pass
            elif self.target is _MISSING:
                break
            elif not (self.target is self.current or self.target == self.current):
                break
            self.step()
        self.target = self.current
        return self.current, _group(self, self.turn, self.target)


def _group(groups: Groups, turn: int, target: Any) -> Iterator[Any]:
    while groups.turn == turn:
        if groups.value is _MISSING:
            try:
                groups.step()
            except StopIteration:
                return
        if not (target is groups.current or target == groups.current):
            return
        value = groups.value
        groups.value = _MISSING
        yield value


def tee(iterable: Iterable[Any], n: int = 2, /) -> tuple[Any, ...]:
    if operator.index(n) < 0:
        raise ValueError("n must be >= 0")
    if not n:
        return ()
    source = iter(iterable)
    seen: list[Any] = []
    return tuple([_tee(source, seen) for _ in range(n)])


def _tee(source: Iterator[Any], seen: list[Any]) -> Iterator[Any]:
    at = 0
    while True:
        if at == len(seen):
            try:
                seen.append(next(source))
            except StopIteration:
                return
        yield seen[at]
        at += 1


REPLACEMENTS: dict[Any, Any] = {
    itertools.chain: chain,
    (itertools.chain, "from_iterable"): chain_from_iterable,
    itertools.product: product,
    itertools.repeat: repeat,
    itertools.count: count,
    itertools.cycle: cycle,
    itertools.islice: islice,
    itertools.accumulate: accumulate,
    itertools.zip_longest: zip_longest,
    itertools.starmap: starmap,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.filterfalse: filterfalse,
    itertools.compress: compress,
    itertools.pairwise: pairwise,
    itertools.permutations: permutations,
    itertools.combinations: combinations,
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.groupby: Groups,
    itertools.tee: tee,
}
