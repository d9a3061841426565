"""Functions of Python's library that are written in C, or that hide behind one, in plain Python: capture interprets these in their place.

They are never called: only their bytecode is read. ``REPLACEMENTS`` says what each stands for.
"""

from __future__ import annotations

import _bisect
import _collections  # type: ignore[import-not-found]
import _heapq
import copy as _copy
import functools
import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

_MISSING = object()


def identity(x: Any) -> int:
    """The identity of a value inside a trace, for a table that does not leave it. Capture answers this itself."""
    return id(x)


def is_held(x: Any) -> bool:
    """A frame that runs has the value, or it exists outside: then it cannot have been freed. Capture answers this itself."""
    return True


def give_up(reason: str) -> Any:
    """The graph ends before the call that was replaced, which then runs as it is. Capture answers this itself."""
    raise NotImplementedError(reason)


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
    return _chain(iter(iterables))


def _chain(iterables: Iterator[Iterable[Any]]) -> Iterator[Any]:
    for iterable in iterables:
        yield from iterable


# A wrong argument is an error of the call, not of the first item: so these look at their arguments, and generators do the rest.


def product(*iterables: Iterable[Any], repeat: int = 1) -> Iterator[Any]:
    if repeat < 0:
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
    if isinstance(start, (str, bytes, list, tuple, dict, set, type(None))) or isinstance(
        step, (str, bytes, list, tuple, dict, set, type(None))
    ):
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


def islice(iterable: Iterable[Any], *args: Any) -> Iterator[Any]:
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
        yield function(*args)


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
    pool = tuple(iterable)
    if not isinstance(r, int):
        raise TypeError(f"'{type(r).__name__}' object cannot be interpreted as an integer")
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
    pool = tuple(iterable)
    if not isinstance(r, int):
        raise TypeError(f"'{type(r).__name__}' object cannot be interpreted as an integer")
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
    if n < 0:
        raise ValueError("n must be >= 0")
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


def itemgetter(item: Any, *items: Any) -> Callable[[Any], Any]:
    if not items:
        return lambda x: x[item]
    every = (item, *items)
    return lambda x: tuple([x[i] for i in every])


def attrgetter(name: str, *names: str) -> Callable[[Any], Any]:
    for one in (name, *names):
        if not isinstance(one, str):
            raise TypeError("attribute name must be a string")

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


class Compared:
    """What ``functools.cmp_to_key`` gives for a value."""

    def __init__(self, compare: Callable[[Any, Any], Any], value: Any) -> None:
        self.compare = compare
        self.obj = value

    def __lt__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) < 0)

    def __gt__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) > 0)

    def __eq__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) == 0)

    def __le__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) <= 0)

    def __ge__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) >= 0)

    __hash__ = None  # type: ignore[assignment]


def cmp_to_key(mycmp: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda value: Compared(mycmp, value)


def cached_property_init(self: Any, func: Callable[[Any], Any]) -> None:
    self.func = func
    self.attrname = None
    self.__doc__ = func.__doc__


def cached_property_get(self: Any, instance: Any, owner: Any = None) -> Any:
    """Without the lock that 3.11 takes: the trace is one thread."""
    if instance is None:
        return self
    if self.attrname is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    cache = instance.__dict__
    value = cache.get(self.attrname, _MISSING)
    if value is _MISSING:
        value = self.func(instance)
        cache[self.attrname] = value
    return value


class Reference:
    """A weak reference to something that the trace holds anyway. A real one is made of it where it leaves the trace."""

    def __init__(self, target: Any, callback: Any = None) -> None:
        if callback is not None:
            give_up("a weak reference with a callback is made")
        self.target = target

    def __call__(self) -> Any:
        if not is_held(self.target):
            give_up("a weak reference is followed to something that may be gone")
        return self.target

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, Reference):
            return self.target is other.target or self.target == other.target
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.target)


def count_elements(mapping: Any, iterable: Iterable[Any]) -> None:
    for element in iterable:
        mapping[element] = mapping.get(element, 0) + 1


def insort_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    wanted = x if key is None else key(x)
    at = lo
    end = len(a) if hi is None else hi
    while at < end and not wanted < (a[at] if key is None else key(a[at])):
        at += 1
    a.insert(at, x)


