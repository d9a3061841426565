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


def combinations_with_replacement(iterable: Iterable[Any], r: int) -> Iterator[Any]:
    pool = tuple(iterable)
    for indices in product(range(len(pool)), repeat=r):
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
            raise NotImplementedError("a weak reference with a callback")  # then the frame runs as it is
        self.target = target

    def __call__(self) -> Any:
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


def _rise(heap: list[Any], at: int, start: int = 0) -> None:
    item = heap[at]
    while at > start:
        parent = (at - 1) >> 1
        if not item < heap[parent]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


def _sink(heap: list[Any], at: int) -> None:
    """As CPython does it: the smaller child comes up all the way, then the item rises to its place."""
    item = heap[at]
    start = at
    child = 2 * at + 1
    while child < len(heap):
        if child + 1 < len(heap) and not heap[child] < heap[child + 1]:
            child += 1
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _rise(heap, at, start)


def heappush(heap: list[Any], item: Any) -> None:
    heap.append(item)
    _rise(heap, len(heap) - 1)


def heappop(heap: list[Any]) -> Any:
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sink(heap, 0)
    return first


def heapreplace(heap: list[Any], item: Any) -> Any:
    first = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return first


def heappushpop(heap: list[Any], item: Any) -> Any:
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sink(heap, 0)
    return item


def heapify(heap: list[Any]) -> None:
    for at in reversed(range(len(heap) // 2)):
        _sink(heap, at)


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
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.groupby: groupby,
    itertools.tee: tee,
    operator.itemgetter: itemgetter,
    operator.attrgetter: attrgetter,
    operator.methodcaller: methodcaller,
    functools.cmp_to_key: cmp_to_key,
    functools.cached_property.__get__: cached_property_get,
    torch.autograd.profiler.record_function: Label,
    weakref.ref: Reference,
    _collections._count_elements: count_elements,
    _bisect.insort_right: insort_right,
    _bisect.insort_left: insort_left,
    _heapq.heappush: heappush,
    _heapq.heappop: heappop,
    _heapq.heapreplace: heapreplace,
    _heapq.heappushpop: heappushpop,
    _heapq.heapify: heapify,
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
