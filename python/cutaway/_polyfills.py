"""Functions of Python's library that are written in C, or that hide behind one, in plain Python: capture interprets these in their place.

They are never called: only their bytecode is read. ``REPLACEMENTS`` says what each stands for.
"""

from __future__ import annotations

import copy as _copy
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_MISSING = object()


def identity(x: Any) -> int:
    """The identity of a value inside a trace, for a table that does not leave it. Capture answers this itself."""
    return id(x)


def reduce(function: Callable[[Any, Any], Any], iterable: Iterable[Any], initial: Any = _MISSING) -> Any:
    it = iter(iterable)
    if initial is _MISSING:
        try:
            value = next(it)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value") from None
    else:
        value = initial
    for item in it:
        value = function(value, item)
    return value


def chain(*iterables: Iterable[Any]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


def chain_from_iterable(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


def product(*iterables: Iterable[Any], repeat: int = 1) -> Iterator[Any]:
    pools = [tuple(pool) for pool in iterables] * repeat
    result: list[list[Any]] = [[]]
    for pool in pools:
        result = [x + [y] for x in result for y in pool]
    for row in result:
        yield tuple(row)


def repeat(value: Any, times: Any = _MISSING) -> Iterator[Any]:
    if times is _MISSING:
        while True:
            yield value
    else:
        for _ in range(times):
            yield value


def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    n = start
    while True:
        yield n
        n += step


def cycle(iterable: Iterable[Any]) -> Iterator[Any]:
    saved = []
    for element in iterable:
        yield element
        saved.append(element)
    while saved:
        yield from saved


def islice(iterable: Iterable[Any], *args: Any) -> Iterator[Any]:
    s = slice(*args)
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if start < 0 or step < 1 or (s.stop is not None and s.stop < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    it = iter(iterable)
    at = 0
    wanted = start
    while s.stop is None or at < s.stop:
        try:
            element = next(it)
        except StopIteration:
            return
        if at == wanted:
            yield element
            wanted += step
        at += 1


def accumulate(iterable: Iterable[Any], func: Any = operator.add, *, initial: Any = None) -> Iterator[Any]:
    it = iter(iterable)
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
    iterators = [iter(it) for it in iterables]
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
                iterators[i] = repeat(fillvalue)
                value = fillvalue
            values.append(value)
        yield tuple(values)


def starmap(function: Callable[..., Any], iterable: Iterable[Any]) -> Iterator[Any]:
    for args in iterable:
        yield function(*args)


def takewhile(predicate: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    for x in iterable:
        if not predicate(x):
            return
        yield x


def dropwhile(predicate: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    it = iter(iterable)
    for x in it:
        if not predicate(x):
            yield x
            break
    yield from it


def filterfalse(predicate: Any, iterable: Iterable[Any]) -> Iterator[Any]:
    for x in iterable:
        if not (x if predicate is None else predicate(x)):
            yield x


def compress(data: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    for d, s in zip(data, selectors, strict=False):
        if s:
            yield d


def pairwise(iterable: Iterable[Any]) -> Iterator[Any]:
    it = iter(iterable)
    try:
        before = next(it)
    except StopIteration:
        return
    for x in it:
        yield before, x
        before = x


def permutations(iterable: Iterable[Any], r: int | None = None) -> Iterator[Any]:
    pool = tuple(iterable)
    n = len(pool)
    size = n if r is None else r
    for indices in product(range(n), repeat=size):
        if len(set(indices)) == size:
            yield tuple([pool[i] for i in indices])


def combinations(iterable: Iterable[Any], r: int) -> Iterator[Any]:
    pool = tuple(iterable)
    for indices in permutations(range(len(pool)), r):
        if sorted(indices) == list(indices):
            yield tuple([pool[i] for i in indices])


def groupby(iterable: Iterable[Any], key: Any = None) -> Iterator[Any]:
    group: list[Any] = []
    current: Any = _MISSING
    for x in iterable:
        k = x if key is None else key(x)
        if current is not _MISSING and k != current:
            yield current, iter(group)
            group = []
        current = k
        group.append(x)
    if current is not _MISSING:
        yield current, iter(group)


def tee(iterable: Iterable[Any], n: int = 2) -> tuple[Any, ...]:
    items = list(iterable)
    return tuple([iter(items) for _ in range(n)])


def itemgetter(item: Any, *items: Any) -> Callable[[Any], Any]:
    if not items:
        return lambda x: x[item]
    every = (item, *items)
    return lambda x: tuple([x[i] for i in every])


def attrgetter(name: str, *names: str) -> Callable[[Any], Any]:
    def get(x: Any, path: str) -> Any:
        for part in path.split("."):
            x = getattr(x, part)
        return x

    if not names:
        return lambda x: get(x, name)
    every = (name, *names)
    return lambda x: tuple([get(x, n) for n in every])


def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(x, name)(*args, **kwargs)


_ATOMS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type,
    range,
    type(Ellipsis),
    type(NotImplemented),
    type(len),
    type(lambda: 0),
)


def _is_atom(x: Any) -> bool:
    return isinstance(x, _ATOMS)


def copy(x: Any) -> Any:
    if _is_atom(x) or type(x) is tuple or type(x) is frozenset:
        return x
    cls = type(x)
    if cls is list or cls is dict or cls is set:
        return x.copy()
    custom = getattr(cls, "__copy__", None)
    if custom is not None:
        return custom(x)
    return _rebuild(x, lambda value: value, None)


def deepcopy(x: Any, memo: Any = None) -> Any:
    if memo is None:
        memo = {}
    if _is_atom(x):
        return x
    key = identity(x)
    if key in memo:
        return memo[key]
    cls = type(x)
    if cls is list:
        made: Any = []
        memo[key] = made
        for item in x:
            made.append(deepcopy(item, memo))
        return made
    if cls is dict:
        made = {}
        memo[key] = made
        for k, v in x.items():
            made[deepcopy(k, memo)] = deepcopy(v, memo)
        return made
    if cls is tuple:
        parts = [deepcopy(item, memo) for item in x]
        for before, after in zip(x, parts, strict=True):
            if before is not after:
                made = tuple(parts)
                break
        else:
            made = x
        memo[key] = made
        return made
    if cls is set:
        made = {deepcopy(item, memo) for item in x}
        memo[key] = made
        return made
    custom = getattr(cls, "__deepcopy__", None)
    if custom is not None:
        made = custom(x, memo)
        memo[key] = made
        return made
    return _rebuild(x, lambda value: deepcopy(value, memo), memo)


def _rebuild(x: Any, each: Callable[[Any], Any], memo: Any) -> Any:
    """An instance without ways of its own to be reduced: a new one with the same attributes, as ``copy`` makes it."""
    cls = type(x)
    own = (
        cls.__reduce_ex__ is not object.__reduce_ex__
        or cls.__reduce__ is not object.__reduce__
        or cls.__new__ is not object.__new__
        or (hasattr(cls, "__getstate__") and cls.__getstate__ is not object.__getstate__)
    )
    if own or hasattr(cls, "__slots__") or hasattr(cls, "__getnewargs__") or hasattr(cls, "__getnewargs_ex__"):
        raise NotImplementedError("copy of an instance with its own reduction")  # then the frame runs as it is
    made = object.__new__(cls)
    if memo is not None:
        memo[identity(x)] = made
    state = x.__dict__
    if state:
        state = {name: each(value) for name, value in state.items()}
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            for name, value in state.items():
                made.__dict__[name] = value
    return made


REPLACEMENTS: dict[Any, Any] = {
    functools.reduce: reduce,
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
    itertools.groupby: groupby,
    itertools.tee: tee,
    operator.itemgetter: itemgetter,
    operator.attrgetter: attrgetter,
    operator.methodcaller: methodcaller,
    _copy.copy: copy,
    _copy.deepcopy: deepcopy,
}
