"""``copy``: ``copy`` and ``deepcopy``."""

from __future__ import annotations

import copy as _copy
from collections.abc import Callable
from typing import Any

from .answers import give_up, identity

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


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement


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
    elif type(memo) is not dict:
        give_up("copy.deepcopy() is called with a memo that is not a dict")
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
    custom = getattr(x, "__deepcopy__", None)
    if custom is not None:
        made = custom(memo)
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
    if not cls.__flags__ & _HEAP_TYPE:
        give_up("an object of C is copied")
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
    _copy.copy: copy,
    _copy.deepcopy: deepcopy,
}
