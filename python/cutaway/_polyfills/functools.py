"""``functools``: ``cmp_to_key``, ``cached_property``; ``reduce`` is in ``endings``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import endings
from .answers import give_up

_MISSING = object()


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

    def __hash__(self) -> int:
        give_up("a key made by functools.cmp_to_key is hashed")
        return 0


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
    try:
        cache = instance.__dict__
    except AttributeError:
        message = (
            f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {self.attrname!r} property."
        )
        raise TypeError(message) from None
    value = cache.get(self.attrname, _MISSING)
    if value is _MISSING:
        value = self.func(instance)
        try:
            cache[self.attrname] = value
        except TypeError:
            message = (
                f"The '__dict__' attribute on {type(instance).__name__!r} instance "
                f"does not support item assignment for caching {self.attrname!r} property."
            )
            raise TypeError(message) from None
    return value


REPLACEMENTS: dict[Any, Any] = {
    functools.reduce: endings.reduce,
    functools.cmp_to_key: cmp_to_key,
    functools.cached_property.__get__: cached_property_get,
    functools.cached_property.__init__: cached_property_init,
}
