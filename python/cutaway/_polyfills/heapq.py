"""``heapq``, for both orders."""

from __future__ import annotations

import _heapq
from typing import Any


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


REPLACEMENTS: dict[Any, Any] = {
    _heapq.heappush: heappush,
    _heapq.heappop: heappop,
    _heapq.heapreplace: heapreplace,
    _heapq.heappushpop: heappushpop,
    _heapq.heapify: heapify,
    _heapq._heappop_max: heappop_max,  # type: ignore[attr-defined]
    _heapq._heapreplace_max: heapreplace_max,  # type: ignore[attr-defined]
    _heapq._heapify_max: heapify_max,  # type: ignore[attr-defined]
}