def insort_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    wanted = x if key is None else key(x)
    at = lo
    end = len(a) if hi is None else hi
    while at < end and (a[at] if key is None else key(a[at])) < wanted:
        at += 1
    a.insert(at, x)


def _before(a: Any, b: Any, largest: bool) -> Any:
    return b < a if largest else a < b


def _rise(heap: list[Any], at: int, start: int = 0, largest: bool = False) -> None:
    item = heap[at]
    while at > start:
        parent = (at - 1) >> 1
        if not _before(item, heap[parent], largest):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


def _sink(heap: list[Any], at: int, largest: bool = False) -> None:
    """As CPython does it: the child that goes first comes up all the way, then the item rises to its place."""
    item = heap[at]
    start = at
    child = 2 * at + 1
    while child < len(heap):
        if child + 1 < len(heap) and not _before(heap[child], heap[child + 1], largest):
            child += 1
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _rise(heap, at, start, largest)


def _pop(heap: list[Any], largest: bool) -> Any:
    last = heap.pop()
    return _replace(heap, last, largest) if heap else last


def _replace(heap: list[Any], item: Any, largest: bool) -> Any:
    first = heap[0]
    heap[0] = item
    _sink(heap, 0, largest)
    return first


def _order(heap: list[Any], largest: bool) -> None:
    for at in reversed(range(len(heap) // 2)):
        _sink(heap, at, largest)


def _check_heap(heap: Any, name: str, is_read: bool) -> None:
    if not isinstance(heap, list):
        raise TypeError(f"{name} must be list, not {type(heap).__name__}")
    if is_read and not heap:
        raise IndexError("index out of range")


def heappush(heap: list[Any], item: Any, /) -> None:
    _check_heap(heap, "heappush() argument 1", False)
    heap.append(item)
    _rise(heap, len(heap) - 1)


def heappop(heap: list[Any], /) -> Any:
    _check_heap(heap, "heappop() argument", True)
    return _pop(heap, False)


def heapreplace(heap: list[Any], item: Any, /) -> Any:
    _check_heap(heap, "heapreplace() argument 1", True)
    return _replace(heap, item, False)


def heappushpop(heap: list[Any], item: Any, /) -> Any:
    _check_heap(heap, "heappushpop() argument 1", False)
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sink(heap, 0)
    return item


def heapify(heap: list[Any], /) -> None:
    _check_heap(heap, "heapify() argument", False)
    _order(heap, False)


# The same with the largest first: what nsmallest and merge(reverse=True) use.


def heappop_max(heap: list[Any], /) -> Any:
    return _pop(heap, True)


def heapreplace_max(heap: list[Any], item: Any, /) -> Any:
    return _replace(heap, item, True)


def heapify_max(heap: list[Any], /) -> None:
    _order(heap, True)


def _of_group(condition: Any) -> Callable[[Any], Any]:
    if isinstance(condition, (type, tuple)):
        return lambda e: isinstance(e, condition)
    matches: Callable[[Any], Any] = condition
    return matches


def _part(group: Any, exceptions: list[Any]) -> Any:
    if not exceptions:
        return None
    made = group.derive(exceptions)
    made.__cause__ = group.__cause__
    made.__context__ = group.__context__
    if hasattr(group, "__notes__"):
        made.__notes__ = list(group.__notes__)
    return made


def _split(e: Any, matches: Callable[[Any], Any]) -> tuple[Any, Any]:
    if matches(e):
        return e, None
    if not isinstance(e, BaseExceptionGroup):
        return None, e
    yes, no = [], []
    for inner in e.exceptions:
        a, b = _split(inner, matches)
        if a is not None:
            yes.append(a)
        if b is not None:
            no.append(b)
    return _part(e, yes), _part(e, no)


def group_split(self: Any, condition: Any, /) -> tuple[Any, Any]:
    return _split(self, _of_group(condition))


def group_subgroup(self: Any, condition: Any, /) -> Any:
    return _split(self, _of_group(condition))[0]


def group_derive(self: Any, exceptions: Any, /) -> Any:
    return BaseExceptionGroup(self.message, exceptions)


def match_group(e: Any, condition: Any) -> tuple[Any, Any]:
    """What ``except*`` asks: the part that matches, and the rest."""
    if isinstance(e, condition):
        if isinstance(e, BaseExceptionGroup):
            return e, None
        return BaseExceptionGroup("", [e]), None
    if isinstance(e, BaseExceptionGroup):
        return e.split(condition)
    return None, e


def raise_again(e: Any, raised: list[Any]) -> Any:
    """What an ``except*`` statement raises at its end; None where everything was handled."""
    left = [r for r in raised if r is not None]
    if not left:
        return None
    if not isinstance(e, BaseExceptionGroup):
        return raised[0]
    if len(left) == 1 and (
        left[0] is e or (left[0].__context__ is e.__context__ and isinstance(left[0], BaseExceptionGroup))
    ):
        return left[0]
    give_up("an except* clause raises")
    return None


class Label:
    """A profiler's label around some work: captured work has none."""

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


class FunctionContext:
    """``ctx`` of a ``torch.autograd.Function`` that no backward pass will ask."""

    saved_tensors: tuple[Any, ...] = ()
    without_gradient: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass

    def mark_dirty(self, *tensors: Any) -> None:
        pass

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.without_gradient = tensors

    def set_materialize_grads(self, value: bool) -> None:
        pass


def _forward(ctx: FunctionContext, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if cls.setup_context is not torch.autograd.Function.setup_context:
        out = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, out)
    else:
        out = cls.forward(ctx, *args, **kwargs)
    if isinstance(out, tuple):
        return tuple([_returned(o, args) for o in out])
    return _returned(out, args)


def apply_function(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch.autograd.Function.apply`` where nothing requires grad: the forward part alone."""
    ctx = FunctionContext()
    ctx.needs_input_grad = (False,) * len(args)
    if torch.is_grad_enabled():
        with torch.no_grad():
            return _forward(ctx, cls, args, kwargs)
    return _forward(ctx, cls, args, kwargs)


def trace_function(cls: Any, *args: Any) -> tuple[Any, tuple[Any, ...]]:
    """The same for what it gives; and which of that has no gradient."""
    ctx = FunctionContext()
    ctx.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in args])
    with torch.no_grad():
        return _forward(ctx, cls, args, {}), ctx.without_gradient


class KeptByCaller(torch.autograd.Function):
    """The recorder knows it by this name and does not refuse its history."""

    @staticmethod
    def forward(ctx: Any, results: tuple[Any, ...], without: tuple[Any, ...], *args: Any) -> Any:  # type: ignore[override]
        ctx.mark_non_differentiable(*without)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("a fake tensor has no gradient")


def function_of_class(cls: Any) -> Callable[..., Any]:
    """Really called: what a graph calls in the place of ``cls.apply``."""

    def apply(*args: Any) -> Any:
        return cls.apply(*args)

    apply.__name__ = f"{cls.__name__}_apply"
    apply.__qualname__ = f"{cls.__qualname__}.apply"
    apply.__module__ = cls.__module__
    apply.is_autograd_function = True  # type: ignore[attr-defined]
    return apply


def registers_hook(hook: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Really called: what a graph calls where the program registers a hook on a tensor."""

    def register_hook(tensor: Any) -> None:
        tensor.register_hook(hook)

    return register_hook


class _Asked(Exception):
    pass


class _Probe(torch.overrides.TorchFunctionMode):
    """Looks at what a mode would be given, and lets nothing run."""

    given: Any = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = _MISSING) -> Any:
        self.given = (func, types, args) if kwargs is _MISSING else (func, types, args, kwargs)
        raise _Asked


def probe_mode(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Really called, while capturing: what a torch function mode gets for this call; None when it is not asked."""
    with _Probe() as probe:
        try:
            function(*args, **(kwargs or {}))
        except _Asked:
            return probe.given
    return None


def _modules(texts: tuple[str, ...], grad: int) -> list[Any]:
    from ._native import Graph

    return [Graph.parse(text).to_fx(bool(grad)) for text in texts]


def cond_of(if_true: str, if_false: str, grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``torch.cond``."""
    one, two = _modules((if_true, if_false), grad)

    def cond(predicate: Any, for_true: tuple[Any, ...], for_false: tuple[Any, ...]) -> Any:
        n = len(for_true)
        return torch.ops.higher_order.cond(
            predicate, lambda *a: tuple(one(*a[:n])), lambda *a: tuple(two(*a[n:])), (*for_true, *for_false)
        )

    return cond


def while_loop_of(condition: str, body: str, grad: int) -> Callable[..., Any]:
    """Really called: what an fx graph calls where the program calls ``while_loop``."""
    asks, turns = _modules((condition, body), grad)

    def while_loop(carried: tuple[Any, ...], for_condition: tuple[Any, ...], for_body: tuple[Any, ...]) -> Any:
        n, m = len(carried), len(for_condition)
        return torch.ops.higher_order.while_loop(
            lambda *a: asks(*a[: n + m])[0],
            lambda *a: tuple(turns(*a[:n], *a[n + m :])),
            carried,
            (*for_condition, *for_body),
        )

    return while_loop


PLACE = object()
"""Stands for a tensor in the form of arguments that are fixed otherwise."""


def _filled(form: tuple[Any, ...], tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    rest = iter(tensors)
    return tuple([next(rest) if part is PLACE else part for part in form])


def applies_function(cls: Any, form: tuple[Any, ...]) -> Callable[..., Any]:
    """Really called: what a graph calls by name in the place of ``cls.apply``."""

    def apply(*tensors: Any) -> Any:
        result = cls.apply(*_filled(form, tensors))
        return result if isinstance(result, tuple) else (result,)

    return apply


class ModuleHooks:
    """Backward hooks of one module at one call of it, as a graph sets them up when it runs."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.given = (module, hooks, pre_hooks)
        self.now = threading.local()  # the call that this thread is inside of

    def enter(self, form: tuple[Any, ...], is_tuple: bool) -> Callable[..., Any]:
        def enter_module(*tensors: Any) -> Any:
            module, hooks, pre_hooks = self.given
            self.now.hook = torch.utils.hooks.BackwardHook(module, list(hooks), list(pre_hooks))
            args = self.now.hook.setup_input_hook(_filled(form, tensors))
            return tuple([a for a, part in zip(args, form, strict=True) if part is PLACE])

        return enter_module

    def leave(self, form: tuple[Any, ...], is_tuple: bool) -> Callable[..., Any]:
        def leave_module(*tensors: Any) -> Any:
            hook = self.now.hook
            del self.now.hook
            filled = _filled(form, tensors)
            result = hook.setup_output_hook(filled if is_tuple else filled[0])
            if not is_tuple:
                return (result,)
            return tuple([r for r, part in zip(result, form, strict=True) if part is PLACE])

        return leave_module


def attach_backward(results: tuple[Any, ...], without: tuple[Any, ...], *args: Any) -> None:
    """Really called, while capturing: fakes that stand for results of a Function get a node of autograd's."""
    KeptByCaller.apply(results, without, *args)  # type: ignore[no-untyped-call]


def addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    return self.add_(value * tensor1 / tensor2)


def foreach_addcdiv_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> None:
    for i in range(len(self)):
        self[i].add_(value[i] * tensor1[i] / tensor2[i])


def add_batch_dim(tensor: Any, dim: int, level: int) -> Any:
    return torch._C._functorch._add_batch_dim(tensor, dim + tensor.ndim if dim < 0 else dim, level)


def remove_batch_dim(tensor: Any, level: int, size: int, dim: int) -> Any:
    return torch._C._functorch._remove_batch_dim(tensor, level, size, dim)


def vmap_increment_nesting(size: int, randomness: str) -> int:
    return torch._C._functorch._vmap_increment_nesting(size, randomness)


def vmap_decrement_nesting() -> int:
    return torch._C._functorch._vmap_decrement_nesting()


def jvp_increment_nesting() -> int:
    return torch._C._functorch._jvp_increment_nesting()


def jvp_decrement_nesting() -> int:
    return torch._C._functorch._jvp_decrement_nesting()


def unwrap_for_grad(tensor: Any, level: int) -> Any:
    return torch._C._functorch._unwrap_for_grad(tensor, level)


def enter_dual_level() -> int:
    return torch._C._enter_dual_level()


def exit_dual_level(*, level: int) -> None:
    torch._C._exit_dual_level(level=level)


def make_dual(tensor: Any, tangent: Any, *, level: int = 0) -> Any:
    return torch._VF._make_dual(tensor, tangent, level=level)  # type: ignore[attr-defined]


def unpack_dual(dual: Any, *, level: int) -> Any:
    return torch._VF._unpack_dual(dual, level=level)  # type: ignore[attr-defined]


def gradients_of_transform(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool = False, create_graph: bool = True
) -> Any:
    """What a transform asks autograd for: zeros for what the outputs do not depend on."""
    given = [None] * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(out, grad) for out, grad in zip(outputs, given, strict=False) if out.requires_grad]
    if not pairs:
        return tuple([torch.zeros_like(x) for x in inputs])
    found = torch.autograd.grad(
        tuple([out for out, _ in pairs]),
        inputs,
        None if grad_outputs is None else tuple([grad for _, grad in pairs]),
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return tuple([torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)])


def _returned(value: Any, args: tuple[Any, ...]) -> Any:
    """An input that is returned as it is comes back as a view of itself."""
    for a in args:
        if a is value and isinstance(value, torch.Tensor):
            return value.view_as(value)
    return value


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
        give_up("an instance is copied that says itself how")
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
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.groupby: Groups,
    itertools.tee: tee,
    operator.itemgetter: itemgetter,
    operator.attrgetter: attrgetter,
    operator.methodcaller: methodcaller,
    functools.cmp_to_key: cmp_to_key,
    functools.cached_property.__get__: cached_property_get,
    functools.cached_property.__init__: cached_property_init,
    torch.autograd.profiler.record_function: Label,
    weakref.ref: Reference,
    BaseExceptionGroup.split: group_split,
    BaseExceptionGroup.subgroup: group_subgroup,
    BaseExceptionGroup.derive: group_derive,
    _collections._count_elements: count_elements,
    _bisect.insort_right: insort_right,
    _bisect.insort_left: insort_left,
    _heapq.heappush: heappush,
    _heapq.heappop: heappop,
    _heapq.heapreplace: heapreplace,
    _heapq.heappushpop: heappushpop,
    _heapq.heapify: heapify,
    _heapq._heappop_max: heappop_max,  # type: ignore[attr-defined]
    _heapq._heapreplace_max: heapreplace_max,  # type: ignore[attr-defined]
    _heapq._heapify_max: heapify_max,  # type: ignore[attr-defined]
    _copy.copy: copy,
    _copy.deepcopy: deepcopy,
}


def _add_transforms() -> None:
    """torch.func goes through wrappers that an export may look into; other versions of torch have fewer of them."""
    from torch._functorch import eager_transforms

    try:
        from torch._functorch import predispatch
    except ImportError:
        predispatch = None  # type: ignore[assignment]
    wrappers = {
        "_add_batch_dim": add_batch_dim,
        "_remove_batch_dim": remove_batch_dim,
        "_vmap_increment_nesting": vmap_increment_nesting,
        "_vmap_decrement_nesting": vmap_decrement_nesting,
        "_jvp_increment_nesting": jvp_increment_nesting,
        "_jvp_decrement_nesting": jvp_decrement_nesting,
        "_unwrap_for_grad": unwrap_for_grad,
        "_enter_dual_level": enter_dual_level,
        "_exit_dual_level": exit_dual_level,
        "_make_dual": make_dual,
        "_unpack_dual": unpack_dual,
    }
    for name, replacement in wrappers.items():
        if (found := getattr(predispatch, name, None)) is not None:
            REPLACEMENTS[found] = replacement
    REPLACEMENTS[eager_transforms._autograd_grad] = gradients_of_transform


_add_transforms()

# Kept away from Dynamo by a wrapper; the function inside is plain.
if (_zero_grad := getattr(torch.optim.Optimizer.zero_grad, "__wrapped__", None)) is not None:
    REPLACEMENTS[torch.optim.Optimizer.zero_grad] = _zero_grad
