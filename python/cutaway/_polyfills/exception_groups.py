"""Exception groups, and what ``except*`` does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .answers import give_up


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
        return BaseExceptionGroup("", (e,)), None
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


REPLACEMENTS: dict[Any, Any] = {
    BaseExceptionGroup.split: group_split,
    BaseExceptionGroup.subgroup: group_subgroup,
    BaseExceptionGroup.derive: group_derive,
}
