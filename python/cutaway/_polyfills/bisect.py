"""``bisect``: the same comparisons in the same order, where keys or items are Python's."""

from __future__ import annotations

import _bisect
from typing import Any

from torch import Tensor

from .answers import give_up


def _check(a: Any) -> None:
    if isinstance(a, (dict, set, frozenset, Tensor)):  # they have no places to look at, in C's eyes
        give_up("bisect is called with something that is no sequence")


def bisect_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
    _check(a)
    if lo < 0:
        raise ValueError("lo must be non-negative")
    end = len(a) if hi is None else hi
    while lo < end:
        middle = (lo + end) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            end = middle
        else:
            lo = middle + 1
    return lo


def bisect_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
    _check(a)
    if lo < 0:
        raise ValueError("lo must be non-negative")
    end = len(a) if hi is None else hi
    while lo < end:
        middle = (lo + end) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            end = middle
    return lo


def insort_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    place = bisect_right(a, x if key is None else key(x), lo, hi, key=key)  # before a is asked for `insert`
    a.insert(place, x)


def insort_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    place = bisect_left(a, x if key is None else key(x), lo, hi, key=key)  # before a is asked for `insert`
    a.insert(place, x)


REPLACEMENTS: dict[Any, Any] = {
    _bisect.bisect_right: bisect_right,
    _bisect.bisect_left: bisect_left,
    _bisect.insort_right: insort_right,
    _bisect.insort_left: insort_left,
}
