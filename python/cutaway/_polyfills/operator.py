"""``operator``: functions in the place of its getters."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


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


REPLACEMENTS: dict[Any, Any] = {
    operator.itemgetter: itemgetter,
    operator.attrgetter: attrgetter,
    operator.methodcaller: methodcaller,
}
