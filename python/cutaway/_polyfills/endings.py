"""What C code of Python's does behind a Python function that it has called, in plain Python: how the call of a class goes on when ``__init__``
has returned, what becomes of a truth value, the rest of a sort when one key is there.

Where the graph breaks inside such a function, a frame of one of these stands between the function and whoever made C call it; ``_rest()``
is the call that gives what the function returns, and begins a statement: nothing is on the stack then. Capture interprets them, and CPython runs them where capture does not: so they do what C does,
in its order and with its words. Tracebacks do not show them (``src/compiler/capture/interpreter/endings.cc``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

MISSING = object()
END = object()  # replaced by the one that made code knows


def _rest() -> Any:
    raise NotImplementedError("stands for a function that goes on")


class _Sized:
    """Its length is checked as that of every object."""

    def __init__(self, size: Any) -> None:
        self.size = size

    def __len__(self) -> Any:
        return self.size


class _Truth:
    def __init__(self, truth: Any) -> None:
        self.truth = truth

    def __bool__(self) -> Any:
        return self.truth


class _Iterable:
    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator

    def __iter__(self) -> Any:
        return self.iterator


def after_init(made: Any) -> Any:
    result = _rest()
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    return made


def after_new(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    made = _rest()
    if cls in type(made).__mro__:
        result = type(made).__init__(made, *args, **kwargs)
        if result is not None:
            raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    return made


def after_attribute(fallback: Callable[[Any, str], Any], owner: Any, name: str) -> Any:
    """``fallback`` is ``__getattr__``, which is asked when a property or ``__getattribute__`` says that there is no such attribute."""
    try:
        return _rest()
    except AttributeError:
        pass
    return fallback(owner, name)


def after_store() -> None:
    _rest()


def after_bool() -> bool:
    truth = _rest()
    return bool(_Truth(truth))


def after_len() -> int:
    size = _rest()
    return len(_Sized(size))


def after_len_as_bool() -> bool:
    size = _rest()
    return bool(_Sized(size))


def after_contains() -> bool:
    found = _rest()
    return True if found else False


def after_iter() -> Iterator[Any]:
    iterator = _rest()
    return iter(_Iterable(iterator))


def after_next() -> Any:
    """Of a loop: its end is no exception there."""
    try:
        return _rest()
    except StopIteration:
        return END


def after_next_of_generator() -> Any:
    generator = _rest()
    return next(generator)


def after_item_of_generator(items: list[Any], it: None, kind: type) -> Any:
    """Of ``list`` and ``tuple``. The generator is what ``_rest`` gives, and goes on."""
    generator = _rest()
    for item in generator:
        items.append(item)
    return items if kind is list else kind(items)


def after_item(items: list[Any], it: Iterator[Any], kind: type) -> Any:
    try:
        first = _rest()
    except StopIteration:
        return items if kind is list else kind(items)
    items.append(first)
    for item in it:
        items.append(item)
    return items if kind is list else kind(items)


def after_item_of_sum_of_generator(total: Any, it: None) -> Any:
    generator = _rest()
    for item in generator:
        total = total + item
    return total


def after_item_of_sum(total: Any, it: Iterator[Any]) -> Any:
    try:
        first = _rest()
    except StopIteration:
        return total
    total = total + first
    for item in it:
        total = total + item
    return total


def after_filter(function: Callable[[Any], Any], item: Any, it: Iterator[Any]) -> Any:
    """Of a loop over it."""
    try:
        found = _rest()
    except StopIteration:
        return END
    if found:
        return item
    try:
        for item in it:
            if function(item):
                return item
    except StopIteration:
        pass
    return END


def after_operator(a: Any, b: Any, ways: tuple[tuple[bool, str], ...], symbol: str) -> Any:
    """Of a comparison as well. ``ways``: which other methods are asked, of the right operand or of the left one."""
    result = _rest()
    for of_right, name in ways:
        if result is not NotImplemented:
            return result
        method = getattr(type(b) if of_right else type(a), name, None)
        if method is not None:
            result = method(b, a) if of_right else method(a, b)
    if result is not NotImplemented:
        return result
    if symbol == "==":
        return a is b
    if symbol == "!=":
        return a is not b
    if symbol in ("<", "<=", ">", ">="):
        raise TypeError(f"'{symbol}' not supported between instances of '{type(a).__name__}' and '{type(b).__name__}'")
    raise TypeError(f"unsupported operand type(s) for {symbol}: '{type(a).__name__}' and '{type(b).__name__}'")


def _order(items: list[Any], keys: list[Any], reverse: bool) -> None:
    """Sorts ``items`` by keys that are there: comparisons, their order and what a failed one leaves behind are those of a sort."""
    each = iter(keys)
    items.sort(key=lambda item: next(each), reverse=reverse)


def _in_order(pairs: Any) -> list[Any]:
    keys = []
    while pairs is not None:
        pairs, key = pairs
        keys.append(key)
    keys.reverse()
    return keys


def after_key_of_sorted(
    items: list[Any], it: Iterator[Any], keys: Any, key: Callable[[Any], Any], reverse: bool
) -> list[Any]:
    """``keys``: those before and the last one, as pairs of pairs, since no guard looks at what is only passed on."""
    value = _rest()
    keys = keys, value
    for item in it:
        value = key(item)
        keys = keys, value
    _order(items, _in_order(keys), reverse)
    return items


def after_key_of_sort(
    target: list[Any], items: list[Any], it: Iterator[Any], keys: Any, key: Callable[[Any], Any], reverse: bool
) -> None:
    """A list is empty while it is sorted."""
    try:
        value = _rest()
        keys = keys, value
        for item in it:
            value = key(item)
            keys = keys, value
        _order(items, _in_order(keys), reverse)
        if list.__len__(target):
            raise ValueError("list modified during sort")
    finally:
        list.__setitem__(target, slice(None), items)  # whatever a class below says


def after_key_of_extreme(
    it: Iterator[Any], item: Any, best: Any, best_key: Any, key: Callable[[Any], Any], largest: bool
) -> Any:
    value = _rest()
    if best_key is MISSING or (value > best_key if largest else value < best_key):
        best, best_key = item, value
    for item in it:
        value = key(item)
        if value > best_key if largest else value < best_key:
            best, best_key = item, value
    return best


def reduce(function: Callable[[Any, Any], Any], iterable: Iterable[Any], initial: Any = MISSING) -> Any:
    try:
        it = iter(iterable)
    except TypeError:
        raise TypeError("reduce() arg 2 must support iteration") from None
    if initial is MISSING:
        try:
            value = next(it)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value") from None
    else:
        value = initial
    for item in it:
        value = function(value, item)
    return value


def call_in_vain(function: Callable[..., Any], *args: Any, **keywords: Any) -> None:
    """Of a function with a cache that raises: so that the cache knows how often it was asked."""
    try:
        function(*args, **keywords)
    except Exception:
        pass
