"""``collections``: what ``Counter`` counts with."""

from __future__ import annotations

import _collections  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any


def count_elements(mapping: Any, iterable: Iterable[Any]) -> None:
    for element in iterable:
        mapping[element] = mapping.get(element, 0) + 1


REPLACEMENTS: dict[Any, Any] = {
    _collections._count_elements: count_elements,
}
