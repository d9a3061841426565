"""``bisect``: insertion."""

from __future__ import annotations

import _bisect
from typing import Any


def insort_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    wanted = x if key is None else key(x)
    at = lo
    end = len(a) if hi is None else hi
    while at < end and not wanted < (a[at] if key is None else key(a[at])):
        at += 1
    a.insert(at, x)


def insort_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    wanted = x if key is None else key(x)
    at = lo
    end = len(a) if hi is None else hi
    while at < end and (a[at] if key is None else key(a[at])) < wanted:
        at += 1
    a.insert(at, x)


REPLACEMENTS: dict[Any, Any] = {
    _bisect.insort_right: insort_right,
    _bisect.insort_left: insort_left,
}
